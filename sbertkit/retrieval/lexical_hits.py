"""Hits of a search by words."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from sbertkit.errors import InputError
from sbertkit.formatting import counted
from sbertkit.lexical.analyzer import Analyzer
from sbertkit.lexical.bm25 import Numbers
from sbertkit.lexical.postings_file import Rows
from sbertkit.lexical.query import LexicalQuery, parse_query, plain_query
from sbertkit.lexical.search import Found
from sbertkit.retrieval.lexical_index import check_words
from sbertkit.retrieval.results import Hit
from sbertkit.retrieval.view import View, Wanted


class LexicalLeg:
    """Search by words in a view; documents have numbers through all segments.

    Args:
        root: The index folder, for messages.
        view: The view, whose documents may be found.

    Raises:
        InputError: The index has no words that can be searched.
    """

    def __init__(self, root: Path, view: View) -> None:
        self.entry = check_words(root, view.manifest.lexical)
        self._view = view
        self._analyzer = Analyzer(self.entry.language)

    def parse(self, texts: Sequence[str]) -> list[LexicalQuery]:
        """The words of queries and their conditions.

        Raises:
            InputError: A query only leaves out words.
        """
        parsed = [parse_query(text, self._analyzer) for text in texts]
        for number, query in enumerate(parsed, 1):
            if query.excluded and not query.terms:
                raise InputError(
                    f"query {number} only leaves out words, by its minus sign; give it a word to "
                    "search for"
                )
        return parsed

    def plain(self, texts: Sequence[str]) -> list[LexicalQuery]:
        """The words of texts in which nothing is a condition."""
        return [plain_query(text, self._analyzer) for text in texts]

    def score_beside(self, query: LexicalQuery, text: str) -> float:
        """The score of a text that is not in the index."""
        return self._view.lexical.score_beside(query, self._analyzer.terms(text))

    def best(self, query: LexicalQuery, k: int, among: View | None = None) -> Found:
        """The best documents of the view, or of one with some of its documents."""
        segments = (self._view if among is None else among).segments
        masks = [None if segment.live is None else segment.live.mask for segment in segments]
        return self._view.lexical.search(query, k, masks)

    def meeting(self, query: LexicalQuery) -> View:
        """The documents of the view that meet the conditions of a query."""
        if not query.has_conditions:
            return self._view
        masks = self._view.lexical.meeting(query)
        return self._view.filtered(
            [
                np.ones(segment.passages.documents, np.bool_) if mask is None else mask
                for segment, mask in zip(self._view.segments, masks, strict=True)
            ]
        )

    def scores(self, query: LexicalQuery, numbers: Rows) -> Numbers:
        """The exact scores (n,) of some documents, whether or not they meet its conditions."""
        return self._view.lexical.scores(query, numbers)

    def hits(self, query: LexicalQuery, wanted: Wanted) -> list[Hit]:
        """The hits of a query, with BM25 over the whole index as their scores."""
        found = self.best(query, wanted.k)
        documents = self._view.documents_at(found.numbers)
        plan = self.plan(query) if wanted.explain else None
        hits = []
        for document, score in zip(documents, found.scores.tolist(), strict=True):
            hit = Hit(document.id, score, document.text, document.metadata)
            hit.plan = plan
            hits.append(hit)
        return hits

    def plan(self, query: LexicalQuery) -> str:
        """How a query is searched for, in words."""
        entry, count = self.entry, len(query.terms)
        parameters = f"BM25 (k1 {entry.k1:g}, b {entry.b:g})"
        return f"{parameters} of {counted(count, 'word')} among {len(self._view):,} documents"
