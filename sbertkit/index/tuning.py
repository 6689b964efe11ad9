"""The recall of an index for each of its settings, and the fastest that reaches a target.

Recall@10 is the share of the 10 nearest vectors, by exhaustive search, that a search finds. A
target counts as reached if the lower bound of its mean does: mean - 1.645 s / sqrt(n), one-sided
at 95 % by the normal approximation, in each group of queries.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sbertkit.arrays import Vectors
from sbertkit.index.kinds.base import SearchSettings
from sbertkit.index.live_rows import LiveRows
from sbertkit.index.segment import Rows
from sbertkit.index.vector_search import TUNED_HITS, VectorSearch

MIN_QUERIES = 30
"""Below which the normal approximation of the mean does not hold."""

_RESCORED = (20, 40, 80, 120, 200, 400, 800)
MIN_RESCORED, MAX_RESCORED = _RESCORED[0], _RESCORED[-1]
"""How many candidates are scored again for 10 hits, at least and at most."""

_QUANTILE = 1.645
"""Of the standard normal distribution at 95 %."""
_EQUAL = 1e-6
"""Cosines that differ by less are equal: it does not matter which of the rows is found."""
_QUERIES_PER_CHUNK = 256
"""Whose candidates are in memory at once."""
_TIMED_QUERIES = 256
_REPEATS = 2
_MAX_WIDER = 1.6
"""Fewer candidates do not make up for a width that is so many times as great."""
_AS_FAST = 1.05
"""Times that differ by less are equal; the fewer candidates count then."""


@dataclass(frozen=True, slots=True)
class TriedSettings:
    """Settings that were tried.

    Attributes:
        settings: The settings.
        recall: Mean recall@10 of all queries.
        bound: The lowest lower bound of the mean of a group of queries.
        milliseconds: Per query in a batch; ``None`` if it was not measured.
    """

    settings: SearchSettings
    recall: float
    bound: float
    milliseconds: float | None = None


class TunedSettings(NamedTuple):
    """The settings that were chosen, and all that were tried, the narrowest first."""

    chosen: TriedSettings
    tried: tuple[TriedSettings, ...]


class RecallTuner:
    """Tries settings of a search on queries whose nearest rows are known.

    Args:
        search: The search.
        queries: Unit rows (q, dim) float32, of texts that are not in the index.
        groups: How many groups of as many consecutive queries there are.
        live: The rows that may be found.
    """

    def __init__(
        self, search: VectorSearch, queries: Vectors, groups: int, live: LiveRows | None
    ) -> None:
        self._search = search
        self._queries = queries
        self._groups = groups
        self._live = live
        exact = search.search(queries, TUNED_HITS, exact=True, live=live)
        self._worst = exact.scores[:, -1:] - _EQUAL
        self._hits = exact.scores.shape[1]
        self._tried: dict[SearchSettings, TriedSettings] = {}

    def tune(self, target: float) -> TunedSettings:
        """The fastest settings that reach a recall; those with the best bound if none does."""
        widths = self._search.widths
        place = self._narrowest(widths, target)
        if place is None:
            best = max(self._tried.values(), key=lambda one: one.bound)
            return TunedSettings(best, self._all())
        widths = [width for width in widths if width <= _MAX_WIDER * widths[place]]
        reached = []
        # With fewer candidates a width may have to be greater.
        for rescored in reversed(_RESCORED):
            while place < len(widths) and self._try(widths[place], rescored).bound < target:
                place += 1
            if place == len(widths):
                break
            reached.append(SearchSettings(widths[place], rescored))
        timed = [self._time(one) for one in reversed(reached)]
        fastest = min(one.milliseconds or 0 for one in timed)
        good = (one for one in timed if (one.milliseconds or 0) <= _AS_FAST * fastest)
        return TunedSettings(next(good), self._all())

    def measure(self, settings: SearchSettings) -> TriedSettings:
        """The recall of settings."""
        self._try(settings.width, settings.rescored)
        return self._time(settings)

    def _all(self) -> tuple[TriedSettings, ...]:
        return tuple(
            sorted(
                self._tried.values(), key=lambda one: (one.settings.width, one.settings.rescored)
            )
        )

    def _narrowest(self, widths: Sequence[int], target: float) -> int | None:
        """The place of the least width that reaches the target, by bisection."""
        low, high = 0, len(widths)
        while low < high:
            middle = (low + high) // 2
            if self._try(widths[middle], MAX_RESCORED).bound >= target:
                high = middle
            else:
                low = middle + 1
        return low if low < len(widths) else None

    def _try(self, width: int, rescored: int) -> TriedSettings:
        settings = SearchSettings(width, rescored)
        if settings not in self._tried:
            self._try_all(width)
        return self._tried[settings]

    def _try_all(self, width: int) -> None:
        """Measures a width with all numbers of candidates at once."""
        found = np.concatenate(
            [
                self._found(width, slice(start, start + _QUERIES_PER_CHUNK))
                for start in range(0, len(self._queries), _QUERIES_PER_CHUNK)
            ]
        )
        for rescored, hits in zip(_RESCORED, found.T, strict=True):
            settings = SearchSettings(width, rescored)
            if self._search.with_settings(settings).is_exhaustive(TUNED_HITS, self._live):
                recalls = np.ones(len(hits))
            else:
                recalls = np.minimum(hits, self._hits) / self._hits
            self._tried[settings] = TriedSettings(
                settings, float(recalls.mean()), self._bound(recalls)
            )

    def _found(self, width: int, chunk: slice) -> npt.NDArray[np.int64]:
        """How many of the nearest some queries find with each number of candidates, (q, n)."""
        queries = self._queries[chunk]
        scores, rows, _ = self._search.candidates(queries, MAX_RESCORED, width, self._live)
        order = np.argsort(-scores, axis=1, kind="stable")
        rows = np.take_along_axis(rows, order, axis=1)
        near = self._search.scores(queries, rows) >= self._worst[chunk]
        found = np.cumsum(near & ~_repeated(rows), axis=1, dtype=np.int64)
        places = np.minimum(_RESCORED, found.shape[1]) - 1
        return found[:, places]

    def _bound(self, recalls: npt.NDArray[np.float64]) -> float:
        return min(
            float(group.mean() - _QUANTILE * group.std(ddof=1) / math.sqrt(len(group)))
            for group in np.array_split(recalls, self._groups)
        )

    def _time(self, settings: SearchSettings) -> TriedSettings:
        """Measures the time of a query with settings that were tried."""
        search = self._search.with_settings(settings)
        queries = self._queries[:: max(1, len(self._queries) // _TIMED_QUERIES)]
        search.search(queries, TUNED_HITS, live=self._live)  # the first of all is slower
        seconds = []
        for _ in range(_REPEATS):
            start = time.perf_counter()
            search.search(queries, TUNED_HITS, live=self._live)
            seconds.append(time.perf_counter() - start)
        milliseconds = 1000 * min(seconds) / len(queries)
        self._tried[settings] = replace(self._tried[settings], milliseconds=milliseconds)
        return self._tried[settings]


def _repeated(rows: Rows) -> npt.NDArray[np.bool_]:
    """Whether a row (q, c) is among those before it."""
    order = np.argsort(rows, axis=1, kind="stable")
    ordered = np.take_along_axis(rows, order, axis=1)
    same = np.zeros(rows.shape, np.bool_)
    same[:, 1:] = ordered[:, 1:] == ordered[:, :-1]
    repeated = np.empty_like(same)
    np.put_along_axis(repeated, order, same, axis=1)
    return repeated
