"""Exact search over a corpus of any size: vectors are scored chunk by chunk and not kept."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from sbertkit.arrays import Vectors

Int64 = npt.NDArray[np.int64]

_SCORES_PER_CHUNK = 1 << 22
"""About 16 MB."""
_MIN_CHUNK = 256


class TopK:
    """The best documents of each query among all that were added so far.

    Equal scores are ordered by document id, descending, as in trec_eval, at the cut-off too.

    Args:
        queries: Unit vectors, (q, dim).
        k: Number of documents per query.
    """

    def __init__(self, queries: Vectors, k: int) -> None:
        self._queries = queries
        self._k = k
        self._scores = np.empty((len(queries), 0), np.float32)
        self._rows = np.empty((len(queries), 0), np.int64)
        self._ids: list[str] = []

    def add(
        self, ids: Sequence[str], vectors: Vectors, counts: Sequence[int] | None = None
    ) -> None:
        """Scores documents by their unit vectors, (n, dim).

        Args:
            ids: Their ids.
            vectors: Their vectors, in order.
            counts: How many vectors each has, of which the best one counts; by default one.
        """
        ends = np.cumsum(np.ones(len(ids), np.int64) if counts is None else counts)
        size = max(_MIN_CHUNK, _SCORES_PER_CHUNK // max(1, len(self._queries)))
        first = row = 0
        while first < len(ids):
            last = max(first + 1, int(np.searchsorted(ends, row + size, side="right")))
            starts = np.r_[row, ends[first : last - 1]] - row
            self._add_chunk(ids[first:last], vectors[row : ends[last - 1]], starts)
            first, row = last, int(ends[last - 1])

    def _add_chunk(self, ids: Sequence[str], vectors: Vectors, starts: Int64) -> None:
        first = len(self._ids)
        self._ids.extend(ids)
        scores = self._queries @ vectors.T
        if len(starts) < len(vectors):
            scores = np.maximum.reduceat(scores, starts, axis=1)
        rows = np.broadcast_to(np.arange(first, len(self._ids)), scores.shape)
        scores = np.concatenate([self._scores, scores], axis=1)
        rows = np.concatenate([self._rows, rows], axis=1)
        if scores.shape[1] > self._k:
            kept = np.argpartition(-scores, self._k - 1, axis=1)[:, : self._k]
            lowest = np.take_along_axis(scores, kept, axis=1).min(axis=1)
            tied = (scores >= lowest[:, None]).sum(axis=1) > self._k
            for query in np.flatnonzero(tied):
                kept[query] = self._break_ties(scores[query], rows[query], lowest[query])
            scores = np.take_along_axis(scores, kept, axis=1)
            rows = np.take_along_axis(rows, kept, axis=1)
        self._scores, self._rows = scores, rows

    def _break_ties(
        self, scores: npt.NDArray[np.float32], rows: npt.NDArray[np.int64], lowest: np.float32
    ) -> npt.NDArray[np.intp]:
        """Columns of the best of a query, when more than k are as good as its k-th."""
        above = np.flatnonzero(scores > lowest)
        equal = np.flatnonzero(scores == lowest)
        by_id = sorted(equal, key=lambda column: self._ids[rows[column]], reverse=True)
        return np.concatenate([above, by_id[: self._k - len(above)]]).astype(np.intp)

    def hits(self) -> list[dict[str, float]]:
        """Scores by document id, for each query."""
        return [
            {self._ids[row]: float(score) for row, score in zip(rows, scores, strict=True)}
            for rows, scores in zip(self._rows, self._scores, strict=True)
        ]
