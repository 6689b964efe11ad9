"""Search by words over the segments of an index, with BM25 of the whole index.

Numbers of documents and of those that have a term are counted over all segments without deleted
documents, so that scores do not depend on how the index came to be. The best candidates are scored
again with all terms in one order in double precision, so that equal documents have equal scores.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sbertkit.lexical.bm25 import Bm25, Numbers
from sbertkit.lexical.candidates import Mask, WeightedTerm, best_candidates
from sbertkit.lexical.phrases import documents_having
from sbertkit.lexical.postings_file import Postings, PostingsFile, Rows
from sbertkit.lexical.query import LexicalQuery


class Found(NamedTuple):
    """Documents found, best first; equal ones by number.

    Attributes:
        numbers: Their numbers through all segments, (n,).
        scores: Their scores, (n,).
    """

    numbers: Rows
    scores: Numbers


class LexicalSegment:
    """The words of a segment, and which of its documents are not deleted.

    Args:
        file: The words.
        live: Whether each document is live, (n,); ``None`` if all are.
    """

    def __init__(self, file: PostingsFile, live: Mask | None) -> None:
        self.file = file
        self.live = live

    def __len__(self) -> int:
        return len(self.file.lengths)

    @cached_property
    def documents(self) -> int:
        """Number of live documents."""
        return len(self) if self.live is None else int(np.count_nonzero(self.live))

    @cached_property
    def tokens(self) -> int:
        """Number of tokens of live documents."""
        lengths = self.file.lengths
        return int((lengths if self.live is None else lengths[self.live]).sum(dtype=np.int64))

    def having(self, postings: Postings) -> int:
        """Number of live documents among some postings."""
        if self.live is None:
            return len(postings.rows)
        with self.file.fitting():
            return int(np.count_nonzero(self.live[postings.rows]))


class LexicalSearch:
    """Search over the words of all segments; safe to share between threads.

    Args:
        segments: The segments.
        bm25: The parameters of scores.
    """

    def __init__(self, segments: Sequence[LexicalSegment], bm25: Bm25) -> None:
        self.segments = tuple(segments)
        self.bm25 = bm25
        self._starts = list(accumulate(map(len, self.segments), initial=0))

    @cached_property
    def documents(self) -> int:
        """Number of live documents."""
        return sum(segment.documents for segment in self.segments)

    @cached_property
    def _mean_length(self) -> float:
        tokens = sum(segment.tokens for segment in self.segments)
        return tokens / self.documents if self.documents else 0.0

    @cached_property
    def _norms(self) -> list[npt.NDArray[np.float32]]:
        """The norms of all documents, by segment."""
        return [
            self.bm25.norms(segment.file.lengths, self._mean_length).astype(np.float32)
            for segment in self.segments
        ]

    def search(
        self, query: LexicalQuery, k: int, allowed: Sequence[Mask | None] | None = None
    ) -> Found:
        """The `k` best live documents that have a term of a query and meet its conditions.

        Args:
            query: The query.
            k: How many; fewer where fewer match.
            allowed: For each segment, whether each document may be found, (n,); ``None``: all.

        Raises:
            DamagedIndex: A file was overwritten since it was opened, or is prepared.
        """
        best = Found(np.empty(0, np.int64), np.empty(0, np.float64))
        for place, terms in enumerate(self._terms(query)):
            segment, start = self.segments[place], self._starts[place]
            if not any(term is not None for term in terms):
                continue
            with segment.file.fitting():
                mask = _both(segment.live, None if allowed is None else allowed[place])
                mask = _meeting(segment, query, mask)
                floor = float(best.scores[-1]) if len(best.scores) == k else 0.0
                present = [term for term in terms if term is not None]
                documents = best_candidates(present, self._norms[place], k, floor, mask)
                scores = self._exact(place, terms, documents)
            best = _best(best, Found(documents + start, scores), k)
        return best

    def scores(self, query: LexicalQuery, numbers: Rows) -> Numbers:
        """The exact scores of some documents, (n,), whatever the conditions of a query.

        Args:
            query: The query.
            numbers: Documents, by their numbers through all segments.
        """
        scores = np.zeros(len(numbers))
        places = np.searchsorted(self._starts, numbers, side="right") - 1
        for place, terms in enumerate(self._terms(query)):
            inside = np.flatnonzero(places == place)
            documents = numbers[inside] - self._starts[place]
            with self.segments[place].file.fitting():
                scores[inside] = self._exact(place, terms, documents)
        return scores

    def score_beside(self, query: LexicalQuery, document: Mapping[str, int]) -> float:
        """The score of a text that is not in the index, by the statistics of those that are.

        Args:
            query: The query.
            document: How often the text has each of its terms.
        """
        length = np.array([sum(document.values())])
        (norm,) = self.bm25.norms(length, self._mean_length).tolist()
        score = 0.0
        for term, count in query.terms.items():
            if frequency := document.get(term, 0):
                _, weight = self._weighted(term, count)
                score += weight * (frequency / (frequency + norm))
        return score

    def meeting(self, query: LexicalQuery) -> list[Mask | None]:
        """For each segment, which documents meet the conditions of a query; ``None``: all."""
        masks = []
        for segment in self.segments:
            with segment.file.fitting():
                masks.append(_meeting(segment, query, None))
        return masks

    def _terms(self, query: LexicalQuery) -> list[list[WeightedTerm | None]]:
        """For each segment the terms of a query, in its order; ``None`` for one it lacks."""
        columns = []
        for segment in self.segments:
            segment.file.check()
        for term, count in query.terms.items():
            postings, weight = self._weighted(term, count)
            columns.append([None if one is None else WeightedTerm(one, weight) for one in postings])
        return [list(terms) for terms in zip(*columns, strict=True)]

    def _weighted(self, term: str, count: int) -> tuple[list[Postings | None], float]:
        """The postings of a term by segment, and the most that it adds so many times."""
        postings = [segment.file.postings(term) for segment in self.segments]
        having = sum(
            segment.having(one)
            for segment, one in zip(self.segments, postings, strict=True)
            if one is not None
        )
        return postings, count * self.bm25.weight(self.documents, having)

    def _exact(self, place: int, terms: Sequence[WeightedTerm | None], documents: Rows) -> Numbers:
        """The scores of documents of a segment, (n,)."""
        scores = np.zeros(len(documents))
        lengths = self.segments[place].file.lengths[documents]
        norms = self.bm25.norms(lengths, self._mean_length)
        for term in terms:
            if term is not None:
                places, there = term.lookup(documents)
                frequencies = term.postings.frequencies[places[there]].astype(np.float64)
                scores[there] += term.weight * (frequencies / (frequencies + norms[there]))
        return scores


def _best(one: Found, other: Found, k: int) -> Found:
    """The `k` best of two results, the second of which has greater numbers."""
    numbers = np.concatenate([one.numbers, other.numbers])
    scores = np.concatenate([one.scores, other.scores])
    order = np.lexsort((numbers, -scores))[:k]
    return Found(numbers[order], scores[order])


def _both(one: Mask | None, other: Mask | None) -> Mask | None:
    if one is None or other is None:
        return other if one is None else one
    return one & other


def _meeting(segment: LexicalSegment, query: LexicalQuery, mask: Mask | None) -> Mask | None:
    """Which documents of a mask meet the conditions of a query."""
    for phrase in query.phrases:
        having = np.zeros(len(segment), np.bool_)
        having[documents_having(segment.file, phrase)] = True
        mask = _both(mask, having)
    for phrase in query.excluded:
        mask = np.ones(len(segment), np.bool_) if mask is None else mask.copy()
        mask[documents_having(segment.file, phrase)] = False
    return mask
