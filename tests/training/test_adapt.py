"""Runs of `adapt`: heads as those of the library, every family, resuming, what is refused."""

import html
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_models
import torch
import transformers
from command_line import Run
from docs_files import sentences
from sentence_transformers import SentenceTransformer
from tiny_parts import BERT_SPECIAL, POSITIONS, seeded, sizes, word_pieces, write
from training_cases import QUICK, interrupted_run, weight_bytes, weights, write_dev

from sbertkit import (
    AdaptConfig,
    DeletedWords,
    DropoutPairs,
    Encoder,
    InputError,
    InputTypeError,
    MaskedSpans,
    MaskedTokens,
    MaskedWords,
    TrainConfig,
    TrainResult,
    adapt,
)
from sbertkit.training.pretraining.heads import lm_head
from sbertkit.training.pretraining.tasks import TASKS
from sbertkit.training.report.curves import draw_curves

FAMILIES = [
    *("bert", "roberta", "distilbert", "mpnet", "albert", "electra", "ernie"),
    *("deberta_v2", "xlm_roberta", "modernbert", "longformer", "big_bird"),
]
MLM = {
    name: getattr(transformers, f"{kind}ForMaskedLM")
    for name, kind in {
        "bert": "Bert",
        "roberta": "Roberta",
        "distilbert": "DistilBert",
        "mpnet": "MPNet",
        "albert": "Albert",
        "electra": "Electra",
        "ernie": "Ernie",
        "deberta_v2": "DebertaV2",
        "xlm_roberta": "XLMRoberta",
        "modernbert": "ModernBert",
        "longformer": "Longformer",
        "big_bird": "BigBird",
    }.items()
}


JOINT = "mlm,sop"

pytestmark = pytest.mark.usefixtures("quick")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny sentence encoder."""
    root = tmp_path_factory.mktemp("base")
    plain = tiny_models.bert(root / "plain", initializer_range=0.05)
    Encoder.load(plain, pooling="mean", device="cpu").save(root / "encoder")
    return root / "encoder"


@pytest.fixture(scope="module")
def xlnet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny XLNet."""
    return tiny_models.xlnet(tmp_path_factory.mktemp("xlnet") / "model")


