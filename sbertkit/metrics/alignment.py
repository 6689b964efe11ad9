"""How close vectors of related texts are."""

import numpy as np
import numpy.typing as npt

from sbertkit.errors import InputError
from sbertkit.metrics.cosine import checked_vectors, row_cosines


def alignment(left: npt.ArrayLike, right: npt.ArrayLike, *, alpha: float = 2.0) -> float | None:
    """The mean distance of paired rows to the power `alpha`: at least 0; lower is better.

    Rows are scaled to length 1 first; pairs with a row of zeros are left out. With none left: None.

    Args:
        left: Shape (n, dim).
        right: Shape (n, dim); row i is paired with row i of `left`.
        alpha: Above 0.

    Raises:
        InputError: Vectors that are not finite numbers of one shape (n, dim), or a bad `alpha`.

    Source: Wang & Isola 2020, section 4.1.1: E |x - y|^alpha over positive pairs.
    """
    if not 0 < alpha < np.inf:
        raise InputError(f"alpha must be a finite number above 0, not {alpha}")
    first, second = checked_vectors(left), checked_vectors(right)
    if first.shape != second.shape:
        raise InputError(f"expected pairs of vectors, found {first.shape} and {second.shape}")
    rows = np.flatnonzero(first.any(axis=1) & second.any(axis=1))
    if not len(rows):
        return None
    both = np.concatenate([first[rows], second[rows]])
    cosines = row_cosines(both, np.arange(len(rows)), np.arange(len(rows)) + len(rows))
    squares = np.maximum(2.0 - 2.0 * cosines, 0.0)
    return float((squares ** (alpha / 2)).mean())
