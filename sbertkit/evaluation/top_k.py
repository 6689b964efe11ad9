"""Exact search over a corpus of any size: vectors are scored and forgotten, chunk by chunk."""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from sbertkit.arrays import Vectors

_SCORES = 1 << 22
"""Scores computed at once, about: 16 MB."""
_LEAST_BLOCK = 256


class TopK:
    """The best documents of each query among all that were shown so far.

    Equal scores are ordered by document id, descending, as trec_eval does, at the cut-off too.

    Args:
        queries: Unit vectors, (q, dim).
        k: How many documents a query keeps.
    """

    def __init__(self, queries: Vectors, k: int) -> None:
        self._queries = queries
        self._k = k
        self._scores = np.empty((len(queries), 0), np.float32)
        self._places = np.empty((len(queries), 0), np.int64)
        self._ids: list[str] = []

    def show(self, ids: Sequence[str], vectors: Vectors) -> None:
        """Scores documents by their unit vectors, (n, dim)."""
        block = max(_LEAST_BLOCK, _SCORES // max(1, len(self._queries)))
        for start in range(0, len(ids), block):
            self._show_block(ids[start : start + block], vectors[start : start + block])

    def _show_block(self, ids: Sequence[str], vectors: Vectors) -> None:
        first = len(self._ids)
        self._ids.extend(ids)
        scores = self._queries @ vectors.T
        places = np.broadcast_to(np.arange(first, len(self._ids)), scores.shape)
        scores = np.concatenate([self._scores, scores], axis=1)
        places = np.concatenate([self._places, places], axis=1)
        if scores.shape[1] > self._k:
            kept = np.argpartition(-scores, self._k - 1, axis=1)[:, : self._k]
            least = np.take_along_axis(scores, kept, axis=1).min(axis=1)
            tied = (scores >= least[:, None]).sum(axis=1) > self._k
            for row in np.flatnonzero(tied):
                kept[row] = self._settle(scores[row], places[row], least[row])
            scores = np.take_along_axis(scores, kept, axis=1)
            places = np.take_along_axis(places, kept, axis=1)
        self._scores, self._places = scores, places

    def _settle(
        self, scores: npt.NDArray[np.float32], places: npt.NDArray[np.int64], least: np.float32
    ) -> npt.NDArray[np.intp]:
        """Columns of the best of a query, when more than k are as good as its k-th."""
        above = np.flatnonzero(scores > least)
        equal = np.flatnonzero(scores == least)
        by_id = sorted(equal, key=lambda column: self._ids[places[column]], reverse=True)
        return np.concatenate([above, by_id[: self._k - len(above)]]).astype(np.intp)

    def found(self) -> list[dict[str, float]]:
        """Scores by document id, for each query."""
        return [
            {self._ids[place]: float(score) for place, score in zip(places, scores, strict=True)}
            for places, scores in zip(self._places, self._scores, strict=True)
        ]


def exact_search(
    queries: Vectors, chunks: Iterable[tuple[Sequence[str], Vectors]], k: int
) -> list[dict[str, float]]:
    """The `k` best documents of each query by cosine.

    Args:
        queries: Unit vectors, (q, dim).
        chunks: Ids and unit vectors (n, dim) of the documents, part by part.
        k: How many documents a query gets.
    """
    best = TopK(queries, k)
    for ids, vectors in chunks:
        best.show(ids, vectors)
    return best.found()
