"""Models made for long texts: every length, in every company, as the library computes it alone."""

import random
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_families
import tiny_models
import torch
import transformers
from tiny_models import POSITIONS

from sbertkit.arrays import Vectors
from sbertkit.encoder import Encoder
from sbertkit.encoder.backends.torch import TorchBackend
from sbertkit.encoder.batching import Batch
from sbertkit.errors import InputError

SAME = 1e-5
FAMILIES = ("longformer", "big_bird", "modernbert")
POOLINGS = ("cls", "mean")
LONG = "Two bakers argue about salt while a heron stands in the shallow water. " * 4
SETTINGS = {"big_bird": {"attention_type": "original_full"}}
"""How the library is to load a model; else a short text changes the vectors of what follows."""

EXPORT_BACKENDS = ["onnx", *(["openvino"] if find_spec("openvino") else [])]


def texts_of_every_length(encoder: Encoder) -> list[str]:
    """One text for each number of tokens from 1 to the limit, and one that is truncated."""
    by_length: dict[int, str] = {}
    for text in ("a", *(LONG[:end] for end in range(1, len(LONG)))):
        (tokens,) = encoder.spec.tokenize([text])
        by_length.setdefault(len(tokens.ids) + tokens.truncated, text)
    special = len(encoder.tokenizer.special)
    lengths = range(special + 1, POSITIONS + 1)
    assert set(lengths) <= by_length.keys()
    return [*(by_length[length] for length in lengths), LONG]


def states_by_hand(folder: Path, family: str, texts: list[str]) -> list[Vectors]:
    """The token vectors (T, dim) of each text alone, without padding, by the library itself."""
    model = transformers.AutoModel.from_pretrained(folder, **SETTINGS.get(family, {})).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    found = []
    for text in texts:
        inputs = tokenizer(text, return_tensors="pt", truncation=True, max_length=POSITIONS)
        if family == "longformer":
            inputs["global_attention_mask"] = torch.zeros_like(inputs["input_ids"])
            inputs["global_attention_mask"][0, 0] = 1
        with torch.no_grad():
            found.append(model(**inputs).last_hidden_state[0].numpy())
    return found


