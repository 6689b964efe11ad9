"""Saved folders: plain sentence-transformers loads them and gives the same vectors."""

import json
import logging
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_models
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from test_pooling import POOLINGS

from sbertkit.encoder import Encoder
from sbertkit.errors import InputError, StorageError

SAME = 1e-5
LONG = "a very long text " * 30
TEXTS = [text for text in tiny_models.TEXTS if text] + [LONG, "two bakers"]


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def assert_same(found: Any, expected: Any) -> None:
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() <= SAME


CASES = [
    (architecture, pooling)
    for architecture in tiny_models.ARCHITECTURES
    for pooling in POOLINGS
    if pooling in ("mean", "eos", "first_last") or architecture in ("bert", "xlnet", "llama")
]


@pytest.mark.parametrize(("architecture", "pooling"), CASES)
def test_plain_sentence_transformers_gives_the_same_vectors(
    tiny_folder: Callable[[str], Path],
    tmp_path: Path,
    plain: Callable[[Path], Any],
    architecture: str,
    pooling: str,
) -> None:
    encoder = Encoder.load(tiny_folder(architecture), pooling=pooling, normalize=False)
    expected = encoder.encode(TEXTS)
    encoder.save(tmp_path / "saved")
    assert_same(Encoder.load(tmp_path / "saved").encode(TEXTS), expected)
    model = plain(tmp_path / "saved")
    assert_same(model.encode(TEXTS, batch_size=4), expected)
    assert model.get_embedding_dimension() == encoder.dim
    if encoder.max_tokens is not None:
        assert model.max_seq_length == encoder.max_tokens


@pytest.mark.parametrize(
    "modules",
    [
        (),
        ("Normalize",),
        ("Dense",),
        ("Dense", "LayerNorm", "Dropout", "Dense", "Normalize"),
        ("Normalize", "Dense"),
        ("Dropout",),
    ],
)
@pytest.mark.parametrize("mode", ["mean", "lasttoken", "max"])
def test_folders_of_sentence_transformers_give_its_vectors_before_and_after_saving(
    tiny_copy: Callable[..., Path],
    tmp_path: Path,
    plain: Callable[[Path], Any],
    modules: tuple[str, ...],
    mode: str,
) -> None:
    folder = tiny_models.declare(tiny_copy(), *modules, mode=mode, max_seq_length=20)
    expected = plain(folder).encode(TEXTS)
    encoder = Encoder.load(folder)
    assert_same(encoder.encode(TEXTS), expected)
    encoder.save(tmp_path / "saved")
    assert_same(plain(tmp_path / "saved").encode(TEXTS), expected)
    assert_same(Encoder.load(tmp_path / "saved").encode(TEXTS), expected)


def test_folders_that_sentence_transformers_saves_are_read(
    tiny_copy: Callable[..., Path], tmp_path: Path, plain: Callable[[Path], Any]
) -> None:
    modules = ("Dense", "LayerNorm", "Dropout", "Normalize")
    model = plain(tiny_models.declare(tiny_copy(), *modules, max_seq_length=20))
    model.save(str(tmp_path / "theirs"), create_model_card=False)
    encoder = Encoder.load(tmp_path / "theirs")
    assert encoder.max_tokens == 20
    assert_same(encoder.encode(TEXTS), model.encode(TEXTS))


@pytest.mark.parametrize(
    ("declared", "default"),
    [
        ({"query": "q: ", "document": "d: "}, "document"),
        ({"query": "q: ", "passage": "p: "}, None),
        ({"query": "q: "}, "query"),
        ({"s": "sts: "}, "s"),
        ({}, None),
    ],
)
def test_prompts_are_kept(
    tiny_copy: Callable[..., Path],
    tmp_path: Path,
    plain: Callable[[Path], Any],
    declared: dict[str, str],
    default: str | None,
) -> None:
    folder = tiny_models.declare(tiny_copy(), prompts=declared, default_prompt_name=default)
    encoder = Encoder.load(folder)
    encoder.save(tmp_path / "saved")
    again, model = Encoder.load(tmp_path / "saved"), plain(tmp_path / "saved")
    assert again.prompts == encoder.prompts
    queries, documents = encoder.encode(TEXTS, kind="query"), encoder.encode(TEXTS)
    assert_same(again.encode(TEXTS, kind="query"), queries)
    assert_same(again.encode(TEXTS), documents)
    assert_same(model.encode_query(TEXTS), queries)
    assert_same(model.encode_document(TEXTS), documents)
    assert_same(model.encode(TEXTS), documents)
    assert_same(model.encode(TEXTS, prompt_name="query"), queries)


