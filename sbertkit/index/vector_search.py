"""The search over the vectors of all segments: candidates from each index, then exact scores.

Rows are numbered through all segments. What an index finds are candidates; the best of them are
scored again from the stored vectors, so that scores and their order are exact.
"""

import math
from collections.abc import Iterator, Sequence
from copy import copy
from functools import cached_property
from itertools import accumulate, groupby, pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sbertkit.arrays import Vectors
from sbertkit.errors import DamagedIndex
from sbertkit.forks import fork_safe_lock
from sbertkit.index import gpu
from sbertkit.index.faiss_library import faiss_threads, load_faiss
from sbertkit.index.kinds.base import Candidates, Part, Searcher, SearchSettings
from sbertkit.index.live_rows import LiveRows
from sbertkit.index.segment import Rows, VectorSegment

FEW_ROWS = 10_000
"""Live rows up to which comparing with each of them is not slower than an index."""

TUNED_HITS = 10
"""Hits for which settings are tuned; for more of them more candidates are scored."""

_SPARE_CANDIDATES = 10
_EXHAUSTIVE_SHARE = 4
"""If more than one row in this many is a candidate, exhaustive search is not slower."""
_SCORE_ERROR = 1e-5
"""Above the difference between the float32 scores of faiss and ours for unit vectors."""
_FEW_SEARCHERS = 2
_GATHERED_ROWS = 8_192
_QUERIES_PER_CHUNK = 1_024
_CANDIDATES_PER_CHUNK = 2**22


class Neighbors(NamedTuple):
    """The nearest rows of each query, best first.

    Attributes:
        rows: Row numbers (q, k).
        scores: Cosines (q, k) float32.
    """

    rows: Rows
    scores: npt.NDArray[np.float32]


class _Placed(NamedTuple):
    """A searcher, and the rows that it covers."""

    searcher: Searcher
    start: int
    end: int


