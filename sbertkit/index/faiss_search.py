"""Searching a faiss index for candidates."""

from typing import Any

import numpy as np
import numpy.typing as npt

from sbertkit.arrays import Vectors
from sbertkit.errors import DamagedIndex
from sbertkit.index.kinds.base import Candidates
from sbertkit.index.live_rows import LiveRows


def faiss_search(index: Any, queries: Vectors, count: int, parameters: Any) -> Candidates:
    """What an index finds; -1 where clusters or links lead to too few rows.

    Raises:
        DamagedIndex: faiss refuses to search it, or finds rows that it does not have.
    """
    try:
        scores, rows = index.search(queries, count, params=parameters)
    except (RuntimeError, MemoryError) as error:
        raise DamagedIndex(f"it cannot be searched: {' '.join(str(error).split())}") from error
    return checked_candidates(scores, rows, index.ntotal)


def checked_candidates(
    scores: npt.NDArray[np.float32], rows: npt.NDArray[np.int64], total: int
) -> Candidates:
    """What faiss found in an index of so many rows.

    Raises:
        DamagedIndex: Rows that it does not have.
    """
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