def test_all_that_a_model_declares_is_kept(
    tiny_copy: Callable[..., Path], tmp_path: Path, plain: Callable[[Path], Any]
) -> None:
    prompts = {"query": "q: ", "document": "", "clustering": "group: ", "STS": "sts: "}
    folder = tiny_models.declare(tiny_copy(), prompts=prompts, default_prompt_name="STS")
    settings = folder / "config_sentence_transformers.json"
    tiny_models.edit_json(settings, similarity_fn_name="dot", made_by={"name": "us"})
    encoder = Encoder.load(folder)
    variant = encoder.variant(encoder.torch.network.pooling, encoder.torch.postprocessors)
    for place, saved in (("one", encoder), ("two", variant)):
        saved.save(tmp_path / place)
        written = tmp_path / place / "config_sentence_transformers.json"
        assert tiny_models.read_json(written) == tiny_models.read_json(settings)
    again, model, theirs = Encoder.load(tmp_path / "one"), plain(tmp_path / "one"), plain(folder)
    assert again.fingerprint == encoder.fingerprint
    assert model.similarity_fn_name == "dot"
    for name in prompts:
        expected = theirs.encode(TEXTS, prompt_name=name)
        assert_same(model.encode(TEXTS, prompt_name=name), expected)
    assert_same(again.encode(TEXTS), theirs.encode_document(TEXTS))
    assert_same(model.encode_document(TEXTS), theirs.encode_document(TEXTS))
    assert_same(again.encode(TEXTS, kind="query"), theirs.encode_query(TEXTS))


def test_given_prompts_come_before_a_declared_default(
    tiny_copy: Callable[..., Path], tmp_path: Path, plain: Callable[[Path], Any]
) -> None:
    folder = tiny_models.declare(tiny_copy(), prompts={"s": "sts: "}, default_prompt_name="s")
    for number, prompts in enumerate(({}, {"document": "d: "})):
        encoder = Encoder.load(folder, prompts=prompts)
        saved = tmp_path / str(number)
        encoder.save(saved)
        assert Encoder.load(saved).prompts == encoder.prompts
        assert_same(plain(saved).encode(TEXTS), encoder.encode(TEXTS))


def test_a_tokenizer_without_any_special_token_batches_in_sentence_transformers(
    tiny_copy: Callable[..., Path], tmp_path: Path, plain: Callable[[Path], Any]
) -> None:
    folder = tiny_copy("gpt2")
    tokenizer = tiny_models.read_json(folder / "tokenizer.json")
    tokenizer["added_tokens"] = []
    tiny_models.write_json(folder / "tokenizer.json", tokenizer)
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 64}
    tiny_models.write_json(folder / "tokenizer_config.json", config)
    (folder / "special_tokens_map.json").unlink(missing_ok=True)
    encoder = Encoder.load(folder, pooling="mean")
    assert encoder.tokenizer.hf.special_tokens_map == {}
    encoder.save(tmp_path / "saved")
    assert Encoder.load(tmp_path / "saved").fingerprint == encoder.fingerprint
    assert_same(plain(tmp_path / "saved").encode(TEXTS, batch_size=4), encoder.encode(TEXTS))


