"""How well each text of a pair finds the other, pair by pair."""

import numpy as np
import numpy.typing as npt

from sbertkit.metrics import unit_rows

Vectors = npt.NDArray[np.float32]
Scores = npt.NDArray[np.float64]


def pair_scores(first: Vectors, second: Vectors) -> Scores:
    """For each pair the mean of both texts' reciprocal ranks of the other among all, (n,).

    Texts as near as the other half count as nearer by half, so that a space in which all are alike
    gains nothing.

    Args:
        first: Shape (n, dim).
        second: Shape (n, dim); row i belongs to row i of `first`.
    """
    cosines = unit_rows(first).astype(np.float32) @ unit_rows(second).astype(np.float32).T
    own = np.diag(cosines)
    ranks = [_ranks(cosines, own[:, None], 1), _ranks(cosines, own[None, :], 0)]
    result: Scores = (1.0 / ranks[0] + 1.0 / ranks[1]) / 2.0
    return result


def _ranks(cosines: Vectors, own: Vectors, axis: int) -> Scores:
    above = (cosines > own).sum(axis=axis)
    equal = (cosines == own).sum(axis=axis) - 1
    ranks: Scores = 1.0 + above + equal / 2.0
    return ranks
