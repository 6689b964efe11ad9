"""The options of train-nli are the settings of TrainConfig, with the same defaults."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from sbertkit import TrainConfig
from sbertkit.cli.adapt import adapt
from sbertkit.cli.app import app
from sbertkit.cli.train import train_nli, train_sts
from sbertkit.cli.train_options import config_options, objective_options
from sbertkit.training.config import PRECISIONS, SCHEDULES
from sbertkit.training.data_forms import NLI
from sbertkit.training.objectives import Contrastive, Objective, Softmax, objectives_of
from sbertkit.training.objectives.softmax import FEATURES

WITHOUT_OPTION = {"progress"}  # which --quiet turns off


@click.command()
@config_options(NLI)
def show(config: TrainConfig) -> None:
    shown.append(config)


@click.command()
@objective_options(NLI)
def show_objective(objective: Objective) -> None:
    made.append(objective)


shown: list[TrainConfig] = []
made: list[Objective] = []


def objective_of(*options: str) -> Objective:
    made.clear()
    result = CliRunner().invoke(show_objective, options)
    assert result.exit_code == 0, result.output
    return made[0]


def config_of(*options: str) -> TrainConfig:
    shown.clear()
    result = CliRunner().invoke(show, options)
    assert result.exit_code == 0, result.output
    return shown[0]


def parameters() -> dict[str, click.Option]:
    return {str(p.name): p for p in train_nli.params if isinstance(p, click.Option)}


def test_without_options_the_settings_are_those_of_the_library() -> None:
    assert config_of("--quiet") == TrainConfig()
    assert config_of().progress


def test_every_setting_has_an_option() -> None:
    names = {field.name for field in fields(TrainConfig)} - WITHOUT_OPTION
    for command, other in ((train_nli, "scale"), (train_sts, "labels")):
        found = {p.name for p in command.params}
        assert names - {other, "sampling", "batch_tokens"} <= found
        assert other not in found
        assert "batch_tokens" not in found
    assert "batch_tokens" in {p.name for p in adapt.params}


@pytest.mark.parametrize(
    ("options", "name", "value"),
    [
        (["--epochs", "2.5"], "epochs", 2.5),
        (["--max-steps", "7"], "max_steps", 7),
        (["--batch-size", "16"], "batch_size", 16),
        (["--accumulation", "4"], "accumulation", 4),
        (["--lr", "2e-5"], "learning_rate", 2e-5),
        (["--learning-rate", "3e-5"], "learning_rate", 3e-5),
        (["--schedule", "cosine"], "schedule", "cosine"),
        (["--warmup", "100"], "warmup", 100.0),
        (["--weight-decay", "0"], "weight_decay", 0.0),
        (["--max-grad-norm", "0"], "max_grad_norm", 0.0),
        (["--precision", "fp32"], "precision", "fp32"),
        (["--lora"], "lora", 16),
        (["--lora", "8"], "lora", 8),
        (["--gradient-checkpointing"], "gradient_checkpointing", True),
        (["--seed", "5"], "seed", 5),
        (["--normalize"], "normalize", True),
        (["--no-normalize"], "normalize", False),
        (["--max-tokens", "64"], "max_tokens", 64),
        (["--labels", "0=entailment,2=neutral"], "labels", {0: "entailment", 2: "neutral"}),
        (["--drop-overlap"], "drop_overlap", True),
        (["--checkpoint-steps", "50"], "checkpoint_steps", 50),
        (["--patience", "3"], "patience", 3),
        (["--no-guard"], "guard", False),
        (["--resume"], "resume", True),
        (["--report-to", "tensorboard,wandb"], "report_to", ("tensorboard", "wandb")),
        (["--device", "cpu"], "device", "cpu"),
        (["--trust-remote-code"], "trust_remote_code", True),
    ],
)
def test_an_option_sets_its_setting(options: list[str], name: str, value: Any) -> None:
    config = config_of(*options)
    assert getattr(config, name) == value


@pytest.mark.parametrize(
    "options",
    [
        ["--epochs", "0"],
        ["--epochs", "-1"],
        ["--batch-size", "0"],
        ["--batch-size", "1.5"],
        ["--lr", "x"],
        ["--schedule", "step"],
        ["--warmup", "-1"],
        ["--precision", "int8"],
        ["--seed", "-1"],
        ["--features", "u,w"],
        ["--features", ""],
        ["--labels", "entailment=0"],
        ["--labels", "0=contradictory"],
        ["--pooling", "median"],
        ["--objective", "triplet"],
        ["--seeds", "1,x"],
        ["--ablate", "seed"],
        ["--require-gain"],  # needs --dev
        ["--seeds", "1,2", "--ablate", "pooling"],
    ],
)
def test_a_wrong_value_is_wrong_usage(options: list[str], tmp_path: Path) -> None:
    arguments = ["data.jsonl", "--base", "base", "-o", str(tmp_path / "out"), *options]
    result = CliRunner().invoke(app, ["train-nli", *arguments])
    assert result.exit_code == 2, result.output
    assert not list(tmp_path.iterdir())


def test_the_choices_are_those_of_the_library() -> None:
    options = parameters()

    def choices(name: str) -> set[str]:
        kind = options[name].type
        assert isinstance(kind, click.Choice)
        return set(kind.choices)

    assert choices("objective") == set(objectives_of(NLI))
    assert options["objective"].default == Contrastive.name
    assert choices("schedule") == set(SCHEDULES)
    assert choices("precision") == set(PRECISIONS)


def test_an_objective_has_its_own_options_and_defaults() -> None:
    assert objective_of() == Contrastive()
    assert objective_of("--objective", "softmax") == Softmax()
    given = objective_of("--objective", "softmax", "--features", "u, v,product")
    assert given == Softmax(features=("u", "v", "product"))
    assert objective_of("--temperature", "0.1") == Contrastive(temperature=0.1)
    every = objective_of("--objective", "softmax", "--features", ",".join(FEATURES))
    assert every == Softmax(features=FEATURES)


def test_the_help_shows_the_defaults_of_the_library() -> None:
    shown_help = " ".join(CliRunner().invoke(app, ["train-nli", "--help"]).output.split())
    for part in (
        "[default: u,v,abs_diff]",
        "[default: 0.05; x>0]",
        "Of the objective softmax.",
        "[default: 64; x>=1]",
    ):
        assert part in shown_help
