"""How vectors spread over the directions of their space: singular values and their shares."""

import numpy as np
import numpy.typing as npt

from sbertkit.errors import InputError
from sbertkit.metrics.cosine import checked_vectors


def isoscore(vectors: npt.ArrayLike) -> float | None:
    """How evenly the variance fills all dimensions, from 0 (one direction) to 1 (a sphere).

    None where nothing varies, or for vectors of size 1.

    Args:
        vectors: Shape (n, dim).

    Raises:
        InputError: Vectors that are not finite numbers of shape (n, dim).

    Source: Rudman, Gillman, Rayne & Eickhoff 2022, IsoScore, section 4, algorithm 1.
    """
    strengths = _component_variances(vectors)
    dim = len(strengths)
    length = np.linalg.norm(strengths)
    if dim < 2 or length == 0.0:
        return None
    even = np.sqrt(dim) * strengths / length
    defect = np.linalg.norm(even - 1.0) / np.sqrt(2 * (dim - np.sqrt(dim)))
    used = (dim - defect**2 * (dim - np.sqrt(dim))) ** 2 / dim**2  # share of the dimensions
    return float((dim * used - 1) / (dim - 1))


def variance_shares(vectors: npt.ArrayLike, components: int) -> list[float] | None:
    """The shares of the variance along the strongest principal components; None for none.

    Args:
        vectors: Shape (n, dim).
        components: Maximum number of components, from the strongest.

    Raises:
        InputError: Vectors that are not finite numbers of shape (n, dim), or `components` below 1.
    """
    if components < 1:
        raise InputError(f"components must be at least 1, not {components}")
    strengths = _component_variances(vectors)
    total = strengths.sum()
    return None if total == 0.0 else (strengths[:components] / total).tolist()


def effective_rank(vectors: npt.ArrayLike, *, centered: bool = False) -> float | None:
    """The number of directions, from 1 to min(n, dim), that the rows spread over; None for zeros.

    The exponential of the entropy of the singular values, divided by their sum. The rows are
    neither centered nor scaled, as in the source; a common offset then counts as one strong
    direction. With ``centered=True`` the mean row is subtracted first, which gives the spread
    around the mean.

    Args:
        vectors: Shape (n, dim).
        centered: Whether to subtract the mean row.

    Raises:
        InputError: Vectors that are not finite numbers of shape (n, dim).

    Source: Roy & Vetterli 2007, The Effective Rank, definition 1.
    """
    values = _singular_values(vectors, centered=centered)
    values = values[values > 0.0]
    if not values.size:
        return None
    shares = values / values.sum()
    return float(np.exp(-(shares * np.log(shares)).sum()))


def _component_variances(vectors: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Variances along all principal components up to a common factor, descending, (dim,)."""
    values = _singular_values(vectors, centered=True)
    return np.pad(values**2, (0, np.shape(vectors)[1] - len(values)))


def _singular_values(vectors: npt.ArrayLike, *, centered: bool) -> npt.NDArray[np.float64]:
    """The singular values up to a common factor, descending; what is rounding error is 0."""
    rows = checked_vectors(vectors).astype(np.float64)
    largest = np.abs(rows).max(initial=0.0)
    if largest == 0.0:
        return np.zeros(0)
    rows /= largest
    rounding = max(rows.shape) * np.finfo(np.float64).eps * np.linalg.norm(rows)
    if centered:
        rows -= rows.mean(axis=0)
    values = np.linalg.svd(rows, compute_uv=False)
    return np.where(values > rounding, values, 0.0).astype(np.float64)
