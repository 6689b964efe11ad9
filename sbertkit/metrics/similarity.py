"""Similarities of pairs of rows, by each of the usual measures."""

import numpy as np
import numpy.typing as npt

from sbertkit.metrics.cosine import row_cosines

SIMILARITIES = ("cosine", "dot", "euclidean", "manhattan")

_ROWS_PER_CHUNK = 8192


def row_similarities(
    vectors: npt.NDArray[np.floating],
    left: npt.NDArray[np.intp],
    right: npt.NDArray[np.intp],
) -> dict[str, npt.NDArray[np.float64]]:
    """By name the similarities, (n,), of row ``left[i]`` and row ``right[i]`` for each i.

    ``cosine`` and ``dot`` product, and the negative ``euclidean`` and ``manhattan`` distances, so
    that a higher value always means more similar; in float64, chunk by chunk.
    """
    names = SIMILARITIES[1:]
    found = {name: np.empty(len(left), dtype=np.float64) for name in names}
    for start in range(0, len(left), _ROWS_PER_CHUNK):
        chunk = slice(start, start + _ROWS_PER_CHUNK)
        first = vectors[left[chunk]].astype(np.float64)
        second = vectors[right[chunk]].astype(np.float64)
        difference = first - second
        np.einsum("ij,ij->i", first, second, out=found["dot"][chunk])
        found["euclidean"][chunk] = -np.sqrt(np.einsum("ij,ij->i", difference, difference))
        found["manhattan"][chunk] = -np.abs(difference).sum(axis=1)
    return {"cosine": row_cosines(vectors, left, right), **found}
