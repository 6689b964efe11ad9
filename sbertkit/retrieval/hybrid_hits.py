"""Hits of a search by vectors and words together."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sbertkit.arrays import Vectors
from sbertkit.errors import InputError
from sbertkit.index.segment import Rows
from sbertkit.lexical.bm25 import Numbers
from sbertkit.lexical.query import LexicalQuery
from sbertkit.retrieval.fusion import RRF, BothScores, Fusion, reciprocal
from sbertkit.retrieval.lexical_hits import LexicalLeg
from sbertkit.retrieval.results import Hit, Stage
from sbertkit.retrieval.view import DENSE, LEXICAL, Found, View, Wanted

_MIN_DEPTH = 100
"""Documents that each leg finds at first, and those whose ranks count."""
_DEEPER = 4


class _Candidates(NamedTuple):
    """Documents that one of the legs found.

    Attributes:
        numbers: Their numbers through all segments, ascending, (n,).
        rows: The best vector of each, (n,).
        scores: By both legs, exact.
        unseen: The most that any other document has, (1,) each.
    """

    numbers: Rows
    rows: Rows
    scores: BothScores
    unseen: BothScores


class HybridSearch:
    """Search by vectors and words of one view.

    Args:
        leg: The search by words.
        view: The view, whose documents may be found.
        fusion: How both become one.
    """

    def __init__(self, leg: LexicalLeg, view: View, fusion: Fusion) -> None:
        self._leg = leg
        self._view = view
        self._fusion = fusion

    def hits(self, texts: Sequence[str], vectors: Vectors, wanted: Wanted) -> list[list[Hit]]:
        """The hits of each query, best first; equal ones in the order of the index.

        Phrases and words with a minus sign are conditions that every hit meets.

        Args:
            texts: The queries.
            vectors: Their vectors, unit rows (q, dim).
            wanted: What is wanted.

        Raises:
            InputError: Hits are to be passages.
        """
        if wanted.passages:
            raise InputError(
                "words are searched for in whole documents: leave hits (--hits) passages out in "
                "mode hybrid"
            )
        return [
            self._of_query(self._leg.parse(text), vectors[place : place + 1], wanted)
            for place, text in enumerate(texts)
        ]

    def _of_query(self, query: LexicalQuery, vector: Vectors, wanted: Wanted) -> list[Hit]:
        view = self._leg.meeting(query)
        k, depth = min(wanted.k, len(view)), max(_MIN_DEPTH, 2 * wanted.k)
        if not k:
            return []
        while True:
            found = self._candidates(view, query, vector, wanted._replace(k=depth))
            scores = self._fused(found, depth)
            order = np.lexsort((found.numbers, -scores))[:k]
            if depth >= len(view) or self._is_final(found, scores[order], k):
                break
            depth *= _DEEPER
        best = [Found(float(scores[one]), int(found.rows[one])) for one in order]
        hits = view.hits_of(best, self._plan(view, query, wanted) if wanted.explain else None)
        if wanted.explain:
            _note_legs(hits, found, order)
        return hits

    def _candidates(
        self, view: View, query: LexicalQuery, vector: Vectors, wanted: Wanted
    ) -> _Candidates:
        """What each leg finds, with the scores that it has by the other."""
        (near,) = view.nearest(vector, wanted)
        worded = self._leg.best(query, wanted.k, view)
        rows = {view.number_of(one.row): one for one in near}
        missing = np.setdiff1d(worded.numbers, np.fromiter(rows, np.int64, len(rows)))
        rows |= view.best_rows(vector, missing)
        numbers = np.array(sorted(rows), np.int64)
        dense = np.array([rows[number].score for number in numbers.tolist()])
        ends = (
            near[-1].score if len(near) == wanted.k else -1.0,
            float(worded.scores[-1]) if len(worded.scores) == wanted.k else 0.0,
        )
        return _Candidates(
            numbers,
            np.array([rows[number].row for number in numbers.tolist()], np.int64),
            BothScores(dense, self._leg.scores(query, numbers)),
            BothScores(*(np.array([end]) for end in ends)),
        )

    def _fused(self, found: _Candidates, depth: int) -> Numbers:
        """The scores (n,) of candidates."""
        if self._fusion.method != RRF:
            return self._fusion.combined(found.scores, _greatest(found.scores))
        dense, lexical = (_ranks(scores) for scores in found.scores)
        lexical[found.scores.lexical == 0] = np.inf  # without a word of the query
        ranks = np.stack([dense, lexical])
        ranks[ranks > depth] = np.inf
        fused: Numbers = reciprocal(ranks).sum(axis=0)
        return fused

    def _is_final(self, found: _Candidates, best: Numbers, k: int) -> bool:
        """Whether no document that neither leg has found is better than the best."""
        if self._fusion.method == RRF:
            return True
        bound = self._fusion.combined(found.unseen, _greatest(found.scores))
        return len(best) == k and bool(best[-1] >= bound[0])

    def _plan(self, view: View, query: LexicalQuery, wanted: Wanted) -> str:
        return f"{self._fusion}; {view.plan(wanted)}; {self._leg.plan(query)}"


def _greatest(scores: BothScores) -> BothScores:
    return BothScores(*(one.max(keepdims=True) for one in scores))


def _ranks(scores: Numbers) -> Numbers:
    """The rank (n,) of each score from 1, equal ones in their order."""
    ranks = np.empty(len(scores))
    ranks[np.argsort(-scores, kind="stable")] = np.arange(1, len(scores) + 1)
    return ranks


def _note_legs(hits: Sequence[Hit], found: _Candidates, order: Rows) -> None:
    """Notes of each hit its score by each leg, and its rank there among the candidates of both."""
    for name, scores in ((DENSE, found.scores.dense), (LEXICAL, found.scores.lexical)):
        ranks = _ranks(scores)
        for hit, one in zip(hits, order.tolist(), strict=True):
            hit.stages = {**hit.stages, name: Stage(float(scores[one]), int(ranks[one]))}