def test_prompts_switched_off_stay_off(
    tiny_copy: Callable[..., Path], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tiny_copy(name="e5-small-v2")
    Encoder.load(folder, pooling="mean", prompts={}).save(tmp_path / "bge-small-en")
    assert Encoder.load(tmp_path / "bge-small-en").prompts == ("", "")
    assert [record for record in caplog.records if "prompts" in record.getMessage()] == []


@pytest.mark.parametrize("architecture", ["roberta", "gpt2", "llama"])
@pytest.mark.parametrize("pooling", ["mean", "eos"])
def test_lower_casing_is_kept(
    tiny_copy: Callable[..., Path],
    tmp_path: Path,
    plain: Callable[[Path], Any],
    architecture: str,
    pooling: str,
) -> None:
    folder = tiny_models.declare(tiny_copy(architecture))
    tiny_models.edit_json(folder / "sentence_bert_config.json", do_lower_case=True)
    encoder = Encoder.load(folder, pooling=pooling)
    expected = encoder.encode(["Two BAKERS", "two bakers", "ÉCOLE"])
    assert np.array_equal(expected[0], expected[1])
    encoder.save(tmp_path / "saved")
    again = Encoder.load(tmp_path / "saved")
    assert again.fingerprint == encoder.fingerprint
    assert_same(again.encode(["Two BAKERS", "two bakers", "ÉCOLE"]), expected)
    assert_same(plain(tmp_path / "saved").encode(["Two BAKERS", "two bakers", "ÉCOLE"]), expected)


@pytest.mark.parametrize("architecture", ["bert", "roberta", "xlnet", "gpt2"])
def test_cutting_on_the_left_is_kept(
    tiny_copy: Callable[..., Path],
    tmp_path: Path,
    plain: Callable[[Path], Any],
    architecture: str,
) -> None:
    folder = tiny_copy(architecture)
    tiny_models.edit_json(folder / "tokenizer_config.json", truncation_side="left")
    encoder = Encoder.load(folder, pooling="mean", max_tokens=9)
    texts = ["the beginning and the end", "another beginning and the end"]
    expected = encoder.encode(texts)
    encoder.save(tmp_path / "saved")
    assert_same(Encoder.load(tmp_path / "saved").encode(texts), expected)
    assert_same(plain(tmp_path / "saved").encode(texts), expected)


@pytest.mark.parametrize("architecture", ["bert", "roberta", "gpt2"])
def test_a_model_with_absolute_positions_is_padded_right_whatever_its_tokenizer_says(
    tiny_copy: Callable[..., Path],
    tmp_path: Path,
    plain: Callable[[Path], Any],
    architecture: str,
) -> None:
    folder = tiny_copy(architecture)
    right = Encoder.load(folder, pooling="mean").encode(TEXTS)
    tiny_models.edit_json(folder / "tokenizer_config.json", padding_side="left")
    encoder = Encoder.load(folder, pooling="mean")
    assert_same(encoder.encode(TEXTS), right)
    encoder.save(tmp_path / "saved")
    assert_same(plain(tmp_path / "saved").encode(TEXTS), right)


@pytest.mark.parametrize("architecture", ["bert", "t5", "gpt2", "clip", "xlnet", "llama"])
def test_saving_does_not_change_the_loaded_encoder(
    tiny_folder: Callable[[str], Path], tmp_path: Path, architecture: str
) -> None:
    encoder = Encoder.load(
        tiny_folder(architecture), pooling="first_last", max_tokens=20, prompts={"query": "q"}
    )
    tokenizer, config = encoder.tokenizer.hf, encoder.torch.transformer.model.config

    def state() -> tuple[Any, ...]:
        return (
            tokenizer.padding_side,
            tokenizer.model_max_length,
            tokenizer.pad_token,
            encoder.tokenizer.canonical_json(),
            getattr(config, "output_hidden_states", None),
            {name: tensor.dtype for name, tensor in encoder.torch.network.state_dict().items()},
        )

    before, vectors = state(), encoder.encode(TEXTS)
    encoder.save(tmp_path / "one")
    assert state() == before
    assert np.array_equal(encoder.encode(TEXTS), vectors)
    encoder.save(tmp_path / "two")
    assert files_of(tmp_path / "one") == files_of(tmp_path / "two")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_checkpoints_compute_and_save_in_single(
    tmp_path: Path, tiny_bert: Path, plain: Callable[[Path], Any], dtype: str
) -> None:
    import torch
    import transformers

    half = transformers.BertModel.from_pretrained(tiny_bert, dtype=getattr(torch, dtype))
    tiny_models._write(
        tmp_path / "half", half, transformers.AutoTokenizer.from_pretrained(tiny_bert)
    )
    assert tiny_models.read_json(tmp_path / "half" / "config.json")["dtype"] == dtype
    encoder = Encoder.load(tmp_path / "half", pooling="mean")
    vectors = encoder.encode(TEXTS)
    assert vectors.dtype == np.float32
    single = transformers.BertModel.from_pretrained(tmp_path / "half", dtype=torch.float32)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny_bert)
    with torch.no_grad():
        states = single(**tokenizer(TEXTS[0], return_tensors="pt")).last_hidden_state[0]
    mean = states.mean(dim=0)
    assert np.abs(vectors[0] - (mean / mean.norm()).numpy()).max() <= SAME
    encoder.save(tmp_path / "saved")
    assert tiny_models.read_json(tmp_path / "saved" / "config.json")["dtype"] == "float32"
    with safe_open(tmp_path / "saved" / "model.safetensors", "pt") as weights:
        assert {weights.get_tensor(name).dtype for name in weights.keys()}  # noqa: SIM118 == {torch.float32}
    assert Encoder.load(tmp_path / "saved").fingerprint == encoder.fingerprint
    assert_same(plain(tmp_path / "saved").encode(TEXTS), vectors)


