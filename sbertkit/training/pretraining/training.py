"""A pretraining task in a run: its batches, its network, and what is measured of it."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from sbertkit.training.batches import BatchOrder
from sbertkit.training.config import TrainConfig
from sbertkit.training.examples import Examples, Int64
from sbertkit.training.pretraining.draws import HELD_OUT, Draws
from sbertkit.training.pretraining.pieces import Pieces
from sbertkit.training.pretraining.tasks.base import LossPart, PretrainingTask


class TaskCollator:
    """Makes a batch of pieces, with the draws of the epoch.

    Args:
        examples: The rows.
        pieces: Their texts.
        task: Makes tensors of them.
        order: Knows the epoch.
        seed: Of the run.
    """

    def __init__(
        self,
        examples: Examples,
        pieces: Pieces,
        task: PretrainingTask,
        order: BatchOrder,
        *,
        seed: int,
    ) -> None:
        self._examples = examples
        self._pieces = pieces
        self._task = task
        self._order = order
        self._seed = seed

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self._examples)

    def __call__(self, rows: list[int]) -> dict[str, Any]:
        """The batch of those rows; ``columns`` (B, 1) are the numbers of their pieces."""
        numbers = self._examples.texts[rows]
        draws = Draws(self._seed, self._order.epoch)
        batch = self._task.batch(self._pieces, numbers[:, 0], draws)
        return {**batch, "columns": torch.from_numpy(numbers)}


class Pretrainer(nn.Module):
    """Gives the loss of a batch; all trained weights are in it, those of the heads too.

    Args:
        network: The encoder's network, trained in place.
        objective: The task.
        head: What is trained above the encoder.
        functions: What each forward pass is in.
    """

    def __init__(
        self,
        network: nn.Module,
        objective: PretrainingTask,
        head: nn.Module,
        functions: AbstractContextManager[Any] | None = None,
    ) -> None:
        super().__init__()
        self.network = network
        self.objective = objective
        self.head = head
        self._functions = functions or nullcontext()
        self._parts: dict[str, Tensor] = {}

    def forward(self, batch: dict[str, Any]) -> Tensor:
        """The loss of a batch (see `TaskCollator`)."""
        with self._functions:
            found = self.objective.token_loss(self.network, batch, self.head)
        self._parts = {part.name: part.loss.detach() for part in found.parts}
        return found.loss

    def named_losses(self, loss: Tensor, batch: Mapping[str, Any]) -> dict[str, float]:
        """The losses that the loss of the last batch is the sum of, where there are several."""
        return {name: part.item() for name, part in self._parts.items()}


@dataclass(slots=True)
class _Sum:
    """Losses and right predictions of a part, summed over batches."""

    weight: float
    loss: float = 0.0
    correct: int = 0
    count: int = 0

    def add(self, part: LossPart) -> None:
        """Adds those of a batch."""
        self.loss += float(part.loss) * part.total
        self.correct += int(part.correct)
        self.count += part.total


class HeldOut:
    """Texts that are not trained on, with the same draws each time.

    Args:
        task: In training.
        pieces: The texts.
        config: Has the seed, and how large batches are.
    """

    def __init__(self, task: PretrainingTask, pieces: Pieces, config: TrainConfig) -> None:
        self._task = task
        self._pieces = pieces
        self._config = config
        self._draws = Draws(config.seed, HELD_OUT)

    def measure(self, network: nn.Module, head: nn.Module) -> dict[str, float]:
        """The mean loss and accuracy, by the names that the log has; put in evaluation mode.

        Those of the parts of a loss have the part's name after a blank.
        """
        device = next(network.parameters()).device
        network.train(self._task.uses_dropout)
        head.eval()
        sums: dict[str, _Sum] = {}
        with torch.no_grad(), torch.random.fork_rng([device] if device.type == "cuda" else []):
            torch.manual_seed(self._draws.seed)
            for batch in self._batches():
                moved = {name: tensor.to(device) for name, tensor in batch.items()}
                found = self._task.token_loss(network, moved, head)
                whole = LossPart("", found.loss, found.correct, found.total)
                for part in (whole, *found.parts):
                    sums.setdefault(part.name, _Sum(part.weight)).add(part)
        network.eval()
        measured = {name: one for name, one in sums.items() if one.count}
        if not measured:
            return {}
        losses = {name: one.loss / one.count for name, one in measured.items()}
        if len(sums) > 1:  # batches have other numbers of predictions of each part
            losses[""] = sum(sums[name].weight * losses[name] for name in losses if name)
        found_right = {name: one.correct / one.count for name, one in measured.items()}
        return {f"held_out_loss {name}".rstrip(): value for name, value in losses.items()} | {
            f"held_out_accuracy {name}".rstrip(): value for name, value in found_right.items()
        }

    def _batches(self) -> Iterator[Mapping[str, Tensor]]:
        for numbers in self._plan():
            yield self._task.batch(self._pieces, numbers, self._draws)

    def _plan(self) -> list[Int64]:
        """The pieces of each batch, of similar length."""
        lengths = self._pieces.lengths
        if self._config.batch_tokens is not None:
            return self._pieces.padder.plan(lengths.tolist(), self._config.batch_tokens)
        order = np.argsort(lengths, kind="stable")
        return np.split(order, range(self._config.batch_size, len(order), self._config.batch_size))
