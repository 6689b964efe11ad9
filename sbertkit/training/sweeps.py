"""Sweeps: several runs that differ in one setting, the seed or the pooling."""

import json
import logging
import os
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from sbertkit.arguments import output_folder, whole_number
from sbertkit.encoder.model_files import LINEAGE_FILE
from sbertkit.encoder.pooling import POOLINGS
from sbertkit.errors import InputError, InputTypeError
from sbertkit.training.recipe import Recipe
from sbertkit.training.run.distributed import launch
from sbertkit.training.run.folder import RunFolder, differences
from sbertkit.training.start import train

if TYPE_CHECKING:
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


def train_seeds(
    recipe: Recipe, output: str | os.PathLike[str], seeds: Sequence[int]
) -> "dict[int, TrainResult]":
    """One run per seed, in ``seed-N`` below the output; with ``resume`` finished ones are kept.

    Raises:
        InputError: No seed, a duplicate, or see `train`.
    """
    if not isinstance(seeds, Iterable):
        raise InputTypeError(f"seeds must be whole numbers, found {seeds!r}")
    numbers = [whole_number("a seed", seed, least=0) for seed in seeds]
    if not numbers or len(set(numbers)) < len(numbers):
        raise InputError(f"seeds must be distinct whole numbers, found {numbers}")
    changes = {
        f"seed-{seed}": replace(recipe, config=replace(recipe.config, seed=seed))
        for seed in numbers
    }
    return dict(zip(numbers, _train_all(recipe, changes, output), strict=True))


def ablate_pooling(
    recipe: Recipe,
    output: str | os.PathLike[str],
    poolings: Sequence[str] = ABLATED_POOLINGS,
) -> "dict[str, TrainResult]":
    """One run per pooling with the same budget, in a folder of its name below the output.

    Raises:
        InputError: An unknown pooling, a duplicate or none, or see `train`.
    """
    names = [poolings] if isinstance(poolings, str) else list(poolings)
    known = all(isinstance(name, str) and name in POOLINGS for name in names)
    if not known or not names or len(set(names)) < len(names):
        raise InputError(f"poolings must be distinct ones of {', '.join(POOLINGS)}, found {names}")
    changes = {name: replace(recipe, pooling=name) for name in names}
    return dict(zip(names, _train_all(recipe, changes, output), strict=True))


def spread(
    results: "Mapping[int, TrainResult]", score: "Callable[[TrainResult], float | None]"
) -> Spread:
    """Mean and sample standard deviation of a score of the results."""
    values = [value for result in results.values() if (value := score(result)) is not None]
    if len(values) < len(results) or not values:
        return Spread(None, None)
    return Spread(statistics.mean(values), statistics.stdev(values) if len(values) > 1 else None)


def _train_all(
    recipe: Recipe, runs: Mapping[str, Recipe], output: str | os.PathLike[str]
) -> "list[TrainResult]":
    folder = output_folder(output)
    resume = recipe.config.resume
    fresh = launch().is_main and not resume
    if fresh and folder.is_dir() and any(folder.iterdir()):
        raise InputError(
            f"{folder} exists and is not empty; choose a new folder, remove it, or continue "
            "with resume (--resume)"
        )
    read = recipe.with_data()
    results = []
    for name, one in runs.items():
        place, run = folder / name, replace(one, read=read.read, dev=read.dev)
        if resume and (place / LINEAGE_FILE).is_file():
            results.append(_finished(place, run))
            continue
        unfinished = RunFolder(place).is_unfinished
        logger.info("training %s", name)
        config = replace(run.config, resume=resume and unfinished)
        results.append(train(replace(run, config=config), place))
    return results


def _finished(folder: Path, run: Recipe) -> "TrainResult":
    """The result of a run that is done already.

    Raises:
        InputError: It was made from another base, or with other data or settings.
    """
    # What loads torch; the data has been read.
    from sbertkit.training.results import TrainResult
    from sbertkit.training.run.global_state import isolated_global_state
    from sbertkit.training.run.lineage import identity_of

    with isolated_global_state():
        result = TrainResult.read(folder)
        wanted = json.loads(json.dumps(identity_of(run.load())))
    known = {**result.record.get("identity", {}), "settings": result.record["settings"]}
    changes = differences(known, wanted)
    if changes:
        raise InputError(
            f"{folder} was trained with other data or settings: {'; '.join(changes)}; give those "
            "again, or choose another folder for this sweep"
        )
    return result
