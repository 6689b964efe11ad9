"""Cosines of pairs of rows, in float64 and in chunks that fit in memory."""

import sys

import numpy as np
import numpy.typing as npt

from sbertkit.errors import InputError

_ROWS_PER_CHUNK = 8192


def unit_rows(vectors: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
    """The rows of an (n, dim) array as float64 of length 1; a row of zeros stays zeros."""
    rows = vectors.astype(np.float64)
    # Squares of very large or small components leave the range of float64: scale twice.
    largest = np.abs(rows).max(axis=1, keepdims=True, initial=0.0)
    largest[largest == 0.0] = 1.0
    rows /= largest
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    lengths[lengths == 0.0] = 1.0
    rows /= lengths
    return rows


def row_cosines(
    vectors: npt.NDArray[np.floating],
    left: npt.NDArray[np.intp],
    right: npt.NDArray[np.intp],
) -> npt.NDArray[np.float64]:
    """The cosine, from -1 to 1, of row ``left[i]`` and row ``right[i]`` for each i; shape (n,).

    A row of zeros has no direction; its cosine with any row is 0.
    """
    cosines = np.empty(len(left), dtype=np.float64)
    for start in range(0, len(left), _ROWS_PER_CHUNK):
        chunk = slice(start, start + _ROWS_PER_CHUNK)
        first, second = unit_rows(vectors[left[chunk]]), unit_rows(vectors[right[chunk]])
        np.einsum("ij,ij->i", first, second, out=cosines[chunk])
    return np.clip(cosines, -1.0, 1.0)


def is_masked(values: object) -> bool:
    """Whether an array has masked values; does not load NumPy's module of masked arrays."""
    return "numpy.ma" in sys.modules and bool(np.ma.is_masked(values))


def checked_vectors(vectors: npt.ArrayLike) -> npt.NDArray[np.floating]:
    """The vectors as a finite floating-point array of shape (n, dim).

    Raises:
        InputError: Not two dimensions, no numbers, or a component that is masked or not finite.
    """
    if is_masked(vectors):
        raise InputError("expected vectors as numbers, found masked values; fill them in")
    array = np.asarray(vectors)
    if array.ndim != 2 or array.dtype.kind not in "biuf":
        raise InputError(
            f"expected vectors as numbers of shape (n, dim), found {array.dtype} "
            f"of shape {array.shape}"
        )
    if array.dtype.kind != "f":
        array = array.astype(np.float64)
    bad = np.flatnonzero(~np.isfinite(array).all(axis=1))
    if bad.size:
        raise InputError(
            f"expected finite vectors, found NaN or infinity in row {bad[0]} ({bad.size} rows "
            "in all); encode those texts again"
        )
    return array