@pytest.fixture
def base_of(base: Path, xlnet: Path) -> Callable[[str], Path]:
    """A base that suits a task."""
    return lambda task: xlnet if task == "plm" else base


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Documents of six lines; tasks of texts take each line for one."""
    path = tmp_path / "corpus.txt"
    lines = sentences()
    parts = ("\n".join(lines[start : start + 6]) for start in range(0, len(lines), 6))
    path.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return path


def numbered_lines() -> str:
    """Documents of six lines with a topic, the number of the line and a random letter."""
    random = np.random.default_rng(0)
    return "\n\n".join(
        "\n".join(f"{topic * 3} {line}{line} {random.choice(list('xyzuvw'))}" for line in range(6))
        for topic in "abcdefgh" * 20
    )


def config(**more: Any) -> AdaptConfig:
    return AdaptConfig(**{**QUICK, "learning_rate": 1e-3, "max_steps": 6, "guard": False, **more})


def held_out(result: TrainResult) -> tuple[dict[str, float], dict[str, float]]:
    found = result.record["held_out"]
    return found["before"], found["after"]


# --- the course of a run


@pytest.mark.parametrize("task", [*TASKS, JOINT])
def test_the_loss_on_held_out_texts_falls(
    task: str, base_of: Callable[[str], Path], corpus: Path, tmp_path: Path
) -> None:
    if task in ("nsp", "sop"):
        corpus.write_text(numbered_lines(), encoding="utf-8")
    rate = {"simcse": 5e-4, "nsp": 3e-3, "sop": 2e-3}.get(task, 5e-3)
    steps = 300 if task == "nsp" else 80  # it has to compare the topics of both segments
    settings = config(batch_size=32, max_steps=steps, learning_rate=rate, held_out=0.2)
    output = tmp_path / "out"
    result = adapt(base_of(task), corpus, output, task=task, pooling="mean", config=settings)
    before, after = held_out(result)
    assert after["held_out_loss"] < 0.7 * before["held_out_loss"]
    assert after["held_out_accuracy"] >= before["held_out_accuracy"]
    logged = [row for row in result.log if "held_out_loss" in row]
    assert (logged[0]["step"], logged[-1]["step"]) == (0, steps)
    assert logged[-1]["held_out_loss"] == pytest.approx(after["held_out_loss"], rel=1e-4)
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert "Held-out texts" in card
    for name in task.split(","):
        assert TASKS[name].formula in html.unescape(card)


def test_each_loss_of_two_tasks_is_logged(base: Path, corpus: Path, tmp_path: Path) -> None:
    result = adapt(base, corpus, tmp_path / "out", task=("sop", "mlm"), config=config(max_steps=10))
    assert result.record["objective"] == JOINT
    before, after = held_out(result)
    for measured in (before, after):
        parts = [measured[f"held_out_loss {name}"] for name in ("mlm", "sop")]
        assert measured["held_out_loss"] == pytest.approx(sum(parts))
        assert measured["held_out_accuracy"] == measured["held_out_accuracy mlm"]
        assert 0 <= measured["held_out_accuracy sop"] <= 1
    steps = [row for row in result.log if "loss" in row]
    assert len(steps) == 10
    for row in steps:
        assert row["loss"] == pytest.approx(row["loss mlm"] + row["loss sop"], abs=1e-3)
    names = {"masked-lm.safetensors", "segment-order.safetensors"}
    assert {path.name for path in (tmp_path / "out" / "pretraining").iterdir()} == names
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert "Loss sop" in card
    titles = ("Loss by set or task", "Held-out loss by task", "Held-out accuracy by task")
    assert all(title in draw_curves(result.log) for title in titles)


@pytest.mark.parametrize("task", [*TASKS, JOINT])
def test_the_folder_loads_in_both_libraries_with_the_same_vectors(
    task: str, base_of: Callable[[str], Path], corpus: Path, tmp_path: Path
) -> None:
    base = base_of(task)
    adapt(base, corpus, tmp_path / "out", task=task, pooling="mean", config=config(max_steps=2))
    vectors = Encoder.load(tmp_path / "out", device="cpu").encode(["a heron eats"])
    other = SentenceTransformer(str(tmp_path / "out"), device="cpu").encode(["a heron eats"])
    assert np.abs(vectors - other).max() < 1e-5
    model, found = transformers.AutoModel.from_pretrained(
        tmp_path / "out", output_loading_info=True
    )
    assert not [name for name in found["missing_keys"] if "pooler" not in name]
    assert type(model).__name__ == ("XLNetModel" if task == "plm" else "BertModel")


@pytest.mark.parametrize(
    "task", [*TASKS, JOINT, "static", "pack", "lora", "accumulation", "tokens"]
)
def test_a_run_that_is_interrupted_comes_to_the_same_weights(
    task: str, base_of: Callable[[str], Path], corpus: Path, tmp_path: Path
) -> None:
    base = base_of(task)
    kinds: dict[str, Any] = {"static": MaskedTokens(static=2), JOINT: JOINT}
    kind = kinds.get(task, task if task in TASKS else "wwm")
    more: dict[str, dict[str, Any]] = {
        "pack": {"pack": True},
        "lora": {"lora": 2},
        "accumulation": {"accumulation": 2},
        "tokens": {"batch_size": 64, "batch_tokens": 300},
    }
    settings = {"batch_size": 32, "max_steps": 14, "checkpoint_steps": 4, **more.get(task, {})}
    adapt(base, corpus, tmp_path / "whole", task=kind, config=config(**settings))
    with interrupted_run(9):
        adapt(base, corpus, tmp_path / "parts", task=kind, config=config(**settings))
    adapt(base, corpus, tmp_path / "parts", task=kind, config=config(**settings, resume=True))
    assert weight_bytes(tmp_path / "parts") == weight_bytes(tmp_path / "whole")


@pytest.mark.parametrize("task", ["nsp", "rtd", "plm", JOINT])
def test_a_later_run_continues_from_the_heads_of_its_task(
    task: str, base_of: Callable[[str], Path], corpus: Path, tmp_path: Path
) -> None:
    settings = config(max_steps=8)
    one = adapt(base_of(task), corpus, tmp_path / "one", task=task, config=settings)
    two = adapt(tmp_path / "one", corpus, tmp_path / "two", task=task, config=settings)
    assert held_out(two)[0] == pytest.approx(held_out(one)[1])


def test_a_later_run_continues_from_the_heads(base: Path, corpus: Path, tmp_path: Path) -> None:
    one = adapt(base, corpus, tmp_path / "one", task="span", config=config(max_steps=20))
    two = adapt(tmp_path / "one", corpus, tmp_path / "two", task="span", config=config())
    assert held_out(two)[0] == pytest.approx(held_out(one)[1])
    names = {"masked-lm.safetensors", "span-boundary.safetensors"}
    assert {path.name for path in (tmp_path / "two" / "pretraining").iterdir()} == names
    mlm = adapt(tmp_path / "one", corpus, tmp_path / "mlm", config=config(max_steps=1))
    assert mlm.record["objective"] == "mlm"


def test_held_out_texts_are_not_trained_on_and_repeats_stay_together(
    base: Path, tmp_path: Path
) -> None:
    path = tmp_path / "twice.txt"
    path.write_text("\n".join([*sentences()[:40]] * 2) + "\n", encoding="utf-8")
    result = adapt(base, path, tmp_path / "out", config=config(held_out=0.25))
    assert result.record["held_out"]["texts"] == 10
    assert result.record["examples"] == 2 * 30


def test_a_dev_set_chooses_the_best_checkpoint(base: Path, corpus: Path, tmp_path: Path) -> None:
    dev = write_dev(tmp_path / "dev.tsv")
    settings = config(checkpoint_steps=2)
    result = adapt(base, corpus, tmp_path / "out", dev=dev, config=settings)
    assert result.after.dev_score is not None
    assert result.record["best_step"] in (2, 4, 6)


def test_frozen_layers_stay(base: Path, corpus: Path, tmp_path: Path) -> None:
    adapt(base, corpus, tmp_path / "out", task="wwm", config=config(freeze_layers=1))
    before, after = weights(base), weights(tmp_path / "out")
    same = {name for name in before if torch.equal(before[name], after[name])}
    assert any("word_embeddings" in name for name in same)
    assert any("layer.0." in name for name in same)
    assert not any("layer.1.attention.self.query.weight" in name for name in same)


# --- heads and families


@pytest.mark.parametrize("family", FAMILIES)
def test_the_head_of_a_checkpoint_gives_the_scores_of_the_library(
    family: str, tmp_path: Path
) -> None:
    folder = tiny_models.ARCHITECTURES[family](tmp_path / "model")
    settings = transformers.AutoConfig.from_pretrained(folder)
    torch.manual_seed(3)
    model = MLM[family](settings).eval()
    for parameter in model.parameters():  # biases are not zero in a trained model
        parameter.data += 0.05 * torch.randn_like(parameter)
    model.save_pretrained(folder)
    encoder = Encoder.load(folder, pooling="mean", device="cpu")
    ids = torch.tensor([_ids(encoder)])
    with torch.no_grad():
        expected = model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits
        states = model.base_model(input_ids=ids, attention_mask=torch.ones_like(ids))[0]
        embedding = encoder.torch.transformer.model.get_input_embeddings().weight
        found = lm_head(encoder)(states, embedding)
    assert torch.allclose(found, expected, atol=2e-4)


def _ids(encoder: Encoder) -> list[int]:
    spec = encoder.torch.spec
    found: list[int] = spec.tokenizer.tokenize(["two bakers eat"], None)[0].ids.tolist()
    return found


@pytest.mark.parametrize("task", list(TASKS))
@pytest.mark.parametrize("family", [*FAMILIES, "xlnet"])
def test_each_family_takes_one_optimizer_step(
    family: str, task: str, corpus: Path, tmp_path: Path
) -> None:
    folder = tiny_models.ARCHITECTURES[family](tmp_path / "model")
    suits = task in ("plm", "simcse", "tsdae") if family == "xlnet" else task != "plm"
    if not suits:
        refused("does not suit", folder, corpus, task=task)
        return
    if family in ("modernbert", "albert") and task == "simcse":  # by their default settings
        refused("no dropout", folder, corpus, task=task)
        return
    settings = config(max_steps=1)
    adapt(folder, corpus, tmp_path / "out", task=task, pooling="mean", config=settings)
    trained = Encoder.load(tmp_path / "out", device="cpu").encode(["a heron eats"])
    before = Encoder.load(folder, pooling="mean", device="cpu").encode(["a heron eats"])
    assert np.isfinite(trained).all()
    assert not np.allclose(trained, before)


OTHERS = ["nomic_bert", "xlnet", "t5", "gpt2", "llama", "clip_text"]
"""Families that never saw a mask, or whose tokenizer has none."""


@pytest.mark.parametrize("family", OTHERS)
def test_a_text_is_rebuilt_from_the_vector_of_every_family(
    family: str, corpus: Path, tmp_path: Path
) -> None:
    folder = tiny_models.ARCHITECTURES[family](tmp_path / "model")
    pooling = "eos" if family in ("gpt2", "llama", "clip_text") else "mean"
    settings = config(max_steps=1)
    adapt(folder, corpus, tmp_path / "out", task="tsdae", pooling=pooling, config=settings)
    trained = Encoder.load(tmp_path / "out", device="cpu").encode(["a heron eats"])
    before = Encoder.load(folder, pooling=pooling, device="cpu").encode(["a heron eats"])
    assert np.isfinite(trained).all()
    assert not np.allclose(trained, before)


@pytest.mark.parametrize("task", ["tsdae", "retromae"])
def test_decoders_are_kept_and_a_later_run_continues_from_them(
    task: str, base: Path, corpus: Path, tmp_path: Path
) -> None:
    one = adapt(base, corpus, tmp_path / "one", task=task, config=config(max_steps=20))
    two = adapt(tmp_path / "one", corpus, tmp_path / "two", task=task, config=config())
    assert held_out(two)[0] == pytest.approx(held_out(one)[1])
    names = {
        "tsdae": {"denoising-decoder.safetensors"},
        "retromae": {"masked-lm.safetensors", "enhanced-decoder.safetensors"},
    }
    assert {path.name for path in (tmp_path / "two" / "pretraining").iterdir()} == names[task]


def test_a_decoder_of_several_layers_is_no_other_one(
    base: Path, corpus: Path, tmp_path: Path
) -> None:
    task = DeletedWords(decoder_layers=2)
    adapt(base, corpus, tmp_path / "one", task=task, config=config(max_steps=1))
    message = r"expected no such weights, found \(\d+.*give the options that it was trained with"
    refused(message, tmp_path / "one", corpus, task="tsdae")


# --- what is refused


def refused(message: str, base: Path, corpus: Path, **more: Any) -> None:
    output = corpus.parent / "refused" / "out"
    with pytest.raises(InputError, match=message):
        adapt(base, corpus, output, **{"config": config(), **more})
    assert not output.parent.exists()


def test_a_base_without_the_mask_token_is_refused(corpus: Path, tmp_path: Path) -> None:
    folder = tiny_models.t5(tmp_path / "t5")
    refused("no mask token.*tasks that suit it.*simcse, tsdae", folder, corpus)


def test_a_family_that_never_saw_a_mask_is_refused(corpus: Path, tmp_path: Path) -> None:
    folder = tiny_models.xlnet(tmp_path / "xlnet")
    message = r"does not suit.*xlnet.*tasks that suit it: plm, simcse, tsdae$"
    for task in ("mlm", "wwm", "span", "nsp", "sop", "rtd", "retromae", "span,nsp"):
        refused(message, folder, corpus, task=task)


def test_the_objective_of_xlnet_is_refused_for_others(base: Path, corpus: Path) -> None:
    suits = "mlm, wwm, span, nsp, sop, rtd, simcse, tsdae, retromae"
    refused(f"plm does not suit.*whose type is bert.*: {suits}$", base, corpus, task="plm")


def test_a_tokenizer_without_places_is_refused(corpus: Path, tmp_path: Path) -> None:
    refused("no mask token|written in Python", tiny_models.byte_t5(tmp_path / "byt5"), corpus)


@pytest.mark.parametrize("content", ["one line\n", "one line\n\none line\n"])
def test_a_corpus_of_one_text_is_refused(content: str, base: Path, tmp_path: Path) -> None:
    path = tmp_path / "one.txt"
    path.write_text(content, encoding="utf-8")
    refused("one.txt: expected several different texts", base, path)


@pytest.mark.parametrize("task", ["nsp", "sop", "mlm,nsp"])
def test_a_corpus_of_one_document_is_refused(task: str, base: Path, tmp_path: Path) -> None:
    path = tmp_path / "one.txt"
    path.write_text("one line\nand another\n", encoding="utf-8")
    least = 2 if task == "sop" else 4
    refused(f"one.txt: expected at least {least} different documents", base, path, task=task)


@pytest.mark.parametrize("task", ["nsp", "wwm,sop"])
def test_documents_of_one_segment_are_refused(task: str, base: Path, tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    path.write_text("\n\n".join(sentences()), encoding="utf-8")
    refused("needs documents of several sentences or lines, found none", base, path, task=task)


def test_held_out_documents_of_one_segment_are_refused(base: Path, tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    path.write_text("\n\n".join([*sentences(), "a heron\nsings"] * 2), encoding="utf-8")
    with pytest.raises(InputError, match="nothing that is held out is an example for the task sop"):
        adapt(base, path, tmp_path / "out", task="sop", config=config(seed=_seed_without(path)))


def _seed_without(path: Path) -> int:
    """A seed with which the only document of two lines is trained on."""
    from sbertkit.training.pretraining.adapt import _held_out

    texts = [*sentences(), "a heron\nsings"]
    share = AdaptConfig().held_out
    return next(seed for seed in range(99) if texts[-1] not in _held_out(texts, share, seed, 1))


def test_a_corpus_of_single_tokens_is_refused(base: Path, tmp_path: Path) -> None:
    path = tmp_path / "letters.txt"
    path.write_text("\n".join("abcdefghijk") + "\n", encoding="utf-8")
    refused("no text has two", base, path)
    refused("keeps one, but no text has two", base, path, task="tsdae")
    refused("no text has two", base, path, task="retromae")


def test_a_corpus_without_words_of_several_tokens_is_refused(base: Path, tmp_path: Path) -> None:
    path = tmp_path / "letters.txt"
    path.write_text("\n".join(f"{a} {b}" for a in "abcdef" for b in "xyz") + "\n", encoding="utf-8")
    refused("no word of the corpus has more than one token", base, path, task="wwm")
    similar = MaskedWords(similar=True)  # of single tokens too
    found = adapt(base, path, tmp_path / "out", task=similar, config=config(max_steps=1))
    assert found.steps == 1


def test_batches_of_one_text_teach_nothing_of_dropout_pairs(base: Path, corpus: Path) -> None:
    refused("no batch has two", base, corpus, task="simcse", config=config(batch_size=1))


def test_settings_that_do_not_apply_are_refused(base: Path, corpus: Path, tmp_path: Path) -> None:
    refused("mini_batch", base, corpus, config=config(mini_batch=2))
    refused("split", base, corpus, config=config(split="train"))
    refused("matryoshka", base, corpus, config=config(matryoshka=(8,)))
    refused("raise it, or lower", base, corpus, config=config(batch_size=64, batch_tokens=2))
    with pytest.raises(InputError, match="do not go together"):
        config(batch_tokens=100)
    refused("task must be one of mlm, wwm, span", base, corpus, task="cloze")
    for both in ("mlm,wwm", "nsp,sop", "simcse,sop", "mlm,sop,nsp", "rtd,sop", "retromae,sop"):
        message = f"one of mlm, wwm, span with one of nsp, sop, found {both[:3]}"
        refused(message, base, corpus, task=both)
    refused("pack", base, corpus, task="mlm,sop", config=config(pack=True))
    refused("found none", base, corpus, task=())
    with pytest.raises(InputTypeError, match="must be an AdaptConfig"):
        adapt(base, corpus, tmp_path / "out", config=TrainConfig())  # type: ignore[arg-type]


def test_a_head_of_another_size_is_refused(base: Path, corpus: Path, tmp_path: Path) -> None:
    adapt(base, corpus, tmp_path / "one", config=config(max_steps=1))
    vocab = word_pieces(BERT_SPECIAL)
    small = transformers.BertConfig(**sizes(len(vocab), hidden_size=16))
    tokenizer = transformers.BertTokenizer(vocab=vocab, model_max_length=POSITIONS)
    folder = write(tmp_path / "small", seeded(small, transformers.BertModel), tokenizer)
    (tmp_path / "one" / "pretraining").rename(folder / "pretraining")
    with pytest.raises(InputError, match=r": expected \(\d+.*remove the file") as caught:
        adapt(folder, corpus, tmp_path / "two", config=config())
    assert len(str(caught.value)) < 500


# --- the command


def test_the_command_trains_and_prints_the_held_out_loss(
    run: Run, base: Path, corpus: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    more = ("--max-steps", 2, "--device", "cpu", "--mask", 0.3, "--task", "span")
    ran = run("adapt", corpus, "--base", base, "-o", out, *more)
    assert ran.status == 0, ran.err
    assert "held-out loss" in ran.out
    settings = json.loads((out / "sbertkit.json").read_bytes())["lineage"]["settings"]
    assert (settings["mask"], settings["span_p"]) == (0.3, 0.2)


def test_the_command_takes_two_tasks_with_the_options_of_both(
    run: Run, base: Path, corpus: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    more = ("--max-steps", 2, "--device", "cpu", "--mask", 0.3, "--task", "nsp,wwm")
    ran = run("adapt", corpus, "--base", base, "-o", out, *more)
    assert ran.status == 0, ran.err
    assert "held-out loss nsp" in ran.out
    lineage = json.loads((out / "sbertkit.json").read_bytes())["lineage"]
    assert (lineage["objective"], lineage["settings"]["mask"]) == ("wwm,nsp", 0.3)


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        (("--task", "mlm", "--similar"), 2, "--similar needs --task wwm"),
        (("--task", "cloze"), 2, "expected one of mlm, wwm, span"),
        (("--generator", "3"), 2, "--generator needs --task rtd"),
        (("--task", "mlm,span"), 1, "expected one task"),
        (("--task", "sop", "--mask", "0.2"), 2, "--mask needs --task mlm"),
        (("--mask", "0"), 2, "--mask"),
        (("--mask", "1.5"), 2, "--mask"),
    ],
)
def test_the_command_refuses_what_does_nothing(
    options: tuple[str, ...],
    status: int,
    message: str,
    run: Run,
    base: Path,
    corpus: Path,
    tmp_path: Path,
) -> None:
    ran = run("adapt", corpus, "--base", base, "-o", tmp_path / "out", *options)
    assert (ran.status, ran.out) == (status, "")
    assert message in ran.err
    assert not (tmp_path / "out").exists()


def test_the_loss_of_dropout_pairs_is_that_of_the_formula() -> None:
    first, second = torch.randn(2, 5, 6, generator=torch.Generator().manual_seed(2)).unbind()
    passes = iter((first, second))

    def network(*_: Any) -> torch.Tensor:
        return next(passes)

    keys = torch.tensor([1, 2, 3, 2, 4])
    batch = {"input_ids": keys[:, None], "mask": keys[:, None], "keys": keys}
    stand_in: Any = network
    found = DropoutPairs(temperature=0.1).token_loss(stand_in, batch, torch.nn.Identity())
    losses, right = [], 0
    for row in range(5):
        scores = {
            other: float(torch.cosine_similarity(first[row], second[other], dim=0)) / 0.1
            for other in range(5)
            if other == row or keys[other] != keys[row]
        }
        losses.append(np.log(sum(np.exp(score) for score in scores.values())) - scores[row])
        right += max(scores, key=lambda other: scores[other]) == row
    assert float(found.loss) == pytest.approx(np.mean(losses), rel=1e-5)
    assert (int(found.correct), found.total) == (right, 5)


def test_dropout_pairs_need_dropout(corpus: Path, tmp_path: Path) -> None:
    still = tiny_models.bert(
        tmp_path / "still", hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
    )
    refused("no dropout", still, corpus, task="simcse")


def test_options_in_the_record_are_those_of_the_task(base: Path, tmp_path: Path) -> None:
    assert MaskedWords().options == {"mask": 0.15, "static": None, "similar": False}
    assert MaskedSpans(boundary=False).options["boundary"] is False
