"""The documents of a segment that may be the best for a query.

Terms are taken from the rarest on; once the best documents found so far score more than all further
terms can add, only documents that were found are looked up for those.

Source: Turtle and Flood 1995 (MaxScore).
"""

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sbertkit.lexical.postings_file import Array, Postings, Rows

Mask = npt.NDArray[np.bool_]

_LOOKUP_SHARE = 8
"""A lookup of a document in postings costs as much as about so many postings that are read."""
_SLACK = 1e-4
_SLACK_PER_TERM = 2e-7
"""More than the share by which two sums of the same numbers in float32 can differ."""


class WeightedTerm(NamedTuple):
    """A term in a segment: its postings, and the most that it adds to a score."""

    postings: Postings
    weight: float

    def lookup(self, documents: Rows) -> tuple[Rows, Mask]:
        """The places of documents among the postings, and whether each is there."""
        rows = self.postings.rows
        places = np.searchsorted(rows, documents.astype(rows.dtype))
        places[places == len(rows)] = 0
        return places, rows[places] == documents


def best_candidates(
    terms: Sequence[WeightedTerm],
    norms: npt.NDArray[np.float32],
    k: int,
    floor: float,
    mask: Mask | None,
) -> Rows:
    """Documents among which are the `k` best of those that have a term, and all as good.

    Args:
        terms: The terms that the segment has.
        norms: The norms of its documents.
        k: How many.
        floor: A score that the best must reach.
        mask: Which documents may be found; ``None``: all.
    """
    terms = sorted(terms, key=lambda term: len(term.postings.rows))
    if mask is not None:
        postings = sum(len(term.postings.rows) for term in terms)
        count = int(np.count_nonzero(mask))
        if count * len(terms) * _LOOKUP_SHARE < postings:
            return _having_any(terms, np.flatnonzero(mask))
    sums = _Sums(norms, k, floor, 1 - _SLACK - _SLACK_PER_TERM * len(terms))
    rest = list(accumulate([term.weight for term in reversed(terms)], initial=0.0))[::-1]
    added = 0.0
    for number, term in enumerate(terms):
        if max(floor, added) > rest[number] and sums.floor() > rest[number]:
            return sums.looked_up(terms[number:], rest[number:])
        sums.add(term, mask)
        added += term.weight
    return sums.best()


def _having_any(terms: Sequence[WeightedTerm], documents: Rows) -> Rows:
    """Those of some documents that have a term."""
    having = np.zeros(len(documents), np.bool_)
    for term in terms:
        having |= term.lookup(documents)[1]
    return documents[having]


class _Sums:
    """Sums of what terms say of documents.

    Args:
        norms: The norms of all documents.
        k: How many are wanted.
        floor: A score that they must reach.
        sure: The share of a sum that it has whatever the order of its terms.
    """

    def __init__(self, norms: npt.NDArray[np.float32], k: int, floor: float, sure: float) -> None:
        self._norms = norms
        self._k = k
        self._floor = floor
        self._sure = sure
        self._sums = np.zeros(len(norms), np.float32)
        self._documents = np.empty(0, np.int64)

    def add(self, term: WeightedTerm, mask: Mask | None) -> None:
        """Adds a term to the sums of the documents of a mask that have it."""
        rows = term.postings.rows.astype(np.int64)
        frequencies = term.postings.frequencies
        if mask is not None:
            usable = mask[rows]
            rows, frequencies = rows[usable], frequencies[usable]
        new = rows[self._sums[rows] == 0.0]
        self._sums[rows] += self._saturated(term, frequencies, rows)
        self._documents = np.concatenate([self._documents, new])

    def looked_up(self, terms: Sequence[WeightedTerm], rest: Sequence[float]) -> Rows:
        """The best documents with further terms too, none of which finds one that is as good.

        Args:
            terms: The terms.
            rest: The most that each and all after it can add.
        """
        for term, more in zip(terms, rest, strict=False):
            floor, sums = self.floor(), self._sums[self._documents]
            self._documents = self._documents[sums + np.float32(more) >= floor]
            places, there = term.lookup(self._documents)
            rows = self._documents[there]
            frequencies = term.postings.frequencies[places[there]]
            self._sums[rows] += self._saturated(term, frequencies, rows)
        return self.best()

    def best(self) -> Rows:
        """The best documents, and all that may be as good."""
        floor = self.floor()
        return self._documents[self._sums[self._documents] >= floor]

    def floor(self) -> float:
        """What the best must at least reach."""
        if len(self._documents) >= self._k:
            sums = self._sums[self._documents]
            kth = np.partition(sums, len(sums) - self._k)[len(sums) - self._k]
            self._floor = max(self._floor, float(kth))
        return self._floor * self._sure

    def _saturated(
        self, term: WeightedTerm, frequencies: Array, rows: Rows
    ) -> npt.NDArray[np.float32]:
        """What a term says of documents that have it so often."""
        floats = frequencies.astype(np.float32)
        said: npt.NDArray[np.float32] = floats / (floats + self._norms[rows])
        return said * np.float32(term.weight)
