"""Ablations: the runs of each, their table beside published scores, what is left out or refused."""

import logging
from pathlib import Path
from typing import Any

import pytest
import tiny_models
from command_line import Run
from test_train_pairs import WORDS, write
from training_cases import QUICK, contents, interrupted_run, rows, write_dev, write_nli

from sbertkit import Contrastive, InputError, Softmax, TrainConfig, TrainResult
from sbertkit.training import ablations
from sbertkit.training.ablations import ABLATIONS, ablations_of
from sbertkit.training.data_forms import NLI, PAIRS, RANKING, SCORED
from sbertkit.training.mining import Mining
from sbertkit.training.nli import nli_recipe
from sbertkit.training.pairs import pairs_recipe
from sbertkit.training.recipe import Recipe
from sbertkit.training.sts import sts_recipe
from sbertkit.training.sweeps import TABLE_FILE, ablate

pytestmark = pytest.mark.usefixtures("quick")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny encoder."""
    return tiny_models.bert(tmp_path_factory.mktemp("base") / "base")


def config(**more: Any) -> TrainConfig:
    return TrainConfig(**{**QUICK, "max_steps": 2, "guard": False, **more})


def nli(base: Path, folder: Path, objective: Any = None, **more: Any) -> Recipe:
    data = write_nli(folder / "pairs.jsonl", rows(6))
    dev = write_dev(folder / "dev.tsv")
    made = config(**more)
    return nli_recipe(base, data, pooling="mean", objective=objective, dev=dev, config=made)


def pairs(base: Path, folder: Path, objective: Any = None, *given: Any, **more: Any) -> Recipe:
    return pairs_recipe(
        base,
        write(folder / "pairs.jsonl", *given),
        pooling="mean",
        objective=objective,
        dev=None,
        mine=None,
        mining=Mining(),
        config=config(**more),
    )


def runs_of(name: str, recipe: Recipe) -> dict[str, Recipe]:
    return ABLATIONS[name].runs(recipe.with_data())


def saved(folder: Path) -> dict[str, list[str]]:
    """The cells of each run in the saved table."""
    lines = (folder / TABLE_FILE).read_text(encoding="utf-8").splitlines()
    cells = [line.strip("| ").split(" | ") for line in lines if line.startswith("| `")]
    return {row[0].strip("`"): row[1:] for row in cells}


# --- features


def test_features_are_compared_beside_the_published_table(base: Path, tmp_path: Path) -> None:
    results = ablate(nli(base, tmp_path, "softmax"), tmp_path / "out", "features")
    assert [one.record["settings"]["features"] for one in results.values()] == [
        name.split("-") for name in results
    ]
    published = {name: cells[-1] for name, cells in saved(tmp_path / "out").items()}
    assert published == {  # Sentence-BERT, table 6
        "u-v": "66.04",
        "abs_diff": "69.78",
        "product": "70.54",
        "abs_diff-product": "78.37",
        "u-v-product": "77.44",
        "u-v-abs_diff": "80.78",
        "u-v-abs_diff-product": "80.44",
    }
    for name, cells in saved(tmp_path / "out").items():
        after = TrainResult.read(tmp_path / "out" / name).after.spearman
        assert after is not None
        assert cells[1] == f"{100 * after:.2f}"
    assert "- steps of each run: 2" in (tmp_path / "out" / TABLE_FILE).read_text()


def test_features_are_those_of_softmax_alone(base: Path, tmp_path: Path) -> None:
    recipe = nli(base, tmp_path)
    before = contents(tmp_path)
    with pytest.raises(InputError, match="is one of the objective softmax, found contrastive"):
        ablate(recipe, tmp_path / "out", "features")
    assert contents(tmp_path) == before


# --- objectives


def test_objectives_of_nli_begin_with_the_chosen_one_and_its_options(
    base: Path, tmp_path: Path
) -> None:
    chosen = Softmax(features=("abs_diff",))
    results = ablate(nli(base, tmp_path, chosen), tmp_path / "out", "objective")
    assert list(results) == ["softmax", "contrastive"]
    assert results["softmax"].record["settings"]["features"] == ["abs_diff"]
    rates = [one.record["settings"]["learning_rate"] for one in results.values()]
    assert rates == [2e-5, 5e-5]
    assert [one.steps for one in results.values()] == [2, 2]
    assert len(next(iter(saved(tmp_path / "out").values()))) == 6  # nothing is published


def test_objectives_that_the_data_does_not_allow_are_left_out(
    base: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        assert list(runs_of("objective", pairs(base, tmp_path))) == ["contrastive", "triplet"]
    (line,) = (r.message for r in caplog.records if "left out" in r.message)
    assert line.startswith("the objective margin-mse is left out: the objective margin-mse needs")
    alone = [{"anchor": f"where is the {one}", "positive": f"the {one}"} for one in WORDS]
    assert list(runs_of("objective", pairs(base, tmp_path, None, *alone))) == ["contrastive"]


def test_objectives_with_a_head_are_left_out_where_vectors_are_truncated(
    base: Path, tmp_path: Path
) -> None:
    assert list(runs_of("objective", nli(base, tmp_path, matryoshka=(8, 4)))) == ["contrastive"]


def test_the_chosen_objective_is_not_left_out(base: Path, tmp_path: Path) -> None:
    recipe = pairs(base, tmp_path, "margin-mse")
    with pytest.raises(InputError, match="margin-mse needs a teacher"):
        ablate(recipe, tmp_path / "out", "objective")
    assert not (tmp_path / "out" / TABLE_FILE).exists()


def test_objectives_of_scores(base: Path, tmp_path: Path) -> None:
    data = write_dev(tmp_path / "sts.tsv")
    made = config(scale=(0, 5))
    recipe = sts_recipe(base, data, pooling="mean", objective="angle", dev=data, config=made)
    assert list(runs_of("objective", recipe)) == ["angle", "cosent", "cosine"]


# --- strategies


@pytest.mark.parametrize(
    ("layers", "epochs", "plan"),
    [
        (6, 1, None),
        (1, 5, None),
        (2, 2, "0:1,1:all"),
        (6, 2, "0:3,1:all"),
        (6, 3, "0:2,1:4,2:all"),
        (12, 10, "0:4,1:8,2:all"),
    ],
)
def test_layers_begin_to_move_over_the_epochs(layers: int, epochs: int, plan: str | None) -> None:
    assert ablations._stages(layers, epochs) == plan
    if plan is not None:
        assert TrainConfig(unfreeze=plan).unfreezing


def test_strategies_are_trained_and_compared(base: Path, tmp_path: Path) -> None:
    recipe = nli(base, tmp_path, max_steps=None, epochs=2, learning_rate=1e-4)
    results = ablate(recipe, tmp_path / "out", "strategy")
    names = ["full", "freeze-1", "decay-0.95", "decay-0.9", "decay-0.8", "progressive", "lora"]
    assert list(results) == names == list(saved(tmp_path / "out"))
    found = {name: one.record["settings"] for name, one in results.items()}
    assert found["freeze-1"]["freeze_layers"] == 1
    assert [found[f"decay-{n}"]["layer_decay"] for n in ("0.95", "0.9", "0.8")] == [0.95, 0.9, 0.8]
    assert found["progressive"]["unfreeze"] == "0:1,1:all"
    assert (found["lora"]["lora"], found["lora"]["learning_rate"]) == (16, pytest.approx(1e-3))
    assert {one.steps for one in results.values()} == {results["full"].steps}
    assert {found[name]["learning_rate"] for name in names[:-1]} == {1e-4}


def test_frozen_are_a_third_and_two_thirds_of_the_layers(
    tmp_path: Path, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ablations, "find_spec", lambda _: None)
    bundled = nli(Path("all-MiniLM-L6-v2"), tmp_path)
    assert list(runs_of("strategy", bundled))[:3] == ["full", "freeze-2", "freeze-4"]
    albert = tiny_models.ARCHITECTURES["albert"](tmp_path / "albert")
    assert list(runs_of("strategy", nli(albert, tmp_path)))[:2] == ["full", "decay-0.95"]


def test_strategies_that_cannot_be_are_left_out(
    base: Path,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ablations, "find_spec", lambda _: None)
    with caplog.at_level(logging.WARNING):
        runs = runs_of("strategy", nli(base, tmp_path))
    assert not {"progressive", "lora"} & runs.keys()
    assert "progressive is left out: it needs two epochs" in caplog.text
    assert 'pip install "sbertkit[lora]"' in caplog.text


# --- all of them


def test_poolings_of_scores_have_their_own_published_column(base: Path, tmp_path: Path) -> None:
    data = write_dev(tmp_path / "sts.tsv")
    made = config(scale=(0, 5))
    recipe = sts_recipe(base, data, pooling="mean", objective="cosine", dev=data, config=made)
    ablate(recipe, tmp_path / "out", "pooling")
    published = {name: cells[-1] for name, cells in saved(tmp_path / "out").items()}
    assert published == {"cls": "86.62", "mean": "87.44", "max": "69.92", "eos": "n/a"}


def test_an_interrupted_ablation_is_resumed_to_the_same_table(base: Path, tmp_path: Path) -> None:
    ablate(nli(base, tmp_path, "softmax"), tmp_path / "whole", "objective")
    with interrupted_run(1):
        ablate(nli(base, tmp_path, "softmax"), tmp_path / "out", "objective")
    again = nli(base, tmp_path, "softmax", resume=True)
    ablate(again, tmp_path / "out", "objective")
    assert saved(tmp_path / "out") == saved(tmp_path / "whole")
    before = contents(tmp_path / "out")
    ablate(again, tmp_path / "out", "objective")  # all is done
    assert contents(tmp_path / "out") == before


def test_each_form_of_data_has_its_ablations() -> None:
    assert list(ablations_of(NLI)) == ["pooling", "objective", "features", "strategy"]
    for form in (SCORED, PAIRS):
        assert list(ablations_of(form)) == ["pooling", "objective", "strategy"]
    assert not ablations_of(RANKING)


@pytest.mark.parametrize("name", ["features", "seed", ""])
def test_unknown_ablations_are_refused(base: Path, tmp_path: Path, name: str) -> None:
    recipe = pairs(base, tmp_path)
    with pytest.raises(InputError, match="must be one of pooling, objective, strategy"):
        ablate(recipe, tmp_path / "out", name)


@pytest.mark.parametrize(
    "own", [{"lora": 4}, {"freeze_layers": 1}, {"layer_decay": 0.9}, {"unfreeze": "0:all"}], ids=str
)
def test_settings_that_the_runs_have_themselves_are_refused(
    base: Path, tmp_path: Path, own: Any
) -> None:
    (name,) = own
    with pytest.raises(InputError, match=f"the ablation strategy sets {name} itself"):
        ablate(nli(base, tmp_path, Contrastive(), **own), tmp_path / "out", "strategy")
    assert not (tmp_path / "out").exists()


def test_the_command_prints_what_is_saved(
    run: Run, base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    data, dev = write_nli(tmp_path / "pairs.jsonl", rows(6)), write_dev(tmp_path / "dev.tsv")
    options = ("--base", base, "--max-steps", 2, "--device", "cpu", "--batch-size", 4, "--no-guard")
    softmax = ("--objective", "softmax", "--dev", dev)
    for name in ("features", "objective", "strategy"):
        out = tmp_path / name
        ran = run("train-nli", data, *options, *softmax, "-o", out, "--ablate", name)
        assert ran.status == 0, ran.err
        for one, cells in saved(out).items():
            (line,) = (text for text in ran.out.splitlines() if f"│ {one} " in text)
            assert [cell.strip() for cell in line.strip("│ ").split("│")][1:] == cells
    for option in (("--lora",), ("--freeze-layers", 1), ("--layer-decay", 0.9)):
        ran = run(
            "train-nli", data, *options, "-o", tmp_path / "x", "--ablate", "strategy", *option
        )
        assert (ran.status, "do not go together" in ran.err) == (2, True)
    ran = run("train-pairs", data, *options, "-o", tmp_path / "x", "--ablate", "features")
    assert ran.status == 2
