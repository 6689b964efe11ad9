"""Encoders that are averages of two: by `merge`, and of a trained one with its base."""

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_models
import torch
from command_line import Run
from safetensors.torch import load_file, save_file
from training_cases import (
    QUICK,
    Job,
    contents,
    interrupted_run,
    rows,
    weight_bytes,
    weights,
    write_dev,
    write_nli,
)

from sbertkit import Encoder, InputError, InputTypeError, merge

TEXTS = ["a heron eats at home", "two bakers sing", "the sea"]


pytestmark = pytest.mark.usefixtures("quick")


@pytest.fixture
def base(tiny_copy: Callable[..., Path]) -> Path:
    return tiny_copy("bert", "base")


@pytest.fixture
def other(tiny_copy: Callable[..., Path]) -> Path:
    """A copy whose weights are others."""
    return moved(tiny_copy("bert", "other"))


def moved(folder: Path, by: float = 0.05) -> Path:
    torch.manual_seed(7)
    tensors = load_file(folder / "model.safetensors")
    changed = {name: one + by * torch.randn_like(one) for name, one in tensors.items()}
    save_file(changed, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def sentence(folder: Path, place: Path, **more: Any) -> Path:
    Encoder.load(folder, device="cpu", **{"pooling": "mean", **more}).save(place)
    return place


def used(found: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: one for name, one in found.items() if "pooler" not in name}


@pytest.mark.parametrize("weight", [0.5, 0.2, 0.0, 1.0])
def test_weights_are_the_average_and_inputs_stay_as_they_are(
    base: Path, other: Path, tmp_path: Path, weight: float
) -> None:
    before = contents(base), contents(other)
    found = merge(base, other, tmp_path / "out" / "merged", weight=weight)
    one, two, both = (used(weights(folder)) for folder in (base, other, found.folder))
    assert both.keys() == one.keys()
    for name, tensor in both.items():
        wanted = weight * one[name].double() + (1 - weight) * two[name].double()
        np.testing.assert_allclose(tensor.double(), wanted, atol=1e-6)
    assert (contents(base), contents(other)) == before
    assert Encoder.load(found.folder, device="cpu").fingerprint == found.fingerprint


def test_the_folder_is_an_encoder_of_all_libraries(
    base: Path, other: Path, tmp_path: Path, plain: Callable[..., Any]
) -> None:
    import transformers

    folder = merge(base, other, tmp_path / "merged").folder
    vectors = Encoder.load(folder, device="cpu").encode(TEXTS)
    np.testing.assert_allclose(plain(folder).encode(TEXTS), vectors, atol=1e-5)
    model = transformers.AutoModel.from_pretrained(folder)
    tokens = transformers.AutoTokenizer.from_pretrained(folder)(TEXTS[:1], return_tensors="pt")
    with torch.no_grad():
        mean = model(**tokens).last_hidden_state[0].mean(dim=0)
    np.testing.assert_allclose(mean / mean.norm(), vectors[0], atol=1e-5)
    lineage = json.loads((folder / "sbertkit.json").read_text())["lineage"]
    names = [(one["model"], one["weight"]) for one in lineage["merged"]]
    assert names == [("base", 0.5), ("other", 0.5)]
    card = (folder / "README.md").read_text()
    assert "merged from `base` and `other`" in card
    assert "| `base` | 0.5 |" in card
    assert lineage["merged"][0]["fingerprint"] in card
    assert not list(folder.rglob("*.bin"))


def test_a_plain_encoder_takes_what_the_other_declares(
    base: Path, other: Path, tmp_path: Path
) -> None:
    trained = sentence(other, tmp_path / "trained", pooling="cls", normalize=False)
    for place, pair in enumerate([(base, trained), (trained, base)]):
        found = Encoder.load(merge(*pair, tmp_path / f"out{place}").folder, device="cpu")
        assert (found.pooling, found.normalizes) == ("cls", False)


DIFFERENT: dict[str, tuple[Callable[[Path, Path], Path], str]] = {
    "architecture": (
        lambda place, _: tiny_models.roberta(place / "x"),
        "the architecture of one is BertModel, of the other RobertaModel",
    ),
    "shape": (
        lambda place, _: tiny_models.bert(place / "x", hidden_size=16),
        r"embeddings.LayerNorm.bias has the shape \(32,\) in one, and has the shape \(16,\)",
    ),
    "layers": (
        lambda place, _: tiny_models.bert(place / "x", num_hidden_layers=3),
        r"encoder.layer.2.* is missing in one, and has the shape",
    ),
    "heads": (
        lambda place, _: tiny_models.bert(place / "x", num_attention_heads=4),
        "num_attention_heads in config.json is 2 in one, and 4 in the other",
    ),
    "pooling": (
        lambda place, other: sentence(other, place / "x", pooling="cls"),
        "the pooling of one is mean, of the other cls",
    ),
    "normalization": (
        lambda place, other: sentence(other, place / "x", normalize=False),
        "the normalization of one is unit length, of the other none",
    ),
    "modules": (
        lambda place, other: tiny_models.declare(other, "LayerNorm", "Normalize"),
        "the modules after the pooling of one is none, of the other LayerNorm",
    ),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_encoders_of_another_kind_are_refused_by_name(
    name: str, base: Path, other: Path, tmp_path: Path
) -> None:
    make, message = DIFFERENT[name]
    first = sentence(base, tmp_path / "first")
    second = make(tmp_path / "made", other)
    with pytest.raises(InputError, match=f"cannot be merged: .*{message}.*one base$"):
        merge(first, second, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_another_tokenizer_is_refused(base: Path, other: Path, tmp_path: Path) -> None:
    path = other / "tokenizer.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    vocab = content["model"]["vocab"]
    vocab["a"], vocab["b"] = vocab["b"], vocab["a"]
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(InputError, match="their tokenizers differ"):
        merge(base, other, tmp_path / "out")


def test_the_count_of_shared_layers_is_compared(tmp_path: Path) -> None:
    folders = [tiny_models.albert(tmp_path / f"{n}", num_hidden_layers=n) for n in (2, 3)]
    with pytest.raises(InputError, match=r"num_hidden_layers in config.json is 2 in one, and 3"):
        merge(folders[0], folders[1], tmp_path / "out")


@pytest.mark.parametrize("weight", [-0.1, 1.1, float("nan"), float("inf")])
def test_a_weight_out_of_range_is_refused(base: Path, tmp_path: Path, weight: float) -> None:
    with pytest.raises(InputError, match=r"weight .*must be from 0 to 1"):
        merge(base, base, tmp_path / "out", weight=weight)
    with pytest.raises(InputTypeError):
        merge(base, base, tmp_path / "out", weight="half")  # type: ignore[arg-type]


def test_no_folder_is_written_over(base: Path, other: Path, tmp_path: Path) -> None:
    full = tmp_path / "full"
    full.mkdir()
    (full / "note.txt").write_text("mine")
    for output, message in (
        (base, "exists and is not empty"),
        (full, "exists and is not empty"),
        (full / "note.txt", "is a file"),
        (base / "merged", "is in the model"),
    ):
        before = contents(tmp_path)
        with pytest.raises(InputError, match=message):
            merge(base, other, output)
        assert contents(tmp_path) == before


def test_what_is_taken_of_the_first_alone_is_logged(
    base: Path, other: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first = sentence(base, tmp_path / "first", max_tokens=20)
    (other / "head").mkdir()
    with caplog.at_level(logging.WARNING):
        found = merge(first, other, tmp_path / "out")
    assert f"their token limit differ: that of {first} is kept" in caplog.text
    assert f"the classification head of {other} is left out" in caplog.text
    assert Encoder.load(found.folder, device="cpu").max_tokens == 20


def test_the_command_says_what_was_merged(
    run: Run, base: Path, other: Path, tmp_path: Path
) -> None:
    ran = run("merge", base, other, "-o", tmp_path / "out", "--weight", 0.25)
    assert ran.status == 0, ran.err
    assert "0.25 of base, 0.75 of other" in ran.out
    again = run("merge", base, other, "-o", tmp_path / "out")
    assert again.status == 1
    assert len(again.err.splitlines()) == 1
    assert run("merge", base, other, "-o", tmp_path / "x", "--weight", 2).status == 2


# --- the average with the base


def job(base: Path, tmp_path: Path, name: str, objective: str, **settings: Any) -> Job:
    data = write_nli(tmp_path / "pairs.jsonl", rows(12))
    dev = write_dev(tmp_path / "dev.tsv")
    own = {"max_steps": 8, "checkpoint_steps": 2, "learning_rate": 1e-3, "guard": False}
    return Job(base, data, tmp_path / name, objective, dev, settings={**own, **settings})


@pytest.mark.parametrize("objective", ["softmax", "contrastive"])
def test_the_model_is_the_average_of_base_and_result(
    base: Path, tmp_path: Path, objective: str
) -> None:
    plain = job(base, tmp_path, "plain", objective).run()
    result = job(base, tmp_path, "merged", objective, merge_base=0.3).run()
    start, trained, both = (used(weights(folder)) for folder in (base, plain.folder, result.folder))
    assert both.keys() == trained.keys()
    for name, tensor in both.items():
        wanted = trained[name].double()
        if not name.startswith("head"):  # which the base has not
            wanted = 0.3 * start[name].double() + 0.7 * wanted
        np.testing.assert_allclose(tensor.double(), wanted, atol=1e-6, err_msg=name)
    assert result.unmerged is not None
    assert result.unmerged.spearman == plain.after.spearman
    assert result.before == plain.before
    assert plain.unmerged is None
    encoder = Encoder.load(result.folder, device="cpu")
    again = np.asarray(encoder.encode(TEXTS))
    own = merge(base, plain.folder, tmp_path / "by hand", weight=0.3).folder
    np.testing.assert_allclose(Encoder.load(own, device="cpu").encode(TEXTS), again, atol=1e-5)
    card = (result.folder / "README.md").read_text()
    assert "averaged with those of the base, which count 0.3, the trained ones 0.7" in card
    assert "before it was averaged with its base" in card
    assert json.loads((result.folder / "sbertkit.json").read_text())["lineage"]["unmerged"]


def test_an_interrupted_run_comes_to_the_same_average(base: Path, tmp_path: Path) -> None:
    whole = job(base, tmp_path, "whole", "softmax", merge_base=0.5).run()
    half = job(base, tmp_path, "half", "softmax", merge_base=0.5)
    with interrupted_run(3):
        half.run()
    with pytest.raises(InputError, match=r"merge_base was 0\.5, is 0\.4"):
        half.run(resume=True, merge_base=0.4)
    assert weight_bytes(half.run(resume=True).folder) == weight_bytes(whole.folder)


def test_the_command_says_both_scores(run: Run, base: Path, tmp_path: Path) -> None:
    data = write_nli(tmp_path / "pairs.jsonl", rows(6))
    dev = write_dev(tmp_path / "dev.tsv")
    ran = run(
        *("train-nli", data, "--base", base, "-o", tmp_path / "out", "--dev", dev, "--quiet"),
        *("--max-steps", 2, "--no-guard", "--merge-base", 0.5),
    )
    assert ran.status == 0, ran.err
    (line,) = [one for one in ran.out.splitlines() if one.startswith("merged")]
    assert "0.5 of the base; dev Spearman before that" in line
    for wrong in ("0", "1.5", "x"):
        options = ("-o", tmp_path / "no", "--merge-base", wrong)
        assert run("train-nli", data, "--base", base, *options).status == 2


def test_a_re_ranker_has_no_such_setting() -> None:
    from sbertkit import TrainConfig, train_reranker

    with pytest.raises(InputError, match="merge_base is not for pairs of query and document"):
        train_reranker("base", "data.jsonl", "out", config=TrainConfig(**QUICK, merge_base=0.5))