def pooled(states: list[Vectors], pooling: str) -> Vectors:
    rows = [state[0] if pooling == "cls" else state.mean(axis=0) for state in states]
    return np.array(rows)


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("family", FAMILIES)
def test_every_length_has_its_vector_whatever_is_beside_or_before_it(
    tiny_folder: Callable[[str], Path], family: str, pooling: str
) -> None:
    folder = tiny_folder(family)
    encoder = Encoder.load(folder, pooling=pooling, normalize=False)
    texts = texts_of_every_length(encoder)
    expected = pooled(states_by_hand(folder, family, texts), pooling)
    order = list(range(len(texts)))
    for seed, batch_tokens in enumerate((1, 60, 200, 100_000)):
        random.Random(seed).shuffle(order)
        found = encoder.encode([texts[row] for row in order], batch_tokens=batch_tokens)
        assert np.abs(found - expected[order]).max() <= SAME
    for row in (0, -1, 1, -2, len(texts) // 2, -1):  # short and long in turn
        assert np.abs(encoder.encode(texts[row]) - expected[row]).max() <= SAME


@pytest.mark.parametrize("family", FAMILIES)
def test_a_saved_model_has_the_same_fingerprint_and_vectors_again_and_again(
    tiny_folder: Callable[[str], Path], tmp_path: Path, family: str
) -> None:
    encoder = Encoder.load(tiny_folder(family), pooling="mean")
    texts = texts_of_every_length(encoder)
    expected = encoder.encode(texts)
    for name in ("first", "second"):
        encoder.save(tmp_path / name)
        encoder = Encoder.load(tmp_path / name)
        assert np.abs(encoder.encode(texts) - expected).max() <= SAME
    assert encoder.fingerprint == Encoder.load(tiny_folder(family), pooling="mean").fingerprint


@pytest.mark.parametrize("family", FAMILIES)
def test_the_limit_can_be_raised_to_the_positions_and_no_further(
    tiny_copy: Callable[..., Path], family: str
) -> None:
    folder = tiny_models.declare(tiny_copy(family), max_seq_length=16)
    raised = Encoder.load(folder, max_tokens=POSITIONS)
    assert Encoder.load(folder).max_tokens == 16
    assert raised.encode_with_report([LONG[:60]]).report.truncated == ()
    refusal = rf"max_tokens {POSITIONS + 1} is more than the {POSITIONS} positions of [^\n]*$"
    with pytest.raises(InputError, match=refusal):
        Encoder.load(folder, max_tokens=POSITIONS + 1)
    with pytest.raises(InputError, match=refusal):
        raised.max_tokens = POSITIONS + 1
    assert raised.max_tokens == POSITIONS


def test_padding_to_a_window_counts_in_the_tokens_per_batch(
    tiny_folder: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = Encoder.load(tiny_folder("longformer"), pooling="mean")
    sizes: list[int] = []
    embed = TorchBackend.embed

    def seen(backend: TorchBackend, batch: Batch) -> Vectors:
        window = max(tiny_families.WINDOWS)
        sizes.append(len(batch.rows) * -(-batch.input_ids.shape[1] // window) * window)
        return embed(backend, batch)

    monkeypatch.setattr(TorchBackend, "embed", seen)
    texts = [f"{number}" for number in range(20)]
    assert encoder.encode(texts, batch_tokens=32).shape == (20, encoder.dim)
    assert max(sizes) == 32


# --- global attention


def declared_vectors(
    folder: Path, plain: Callable[[Path], Any], texts: list[str]
) -> tuple[Encoder, Vectors]:
    """The encoder of a sentence-transformers folder, and what that library makes of it."""
    vectors: Vectors = plain(folder).encode(texts, batch_size=4)
    encoder = Encoder.load(folder)
    assert np.abs(encoder.encode(texts) - vectors).max() <= SAME
    return encoder, vectors


def test_global_attention_is_declared_so_that_sentence_transformers_gives_it_too(
    tiny_folder: Callable[[str], Path], tmp_path: Path, plain: Callable[[Path], Any]
) -> None:
    encoder = Encoder.load(tiny_folder("longformer"), pooling="mean")
    assert any("query_global" in name for name in encoder.torch.used_parameters)
    texts = texts_of_every_length(encoder)
    expected = encoder.encode(texts)
    encoder.save(tmp_path / "ours")
    again, vectors = declared_vectors(tmp_path / "ours", plain, texts)
    assert np.abs(vectors - expected).max() <= SAME
    plain(tmp_path / "ours").save(str(tmp_path / "theirs"), create_model_card=False)
    theirs, vectors = declared_vectors(tmp_path / "theirs", plain, texts)
    assert np.abs(vectors - expected).max() <= SAME
    assert theirs.fingerprint == again.fingerprint == encoder.fingerprint


def test_a_model_made_with_sentence_transformers_has_none_as_it_was_trained(
    tiny_copy: Callable[..., Path],
    tiny_folder: Callable[[str], Path],
    tmp_path: Path,
    plain: Callable[[Path], Any],
) -> None:
    folder = tiny_models.declare(tiny_copy("longformer"), "Normalize", max_seq_length=POSITIONS)
    with_it = Encoder.load(tiny_folder("longformer"), pooling="mean")
    texts = texts_of_every_length(with_it)
    encoder, vectors = declared_vectors(folder, plain, texts)
    assert not any("query_global" in name for name in encoder.torch.used_parameters)
    assert np.abs(with_it.encode(texts) - vectors).max() > 0.1
    assert with_it.fingerprint != encoder.fingerprint
    encoder.save(tmp_path / "saved")
    saved, again = declared_vectors(tmp_path / "saved", plain, texts)
    assert np.abs(again - vectors).max() <= SAME
    assert saved.fingerprint == encoder.fingerprint


def test_its_declaration_is_refused_for_another_model(
    tiny_folder: Callable[[str], Path], tiny_copy: Callable[..., Path], tmp_path: Path
) -> None:
    Encoder.load(tiny_folder("longformer"), pooling="mean").save(tmp_path / "saved")
    declared = tiny_models.read_json(tmp_path / "saved" / "sentence_bert_config.json")
    folder = tiny_models.declare(tiny_copy("roberta"))
    tiny_models.edit_json(folder / "sentence_bert_config.json", **declared)
    with pytest.raises(InputError, match="task 'sequence-classification' is not supported"):
        Encoder.load(folder)


# --- exports


@pytest.mark.parametrize("write", [tiny_families.big_bird, tiny_families.modernbert])
def test_an_export_is_exact_to_the_whole_length(
    write: Callable[[Path, int], Path], tmp_path: Path
) -> None:
    encoder = Encoder.load(write(tmp_path / "model", 2_000), pooling="mean", device="cpu")
    encoder.export(tmp_path / "export")
    texts = [LONG[:end] for end in (1, 9, 50, 280)] + [LONG * 2, LONG * 5, LONG * 30]
    expected = encoder.encode(texts)
    for backend in EXPORT_BACKENDS:
        loaded = Encoder.load(tmp_path / "export", backend=backend)
        assert loaded.fingerprint == encoder.fingerprint
        assert np.abs(loaded.encode(texts) - expected).max() <= SAME
        assert np.abs(loaded.encode(texts[-1]) - expected[-1]).max() <= SAME


def test_a_model_that_cannot_be_exported_is_run_by_torch(
    tiny_folder: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("sbertkit.encoder.torch_runtime.EXPORT_FROM", 1)
    encoder = Encoder.load(tiny_folder("longformer"), pooling="mean", device="cpu")
    assert np.isfinite(encoder.encode([LONG, "x"])).all()
    assert encoder.backend == "torch"
    forced = Encoder.load(tiny_folder("longformer"), pooling="mean", device="cpu", backend="onnx")
    with pytest.raises(InputError, match="use backend torch"):
        forced.encode([LONG])