class VectorSearch:
    """The search over some segments; safe to share between threads.

    Args:
        segments: The segments.
        learnt: What their kind has learnt for all segments, by name.
        settings: How much of the index is searched; ``None`` to compare all vectors, as nothing is
            known of the recall of less.
    """

    def __init__(
        self,
        segments: Sequence[VectorSegment],
        learnt: dict[str, Vectors],
        settings: SearchSettings | None = None,
    ) -> None:
        self.segments = segments
        self.settings = settings
        self._ends = list(accumulate(map(len, segments), initial=0))
        self._searchers = _Searchers(segments, learnt)

    def __len__(self) -> int:
        return self._ends[-1]

    @property
    def is_exact(self) -> bool:
        """Whether every segment is searched exhaustively, whatever the settings."""
        return all(segment.kind.width_name is None for segment in self.segments)

    @property
    def widths(self) -> list[int]:
        """The widths of a search, ascending; none if it is exact."""
        largest = max(self._approximate, key=len, default=None)
        return [] if largest is None else largest.kind.widths(len(largest))

    def with_settings(self, settings: SearchSettings | None) -> "VectorSearch":
        """The same search with other settings."""
        other = copy(self)
        other.settings = settings
        return other

    def search(
        self, queries: Vectors, k: int, *, exact: bool = False, live: LiveRows | None = None
    ) -> Neighbors:
        """The `k` nearest rows, fewer only where there are fewer; equal scores by row.

        Args:
            queries: Unit rows (q, dim) float32.
            k: How many.
            exact: Compare with every row, whatever the kind.
            live: The rows that may be found, at least one; ``None`` for all.

        Raises:
            DamagedIndex: The file of the vectors was overwritten since it was opened.
        """
        count = len(self) if live is None else live.count
        k = min(k, count)
        rows = max(1, min(_QUERIES_PER_CHUNK, _CANDIDATES_PER_CHUNK // (2 * k)))
        with faiss_threads(len(queries)):
            chunks = [
                self._search(queries[start : start + rows], k, live, exact=exact)
                for start in range(0, len(queries), rows)
            ]
        if len(chunks) == 1:
            return chunks[0]
        return Neighbors(
            np.concatenate([np.empty((0, k), np.int64), *(one.rows for one in chunks)]),
            np.concatenate([np.empty((0, k), np.float32), *(one.scores for one in chunks)]),
        )

    def plan(self, k: int, *, exact: bool = False, live: LiveRows | None = None) -> str:
        """How `search` finds the nearest, in words."""
        count = len(self) if live is None else live.count
        settings = None if exact else self._settings(min(k, count), live)
        if settings is None:
            among = "" if live is None else f" of {len(self):,}"
            return f"compared with all {count:,} vectors{among}"
        kind = self._approximate[0].kind
        among = "" if live is None else f", more of them among {count:,} of {len(self):,} vectors"
        rescored = _depth(settings, k, count)
        return f"{kind.name}: {settings.width} {kind.width_name}{among}, {rescored} re-scored"

    def candidates(
        self, queries: Vectors, count: int, width: int, live: LiveRows | None = None
    ) -> Candidates:
        """What the index finds with a width, without exact scores; the best (q, count) of it."""
        searchers = self._searchers.made()
        # Seldom are all of the nearest in one of many; tuning sees it if they are.
        each = count if len(searchers) <= _FEW_SEARCHERS else math.ceil(count / 2)
        found = [
            self._found_by(one, queries, width, min(each, one.end - one.start), live)
            for one in searchers
        ]
        if len(found) == 1:
            return found[0]
        floors = [one.floor for one in found if one.floor is not None]
        return _top(found, count)._replace(floor=np.max(floors, axis=0) if floors else None)

    def scores(self, queries: Vectors, rows: Rows) -> npt.NDArray[np.float32]:
        """The exact cosines (q, c) of queries and rows; minus infinity where a row is -1."""
        faiss = load_faiss()
        queries, rows = np.ascontiguousarray(queries), np.ascontiguousarray(rows)
        scores = np.full(rows.shape, -np.inf, np.float32)
        for segment, (start, end) in zip(self.segments, pairwise(self._ends), strict=True):
            local, products = rows, scores
            if len(self.segments) > 1:
                inside = (start <= rows) & (rows < end)
                if not inside.any():
                    continue
                local, products = np.where(inside, rows - start, -1), np.empty_like(scores)
            faiss.fvec_inner_products_by_idx(
                faiss.swig_ptr(products),
                faiss.swig_ptr(queries),
                faiss.swig_ptr(segment.stored),
                faiss.swig_ptr(local),
                queries.shape[1],
                *rows.shape,
            )
            if products is not scores:
                np.maximum(scores, products, out=scores)
        return scores

    @cached_property
    def _approximate(self) -> list[VectorSegment]:
        return [segment for segment in self.segments if segment.kind.width_name is not None]

    def _search(self, queries: Vectors, k: int, live: LiveRows | None, *, exact: bool) -> Neighbors:
        count = len(self) if live is None else live.count
        wanted = min(count, max(2 * k, k + _SPARE_CANDIDATES))
        settings = None if exact else self._settings(k, live)
        if settings is None:
            rows = np.sort(self._exhaustive(queries, wanted, live), axis=1)
        else:
            depth = _depth(settings, k, count)
            width = self._approximate[0].kind.width_for(settings.width, depth)
            scores, rows, floor = self.candidates(queries, depth, width, live)
            rows = _distinct(rows)
            # Clusters or links may lead to too few rows, or not as far as the live ones.
            short = np.count_nonzero(rows >= 0, axis=1) < min(k, count)
            if floor is not None:
                short |= -np.partition(-scores, k - 1, axis=1)[:, k - 1] < floor
            if short.any():
                best = self._exhaustive(queries[short], wanted, live)
                rows[short] = np.sort(_widened(best, rows.shape[1]), axis=1)
        found, final = self._ranked(queries, rows, k, count)
        # Rows beyond the candidates may score as high as the last hit (many equal texts); which of
        # them comes first must not depend on the candidates of faiss.
        while not final.all():
            wanted = min(count, 4 * wanted)
            left = np.flatnonzero(~final)
            step = max(1, _CANDIDATES_PER_CHUNK // wanted)
            for rest in (left[start : start + step] for start in range(0, len(left), step)):
                rows = np.sort(self._exhaustive(queries[rest], wanted, live), axis=1)
                better, final[rest] = self._ranked(queries[rest], rows, k, count)
                found.rows[rest], found.scores[rest] = better
        return found

    def is_exhaustive(self, k: int, live: LiveRows | None = None) -> bool:
        """Whether a search for `k` hits compares all live rows."""
        return self._settings(k, live) is None

    def _settings(self, k: int, live: LiveRows | None) -> SearchSettings | None:
        """The settings of a search; none if all live rows are compared."""
        if self.settings is None or self.is_exact:
            return None
        count = len(self) if live is None else live.count
        few = live is not None and count <= FEW_ROWS
        most = _depth(self.settings, k, count) * _EXHAUSTIVE_SHARE >= len(self)
        return None if few or most else self.settings

    def _found_by(
        self, one: _Placed, queries: Vectors, width: int, count: int, live: LiveRows | None
    ) -> Candidates:
        """What a searcher finds, rows numbered through all segments; scores of -1 at the end."""
        part = None if live is None else live.part(one.start, one.end)
        if part is not None and part.count == 0:
            return Candidates(
                np.full((len(queries), 0), -np.inf, np.float32),
                np.full((len(queries), 0), -1, np.int64),
            )
        try:
            scores, rows, floor = one.searcher.search(queries, width, count, part)
        except DamagedIndex as error:
            folder = self.segments[self._ends.index(one.start)].folder
            raise DamagedIndex(f"the index in {folder} cannot be used: {error}") from error
        missing = rows < 0
        if missing.any():
            scores = np.where(missing, -np.inf, scores).astype(np.float32)
            rows = np.where(missing, -1, rows + one.start)
        elif one.start:
            rows = rows + one.start
        return Candidates(scores, rows, floor)

    def _exhaustive(self, queries: Vectors, wanted: int, live: LiveRows | None) -> Rows:
        """The nearest rows (q, wanted) of all that are live."""
        if live is None:
            return self._scanned(queries, wanted)
        # Products with whole segments are faster than with the rows that are live, if most are;
        # those are left to the queries that find many others.
        dead = len(self) - live.count
        if dead > live.count:
            return self._gathered(queries, wanted, live)
        rows = self._scanned(queries, min(len(self), wanted + min(wanted, dead)))
        usable = live.mask[rows]
        rows = np.take_along_axis(rows, np.argsort(~usable, axis=1, kind="stable"), axis=1)
        rows = np.ascontiguousarray(rows[:, :wanted])
        short = np.count_nonzero(usable, axis=1) < wanted
        if short.any():
            rows[short] = self._gathered(queries[short], wanted, live)
        return rows

    def _scanned(self, queries: Vectors, wanted: int) -> Rows:
        """The nearest of all rows."""
        found = [
            _placed(_knn(queries, segment.stored, min(wanted, len(segment))), start)
            for segment, start in zip(self.segments, self._ends, strict=False)
        ]
        return _best(found, wanted)

    def _gathered(self, queries: Vectors, wanted: int, live: LiveRows) -> Rows:
        """The nearest of the live rows, which are copied together."""
        best = Candidates(
            np.empty((len(queries), 0), np.float32), np.empty((len(queries), 0), np.int64)
        )
        for start in range(0, live.count, _GATHERED_ROWS):
            numbers = live.numbers[start : start + _GATHERED_ROWS]
            found = _knn(queries, self._at(numbers), min(wanted, len(numbers)))
            best = _top([best, found._replace(rows=numbers[found.rows])], wanted)
        return best.rows

    def _at(self, rows: Rows) -> Vectors:
        """The vectors of rows, ascending."""
        places = np.searchsorted(rows, self._ends)
        return np.concatenate(
            [
                segment.stored[rows[first:last] - start]
                for segment, start, (first, last) in zip(
                    self.segments, self._ends[:-1], pairwise(places), strict=True
                )
                if last > first
            ]
        )

    def _ranked(
        self, queries: Vectors, candidates: Rows, k: int, count: int
    ) -> tuple[Neighbors, npt.NDArray[np.bool_]]:
        """The best `k` of the candidates (q, c), and whether no other of `count` rows is better.

        Candidates are in the order of rows, so that equal scores are.
        """
        scores = self.scores(queries, candidates)
        best = _best_places(scores, k)
        scores_of_best = np.take_along_axis(scores, best, axis=1)
        worst = np.where(candidates < 0, np.inf, scores).min(axis=1)
        final = worst < scores_of_best[:, -1] - _SCORE_ERROR
        if candidates.shape[1] >= count:
            final[:] = True
        neighbors = Neighbors(
            np.take_along_axis(candidates, best, axis=1), np.clip(scores_of_best, -1.0, 1.0)
        )
        return neighbors, final


class _Searchers:
    """What searches segments, in their order; made when it is first asked for.

    Args:
        segments: The segments.
        learnt: What their kind has learnt for all.
    """

    def __init__(self, segments: Sequence[VectorSegment], learnt: dict[str, Vectors]) -> None:
        self.learnt = learnt
        self._segments = segments
        self._lock = fork_safe_lock()
        self._made: list[_Placed] | None = None

    def made(self) -> list[_Placed]:
        """The searchers, and the rows that each covers."""
        with self._lock:
            if self._made is None:
                self._made = list(self._make())
            return self._made

    def _make(self) -> Iterator[_Placed]:
        ends = list(accumulate(map(len, self._segments), initial=0))
        place = 0
        for kind, group in groupby(self._segments, key=lambda segment: segment.kind):
            segments = list(group)
            if kind.width_name is None:
                searchers: list[tuple[Searcher, int]] = [(_Scan(one), 1) for one in segments]
            else:
                parts = [Part(one.content, len(one)) for one in segments]
                dim = segments[0].stored.shape[1]
                searchers = kind.searchers(parts, dim, self.learnt)
            for searcher, covered in searchers:
                yield _Placed(searcher, ends[place], ends[place + covered])
                place += covered


class _Scan:
    """Exhaustive search of a segment without an index."""

    def __init__(self, segment: VectorSegment) -> None:
        self._segment = segment

    def search(self, queries: Vectors, width: int, count: int, live: LiveRows | None) -> Candidates:
        """See `Searcher`."""
        del width
        one = VectorSearch([self._segment], {})
        rows = one._exhaustive(queries, min(count, live.count if live else count), live)
        return Candidates(one.scores(queries, rows), rows)


def _depth(settings: SearchSettings, k: int, count: int) -> int:
    """How many candidates are scored again for `k` hits."""
    # For fewer hits no fewer: the nearest of all may be far among approximate scores.
    rescored = math.ceil(settings.rescored * max(k, TUNED_HITS) / TUNED_HITS)
    return min(count, max(rescored, 2 * k, k + _SPARE_CANDIDATES))


def _knn(queries: Vectors, vectors: Vectors, wanted: int) -> Candidates:
    scores, rows = gpu.nearest(queries, vectors, wanted)
    return Candidates(scores, rows.astype(np.int64, copy=False))


def _placed(found: Candidates, start: int) -> Candidates:
    return found._replace(rows=found.rows + start)


def _top(found: Sequence[Candidates], wanted: int) -> Candidates:
    """The best of candidates, which are numbered alike, best first."""
    scores = np.concatenate([one.scores for one in found], axis=1)
    rows = np.concatenate([one.rows for one in found], axis=1)
    if scores.shape[1] > wanted:
        best = np.argpartition(-scores, wanted - 1, axis=1)[:, :wanted]
        scores = np.take_along_axis(scores, best, axis=1)
        rows = np.take_along_axis(rows, best, axis=1)
    order = np.argsort(-scores, axis=1, kind="stable")
    return Candidates(
        np.take_along_axis(scores, order, axis=1), np.take_along_axis(rows, order, axis=1)
    )


def _best(found: Sequence[Candidates], wanted: int) -> Rows:
    return found[0].rows if len(found) == 1 else _top(found, wanted).rows


def _distinct(rows: Rows) -> Rows:
    """Rows in order, with -1 for one that is the same as before."""
    rows = np.sort(rows, axis=1)
    repeated = rows[:, 1:] == rows[:, :-1]
    if repeated.any():
        rows[:, 1:][repeated] = -1
    return rows


def _best_places(scores: npt.NDArray[np.float32], k: int) -> Rows:
    """The places (q, k) of the greatest of scores (q, c), equal ones in order."""
    kth = np.partition(scores, scores.shape[1] - k, axis=1)[:, -k, None]
    chosen = scores >= kth
    clear = np.count_nonzero(chosen, axis=1) == k  # without others that are equal to the last
    places = np.empty((len(scores), k), np.int64)
    places[clear] = np.nonzero(chosen[clear])[1].reshape(-1, k)
    places[~clear] = np.argsort(-scores[~clear], axis=1, kind="stable")[:, :k]
    order = np.argsort(-np.take_along_axis(scores, places, axis=1), axis=1, kind="stable")
    return np.take_along_axis(places, order, axis=1)


def _widened(rows: Rows, width: int) -> Rows:
    """Rows as wide as others, without the worst or with -1 at the end."""
    wide = np.full((len(rows), width), -1, np.int64)
    wide[:, : rows.shape[1]] = rows[:, :width]
    return wide
