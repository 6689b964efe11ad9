"""Hits of a search by vectors and words together."""

from collections.abc import Iterator, Sequence

import numpy as np

from sbertkit.arrays import Vectors
from sbertkit.index.segment import Rows
from sbertkit.lexical.bm25 import Numbers
from sbertkit.lexical.query import LexicalQuery
from sbertkit.retrieval.fusion import Fusion, reciprocal
from sbertkit.retrieval.hybrid_candidates import Candidates, hybrid_candidates
from sbertkit.retrieval.lexical_hits import LexicalLeg
from sbertkit.retrieval.modes import DENSE, LEXICAL, RRF
from sbertkit.retrieval.results import Hit, Stage
from sbertkit.retrieval.view import Found, View, Wanted

_MIN_DEPTH = 100
"""Documents that each leg finds at first, and those whose ranks count."""
_DEEPER = 4
_QUERIES_PER_CHUNK = 256
"""Whose candidates are in memory at once."""


class HybridSearch:
    """Search by vectors and words of one view.

    Args:
        leg: The search by words.
        fusion: How both become one.
    """

    def __init__(self, leg: LexicalLeg, fusion: Fusion) -> None:
        self._leg = leg
        self._fusion = fusion.of_index(leg.entry.fusion_weight)

    def hits(
        self, queries: Sequence[LexicalQuery], vectors: Vectors, wanted: Wanted
    ) -> list[list[Hit]]:
        """The hits of each query, best first; equal ones in the order of the index.

        Phrases and words with a minus sign are conditions that every hit meets.

        Args:
            queries: The queries.
            vectors: Their vectors, unit rows (q, dim).
            wanted: What is wanted.
        """
        hits: list[list[Hit]] = [[] for _ in queries]
        for places in _chunks(queries):
            view = self._leg.meeting(queries[places[0]])
            chunk = [queries[place] for place in places]
            for place, found in zip(
                places, self._of_view(view, chunk, vectors[places], wanted), strict=True
            ):
                hits[place] = found
        return hits

    def _of_view(
        self, view: View, queries: Sequence[LexicalQuery], vectors: Vectors, wanted: Wanted
    ) -> list[list[Hit]]:
        """The hits of queries with the same conditions, whose documents are those of a view."""
        hits: list[list[Hit]] = [[] for _ in queries]
        k = min(wanted.k, len(view))
        depth = max(_MIN_DEPTH, 2 * k)
        left = list(range(len(queries))) if k else []
        while left:
            deep = wanted._replace(k=depth)
            asked = [queries[place] for place in left]
            found = hybrid_candidates(self._leg, view, asked, vectors[left], deep)
            unfinished = []
            for place, candidates in zip(left, found, strict=True):
                scores = self._fused(candidates, depth)
                order = np.lexsort((candidates.numbers, -scores))[:k]
                if depth < len(view) and not self._is_final(candidates, scores[order], k):
                    unfinished.append(place)
                    continue
                best = [Found(float(scores[one]), int(candidates.rows[one])) for one in order]
                plan = self._plan(view, queries[place], deep) if wanted.explain else None
                hits[place] = view.hits_of(best, plan)
                if wanted.explain:
                    _note_legs(hits[place], candidates, order)
            left = unfinished
            depth *= _DEEPER
        return hits

    def _fused(self, found: Candidates, depth: int) -> Numbers:
        """The scores (n,) of candidates."""
        if self._fusion.method != RRF:
            return self._fusion.combined(found.scores, found.scores.greatest)
        dense, lexical = (_ranks(scores) for scores in found.scores)
        lexical[found.scores.lexical == 0] = np.inf  # without a word of the query
        ranks = np.stack([dense, lexical])
        ranks[ranks > depth] = np.inf
        fused: Numbers = reciprocal(ranks).sum(axis=0)
        return fused

    def _is_final(self, found: Candidates, best: Numbers, k: int) -> bool:
        """Whether no document that neither leg has found is better than the best."""
        if self._fusion.method == RRF:
            return True
        bound = self._fusion.combined(found.unseen, found.scores.greatest)
        return len(best) == k and bool(best[-1] >= bound[0])

    def _plan(self, view: View, query: LexicalQuery, deep: Wanted) -> str:
        return f"{self._fusion}; {view.plan(deep)}; {self._leg.plan(query)}"


def _chunks(queries: Sequence[LexicalQuery]) -> Iterator[list[int]]:
    """The places of queries in chunks; one with conditions is alone."""
    plain = [place for place, query in enumerate(queries) if not query.has_conditions]
    for start in range(0, len(plain), _QUERIES_PER_CHUNK):
        yield plain[start : start + _QUERIES_PER_CHUNK]
    for place, query in enumerate(queries):
        if query.has_conditions:
            yield [place]


def _ranks(scores: Numbers) -> Numbers:
    """The rank (n,) of each score from 1, equal ones in their order."""
    ranks = np.empty(len(scores))
    ranks[np.argsort(-scores, kind="stable")] = np.arange(1, len(scores) + 1)
    return ranks


def _note_legs(hits: Sequence[Hit], found: Candidates, order: Rows) -> None:
    """Notes of each hit its score by each leg, and its rank there among the candidates of both."""
    for name, scores in ((DENSE, found.scores.dense), (LEXICAL, found.scores.lexical)):
        ranks = _ranks(scores)
        for hit, one in zip(hits, order.tolist(), strict=True):
            hit.stages = {**hit.stages, name: Stage(float(scores[one]), int(ranks[one]))}
