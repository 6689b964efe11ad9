"""`train_multi`: one encoder trained on several sets, each with its own objective."""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from sbertkit.arguments import Paths
from sbertkit.data.nli import NliSet
from sbertkit.data.ranking import RankingSet
from sbertkit.data.sts import StsSet
from sbertkit.errors import InputError, InputTypeError
from sbertkit.training import nli, sts
from sbertkit.training.config import TrainConfig
from sbertkit.training.data_forms import (
    NLI,
    PAIRS,
    SCORED,
    SEVERAL,
    DataForm,
    DataSource,
    SetRow,
    TrainingData,
)
from sbertkit.training.dev_set import DevSet
from sbertkit.training.mining import Mining
from sbertkit.training.objectives import Objective, Several, find_objective
from sbertkit.training.objectives.several import SetObjective, of_set
from sbertkit.training.ranking_rows import read_rows
from sbertkit.training.recipe import Recipe
from sbertkit.training.start import train

if TYPE_CHECKING:
    from sbertkit.training.results import TrainResult


_DEFAULT = TrainConfig()
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")


class _Kind(NamedTuple):
    """The form of a set's data, and what reads it."""

    form: DataForm
    read: Callable[[Any, TrainConfig], TrainingData]


def _read_pairs(data: Paths | RankingSet, config: TrainConfig) -> TrainingData:
    return read_rows(PAIRS, data, None, Mining(), config)


KINDS = {
    "nli": _Kind(NLI, nli.read_data),
    "sts": _Kind(SCORED, sts.read_data),
    "pairs": _Kind(PAIRS, _read_pairs),
}
"""What a set may be, named as the commands that train on one alone."""


@dataclass(frozen=True, slots=True)
class TrainingSet:
    """One of several sets to train on.

    Attributes:
        kind: ``nli``, ``sts`` or ``pairs``: what the data is, as for `train_nli` and so on.
        data: What that function takes: files or folders, or what was read from them.
        objective: The objective or its name; by default that of the kind.
        name: Letters, digits, hyphens and underscores; by default the kind.
        split: The split of the data; by default that of the settings.
        scale: Lowest and highest score; by default that of the settings.
        labels: Names of integer labels; by default those of the settings.

    Raises:
        InputError: An unknown kind, an objective of another kind, or a name of other characters.
    """

    kind: str
    data: Paths | NliSet | StsSet | RankingSet | None
    objective: str | Objective | None = None
    name: str | None = None
    split: str | None = None
    scale: tuple[float, float] | None = None
    labels: Mapping[int, str] | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InputError(f"a set must be one of {', '.join(KINDS)}, not {self.kind!r}")
        for wanted in ("scale", "labels"):
            if getattr(self, wanted) is not None and wanted not in KINDS[self.kind].form.settings:
                raise InputError(f"{wanted} is not for a set of {self.kind}; leave it out")
        if self.name is not None and not (
            isinstance(self.name, str) and _NAME.fullmatch(self.name)
        ):
            raise InputError(
                "the name of a set must have letters, digits, hyphens and underscores, at most 40, "
                f"found {self.name!r}"
            )
        object.__setattr__(self, "objective", find_objective(self.objective, self.form))

    @property
    def form(self) -> DataForm:
        """The form of its data."""
        return KINDS[self.kind].form

    def read(self, config: TrainConfig) -> TrainingData:
        """Its data, with its own settings before those of the run.

        Raises:
            InputError: They are refused.
        """
        own = {key: getattr(self, key) for key in ("split", "scale", "labels")}
        given = {key: value for key, value in own.items() if value is not None}
        return KINDS[self.kind].read(self.data, replace(config, **given))


def train_multi(
    base: str | os.PathLike[str],
    sets: Sequence[TrainingSet],
    output: str | os.PathLike[str],
    *,
    pooling: str | None = "mean",
    dev: str | os.PathLike[str] | DevSet | None = None,
    config: TrainConfig = _DEFAULT,
) -> "TrainResult":
    """Fine-tunes an encoder on several sets at once; the model is at `output` when it is done.

    Each batch is of one set, with its objective; `config.sampling` says how they take turns. The
    folder, checkpoints, resuming and the choice of the best checkpoint are as for `train_nli`.

    Args:
        base: A model folder or a hub name.
        sets: What to train on.
        output: A new folder for the trained model.
        pooling: See `Encoder.load`; None for what the base declares.
        dev: What `train_nli` takes.
        config: All further settings.

    Raises:
        InputError: Data, base, output or settings are refused; nothing is written then.
        TrainingStopped: The guard ended the run; the last good checkpoint is kept.
        StorageError: Another run writes to the output, the disk is full or the like; the last
            checkpoint is complete.
        KeyboardInterrupt: Ctrl-C, after a checkpoint was saved.
    """
    return train(multi_recipe(base, sets, pooling=pooling, dev=dev, config=config), output)


def multi_recipe(
    base: str | os.PathLike[str],
    sets: Sequence[TrainingSet],
    *,
    pooling: str | None,
    dev: str | os.PathLike[str] | DevSet | None,
    config: TrainConfig,
) -> Recipe:
    """The recipe of `train_multi`, with its arguments and errors."""
    named = _named(sets)
    parts = tuple(
        SetObjective(name, one.form, find_objective(one.objective, one.form))
        for name, one in named.items()
    )
    return Recipe(base, SEVERAL, partial(_read, named), pooling, Several(parts), dev, config)


def _named(sets: Sequence[TrainingSet]) -> dict[str, TrainingSet]:
    """The sets by name; of several of a kind without names the later ones are numbered.

    Raises:
        InputError: There are none, or two of the same name.
    """
    if not isinstance(sets, list | tuple) or not all(isinstance(one, TrainingSet) for one in sets):
        raise InputTypeError(f"sets must be a list of TrainingSet, found {sets!r}"[:200])
    if not sets:
        raise InputError("expected at least one set to train on, found none")
    found: dict[str, TrainingSet] = {}
    for one in sets:
        name, number = one.name or one.kind, 1
        while one.name is None and name in found:
            number += 1
            name = f"{one.kind}-{number}"
        if name in found:
            raise InputError(f"expected sets of different names, found two named {name}")
        found[name] = one
    return found


def _read(sets: Mapping[str, TrainingSet], config: TrainConfig) -> TrainingData:
    """The rows of all sets, as `SEVERAL` has them."""
    rows: list[SetRow] = []
    labels: list[str] = []
    groups: list[tuple[str, ...]] = []
    sources: list[DataSource] = []
    for number, (name, one) in enumerate(sets.items()):
        with of_set(name):
            data = one.read(config)
        rows += [
            SetRow(row[0], row[1], len(labels) + label, number, row)
            for row, label in zip(data.rows, data.label_numbers, strict=True)
        ]
        own = tuple(f"{name}: {label}" for label in data.form.labels)
        labels += own
        groups += [own] if data.form.ordered else []
        sources += data.sources
    form = replace(SEVERAL, labels=tuple(labels), groups=tuple(groups))
    return TrainingData(form, rows, tuple(sources))