def test_only_safetensors_and_no_pickle_are_written(tiny_encoder: Encoder, tmp_path: Path) -> None:
    tiny_encoder.save(tmp_path / "saved")
    endings = {path.suffix for path in (tmp_path / "saved").rglob("*") if path.is_file()}
    assert endings == {".json", ".safetensors"}


def test_the_folder_says_where_it_comes_from(
    tiny_bert: Path, tiny_encoder: Encoder, tmp_path: Path
) -> None:
    tiny_encoder.save(tmp_path / "saved")
    lineage = tiny_models.read_json(tmp_path / "saved" / "sbertkit.json")
    assert lineage["fingerprint"] == tiny_encoder.fingerprint
    assert lineage["lineage"] == {"base": tiny_bert.name, "pooling": "mean"}


def test_nothing_is_printed_on_the_way(
    tiny_bert: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    encoder = Encoder.load(tiny_bert, pooling="mean")
    encoder.save(tmp_path / "saved")
    Encoder.load(tmp_path / "saved").encode(["a"])
    captured = capfd.readouterr()
    assert (captured.out, captured.err) == ("", "")
    assert caplog.records == []


def test_an_earlier_saved_model_is_replaced_as_a_whole(
    tiny_encoder: Encoder, tiny_copy: Callable[..., Path], tmp_path: Path
) -> None:
    Encoder.load(tiny_models.declare(tiny_copy(), "Dense", "Normalize")).save(tmp_path / "saved")
    tiny_encoder.save(tmp_path / "saved")
    tiny_encoder.save(tmp_path / "fresh")
    assert files_of(tmp_path / "saved") == files_of(tmp_path / "fresh")
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_an_encoder_can_be_saved_over_the_folder_it_was_loaded_from(
    tiny_encoder: Encoder, tmp_path: Path
) -> None:
    tiny_encoder.save(tmp_path / "saved")
    encoder = Encoder.load(tmp_path / "saved")
    vectors = encoder.encode(TEXTS)
    encoder.save(tmp_path / "saved")
    assert np.array_equal(encoder.encode(TEXTS), vectors)
    assert Encoder.load(tmp_path / "saved").fingerprint == tiny_encoder.fingerprint


def test_new_and_empty_folders_are_taken(tiny_encoder: Encoder, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("empty", "new", "deep/er/down"):
        tiny_encoder.save(tmp_path / name)
        assert (tmp_path / name / "modules.json").is_file()


def test_folders_that_sbertkit_did_not_write_are_left_alone(
    tiny_encoder: Encoder, tiny_copy: Callable[..., Path], tmp_path: Path
) -> None:
    (tmp_path / "diary").mkdir()
    (tmp_path / "diary" / "monday.txt").write_text("rain")
    for folder in (tmp_path / "diary", tiny_models.declare(tiny_copy())):
        before = files_of(folder)
        with pytest.raises(InputError, match="which sbertkit did not write there"):
            tiny_encoder.save(folder)
        assert files_of(folder) == before


def test_a_file_put_into_a_saved_model_is_not_lost(tiny_encoder: Encoder, tmp_path: Path) -> None:
    tiny_encoder.save(tmp_path / "m")
    tiny_encoder.save(tmp_path / "m")
    (tmp_path / "m" / "notes.txt").write_text("mine")
    before = files_of(tmp_path / "m")
    with pytest.raises(InputError, match=r"holds notes\.txt, which sbertkit did not write there"):
        tiny_encoder.save(tmp_path / "m")
    assert files_of(tmp_path / "m") == before


def test_a_link_to_a_model_stays_a_link(tiny_encoder: Encoder, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    tiny_encoder.save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / "modules.json").is_file()


@pytest.mark.parametrize("place", ["", "a\0b"])
def test_an_impossible_place_is_refused(tiny_encoder: Encoder, place: str) -> None:
    with pytest.raises(InputError, match="expected the path"):
        tiny_encoder.save(place)


def test_a_name_too_long_is_a_storage_error(tiny_encoder: Encoder, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="name is too long"):
        tiny_encoder.save(tmp_path / ("x" * 300))


def test_a_file_in_the_place_is_left_alone(tiny_encoder: Encoder, tmp_path: Path) -> None:
    path = tmp_path / "notes"
    path.write_text("mine")
    with pytest.raises(InputError, match="is a file; expected a folder"):
        tiny_encoder.save(path)
    with pytest.raises((InputError, StorageError)):
        tiny_encoder.save(path / "below")
    assert path.read_text() == "mine"


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Lets no file grow beyond a size, as a full disk does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("size", [100, 20_000, 60_000])
def test_a_full_disk_leaves_the_earlier_model_and_nothing_else(
    tiny_encoder: Encoder, tiny_copy: Callable[..., Path], tmp_path: Path, size: int
) -> None:
    tiny_encoder.save(tmp_path / "saved")
    before = files_of(tmp_path / "saved")
    other = Encoder.load(tiny_copy("roberta"), pooling="cls")
    for folder in ("saved", "new"):
        with largest_file(size), pytest.raises(StorageError, match="cannot write"):
            other.save(tmp_path / folder)
    assert files_of(tmp_path / "saved") == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["roberta", "saved"]


def test_the_bundled_model_is_saved_and_loaded_with_the_same_vectors(
    bundled_encoder: Encoder, tmp_path: Path, plain: Callable[[Path], Any]
) -> None:
    texts = ["A man is eating food.", "", "word " * 200, "Ωμέγα", "漢字とかな", "two\nlines"]
    expected = bundled_encoder.encode(texts)
    bundled_encoder.save(tmp_path / "saved")
    assert_same(plain(tmp_path / "saved").encode(texts), expected)
    again = Encoder.load(tmp_path / "saved")
    assert again.fingerprint == bundled_encoder.fingerprint
    assert again.max_tokens == 256
    assert json.loads((tmp_path / "saved" / "sbertkit.json").read_text())["lineage"]["base"] == (
        "all-MiniLM-L6-v2"
    )


def test_sentence_transformers_makes_no_pooler_that_a_model_lacks(
    tiny_copy: Callable[..., Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tiny_copy("bert")
    weights = load_file(folder / "model.safetensors")
    kept = {name: one for name, one in weights.items() if not name.startswith("pooler.")}
    assert len(kept) < len(weights)
    save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})
    encoder = Encoder.load(folder, pooling="mean")
    encoder.save(tmp_path / "saved")
    from sentence_transformers import SentenceTransformer

    capfd.readouterr()
    model = SentenceTransformer(str(tmp_path / "saved"))
    heard = capfd.readouterr()
    assert "pooler" not in heard.out + heard.err
    assert np.allclose(model.encode(["a boat"]), encoder.encode(["a boat"]), atol=1e-6)
