"""What the trainer asks of an objective."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from torch import Tensor

from sbertkit.data.nli import NliSet
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

    def loss(self, vectors: Tensor, batch: Mapping[str, Tensor]) -> Tensor:
        """The mean loss of a batch, a number.

        Args:
            vectors: Text vectors in float32, (N, dim).
            batch: ``columns`` (B, columns) and what `collate` gave.
        """
        ...
