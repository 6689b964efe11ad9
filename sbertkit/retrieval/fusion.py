"""Fusing what vectors find and what words find into one order.

Sources: Bruch, Gai and Ingber 2023, An analysis of fusion functions for hybrid retrieval (a convex
combination with theoretical minima, TM2C2); Cormack, Clarke and Büttcher 2009, Reciprocal rank
fusion.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sbertkit.errors import InputError, InputTypeError
from sbertkit.lexical.bm25 import Numbers
from sbertkit.retrieval.modes import CONVEX, FUSIONS, RRF

DEFAULT_WEIGHT = 0.5

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


@dataclass(frozen=True, slots=True)
class Fusion:
    """How the scores of vectors and words become one.

    Attributes:
        method: ``convex``: ``w (d + 1) / (D + 1) + (1 - w) l / L`` for the cosine d and the BM25 l
            of a document, of which D and L are the greatest for the query; or ``rrf``: the sum of
            ``1 / (60 + rank)`` in both orders.
        weight: The weight w of the vectors, 0 to 1; for ``convex``.

    Raises:
        InputError: Another method, or a weight out of range.
        InputTypeError: A weight that is no number.
    """

    method: str = CONVEX
    weight: float = DEFAULT_WEIGHT

    def __post_init__(self) -> None:
        if self.method not in FUSIONS:
            raise InputError(f"fusion must be {' or '.join(FUSIONS)}, not {self.method!r}")
        if isinstance(self.weight, bool) or not isinstance(self.weight, int | float):
            raise InputTypeError(f"weight must be a number, not {self.weight!r}")
        if not 0 <= self.weight <= 1:
            raise InputError(f"weight must be from 0 (words) to 1 (vectors), not {self.weight}")

    def combined(self, scores: BothScores, greatest: BothScores) -> Numbers:
        """The convex combination (n,) of scores.

        Args:
            scores: Of some documents.
            greatest: The greatest of all documents, (1,) each.
        """
        dense = (scores.dense - _MIN_COSINE) / np.maximum(greatest.dense - _MIN_COSINE, 1e-9)
        lexical = scores.lexical / np.where(greatest.lexical > 0, greatest.lexical, 1.0)
        return self.weight * dense + (1 - self.weight) * lexical

    def __str__(self) -> str:
        if self.method == RRF:
            return "reciprocal ranks of vectors and words"
        return f"convex combination, {self.weight:g} of vectors and {1 - self.weight:g} of words"


def reciprocal(ranks: Numbers) -> Numbers:
    """What ranks from 1 add to the score of a document; nothing where they are infinite."""
    return 1 / (_RANK_CONSTANT + ranks)
