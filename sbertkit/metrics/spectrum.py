"""How the variance of vectors is spread over its principal components."""

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
        components: How many of them at most, from the strongest.

    Raises:
        InputError: Vectors that are not finite numbers of shape (n, dim), or a number below 1.
    """
    if components < 1:
        raise InputError(f"components must be at least 1, not {components}")
    strengths = _component_variances(vectors)
    total = strengths.sum()
    return None if total == 0.0 else (strengths[:components] / total).tolist()


def _component_variances(vectors: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Variances along all principal components, descending, (dim,)."""
    rows = checked_vectors(vectors).astype(np.float64)
    largest = np.abs(rows).max(initial=0.0)
    if largest == 0.0:
        return np.zeros(rows.shape[1])
    rows /= largest
    rounding = max(rows.shape) * np.finfo(np.float64).eps * np.linalg.norm(rows)
    rows -= rows.mean(axis=0)
    values = np.linalg.svd(rows, compute_uv=False)
    values = np.where(values > rounding, values, 0.0)
    return np.pad(values**2, (0, rows.shape[1] - len(values)))
