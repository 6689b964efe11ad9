"""The order of batches that are each of one of several sets."""

from collections.abc import Iterator, Sequence

import numpy as np

from sbertkit.training.batches import BatchOrder
from sbertkit.training.config import PROPORTIONAL
from sbertkit.training.examples import Examples, Int64


class SetOrder:
    """The batches of each epoch, as lists of row numbers: a batch sampler of torch.

    Proportional, an epoch has all batches of all sets in random order; round robin, the sets take
    turns until the smallest one ends, and larger ones go on with other rows in the next epoch.

    Args:
        examples: Those of several sets.
        lengths: Token counts of the texts, by number.
        batch_size: Maximum of rows per batch.
        sampling: How the sets take turns.
        seed: Decides the order, with the number of the epoch.
    """

    def __init__(
        self, examples: Examples, lengths: Int64, batch_size: int, *, sampling: str, seed: int
    ) -> None:
        self._orders = [BatchOrder(one, lengths, batch_size, seed=seed) for one in examples.parts]
        self._starts = examples.starts
        self._sampling = sampling
        self._seed = seed
        self._epoch = 0
        self.batch_size = max(order.batch_size for order in self._orders)
        self.drop_last = False

    def __len__(self) -> int:
        counts = list(map(len, self._orders))
        return sum(counts) if self._sampling == PROPORTIONAL else min(counts) * len(counts)

    def set_epoch(self, epoch: int) -> None:
        """The epoch whose order `iter` gives."""
        self._epoch = epoch
        for order in self._orders:
            order.set_epoch(epoch)

    def __iter__(self) -> Iterator[list[int]]:
        batches = [iter(order) for order in self._orders]
        for number in self._turns():
            yield [row + self._starts[number] for row in next(batches[number])]

    def _turns(self) -> Sequence[int]:
        """The number of the set of each batch."""
        counts = list(map(len, self._orders))
        if self._sampling != PROPORTIONAL:
            return list(range(len(counts))) * min(counts)
        turns = np.repeat(np.arange(len(counts)), counts)
        random = np.random.default_rng((self._seed, self._epoch))
        return [int(number) for number in random.permutation(turns)]
