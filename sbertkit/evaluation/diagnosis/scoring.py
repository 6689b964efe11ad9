"""How well the parts of a text find each other and their text, text by text."""

import numpy as np
import numpy.typing as npt

from sbertkit.arrays import Vectors
from sbertkit.metrics import unit_rows

Scores = npt.NDArray[np.float64]


def pair_scores(whole: Vectors, first: Vectors, second: Vectors) -> Scores:
    """For each text how well its parts find each other and the whole text, (n,), 0 to 1.

    A part's score is the product of two reciprocal ranks: of the other part among the other parts
    of all texts, and of its own text among all texts; a text's score is the mean of its two parts.
    Ranks among parts alone would not reward larger differences between texts, and ranks among whole
    texts alone would not show whether a few words keep the meaning of a text.

    Ties count half, so that a space in which all vectors are alike gains nothing.

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


def found_ranks(queries: Vectors, documents: Vectors) -> Scores:
    """The rank of each query's own document, the one of its row, among all documents, (n,), from 1.

    Ties count half.

    Args:
        queries: Vectors, (n, dim).
        documents: Vectors, (n, dim).
    """
    left, right = (unit_rows(rows).astype(np.float32) for rows in (queries, documents))
    return _ranks(left @ right.T)


def _reciprocal_ranks(cosines: Vectors) -> Scores:
    """Reciprocal rank of each diagonal element in its row."""
    return 1.0 / _ranks(cosines)


def _ranks(cosines: Vectors) -> Scores:
    """Rank of each diagonal element in its row; ties count half."""
    targets = np.diag(cosines)[:, None]
    nearer = (cosines > targets).sum(axis=1)
    equal = (cosines == targets).sum(axis=1) - 1
    ranks: Scores = 1.0 + nearer + equal / 2.0
    return ranks
