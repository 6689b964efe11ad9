"""Sweeps: several runs on the same data that differ in the seed, or in what is ablated."""

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
from sbertkit.errors import InputError, InputTypeError
from sbertkit.storage import replace_file, storage_errors
from sbertkit.training.ablations import ablations_of
from sbertkit.training.recipe import Recipe
from sbertkit.training.run.distributed import launch
from sbertkit.training.run.folder import RunFolder, differences
from sbertkit.training.start import train

if TYPE_CHECKING:
    from sbertkit.training.results import TrainResult

logger = logging.getLogger(__name__)

TABLE_FILE = "ablation.md"


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
    results = _train_all(
        recipe,
        lambda read: {
            f"seed-{seed}": replace(read, config=replace(read.config, seed=seed))
            for seed in numbers
        },
        output,
    )
    return dict(zip(numbers, results.values(), strict=True))


def ablate(recipe: Recipe, output: str | os.PathLike[str], name: str) -> "dict[str, TrainResult]":
    """One run on the same budget for each form of one part of the recipe, and their table.

    The runs are in folders of their names below the output, the table beside them.

    Args:
        recipe: Has what the runs share.
        output: A new folder.
        name: What differs: ``pooling``, ``objective``, ``features`` or ``strategy``.

    Raises:
        InputError: An unknown name or one of other data, settings that the runs set themselves,
            or see `train`.
    """
    known = ablations_of(recipe.form)
    if name not in known:
        raise InputError(f"an ablation must be one of {', '.join(known)}, not {name!r}")
    for setting in known[name].settles:
        if getattr(recipe.config, setting, None) is not None:
            raise InputError(f"the ablation {name} sets {setting} itself; leave it out")
    results = _train_all(recipe, known[name].runs, output)
    if launch().is_main:
        from sbertkit.training.report.ablation import ablation_markdown

        path = output_folder(output) / TABLE_FILE
        with storage_errors(path):
            replace_file(path, ablation_markdown(name, results).encode())
    return results


def spread(
    results: "Mapping[int, TrainResult]", score: "Callable[[TrainResult], float | None]"
) -> Spread:
    """Mean and sample standard deviation of a score of the results."""
    values = [value for result in results.values() if (value := score(result)) is not None]
    if len(values) < len(results) or not values:
        return Spread(None, None)
    return Spread(statistics.mean(values), statistics.stdev(values) if len(values) > 1 else None)


def _train_all(
    recipe: Recipe,
    make: Callable[[Recipe], Mapping[str, Recipe]],
    output: str | os.PathLike[str],
) -> "dict[str, TrainResult]":
    """Trains what `make` makes of the recipe with its data in memory, by name."""
    folder = output_folder(output)
    resume = recipe.config.resume
    fresh = launch().is_main and not resume
    if fresh and folder.is_dir() and any(folder.iterdir()):
        raise InputError(
            f"{folder} exists and is not empty; choose a new folder, remove it, or continue "
            "with resume (--resume)"
        )
    read = recipe.with_data()
    results: dict[str, TrainResult] = {}
    for name, run in make(read).items():
        place = folder / name
        if resume and (place / LINEAGE_FILE).is_file():
            results[name] = _finished(place, run)
            continue
        unfinished = RunFolder(place).is_unfinished
        logger.info("training %s", name)
        config = replace(run.config, resume=resume and unfinished)
        results[name] = train(replace(run, config=config), place)
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
