"""Searching a faiss index for candidates."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from sbertkit.arrays import Vectors
from sbertkit.errors import DamagedIndex
from sbertkit.index.faiss_library import load_faiss
from sbertkit.index.kinds.base import Candidates
from sbertkit.index.live_rows import LiveRows


def faiss_search(index: Any, queries: Vectors, count: int, parameters: Any) -> Candidates:
    """What an index finds; -1 where clusters or links lead to too few rows.

    Raises:
        DamagedIndex: faiss refuses to search it, or finds rows that it does not have.
    """
    with _damage():
        scores, rows = index.search(queries, count, params=parameters)
    return _checked(scores, rows, index.ntotal)


def faiss_search_lists(
    index: Any,
    queries: Vectors,
    lists: tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]],
    count: int,
    live: LiveRows | None,
) -> Candidates:
    """What an index of clusters finds in some of them.

    Args:
        index: The index.
        queries: Unit rows (q, dim) float32.
        lists: The clusters (q, probes), of which -1 is none, and their products with the queries.
        count: How many candidates.
        live: The rows that may be found; ``None`` for all.

    Raises:
        DamagedIndex: As `faiss_search`.
    """
    faiss = load_faiss()
    keys, products = map(np.ascontiguousarray, lists)
    selected = {} if live is None else {"sel": live.selector}
    parameters = faiss.SearchParametersIVF(nprobe=keys.shape[1], **selected)
    scores = np.empty((len(queries), count), np.float32)
    rows = np.empty((len(queries), count), np.int64)
    pointers = map(faiss.swig_ptr, (keys, products, scores, rows))
    with _damage():
        # Not the method without _c, which takes no parameters.
        index.search_preassigned_c(
            len(queries), faiss.swig_ptr(queries), count, *pointers, False, parameters
        )
    return _checked(scores, rows, index.ntotal)


@contextmanager
def _damage() -> Iterator[None]:
    """What faiss refuses to search is damaged."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        raise DamagedIndex(f"it cannot be searched: {' '.join(str(error).split())}") from error


def _checked(
    scores: npt.NDArray[np.float32], rows: npt.NDArray[np.int64], total: int
) -> Candidates:
    """What faiss found in an index of so many rows."""
    if rows.size and rows.max() >= total:
        raise DamagedIndex(f"it returned row {rows.max()} of {total}")
    return Candidates(scores, rows)


def only_live(found: Candidates, live: LiveRows, count: int) -> Candidates:
    """The best `count` of candidates that are live, the others left out."""
    usable = (found.rows >= 0) & live.mask[found.rows]
    first = np.argsort(~usable, axis=1, kind="stable")[:, :count]
    rows = np.take_along_axis(np.where(usable, found.rows, -1), first, axis=1)
    short = usable.sum(axis=1) < min(count, live.count)
    floor = np.where(short, found.scores[:, -1], -np.inf).astype(np.float32)
    return Candidates(np.take_along_axis(found.scores, first, axis=1), rows, floor)
