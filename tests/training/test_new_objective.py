"""An objective is one module and one entry of the table: command line, files and card follow."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import click
import pytest
import torch
from click.testing import CliRunner
from torch import Tensor, nn
from training_cases import QUICK, quick_runs, rows, write_nli

from sbertkit import InputError, TrainConfig, classify_pairs, train_nli
from sbertkit.cli.train_options import objective_options
from sbertkit.settings import setting
from sbertkit.training.data_forms import NLI, DataForm, TrainingData
from sbertkit.training.examples import Examples, TextTable
from sbertkit.training.heads import read_head
from sbertkit.training.nli import nli_recipe
from sbertkit.training.objectives import OBJECTIVES, Objective
from sbertkit.training.start import train


@dataclass(frozen=True, slots=True)
class Margin(Objective):
    """Cosines of entailments, scaled by a head, above those of other pairs by a margin."""

    margin: float = setting(0.3, "How much higher cosines of entailments should be.", above=0)

    name: ClassVar[str] = "margin"
    data_forms: ClassVar[tuple[DataForm, ...]] = (NLI,)
    normalize: ClassVar[bool] = True
    learning_rate: ClassVar[float] = 1e-3
    summary: ClassVar[str] = "entailments were kept apart from other pairs by a margin"
    formula: ClassVar[str] = "max(0, m - w cos(u, v))"
    source: ClassVar[str] = "nobody"

    def examples(self, data: TrainingData, table: TextTable) -> Examples:
        texts = torch.tensor([table.numbers(row[:2]) for row in data.rows]).numpy()
        return Examples(texts, torch.tensor(data.label_numbers).numpy(), texts[:, 0])

    def make_head(self, dim: int) -> nn.Module:
        return nn.Linear(1, 1)

    def loss(self, vectors: Tensor, batch: Mapping[str, Tensor], head: nn.Module) -> Tensor:
        first, second = batch["columns"].T
        cosines = nn.functional.cosine_similarity(vectors[first], vectors[second])
        return (self.margin - head(cosines[:, None])).clamp(min=0).mean()


@pytest.fixture(autouse=True)
def in_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(OBJECTIVES, "margin", Margin)


def test_the_command_line_has_it_with_its_options() -> None:
    made: list[Objective] = []

    @click.command()
    @objective_options(NLI)
    def show(objective: Objective) -> None:
        made.append(objective)

    assert CliRunner().invoke(show, ["--objective", "margin", "--margin", "0.5"]).exit_code == 0
    assert made == [Margin(margin=0.5)]
    shown = " ".join(CliRunner().invoke(show, ["--help"]).output.split())
    assert "How much higher cosines of entailments should be. Of the objective margin." in shown
    assert "[default: 0.3; x>0]" in shown
    refused = CliRunner().invoke(show, ["--margin", "0.5"])
    assert (refused.exit_code, "--margin needs --objective margin" in refused.output) == (2, True)
    assert CliRunner().invoke(show, ["--objective", "margin", "--margin", "0"]).exit_code == 2


def test_it_trains_and_its_files_say_so(tiny_bert: Path, tmp_path: Path) -> None:
    data = write_nli(tmp_path / "pairs.jsonl", rows(4))
    config = TrainConfig(**QUICK, max_steps=3, guard=False)
    objective = Margin(margin=0.5)
    with quick_runs():
        result = train_nli(tiny_bert, data, tmp_path / "out", objective=objective, config=config)
    lineage = json.loads((result.folder / "sbertkit.json").read_text())["lineage"]
    assert (lineage["objective"], lineage["settings"]["margin"]) == ("margin", 0.5)
    assert (lineage["settings"]["learning_rate"], lineage["head"]) == (1e-3, True)
    card = (result.folder / "README.md").read_text()
    assert "with the objective `margin`: entailments were kept apart from other pairs" in card
    assert "| `margin` | 0.5 |" in card
    head = read_head(result.folder)
    assert head is not None
    assert head.objective == objective
    with pytest.raises(InputError, match="no classification head"):
        classify_pairs(result.folder, [("a", "b")], device="cpu")


def test_a_run_is_resumed_with_its_options_alone(
    tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    data = write_nli(tmp_path / "pairs.jsonl", rows(4))
    begun = TrainConfig(**QUICK, max_steps=2, checkpoint_steps=1, guard=False)
    monkeypatch.setattr("sbertkit.training.run.runner.write_output", stop)
    with quick_runs(), pytest.raises(KeyboardInterrupt):
        train_nli(tiny_bert, data, tmp_path / "out", objective=Margin(), config=begun)
    monkeypatch.setattr(
        "sbertkit.training.run.runner.write_output", lambda setup, folder, result: None
    )
    resumed = TrainConfig(**QUICK, max_steps=2, checkpoint_steps=1, guard=False, resume=True)
    with quick_runs(), pytest.raises(InputError, match=r"margin was 0\.3, is 0\.4"):
        train_nli(tiny_bert, data, tmp_path / "out", objective=Margin(0.4), config=resumed)
    with quick_runs():
        assert train_nli(tiny_bert, data, tmp_path / "out", objective="margin", config=resumed)


def test_an_objective_of_other_data_is_refused(tiny_bert: Path, tmp_path: Path) -> None:
    @dataclass(frozen=True, slots=True)
    class Scored(Margin):
        data_forms: ClassVar[tuple[DataForm, ...]] = (DataForm("scored", "scored pairs", 2),)

    data = write_nli(tmp_path / "pairs.jsonl", rows(4))
    with pytest.raises(InputError, match="objective margin is trained on scored pairs, not on"):
        train_nli(tiny_bert, data, tmp_path / "out", objective=Scored())
    assert [path.name for path in tmp_path.iterdir()] == ["pairs.jsonl"]


def test_rows_of_any_form_are_trained_on(tiny_bert: Path, tmp_path: Path) -> None:
    form = DataForm("triplets", "triplets", 3)

    @dataclass(frozen=True, slots=True)
    class Triplets(Margin):
        data_forms: ClassVar[tuple[DataForm, ...]] = (NLI, form)

        def examples(self, data: TrainingData, table: TextTable) -> Examples:
            texts = torch.tensor([table.numbers(row) for row in data.rows]).numpy()
            return Examples(texts, texts[:, 0], texts[:, 0])

        def loss(self, vectors: Tensor, batch: Mapping[str, Tensor], head: nn.Module) -> Tensor:
            anchors, positives, negatives = (vectors[column] for column in batch["columns"].T)
            return nn.functional.triplet_margin_loss(anchors, positives, negatives, self.margin)

    made = [(f"a {n}", f"a {n} b", f"c {n + 1}") for n in range(8)]
    config = TrainConfig(**QUICK, max_steps=2, guard=False)
    recipe = nli_recipe(
        tiny_bert, None, pooling="mean", objective=Triplets(), dev=None, config=config
    )
    with quick_runs():
        result = train(
            replace(recipe, form=form, read=lambda _: TrainingData(form, made)), tmp_path / "out"
        )
    assert (result.steps, result.record["counts"], result.record["labels"]) == (2, {}, [])
    assert result.after.label_cosines == {}
