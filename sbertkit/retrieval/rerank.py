"""Re-ranking: the last stage of a search, over what the stages before have found."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from sbertkit.arguments import path_text, whole_number
from sbertkit.arrays import Vectors
from sbertkit.errors import InputTypeError
from sbertkit.reranking import RERANK_DEPTH
from sbertkit.reranking.grouped import grouped_scores
from sbertkit.retrieval.results import Hit, Stage
from sbertkit.retrieval.view import Wanted

if TYPE_CHECKING:
    from sbertkit.reranking.reranker import Pair, PairRun, Reranker

_QUERIES_PER_CHUNK = 64
"""Whose candidates are searched for at once."""

Rerank: TypeAlias = "Reranker | str | os.PathLike[str]"
"""A re-ranker, or the model to load one from."""

Search = Callable[[Sequence[str], Wanted], list[list[Hit]]]
"""Gives the hits of each of some queries."""


class LoadedReranker:
    """The re-ranker that was loaded last, so that a name is loaded once."""

    def __init__(self) -> None:
        self._last: tuple[str, Reranker] | None = None

    def of(self, given: Rerank) -> "Reranker":
        """The re-ranker of a name, or the one given.

        Raises:
            InputError: The model cannot re-rank.
            InputTypeError: Neither a re-ranker nor a name.
        """
        from sbertkit.reranking import Reranker

        if isinstance(given, Reranker):
            return given
        if not isinstance(given, str | os.PathLike):
            raise InputTypeError(
                f"rerank must be a Reranker or the name of its model, found {type(given).__name__}"
            )
        name, last = path_text(given), self._last
        if last is None or last[0] != name:
            self._last = last = (name, Reranker.load(name))
        return last[1]


@dataclass(frozen=True, slots=True)
class Reranking:
    """How what was found is ordered again.

    Attributes:
        reranker: What scores it.
        depth: How many of the first candidates it scores, or as many as hits are wanted.
    """

    reranker: "Reranker"
    depth: int = RERANK_DEPTH

    def __post_init__(self) -> None:
        whole_number("rerank_depth", self.depth)

    def search(
        self, search: Search, queries: Sequence[str], asked: Sequence[str], wanted: Wanted
    ) -> list[list[Hit]]:
        """The hits of each query, re-ranked.

        Args:
            search: The stages before; called with some of the queries at a time.
            queries: The queries.
            asked: What the re-ranker reads of each.
            wanted: What is wanted in the end.
        """
        deeper = wanted._replace(k=max(self.depth, wanted.k))

        def candidates() -> Iterator[tuple[str, list[Hit]]]:
            for start in range(0, len(queries), _QUERIES_PER_CHUNK):
                chunk = slice(start, start + _QUERIES_PER_CHUNK)
                yield from zip(asked[chunk], search(queries[chunk], deeper), strict=True)

        found = []
        for hits in rerank_hits(candidates(), self.reranker.start_run()):
            if wanted.explain:
                note_stage([hits], "rerank")
            found.append(hits[: wanted.k])
        return found


def note_stage(found: Iterable[Sequence[Hit]], name: str) -> None:
    """Notes the score and rank of each hit under the name of the stage that gave them."""
    for hits in found:
        for rank, hit in enumerate(hits, 1):
            hit.stages = {**hit.stages, name: Stage(hit.score, rank)}


def rerank_hits(candidates: Iterable[tuple[str, list[Hit]]], run: "PairRun") -> Iterator[list[Hit]]:
    """The candidates of each query by their score by a re-ranker; equal ones in the order given.

    It reads the passage of each hit: of a long document that was divided the best one, else the
    text.

    Args:
        candidates: Queries with their candidates, drawn a bounded number ahead.
        run: A re-ranker's, see `Reranker.start_run`.
    """
    waiting: deque[list[Hit]] = deque()

    def groups() -> Iterator[list["Pair"]]:
        for query, hits in candidates:
            waiting.append(hits)
            yield [(query, hit.passage.text) for hit in hits]

    for scores in grouped_scores(groups(), run):
        yield _ordered(waiting.popleft(), scores)


def _ordered(hits: Sequence[Hit], scores: Vectors) -> list[Hit]:
    order = np.argsort(-scores, kind="stable")
    return [hits[place]._replace(score=float(scores[place])) for place in order.tolist()]
