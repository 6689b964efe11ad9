"""What whole runs of training are tested on: small data, and what a trained folder must hold."""

import gc
import json
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from sbertkit import TrainConfig, TrainResult, train_nli
from sbertkit.settings import settings_of
from sbertkit.training.objectives import OBJECTIVES
from sbertkit.training.run.monitor import Monitor

SAME = 1e-5
"""Largest difference of any number of vectors that count as the same."""

_WHO = ("a heron", "two bakers", "the fox", "my aunt", "a judge", "some men", "one child", "he")
_DOES = ("eats", "runs", "sings", "waits")
_WHERE = ("at home", "in a bar", "by the sea")

Row = tuple[str, str, str]
"""Label, premise and hypothesis."""


class Job(NamedTuple):
    """The arguments of a run, which a child process can be sent."""

    base: Path
    data: Path
    output: Path
    objective: str = "softmax"
    dev: Path | None = None
    pooling: str | None = "mean"
    settings: Mapping[str, Any] = {}

    def run(self, **more: Any) -> TrainResult:
        """The run itself; `more` settings and options go before those of the job."""
        settings = {**QUICK, **self.settings, **more}
        objective: Any = self.objective
        if objective in list(OBJECTIVES):
            kind = OBJECTIVES[objective]
            options = {name: settings.pop(name) for name in settings_of(kind) if name in settings}
            objective = kind(**options)
        return train_nli(
            self.base,
            self.data,
            self.output,
            pooling=self.pooling,
            objective=objective,
            dev=self.dev,
            config=TrainConfig(**settings),
        )

    @property
    def work(self) -> Path:
        """Where the unfinished run is."""
        return self.output.with_name(f"{self.output.name}.run")


QUICK: Mapping[str, Any] = {"device": "cpu", "precision": "fp32", "batch_size": 4}


def rows(premises: int) -> list[Row]:
    """One entailment, contradiction and neutral pair for each of so many premises."""
    made: list[Row] = []
    for number in range(premises):
        who, does, where = (
            words[number // size % len(words)]
            for words, size in ((_WHO, 1), (_DOES, 8), (_WHERE, 32))
        )
        premise = f"{who} {does} {where}"
        made += [
            ("entailment", premise, f"{who} {does}"),
            ("contradiction", premise, f"{where} nobody {does}"),
            ("neutral", premise, f"{who}: {number}"),
        ]
    return made


def write_nli(path: Path, pairs: Sequence[Row]) -> Path:
    """SNLI-style JSON Lines."""
    keys = ("gold_label", "sentence1", "sentence2")
    lines = [json.dumps(dict(zip(keys, pair, strict=True))) + "\n" for pair in pairs]
    path.write_text("".join(lines), encoding="utf-8")
    return path


def write_dev(path: Path, pairs: Sequence[Row] | None = None) -> Path:
    """Scored pairs: an entailment has the highest score, a contradiction the lowest."""
    scores = {"entailment": 4.5, "neutral": 2.5, "contradiction": 0.5}
    lines = [
        f"{scores[label] + number % 5 / 10:.1f}\t{premise}\t{hypothesis}\n"
        for number, (label, premise, hypothesis) in enumerate(pairs or _DEV)
    ]
    path.write_text("".join(lines), encoding="utf-8")
    return path


_DEV: list[Row] = [
    ("entailment", "an owl sits on a wall", "an owl sits"),
    ("neutral", "an owl sits on a wall", "the wall is old"),
    ("contradiction", "an owl sits on a wall", "it flies"),
    ("entailment", "she drinks some tea", "she drinks"),
    ("neutral", "she drinks some tea", "she was thirsty"),
    ("contradiction", "she drinks some tea", "no tea is left"),
    ("entailment", "boats lie in the port", "boats are in a port"),
    ("contradiction", "boats lie in the port", "a desert without water"),
]


def weights(folder: Path) -> dict[str, torch.Tensor]:
    """All tensors of a model folder, its head and modules too."""
    return {
        f"{path.parent.relative_to(folder).as_posix()} {name}": tensor
        for path in sorted(folder.rglob("*.safetensors"))
        for name, tensor in load_file(path).items()
    }


def weight_bytes(folder: Path) -> dict[str, bytes]:
    """The files of weights of a model folder, byte by byte."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*.safetensors"))
    }


def contents(folder: Path) -> dict[str, bytes | None]:
    """All that is below a folder, by name; None for a folder."""
    return {
        path.relative_to(folder).as_posix(): None if path.is_dir() else path.read_bytes()
        for path in sorted(folder.rglob("*"))
    }


def changed(base: Path, trained: Path) -> list[str]:
    """Names of the tensors of a model that training has changed."""
    before, after = weights(base), weights(trained)
    return [name for name in before if not torch.equal(before[name], after[name])]


def far(left: Any, right: Any) -> float:
    """The largest difference of two arrays."""
    return float(np.abs(np.asarray(left, np.float64) - np.asarray(right, np.float64)).max())


@contextmanager
def quick_runs() -> Iterator[None]:
    """Leaves out of the runs in the block what takes longer than so small a run itself.

    These are the curves, and a collection of garbage among all that was imported.
    """
    gc.freeze()
    try:
        with mock.patch("sbertkit.training.run.model_files.draw_curves", return_value="<svg/>"):
            yield
    finally:
        gc.unfreeze()


@contextmanager
def interrupted_run(step: int) -> Iterator[None]:
    """A run that Ctrl-C ends after a step."""
    assess = Monitor._assess

    def interrupted(self: Monitor, at: int, control: Any) -> None:
        if at == step:
            signal.raise_signal(signal.SIGINT)
        assess(self, at, control)

    with mock.patch.object(Monitor, "_assess", interrupted), pytest.raises(KeyboardInterrupt):
        yield
