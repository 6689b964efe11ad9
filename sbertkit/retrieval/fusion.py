"""Fusing what vectors find and what words find into one order.

Sources: Bruch, Gai and Ingber 2023, An analysis of fusion functions for hybrid retrieval (a convex
combination with theoretical minima, TM2C2); Cormack, Clarke and Büttcher 2009, Reciprocal rank
fusion.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from sbertkit.arguments import real_number
from sbertkit.errors import InputError
from sbertkit.lexical.bm25 import Numbers
from sbertkit.retrieval.modes import CONVEX, DEFAULT_WEIGHT, FUSIONS, RRF

_RANK_CONSTANT = 60
_MIN_COSINE = -1.0


class BothScores(NamedTuple):
    """Scores of the same documents by both legs, (n,) each.

    Attributes:
        dense: Cosines.
        lexical: BM25, 0 without a word of the query.
    """

    dense: Numbers
    lexical: Numbers

    @property
    def greatest(self) -> "BothScores":
        """The greatest by each leg, (1,) each."""
        return BothScores(*(one.max(keepdims=True) for one in self))


@dataclass(frozen=True, slots=True)
class Fusion:
    """How the scores of vectors and words become one.

    Attributes:
        method: ``convex``: ``w (d + 1) / (D + 1) + (1 - w) l / L`` for the cosine d and the BM25 l
            of a document, of which D and L are the greatest for the query; or ``rrf``: the sum of
            ``1 / (60 + rank)`` in both orders.
        weight: The weight w of the vectors, 0 to 1, for ``convex``; ``None`` for that of the index.

    Raises:
        InputError: Another method, or a weight out of range.
        InputTypeError: A weight that is no number.
    """

    method: str = CONVEX
    weight: float | None = None

    def __post_init__(self) -> None:
        if self.method not in FUSIONS:
            raise InputError(f"fusion must be {' or '.join(FUSIONS)}, not {self.method!r}")
        if self.weight is not None:
            checked_weight(self.weight)

    def of_index(self, weight: float) -> "Fusion":
        """The fusion for an index with a weight of its own."""
        return self if self.weight is not None else replace(self, weight=weight)

    def combined(self, scores: BothScores, greatest: BothScores) -> Numbers:
        """The convex combination (n,) of scores.

        Args:
            scores: Of some documents.
            greatest: The greatest of all documents, (1,) each.
        """
        dense = (scores.dense - _MIN_COSINE) / np.maximum(greatest.dense - _MIN_COSINE, 1e-9)
        lexical = scores.lexical / np.where(greatest.lexical > 0, greatest.lexical, 1.0)
        weight = DEFAULT_WEIGHT if self.weight is None else self.weight
        return weight * dense + (1 - weight) * lexical

    def __str__(self) -> str:
        if self.method == RRF:
            return "reciprocal ranks of vectors and words"
        if self.weight is None:
            return "convex combination, by the weight of the index"
        return f"convex combination, {self.weight:g} of vectors and {1 - self.weight:g} of words"


def checked_weight(weight: object) -> float:
    """The weight of vectors in a convex combination.

    Raises:
        InputError: It is out of range.
        InputTypeError: It is no number.
    """
    share = real_number("weight", weight)
    if not 0 <= share <= 1:
        raise InputError(f"weight must be from 0 (words) to 1 (vectors), not {weight}")
    return share


def reciprocal(ranks: Numbers) -> Numbers:
    """What ranks from 1 add to the score of a document; nothing where they are infinite."""
    return 1 / (_RANK_CONSTANT + ranks)
