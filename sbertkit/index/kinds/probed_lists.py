"""Searching clusters (inverted lists): as many as were asked for, or more among fewer live rows."""

import weakref
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from sbertkit.arrays import Vectors
from sbertkit.index.faiss_library import load_faiss
from sbertkit.index.faiss_search import faiss_search, faiss_search_lists
from sbertkit.index.kinds.base import Candidates
from sbertkit.index.live_rows import LiveRows

_QUERIES_PER_CHUNK = 256

Lists = npt.NDArray[np.integer[Any]]


class ProbedLists:
    """The clusters of one segment or of several.

    Args:
        index: The faiss index.
        lists: Gives the numbers of the clusters of each row, (n, c), or -1 for none.
    """

    def __init__(self, index: Any, lists: Callable[[], Lists]) -> None:
        self._index = index
        self._load = lists
        self._sizes: weakref.WeakKeyDictionary[LiveRows, npt.NDArray[np.int64]] = (
            weakref.WeakKeyDictionary()
        )

    def search(self, queries: Vectors, width: int, count: int, live: LiveRows | None) -> Candidates:
        """See `Searcher`; among few live rows more clusters are probed.

        A query probes the nearest clusters until it has seen as many live rows as it sees rows
        without a filter. So it does not matter how many are live, nor whether they are those near
        the query or those far from it.
        """
        width = min(width, self._index.nlist)
        if live is None and len(queries) > 1:
            parameters = load_faiss().SearchParametersIVF(nprobe=width)
            return faiss_search(self._index, queries, count, parameters)
        if live is None:
            lists = self._nearest(queries, width)
            return faiss_search_lists(self._index, queries, lists, count, None)
        found = [
            self._search_live(queries[start : start + _QUERIES_PER_CHUNK], width, count, live)
            for start in range(0, len(queries), _QUERIES_PER_CHUNK)
        ]
        return Candidates(
            np.concatenate([one.scores for one in found]),
            np.concatenate([one.rows for one in found]),
        )

    def _search_live(self, queries: Vectors, width: int, count: int, live: LiveRows) -> Candidates:
        index, sizes = self._index, self._live_sizes(live)
        keys, products = self._nearest(queries, index.nlist)
        # Clusters without a live row are passed over.
        occupied = sizes[keys] > 0
        first = np.argsort(~occupied, axis=1, kind="stable")[:, : np.count_nonzero(sizes)]
        keys = np.take_along_axis(keys, first, axis=1)
        products = np.take_along_axis(products, first, axis=1)
        wanted = max(count, self._entries * width // index.nlist)
        before = np.cumsum(sizes[keys], axis=1) - sizes[keys]
        keys[before >= wanted] = -1
        probes = int(np.count_nonzero(keys >= 0, axis=1).max())
        lists = keys[:, :probes], products[:, :probes]
        return faiss_search_lists(index, queries, lists, count, live)

    def _nearest(
        self, queries: Vectors, width: int
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
        """The nearest clusters (q, width) of queries, and their products with them."""
        if len(queries) > 1:
            products, keys = self._index.quantizer.search(queries, width)
            return keys, products
        # For one query the heap of faiss takes longer than all the products.
        faiss, quantizer = load_faiss(), self._quantizer
        all_products = np.empty(quantizer.ntotal, np.float32)
        pointers = faiss.swig_ptr(all_products), faiss.swig_ptr(queries), quantizer.get_xb()
        faiss.fvec_inner_products_ny(*pointers, quantizer.d, quantizer.ntotal)
        keys = np.argpartition(-all_products, width - 1)[:width]
        keys = keys[np.argsort(-all_products[keys], kind="stable")]
        return keys[None], all_products[keys][None]

    def _live_sizes(self, live: LiveRows) -> npt.NDArray[np.int64]:
        """The number of live rows in each cluster."""
        sizes = self._sizes.get(live)
        if sizes is None:
            self._sizes[live] = sizes = self._counted(self._lists[live.mask])
        return sizes

    def _counted(self, lists: Lists) -> npt.NDArray[np.int64]:
        """How often each cluster is among some."""
        return np.bincount(lists[lists >= 0], minlength=self._index.nlist)

    @cached_property
    def _entries(self) -> int:
        """How many vectors all clusters have together."""
        return int(self._counted(self._lists).sum())

    @cached_property
    def _quantizer(self) -> Any:
        """The index of the centroids, as what it is."""
        return load_faiss().downcast_index(self._index.quantizer)

    @cached_property
    def _lists(self) -> Lists:
        return self._load()
