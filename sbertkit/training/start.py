"""The start of a run: output and data are checked before torch is loaded, which takes seconds."""

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from sbertkit.progress import under_way
from sbertkit.training.recipe import Recipe
from sbertkit.training.run.distributed import launch, warned_once
from sbertkit.training.run.folder import RunFolder

if TYPE_CHECKING:
    from sbertkit.training.results import TrainResult


def train(recipe: Recipe, output: str | os.PathLike[str]) -> "TrainResult":
    """Trains by a recipe, and writes the model to a new folder.

    Raises:
        InputError: Data, base, output or settings are refused; nothing is written then.
        MissingDependency: A tracker is not installed.
        TrainingStopped: The guard ended the run.
        StorageError: The disk is full or the like.
        KeyboardInterrupt: Ctrl-C, after a checkpoint was saved.
    """
    main = launch().is_main
    config = replace(recipe.config, progress=recipe.config.progress and main)
    recipe = replace(recipe, config=config)
    folder = RunFolder(output, main=main)
    with warned_once(), folder.locked():
        folder.check(resume=config.resume)
        reading = f"reading the data and loading {recipe.base}"
        with under_way(reading, shown=config.progress):
            read = recipe.with_data()
            from sbertkit.training.run.runner import run
        return run(read, folder)
