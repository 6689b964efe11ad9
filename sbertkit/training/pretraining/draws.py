"""Random numbers of pretraining that depend on the run's seed, the epoch and the example alone."""

import zlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

_GOLDEN = 0.6180339887498949
HELD_OUT = 2**32 - 1
"""In place of an epoch: the draws for texts that are not trained on are always the same."""


@dataclass(frozen=True, slots=True)
class Draws:
    """What decides random numbers, so that a resumed run draws the same ones.

    Attributes:
        seed: Of the run.
        epoch: From 0, or `HELD_OUT`.
    """

    seed: int
    epoch: int

    def among(self, count: int) -> "Draws":
        """The same draws in every epoch that leaves the same remainder by `count`."""
        return self if self.epoch == HELD_OUT else Draws(self.seed, self.epoch % count)

    def even(self, number: int) -> float:
        """A number from 0 to 1 for each example, which all together are spread evenly."""
        return spread(float(np.random.default_rng((self.seed, self.epoch)).random()), number)

    def random(self, ids: "npt.NDArray[np.int32]") -> np.random.Generator:
        """The random numbers of an example, by a hash of its token ids."""
        return np.random.default_rng((self.seed, self.epoch, zlib.crc32(ids.tobytes())))


def spread(start: float, number: int) -> float:
    """The `number`-th of a sequence that fills the span from 0 to 1 evenly, from any start.

    Source: the additive recurrence of the golden ratio; Kuipers & Niederreiter 1974, Uniform
        Distribution of Sequences, section 2.3.
    """
    return (start + number * _GOLDEN) % 1
