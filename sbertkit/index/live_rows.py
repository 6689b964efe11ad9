"""The rows of a segment that are not deleted, and the search among them."""

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from sbertkit.arrays import Vectors
from sbertkit.index.faiss_library import load_faiss

Mask = npt.NDArray[np.bool_]


class LiveRows:
    """Which rows of a segment are not deleted; safe to share between threads.

    Attributes:
        mask: Whether each row is live (not deleted), (n,).
        count: Number of live rows.
    """

    def __init__(self, mask: Mask) -> None:
        self.mask = mask
        self.count = int(np.count_nonzero(mask))

    @cached_property
    def selector(self) -> Any:
        """The live rows as a selector for faiss."""
        return load_faiss().IDSelectorBitmap(np.packbits(self.mask, bitorder="little"))

    def nearest(self, queries: Vectors, vectors: Vectors, wanted: int) -> npt.NDArray[np.int64]:
        """The live rows (q, wanted) with the greatest inner products; `wanted` at most `count`."""
        faiss = load_faiss()
        queries = np.ascontiguousarray(queries)
        products = np.empty((len(queries), wanted), np.float32)
        rows = np.empty((len(queries), wanted), np.int64)
        faiss.knn_inner_product(
            faiss.swig_ptr(queries),
            faiss.swig_ptr(vectors),
            vectors.shape[1],
            len(queries),
            len(vectors),
            wanted,
            faiss.swig_ptr(products),
            faiss.swig_ptr(rows),
            self.selector,
        )
        return rows
