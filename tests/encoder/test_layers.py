"""Encoders of some layers of another one, of every architecture."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_models
import torch
from tiny_parts import TEXTS

from sbertkit import Encoder, InputError, InputTypeError
from sbertkit.encoder.layers import choose_layers, with_layers

WORDS = [text for text in TEXTS if text]
SEPARABLE = (
    "bert",
    "roberta",
    "distilbert",
    "mpnet",
    "electra",
    "xlnet",
    "deberta_v2",
    "xlm_roberta",
    "ernie",
    "longformer",
    "gpt2",
    "llama",
    "clip_text",
)
"""Any of their layers form an encoder."""
FIRST_ALONE = ("t5", "byte_t5", "modernbert")
"""Their lowest layer differs from the others."""


def load(folder: Path, **more: Any) -> Encoder:
    return Encoder.load(folder, pooling="mean", device="cpu", backend="torch", **more)


@pytest.fixture(scope="module")
def deep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.bert(tmp_path_factory.mktemp("deep") / "bert", num_hidden_layers=6)


@pytest.mark.parametrize(
    ("layers", "count", "chosen"),
    [
        (3, 6, (0, 2, 5)),
        (4, 6, (0, 2, 3, 5)),
        (2, 6, (0, 5)),
        (1, 6, (0,)),
        (6, 6, (0, 1, 2, 3, 4, 5)),
        (6, 12, (0, 2, 4, 7, 9, 11)),  # those of DistilBERT
        ((1, 4), 6, (1, 4)),
        ([5], 6, (5,)),
        (np.int64(2), 4, (0, 3)),
    ],
)
def test_layers_are_evenly_spaced_or_those_named(
    layers: Any, count: int, chosen: tuple[int, ...]
) -> None:
    assert choose_layers(layers, count, "m") == chosen


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        (7, r"asks for 7 layers, but m has 6; ask for fewer"),
        ((0, 6), r"names layer 6, but m has 6, numbered from 0 to 5; found 0,6"),
        ((0, 2, 2), r"must be distinct and ascending numbers, found 0,2,2"),
        ((2, 0), r"must be distinct and ascending numbers, found 2,0"),
        ((-1, 2), r"a layer must be at least 0"),
        (0, r"layers must be at least 1"),
    ],
)
def test_layers_that_there_are_not_are_refused(layers: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        choose_layers(layers, 6, "m")


@pytest.mark.parametrize("layers", ["0,2", 1.5, True, ()])
def test_what_are_no_layers_are_refused(layers: Any) -> None:
    with pytest.raises(InputTypeError):
        choose_layers(layers, 6, "m")


def test_the_encoder_computes_what_it_does_without_the_other_layers(deep: Path) -> None:
    """The oracle leaves them out of the running model itself."""
    whole, other = load(deep), load(deep)
    before = whole.encode(WORDS)
    student = with_layers(whole, [1, 2, 4])
    layers = other.torch.transformer.model.encoder.layer
    other.torch.transformer.model.encoder.layer = torch.nn.ModuleList(
        layers[number] for number in (1, 2, 4)
    )
    np.testing.assert_allclose(student.encode(WORDS), other.encode(WORDS), atol=1e-6)
    np.testing.assert_array_equal(whole.encode(WORDS), before)  # stays as it is
    assert student.torch.transformer.layer_count == 3


@pytest.mark.parametrize("architecture", [*SEPARABLE, *FIRST_ALONE])
def test_layers_of_every_architecture_are_saved_and_read_again(
    architecture: str, tiny_folder: Callable[..., Path], tmp_path: Path, plain: Callable[..., Any]
) -> None:
    whole = load(tiny_folder(architecture))
    student = with_layers(whole, 1)
    assert student.torch.transformer.layer_count == 1
    found = student.encode(WORDS)
    assert np.abs(found - whole.encode(WORDS)).max() > 1e-3
    student.save(tmp_path / "student")
    again = Encoder.load(tmp_path / "student", device="cpu", backend="torch")
    np.testing.assert_allclose(again.encode(WORDS), found, atol=1e-6)
    assert again.fingerprint == student.fingerprint
    if architecture in ("bert", "albert", "t5"):
        np.testing.assert_allclose(plain(tmp_path / "student").encode(WORDS), found, atol=1e-5)


@pytest.mark.parametrize("architecture", SEPARABLE)
def test_a_higher_layer_alone_is_one_too(
    architecture: str, tiny_folder: Callable[..., Path], tmp_path: Path
) -> None:
    whole = load(tiny_folder(architecture))
    student, lowest = with_layers(whole, [1]), with_layers(whole, [0])
    assert np.abs(student.encode(WORDS) - lowest.encode(WORDS)).max() > 1e-3
    student.save(tmp_path / "student")
    again = Encoder.load(tmp_path / "student", device="cpu", backend="torch")
    np.testing.assert_allclose(again.encode(WORDS), student.encode(WORDS), atol=1e-6)


@pytest.mark.parametrize("architecture", FIRST_ALONE)
def test_a_higher_layer_that_is_no_lowest_one_is_refused(
    architecture: str, tiny_folder: Callable[..., Path]
) -> None:
    with pytest.raises(InputError, match=r"layers 1 do not form a .*layer 0 first"):
        with_layers(load(tiny_folder(architecture)), [1])


def test_shared_layers_are_run_fewer_times(tmp_path: Path) -> None:
    folder = tiny_models.albert(tmp_path / "albert", num_hidden_layers=4)
    whole = load(folder)
    student = with_layers(whole, 2)
    again = tiny_models.albert(tmp_path / "two", num_hidden_layers=2)  # of the same seed
    np.testing.assert_allclose(student.encode(WORDS), load(again).encode(WORDS), atol=1e-6)


def test_first_and_last_are_those_of_the_student(deep: Path, tmp_path: Path) -> None:
    whole = Encoder.load(deep, pooling="first_last", device="cpu", backend="torch")
    student = with_layers(whole, 3)
    assert student.torch.network.pooling.layers == (1, 3)
    student.save(tmp_path / "student")
    again = Encoder.load(tmp_path / "student", device="cpu", backend="torch")
    np.testing.assert_allclose(again.encode(WORDS), student.encode(WORDS), atol=1e-6)
