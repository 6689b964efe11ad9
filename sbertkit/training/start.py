"""The start of a run: output and data are checked before torch is loaded, which takes seconds."""

import os
from typing import TYPE_CHECKING

from sbertkit.progress import under_way
from sbertkit.training.recipe import Recipe
from sbertkit.training.run.distributed import launch
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
    folder = RunFolder(output, main=launch().is_main)
    with folder.locked():
        folder.check(resume=recipe.config.resume)
        shown = recipe.config.progress and launch().is_main
        with under_way(f"reading the data and loading {recipe.base}", shown=shown):
            read = recipe.with_data()
            from sbertkit.training.run.runner import run
        return run(read, folder)
