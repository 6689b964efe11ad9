"""A pretraining task in a run: its batches, its network, and what is measured of it."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from sbertkit.training.batches import BatchOrder
from sbertkit.training.config import TrainConfig
from sbertkit.training.examples import Examples, Int64
from sbertkit.training.pretraining.draws import HELD_OUT, Draws
from sbertkit.training.pretraining.pieces import Pieces
from sbertkit.training.pretraining.tasks.base import PretrainingTask


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
    """

    def __init__(self, network: nn.Module, objective: PretrainingTask, head: nn.Module) -> None:
        super().__init__()
        self.network = network
        self.objective = objective
        self.head = head

    def forward(self, batch: dict[str, Any]) -> Tensor:
        """The loss of a batch (see `TaskCollator`)."""
        return self.objective.token_loss(self.network, batch, self.head).loss


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
        """The mean loss and accuracy, by the names that the log has; put in evaluation mode."""
        device = next(network.parameters()).device
        network.train(self._task.uses_dropout)
        head.eval()
        loss, correct, count = 0.0, 0, 0
        with torch.no_grad(), torch.random.fork_rng([device] if device.type == "cuda" else []):
            torch.manual_seed(self._draws.seed)
            for batch in self._batches():
                moved = {name: tensor.to(device) for name, tensor in batch.items()}
                found = self._task.token_loss(network, moved, head)
                loss += float(found.loss) * found.total
                correct += int(found.correct)
                count += found.total
        network.eval()
        if not count:
            return {}
        return {"held_out_loss": loss / count, "held_out_accuracy": correct / count}

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
