"""What the trainer asks of an objective."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from torch import Tensor

from sbertkit.data.nli import NliSet
from sbertkit.training.config import TrainConfig
from sbertkit.training.examples import Examples, Int64, TextTable


class Objective(Protocol):
    """An `nn.Module` that gives the loss of a batch, and knows what examples it trains on."""

    def examples(self, data: NliSet, table: TextTable) -> Examples:
        """The rows to train on, whose texts get numbers in the table.

        Raises:
            InputError: The data has nothing that this objective can use.
        """
        ...

    def collate(
        self, examples: Examples, rows: Sequence[int], columns: Int64, texts: Int64
    ) -> dict[str, Tensor]:
        """What a batch needs beside its vectors.

        Args:
            examples: All rows.
            rows: Those of the batch.
            columns: Which vector each row's texts have, (B, columns).
            texts: The number of the text of each vector, (N,).
        """
        ...

    def check_batches(self, examples: Examples, batches: Iterable[Sequence[int]]) -> None:
        """Nothing, if batches of those rows teach anything; a warning where only some do.

        Raises:
            InputError: None does.
        """
        ...

    def loss(self, vectors: Tensor, batch: Mapping[str, Tensor]) -> Tensor:
        """The mean loss of a batch, a number.

        Args:
            vectors: Text vectors in float32, (N, dim).
            batch: ``columns`` (B, columns) and what `collate` gave.
        """
        ...


@dataclass(frozen=True, slots=True)
class ObjectiveKind:
    """An objective by name.

    Attributes:
        name: As users write it.
        build: Makes it for vectors of a size, with a new head where it has one.
        normalize: Whether it is best trained on vectors of unit length.
        learning_rate: Peak learning rate that suits it.
        unit: What one of its examples is called.
    """

    name: str
    build: Callable[[int, TrainConfig], Objective]
    normalize: bool
    learning_rate: float
    unit: str

    def settle(self, config: TrainConfig) -> TrainConfig:
        """The settings with this objective's own where they were left to it."""
        rate, normalize = config.learning_rate, config.normalize
        return replace(
            config,
            learning_rate=self.learning_rate if rate is None else rate,
            normalize=self.normalize if normalize is None else normalize,
        )
