"""Several runs that differ in one thing: seeds for a mean and deviation, or poolings."""

import json
import logging
import os
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from sbertkit.arguments import output_folder, whole_number
from sbertkit.data.nli import NliSet
from sbertkit.encoder.saving import LINEAGE_FILE
from sbertkit.errors import InputError
from sbertkit.training.config import TrainConfig
from sbertkit.training.folder import RunFolder
from sbertkit.training.nli import Paths, read_data, train_nli
from sbertkit.training.results import TrainResult

logger = logging.getLogger(__name__)

ABLATED_POOLINGS = ("cls", "mean", "max", "eos")
PUBLISHED_POOLINGS: Mapping[str, float] = {"cls": 79.80, "mean": 80.78, "max": 79.07}
"""Spearman times 100 on the STS-B dev set of BERT-base trained on SNLI and MultiNLI with softmax.

Source: Reimers & Gurevych 2019, Sentence-BERT, table 6.
"""


class Spread(NamedTuple):
    """Mean and sample standard deviation of a score over runs; None where undefined."""

    mean: float | None
    deviation: float | None


@dataclass(frozen=True, slots=True)
class Recipe:
    """What the runs of a series have in common.

    Attributes:
        base: A model folder or a hub name.
        data: See `train_nli`.
        pooling: See `train_nli`.
        objective: See `train_nli`.
        dev: See `train_nli`.
        config: All further settings.
    """

    base: str | os.PathLike[str]
    data: Paths | NliSet | None
    pooling: str | None
    objective: str
    dev: str | os.PathLike[str] | None
    config: TrainConfig


def train_seeds(
    recipe: Recipe, output: str | os.PathLike[str], seeds: Sequence[int]
) -> dict[int, TrainResult]:
    """One run a seed, in ``seed-N`` below the output; with ``resume`` finished ones are kept.

    Raises:
        InputError: No seed, one twice, or see `train_nli`.
    """
    numbers = [whole_number("a seed", seed, least=0) for seed in seeds]
    if not numbers or len(set(numbers)) < len(numbers):
        raise InputError(f"seeds must be distinct whole numbers, found {list(seeds)}")
    changes = {
        f"seed-{seed}": replace(recipe, config=replace(recipe.config, seed=seed))
        for seed in numbers
    }
    return dict(zip(numbers, _train_all(recipe, changes, output), strict=True))


def ablate_pooling(
    recipe: Recipe,
    output: str | os.PathLike[str],
    poolings: Sequence[str] = ABLATED_POOLINGS,
) -> dict[str, TrainResult]:
    """One run a pooling with the same budget, in a folder of its name below the output.

    Raises:
        InputError: See `train_nli`.
    """
    changes = {name: replace(recipe, pooling=name) for name in poolings}
    return dict(zip(poolings, _train_all(recipe, changes, output), strict=True))


def spread(
    results: Mapping[int, TrainResult], score: Callable[[TrainResult], float | None]
) -> Spread:
    """Mean and sample standard deviation of a score of the results."""
    values = [value for result in results.values() if (value := score(result)) is not None]
    if len(values) < len(results) or not values:
        return Spread(None, None)
    return Spread(statistics.mean(values), statistics.stdev(values) if len(values) > 1 else None)


def _train_all(
    recipe: Recipe, runs: Mapping[str, Recipe], output: str | os.PathLike[str]
) -> list[TrainResult]:
    folder = output_folder(output)
    resume = recipe.config.resume
    if not resume and folder.is_dir() and any(folder.iterdir()):
        raise InputError(
            f"{folder} is there already and not empty; choose a new folder, remove it, or continue "
            "with resume (--resume)"
        )
    data = read_data(recipe.data, recipe.config)
    results = []
    for name, run in runs.items():
        place = folder / name
        if resume and (place / LINEAGE_FILE).is_file():
            results.append(_finished(place, run))
            continue
        unfinished = RunFolder(place).is_unfinished
        logger.info("training %s", name)
        results.append(
            train_nli(
                run.base,
                data,
                place,
                pooling=run.pooling,
                objective=run.objective,
                dev=run.dev,
                config=replace(run.config, resume=resume and unfinished),
            )
        )
    return results


def _finished(folder: Path, run: Recipe) -> TrainResult:
    """The result of a run that is done already.

    Raises:
        InputError: It was made with other settings.
    """
    result = TrainResult.read(folder)
    known = dict(result.record["settings"])
    wanted = run.config.identity()
    wanted = json.loads(json.dumps(wanted))
    # The record has the precision that "auto" came to.
    changed = [name for name in wanted if name != "precision" and known.get(name) != wanted[name]]
    recipe = {"objective": run.objective, "base": os.fspath(run.base)}
    if run.pooling is not None:
        recipe["pooling"] = run.pooling
    changed += [name for name, value in recipe.items() if result.record.get(name) != value]
    if changed:
        raise InputError(
            f"{folder} was trained with other settings ({', '.join(changed)}); choose another "
            "folder for this series"
        )
    return result
