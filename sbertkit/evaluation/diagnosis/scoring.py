"""How well the parts of a text find each other and their text, text by text."""

import numpy as np
import numpy.typing as npt

from sbertkit.arrays import Vectors
from sbertkit.metrics import unit_rows

Scores = npt.NDArray[np.float64]


def pair_scores(whole: Vectors, first: Vectors, second: Vectors) -> Scores:
    """For each text how well its parts find each other and the text among all, (n,), 0 to 1.

    A part's score is the product of two reciprocal ranks, of the other part among the other parts
    of all texts, and of its own text among the texts; a text's score is the mean of its two parts.
    The other part alone says little of what widens the differences between texts, the own text
    little of how a text's meaning is kept in few words.

    What is as near as the one sought counts as nearer by half, so that a space in which all are
    alike gains nothing.

    Args:
        whole: Vectors of the texts, (n, dim).
        first: Vectors of a part of each text, in the same order, (n, dim).
        second: Vectors of another part of each text, in the same order, (n, dim).
    """
    texts, left, right = (unit_rows(rows).astype(np.float32) for rows in (whole, first, second))
    of_left = _reciprocal_ranks(left @ right.T) * _reciprocal_ranks(left @ texts.T)
    of_right = _reciprocal_ranks(right @ left.T) * _reciprocal_ranks(right @ texts.T)
    scores: Scores = (of_left + of_right) / 2.0
    return scores


def _reciprocal_ranks(cosines: Vectors) -> Scores:
    """Of what is on the diagonal, among its row."""
    own = np.diag(cosines)[:, None]
    nearer = (cosines > own).sum(axis=1)
    equal = (cosines == own).sum(axis=1) - 1
    ranks: Scores = 1.0 + nearer + equal / 2.0
    return 1.0 / ranks
