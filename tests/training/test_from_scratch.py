"""New encoders: the tokenizer that is trained, the folder that comes out, what is refused."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from command_line import Run
from docs_files import sentences
from sentence_transformers import SentenceTransformer
from training_cases import QUICK, interrupted_run, weight_bytes, weights

from sbertkit import AdaptConfig, Encoder, FromScratch, InputError, adapt
from sbertkit.training.pretraining.families import FAMILIES, TOKENIZERS
from sbertkit.training.pretraining.new_tokenizer import train_tokenizer
from sbertkit.training.pretraining.unigram import train_unigram

SIZES: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 66,
}
OTHER_SIZES: dict[str, dict[str, Any]] = {
    "distilbert": {"dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 64},
    "xlnet": {"d_model": 32, "n_layer": 2, "n_head": 2, "d_inner": 64},
    "longformer": {**SIZES, "attention_window": [4, 8]},
    "albert": {**SIZES, "embedding_size": 16},
    "electra": {**SIZES, "embedding_size": 16},
    "big_bird": {**SIZES, "block_size": 8},
}
VOCABULARY = {"wordpiece": 90, "bpe": 300, "unigram": 45}

pytestmark = pytest.mark.usefixtures("quick")


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.txt"
    path.write_text("\n".join(sentences()) + "\n", encoding="utf-8")
    return path


def config_file(folder: Path, kind: str = "bert", **more: Any) -> Path:
    path = folder / f"{kind}.json"
    content = {"model_type": kind, **OTHER_SIZES.get(kind, SIZES), **more}
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def settings(**more: Any) -> AdaptConfig:
    return AdaptConfig(**{**QUICK, "max_steps": 2, **more})


def scratch(folder: Path, kind: str = "bert", tokenizer: str = "wordpiece") -> FromScratch:
    path = config_file(folder, kind)
    return FromScratch(path, tokenizer=tokenizer, vocabulary=VOCABULARY[tokenizer])


# --- tokenizers


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_a_tokenizer_has_the_size_that_is_asked_for_and_loses_nothing(kind: str) -> None:
    special = FAMILIES["bert"]
    made = train_tokenizer(kind, sentences(), special, VOCABULARY[kind], lowercase=False)
    assert made.get_vocab_size() == VOCABULARY[kind]
    assert [made.token_to_id(token) for token in special.tokens] == [0, 1, 2, 3, 4]
    for text in ("two bakers eat bread by the sea", "a heron sings"):
        encoding = made.encode(text)
        assert (encoding.tokens[0], encoding.tokens[-1]) == ("[CLS]", "[SEP]")
        assert "[UNK]" not in encoding.tokens
        assert made.decode(encoding.ids).strip() == text
        assert len(encoding.ids) - 2 < len(text) / 1.5, "tokens are hardly longer than characters"


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_a_tokenizer_is_the_same_in_every_process(kind: str, tmp_path: Path) -> None:
    # Many pieces that occur equally often, between which only their order decides.
    texts = [f"{a}{b}{c} {c}{a} {b}{b}{a}" for a in "abcdefgh" for b in "ijklm" for c in "nopq"]
    code = (
        "import json, sys\n"
        "from sbertkit.training.pretraining.families import FAMILIES\n"
        "from sbertkit.training.pretraining.new_tokenizer import train_tokenizer\n"
        "texts, kind, size = json.loads(sys.argv[1])\n"
        "made = train_tokenizer(kind, texts, FAMILIES['bert'], size, lowercase=False)\n"
        "print(made.to_str())\n"
    )
    given = json.dumps([texts, kind, {"wordpiece": 120, "bpe": 330, "unigram": 80}[kind]])
    found = {
        subprocess.run(
            [sys.executable, "-c", code, given],
            check=True,
            capture_output=True,
            text=True,
            env={"PYTHONHASHSEED": str(seed), "TOKENIZERS_PARALLELISM": "true"},
        ).stdout
        for seed in range(4)
    }
    assert len(found) == 1


def test_the_case_is_dropped_where_that_is_asked_for() -> None:
    texts = [text.upper() for text in sentences()]
    for kind in TOKENIZERS:
        made = train_tokenizer(kind, texts, FAMILIES["bert"], VOCABULARY[kind], lowercase=True)
        assert made.encode("HERON").ids == made.encode("heron").ids
        kept = train_tokenizer(kind, texts, FAMILIES["bert"], VOCABULARY[kind], lowercase=False)
        assert kept.encode("HERON").ids != kept.encode("heron").ids


def test_the_pieces_of_a_unigram_model_are_the_frequent_words() -> None:
    words = {"_heron": 50, "_salt": 40, "_bread": 30, "_sa": 1, "_lead": 2}
    characters = sorted({character for word in words for character in word})
    seeds = [*characters, "_heron", "_salt", "_bread", "_sa", "lt", "ead", "_her", "ron"]
    found = train_unigram(words, seeds, len(characters) + 3)
    assert {piece for piece in found if len(piece) > 1} == {"_heron", "_salt", "_bread"}
    assert found["_heron"] > found["_salt"] > found["_bread"] > found["n"]
    assert {*characters} == set(train_unigram(words, seeds, 1)), "characters are never dropped"


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_a_vocabulary_that_does_not_suit_the_texts_is_refused(kind: str) -> None:
    for size, message in ((12, "smaller than the alphabet.*raise it"), (9_000, "too small")):
        with pytest.raises(InputError, match=message):
            train_tokenizer(kind, sentences(), FAMILIES["bert"], size, lowercase=False)
    with pytest.raises(InputError, match=r"yields ([\d,]+) tokens") as caught:
        train_tokenizer(kind, sentences(), FAMILIES["bert"], 9_000, lowercase=False)
    most = int(str(caught.value).split("yields ")[1].split(" ")[0].replace(",", ""))
    made = train_tokenizer(kind, sentences(), FAMILIES["bert"], most, lowercase=False)
    assert made.get_vocab_size() == most


# --- encoders


@pytest.mark.parametrize("kind", sorted(FAMILIES))
def test_each_family_is_made_and_trained_from_its_sizes(
    kind: str, corpus: Path, tmp_path: Path
) -> None:
    tokenizer = "bpe" if kind in ("roberta", "modernbert", "longformer") else "wordpiece"
    tokenizer = "unigram" if kind in ("albert", "xlnet", "xlm-roberta", "big_bird") else tokenizer
    base = scratch(tmp_path, kind, tokenizer)
    task = "tsdae" if kind == "xlnet" else "mlm"
    adapt(base, corpus, tmp_path / "out", task=task, pooling="mean", config=settings())
    encoder = Encoder.load(tmp_path / "out", device="cpu")
    hf, special = encoder.spec.tokenizer.hf, FAMILIES[kind]
    assert {role: getattr(hf, f"{role}_token") for role in special.roles} == special.roles
    assert encoder.torch.transformer.model.config.pad_token_id == hf.pad_token_id
    assert encoder.torch.transformer.model.config.model_type == kind
    assert len(encoder.torch.transformer.model.get_input_embeddings().weight) == len(hf)
    vectors = encoder.encode(["a heron eats"])
    other = SentenceTransformer(str(tmp_path / "out"), device="cpu").encode(["a heron eats"])
    assert np.abs(vectors - other).max() < 1e-5
    assert (tmp_path / "out" / "tokenizer.json").is_file()
    plain = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    ids = encoder.spec.tokenizer.tokenize(["a heron eats"], None)[0].ids
    assert plain("a heron eats")["input_ids"] == ids.tolist()


def test_the_longest_text_fits_the_positions(corpus: Path, tmp_path: Path) -> None:
    for kind, limit in (("bert", 66), ("roberta", 64), ("mpnet", 64)):
        adapt(scratch(tmp_path, kind), corpus, tmp_path / kind, pooling="mean", config=settings())
        encoder = Encoder.load(tmp_path / kind, device="cpu")
        assert encoder.max_tokens == limit
        assert np.isfinite(encoder.encode(["heron " * 200])).all()


def test_the_same_seed_and_corpus_give_the_same_encoder(corpus: Path, tmp_path: Path) -> None:
    for name, seed in (("one", 1), ("two", 1), ("other", 2)):
        adapt(
            scratch(tmp_path), corpus, tmp_path / name, pooling="mean", config=settings(seed=seed)
        )
    assert weight_bytes(tmp_path / "one") == weight_bytes(tmp_path / "two")
    assert (tmp_path / "one" / "tokenizer.json").read_bytes() == (
        tmp_path / "two" / "tokenizer.json"
    ).read_bytes()
    one, other = weights(tmp_path / "one"), weights(tmp_path / "other")
    assert not any(torch.equal(one[name], other[name]) for name in one if "query.weight" in name)


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
def test_an_interrupted_run_comes_to_the_same_weights(
    tokenizer: str, corpus: Path, tmp_path: Path
) -> None:
    base = scratch(tmp_path, tokenizer=tokenizer)
    config = settings(max_steps=12, checkpoint_steps=4)
    adapt(base, corpus, tmp_path / "whole", pooling="mean", config=config)
    with interrupted_run(7):
        adapt(base, corpus, tmp_path / "parts", pooling="mean", config=config)
    resumed = settings(max_steps=12, checkpoint_steps=4, resume=True)
    adapt(base, corpus, tmp_path / "parts", pooling="mean", config=resumed)
    assert weight_bytes(tmp_path / "parts") == weight_bytes(tmp_path / "whole")


def test_the_loss_on_held_out_texts_falls_and_the_base_is_named(
    corpus: Path, tmp_path: Path
) -> None:
    config = settings(max_steps=80, batch_size=32, learning_rate=5e-3, held_out=0.2)
    result = adapt(scratch(tmp_path), corpus, tmp_path / "out", pooling="mean", config=config)
    found = result.record["held_out"]
    assert found["after"]["held_out_loss"] < 0.7 * found["before"]["held_out_loss"]
    assert result.record["settings"]["guard"] is False
    assert result.record["base"] == "bert-from-scratch"
    assert str(tmp_path) not in json.dumps(result.record)


# --- what is refused


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("not json", "bad.json"),
        ("[1, 2]", "bad.json"),
        ("{}", "expected a model_type of albert, .*found none"),
        ('{"model_type": "gpt9"}', "expected a model_type of .*found 'gpt9'"),
        ('{"model_type": 7}', "expected a model_type of .*found 7"),
        ('{"model_type": ["bert"]}', "expected a model_type of"),
        (
            '{"model_type": "bert", "hidden_size": 30, "num_attention_heads": 7}',
            "no model can be built",
        ),
        ('{"model_type": "bert", "hidden_size": "wide"}', "bad.json"),
        ('{"model_type": "bert", "num_hidden_layers": 99999}', "num_hidden_layers is 99,999"),
        ('{"model_type": "bert", "hidden_size": 60000}', "expected at most"),
    ],
)
def test_a_config_file_that_makes_no_encoder_is_refused(
    content: str, message: str, corpus: Path, tmp_path: Path
) -> None:
    path = tmp_path / "bad.json"
    path.write_text(content, encoding="utf-8")
    refused(message, FromScratch(path, vocabulary=90), corpus)


def refused(message: str, base: FromScratch, corpus: Path) -> None:
    output = corpus.parent / "refused" / "out"
    with pytest.raises(InputError, match=message):
        adapt(base, corpus, output, pooling="mean", config=settings())
    assert not output.parent.exists()


def test_a_missing_config_file_is_refused(corpus: Path, tmp_path: Path) -> None:
    refused("missing.json", FromScratch(tmp_path / "missing.json"), corpus)


def test_a_corpus_that_is_too_small_for_the_vocabulary_of_the_file_is_refused(
    corpus: Path, tmp_path: Path
) -> None:
    refused("too small for a vocabulary of 30,522", FromScratch(config_file(tmp_path)), corpus)
    path = config_file(tmp_path, vocab_size=500)
    refused("too small for a vocabulary of 500", FromScratch(path), corpus)


def test_an_output_that_is_there_is_refused_before_anything_is_trained(
    corpus: Path, tmp_path: Path
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "file").touch()
    missing = FromScratch(tmp_path / "missing.json")
    with pytest.raises(InputError, match="is not empty"):
        adapt(missing, corpus, tmp_path / "out", config=settings())


def test_settings_are_checked() -> None:
    with pytest.raises(InputError, match="tokenizer must be one of wordpiece, bpe, unigram"):
        FromScratch("config.json", tokenizer="words")
    with pytest.raises(InputError, match="vocabulary must be at least 1"):
        FromScratch("config.json", vocabulary=0)


# --- the command


def test_the_command_makes_an_encoder(run: Run, corpus: Path, tmp_path: Path) -> None:
    more = ("--from-scratch", config_file(tmp_path), "--vocabulary", 90, "--lowercase")
    train = ("--max-steps", 2, "--device", "cpu", "--pooling", "mean")
    ran = run("adapt", corpus, *more, *train, "-o", tmp_path / "out")
    assert ran.status == 0, ran.err
    assert "held-out loss" in ran.out
    assert Encoder.load(tmp_path / "out", device="cpu").encode(["a heron"]).shape == (1, 32)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "expected one of --base and --from-scratch"),
        (("--base", "m", "--from-scratch", "c.json"), "expected one of --base and --from-scratch"),
        (("--base", "m", "--vocabulary", "90"), "--vocabulary needs --from-scratch"),
        (("--base", "m", "--tokenizer", "bpe"), "--tokenizer needs --from-scratch"),
    ],
)
def test_the_command_takes_either_a_base_or_a_config_file(
    options: tuple[str, ...], message: str, run: Run, corpus: Path, tmp_path: Path
) -> None:
    ran = run("adapt", corpus, *options, "-o", tmp_path / "out")
    assert (ran.status, ran.out) == (2, "")
    assert message in ran.err
