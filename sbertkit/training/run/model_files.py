"""The model folders of a run: those in checkpoints, and the one that comes out."""

import shutil
from contextlib import nullcontext
from pathlib import Path

import torch

from sbertkit.encoder.model_files import MODULES_FILE
from sbertkit.encoder.options import LoadOptions
from sbertkit.encoder.saving import write_model_files
from sbertkit.encoder.torch_model import load_torch_model
from sbertkit.storage import copy_tree, staged_folder, storage_errors
from sbertkit.training.heads import load_heads, write_heads
from sbertkit.training.recipe import Task
from sbertkit.training.report.card import model_card
from sbertkit.training.report.curves import draw_curves
from sbertkit.training.results import TrainResult
from sbertkit.training.run.folder import TRACKERS, RunFolder
from sbertkit.training.run.metrics_log import LOG_FILE
from sbertkit.training.run.setup import Setup


def write_model(setup: Setup, folder: Path) -> None:
    """Writes encoder and head as they are now into an empty folder."""
    task, low_rank = setup.task, setup.low_rank

    def add(place: Path) -> None:
        _write_head(task, place)
        if low_rank is not None:
            low_rank.write(place)

    task.encoder.torch.weights_changed()
    with nullcontext() if low_rank is None else low_rank.merged():
        write_model_files(
            task.encoder.torch,
            folder,
            lineage={"objective": task.objective.name, "unfinished": True},
            add=add,
        )


def read_model(setup: Setup, folder: Path) -> None:
    """Takes the weights of a model folder of this run into the encoder and the objective."""
    task = setup.task
    if setup.low_rank is not None:
        setup.low_rank.read(folder)
    else:
        loaded = load_torch_model(
            LoadOptions(str(folder), task=task.data.form.task),
            torch.device("cpu"),
            trust_remote_code=task.config.trust_remote_code,
        )
        task.encoder.torch.network.load_state_dict(loaded.network.state_dict())
        task.encoder.torch.weights_changed()
    load_heads(task.head, task.objective, folder)


def write_output(setup: Setup, folder: RunFolder, result: TrainResult) -> None:
    """Writes the trained model with its card, curves and log to the output, in one step.

    Raises:
        StorageError: The disk is full, something has been put at the output meanwhile, or the
            like; the output is then as it was.
    """

    def add(place: Path) -> None:
        _write_head(setup.task, place)
        (place / "README.md").write_text(model_card(result.record), encoding="utf-8")
        (place / "curves.svg").write_text(draw_curves(result.log), encoding="utf-8")
        shutil.copyfile(folder.log, place / LOG_FILE)
        if (folder.work / TRACKERS).is_dir():
            copy_tree(folder.work / TRACKERS, place / TRACKERS)

    with (
        storage_errors(folder.output),
        staged_folder(
            folder.output, replace=False, last=MODULES_FILE, beside=(folder.work.name,)
        ) as staged,
    ):
        write_model_files(setup.task.encoder.torch, staged, lineage=result.record, add=add)


def _write_head(task: Task, place: Path) -> None:
    write_heads(task.head, task.objective, task.encoder.dim, place)
