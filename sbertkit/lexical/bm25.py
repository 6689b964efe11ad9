"""BM25: what a term says of a document that has it."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sbertkit.settings import check_settings, setting

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Bm25:
    """The parameters of BM25.

    Attributes:
        k1: How much further occurrences of a word in a document add, up to 1,000; 0: nothing.
        b: How much the length of a document counts, 0 to 1.

    Raises:
        InputError: A parameter out of range.
    """

    k1: float = setting(
        1.2, "How much further occurrences of a word add, from 0.", minimum=0.0, maximum=1_000.0
    )
    b: float = setting(0.75, "How much the length counts, 0 to 1.", minimum=0.0, maximum=1.0)

    def __post_init__(self) -> None:
        check_settings(self)

    def weight(self, documents: int, having: int) -> float:
        """The most that a term can add to a score.

        Source: Robertson and Zaragoza 2009, equation 3.15, whose logarithm is of 1 + x as in
        Lucene, so that it is never negative (Kamphuis et al. 2020).

        Args:
            documents: Number of documents.
            having: Number of those that have the term.
        """
        return (self.k1 + 1) * math.log1p((documents - having + 0.5) / (having + 0.5))

    def norms(self, lengths: npt.NDArray[np.integer], mean: float) -> Numbers:
        """What is added to the frequencies in documents of some lengths, (n,)."""
        return self.k1 * (1 - self.b + self.b * lengths.astype(np.float64) / (mean or 1.0))
