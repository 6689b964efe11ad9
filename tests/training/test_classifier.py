"""The classification head: its files, what is refused, and pairs classified by it."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from sbertkit import ClassifiedPair, classify_pairs
from sbertkit.data.nli import NLI_LABELS
from sbertkit.encoder import Encoder
from sbertkit.errors import InputError, InputTypeError
from sbertkit.training.heads import read_head, write_heads
from sbertkit.training.objectives import Contrastive, Softmax
from sbertkit.training.objectives.softmax import FEATURES

DIM = 6
PAIRS = [
    ("Two bakers argue about salt", "Bakers talk"),
    ("A heron stands in the shallow water.", "A bird is in the water"),
    ("x", "y"),
    ("x", "x"),
    ("Two bakers argue about salt", "Bakers talk"),
]


def write(
    folder: Path, dim: int = DIM, features: tuple[str, ...] = ("u", "v", "abs_diff")
) -> torch.nn.Linear:
    """Writes a head, and gives its layer."""
    torch.manual_seed(5)
    objective = Softmax(features)
    head = objective.make_head(dim)
    with torch.no_grad():
        head.weight.mul_(20)  # probabilities far from one third
    write_heads(head, objective, dim, folder)
    return head


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a head in it."""
    write(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def models(tiny_bert: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Path]:
    """Models with a head, with vectors of unit length and without."""
    made = {}
    for normalize in (True, False):
        encoder = Encoder.load(tiny_bert, pooling="mean", normalize=normalize, device="cpu")
        made[normalize] = tmp_path_factory.mktemp("model") / str(normalize)
        encoder.save(made[normalize])
        write(made[normalize], encoder.dim, FEATURES)
    return made


# --- files


@pytest.mark.parametrize(
    "features", [("u",), ("u", "v", "abs_diff"), ("product", "v"), tuple(reversed(FEATURES))]
)
def test_a_head_that_was_written_is_read(tmp_path: Path, features: tuple[str, ...]) -> None:
    head = write(tmp_path, features=features)
    found = read_head(tmp_path)
    assert found is not None
    assert (found.objective, found.dim) == (Softmax(features), DIM)
    assert not found.module.training
    for name, tensor in head.state_dict().items():
        assert torch.equal(found.module.state_dict()[name], tensor)


pytestmark = pytest.mark.usefixtures("empty_cache")


def test_the_files_say_what_the_head_is(folder: Path) -> None:
    assert sorted(path.name for path in folder.iterdir()) == ["head"]
    files = sorted(path.name for path in (folder / "head").iterdir())
    assert files == ["config.json", "model.safetensors"]
    assert json.loads((folder / "head" / "config.json").read_text()) == {
        "objective": "softmax",
        "options": {"features": ["u", "v", "abs_diff"]},
        "labels": list(NLI_LABELS),
        "dim": DIM,
    }


def test_an_objective_without_a_head_writes_nothing(tmp_path: Path) -> None:
    objective = Contrastive()
    write_heads(objective.make_head(DIM), objective, DIM, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_without_a_head_has_none(tmp_path: Path) -> None:
    assert read_head(tmp_path) is None
    assert read_head(tmp_path / "none") is None
    (tmp_path / "head").touch()
    assert read_head(tmp_path) is None


def refused(folder: Path) -> str:
    with pytest.raises(InputError) as caught:
        read_head(folder)
    message = str(caught.value)
    assert "head" in message
    assert "\n" not in message
    assert len(message) < 600
    return message


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_missing_file_is_refused(folder: Path, name: str) -> None:
    (folder / "head" / name).unlink()
    assert name in refused(folder)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_file_cut_anywhere_is_refused(folder: Path, name: str) -> None:
    path = folder / "head" / name
    whole = path.read_bytes()
    for length in range(0, len(whole.rstrip()), 3):
        path.write_bytes(whole[:length])
        refused(folder)


def test_a_flipped_byte_of_the_settings_is_refused_or_changes_nothing(folder: Path) -> None:
    path = folder / "head" / "config.json"
    whole = path.read_bytes()
    for place in range(len(whole)):
        changed = bytearray(whole)
        changed[place] ^= 1 << place % 5
        path.write_bytes(changed)
        try:
            found = read_head(folder)
        except InputError:
            continue
        assert found is not None
        assert (found.objective, found.dim) == (Softmax(), DIM)


@pytest.mark.parametrize(
    "change",
    [
        {"labels": ["contradiction", "entailment", "neutral"]},
        {"labels": ["entailment", "contradiction"]},
        {"labels": None},
        {"labels": 3},
        {"options": {"features": ["u", "v", "min"]}},
        {"options": {"features": ["u", "v"]}},
        {"options": {"features": ["u", "u", "v", "v"]}},
        {"options": {"features": [["u"]]}},
        {"options": {"features": None}},
        {"options": {"features": ["u", "v", "abs_diff"], "rank": 3}},
        {"options": None},
        {"objective": "contrastive"},
        {"objective": "unknown"},
        {"objective": None},
        {"dim": DIM + 1},
        {"dim": 0},
        {"dim": -3},
        {"dim": None},
        {"dim": "six"},
        {"dim": 1e400},
        {"dim": 10**30},
    ],
)
def test_settings_that_do_not_fit_are_refused(folder: Path, change: dict[str, Any]) -> None:
    path = folder / "head" / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    refused(folder)


@pytest.mark.parametrize("content", ["[]", "3", "null", '"u"', "{}", "\xff"])
def test_settings_that_are_no_object_are_refused(folder: Path, content: str) -> None:
    (folder / "head" / "config.json").write_text(content, encoding="latin-1")
    refused(folder)


@pytest.mark.parametrize("change", ["missing", "more", "shape", "nan", "other"])
def test_weights_that_do_not_fit_are_refused(folder: Path, change: str) -> None:
    path = folder / "head" / "model.safetensors"
    weights = {name: tensor.clone() for name, tensor in load_file(path).items()}
    if change == "missing":
        del weights["bias"]
    elif change == "more":
        weights["scale"] = torch.ones(3)
    elif change == "shape":
        weights["weight"] = weights["weight"].T.contiguous()
    elif change == "nan":
        weights["weight"][1, 2] = torch.nan
    save_file(weights, path)
    if change == "other":
        path.write_bytes(b"PK\x03\x04 a pickle")
    refused(folder)


# --- classification


def by_hand(model: Path, premise: str, hypothesis: str) -> list[float]:
    """The softmax of W [u; v; |u - v|; u * v] + b in float64."""
    encoder = Encoder.load(model, device="cpu")
    u, v = encoder.encode([premise, hypothesis]).astype(np.float64)
    weights = load_file(model / "head" / "model.safetensors")
    weight, bias = (weights[name].double().numpy() for name in ("weight", "bias"))
    scores = weight @ np.concatenate([u, v, np.abs(u - v), u * v]) + bias
    shares = np.exp(scores - scores.max())
    return list(shares / shares.sum())


@pytest.mark.parametrize("normalize", [True, False])
def test_probabilities_are_the_softmax_of_the_formula(
    models: dict[bool, Path], normalize: bool
) -> None:
    model = models[normalize]
    found = classify_pairs(model, PAIRS, device="cpu")
    assert len(found) == len(PAIRS)
    for pair, classified in zip(PAIRS, found, strict=True):
        expected = by_hand(model, *pair)
        assert isinstance(classified, ClassifiedPair)
        assert list(classified.probabilities) == list(NLI_LABELS)
        assert list(classified.probabilities.values()) == pytest.approx(expected, abs=1e-4)
        assert classified.label == NLI_LABELS[int(np.argmax(expected))]
        assert sum(classified.probabilities.values()) == pytest.approx(1, abs=1e-6)
    assert found[0] == found[4]


@pytest.mark.parametrize("label", NLI_LABELS)
def test_the_label_is_the_likeliest(models: dict[bool, Path], tmp_path: Path, label: str) -> None:
    model = shutil.copytree(models[True], tmp_path / "model")
    path = model / "head" / "model.safetensors"
    weights = load_file(path)
    weights["bias"] = torch.tensor([100.0 * (name == label) for name in NLI_LABELS])
    save_file(weights, path)
    for classified in classify_pairs(model, PAIRS, device="cpu"):
        assert classified.label == label
        assert classified.probabilities[label] == pytest.approx(1)


def test_premise_and_hypothesis_do_not_change_places(models: dict[bool, Path]) -> None:
    (one,) = classify_pairs(models[True], [PAIRS[0]], device="cpu")
    (other,) = classify_pairs(models[True], [PAIRS[0][::-1]], device="cpu")
    assert list(other.probabilities.values()) != pytest.approx(list(one.probabilities.values()))


def test_any_iterable_of_pairs_will_do(models: dict[bool, Path]) -> None:
    def generate() -> Iterator[Any]:
        yield PAIRS[0]
        yield list(PAIRS[1])

    found = classify_pairs(str(models[True]), generate(), device="cpu")
    assert found == classify_pairs(models[True], PAIRS[:2], device="cpu")


def test_no_pairs_are_no_labels(models: dict[bool, Path]) -> None:
    assert classify_pairs(models[True], [], device="cpu") == []


@pytest.mark.parametrize(
    ("pair", "type_name"),
    [
        *(("ab", "str"), (("a",), "tuple"), (("a", "b", "c"), "tuple"), (("a", 3), "tuple")),
        *((None, "NoneType"), ((None, "b"), "tuple"), ({"a": "b"}, "dict"), (b"ab", "bytes")),
    ],
)
def test_a_pair_of_something_else_is_refused_by_its_row(
    models: dict[bool, Path], pair: Any, type_name: str
) -> None:
    with pytest.raises(InputTypeError, match=rf"pair 1: expected .*two str, found {type_name}"):
        classify_pairs(models[True], [PAIRS[0], pair], device="cpu")


@pytest.mark.parametrize("pairs", [None, 3])
def test_no_iterable_of_pairs_is_a_wrong_type(models: dict[bool, Path], pairs: Any) -> None:
    with pytest.raises(InputTypeError):
        classify_pairs(models[True], pairs, device="cpu")


@pytest.mark.parametrize("model", [None, 3])
def test_no_name_of_a_model_is_a_wrong_type(model: Any) -> None:
    with pytest.raises(InputTypeError):
        classify_pairs(model, PAIRS, device="cpu")


def test_a_model_without_a_head_is_refused(tiny_bert: Path) -> None:
    with pytest.raises(InputError, match=r"no classification head: .*the objective softmax"):
        classify_pairs(tiny_bert, PAIRS, device="cpu")


def test_a_head_of_another_model_is_refused(models: dict[bool, Path], tmp_path: Path) -> None:
    model = shutil.copytree(models[True], tmp_path / "model")
    shutil.rmtree(model / "head")
    write(model)
    with pytest.raises(InputError, match=str(DIM)):
        classify_pairs(model, PAIRS, device="cpu")
