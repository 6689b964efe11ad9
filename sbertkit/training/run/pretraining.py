"""What a run does otherwise where its objective is a pretraining task."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from sbertkit.errors import InputError
from sbertkit.training.batches import BatchOrder, Collator
from sbertkit.training.examples import TextTable
from sbertkit.training.pretraining.config import AdaptConfig
from sbertkit.training.pretraining.pieces import Pieces
from sbertkit.training.pretraining.tasks import PretrainingTask
from sbertkit.training.pretraining.training import HeldOut, Pretrainer, TaskCollator
from sbertkit.training.recipe import Task
from sbertkit.training.run.distributed import launch
from sbertkit.training.run.precision import compiles_shapes
from sbertkit.training.run.siamese import Siamese

if TYPE_CHECKING:
    from sbertkit.training.run.setup import Setup


def table_of(task: Task) -> TextTable:
    """Where the texts of a run get their numbers."""
    if not isinstance(task.objective, PretrainingTask):
        return TextTable(task.encoder)
    return task.objective.pieces(task.encoder, pack=_packs(task))


def with_held_out(task: Task, table: TextTable) -> tuple[Task, HeldOut | None]:
    """The task with what its objective knows of the vocabulary, and the texts it is measured on.

    Raises:
        InputError: No text that is held out has a token.
    """
    objective, config = task.objective, task.config
    if not isinstance(objective, PretrainingTask) or not isinstance(table, Pieces):
        return task, None
    prepared = objective.prepared(task.encoder, table)
    pieces = objective.pieces(task.encoder, pack=_packs(task))
    if not len(pieces.read(row[0] for row in task.data.held_out)):
        raise InputError(
            f"nothing that is held out is an example for the task {objective.name}; take more "
            "texts, or more of them (--held-out)"
        )
    held_out = HeldOut(prepared, pieces, config)
    return replace(task, objective=prepared), held_out


def model_of(setup: "Setup") -> Siamese | Pretrainer:
    """The network in training."""
    task = setup.task
    network = task.encoder.torch.network
    if isinstance(task.objective, PretrainingTask):
        return Pretrainer(network, task.objective, task.head, setup.functions)
    return Siamese(
        network,
        task.objective,
        task.head,
        sizes=task.config.matryoshka,
        caches=task.config.mini_batch is not None,
        functions=setup.functions,
    )


def collator_of(setup: "Setup") -> Collator | TaskCollator:
    """What makes batches."""
    task, table, order = setup.task, setup.table, setup.order
    objective = task.objective
    if isinstance(objective, PretrainingTask) and isinstance(table, Pieces):
        if not isinstance(order, BatchOrder):
            raise TypeError(f"expected the batches of one set, found {type(order).__name__}")
        return TaskCollator(setup.examples, table, objective, order, seed=task.config.seed)
    rank, processes = launch()
    return Collator(
        setup.examples,
        table,
        task.encoder.spec.collator,
        objective,
        mini_batch=task.config.mini_batch,
        few_shapes=compiles_shapes(setup.precision, setup.device),
        rank=rank,
        processes=processes,
    )


def measured(setup: "Setup") -> Callable[[], dict[str, float]]:
    """What gives the figures of the texts that are held out; none where there are no such."""

    def measure() -> dict[str, float]:
        task = setup.task
        if setup.held_out is None:
            return {}
        return setup.held_out.measure(task.encoder.torch.network, task.head)

    return measure


def _packs(task: Task) -> bool:
    return isinstance(task.config, AdaptConfig) and task.config.pack
