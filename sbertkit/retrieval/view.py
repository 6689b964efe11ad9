"""One generation of an index, opened: what is searched and what a change starts from."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from sbertkit.arrays import Vectors
from sbertkit.data import Document, SourcedDocument
from sbertkit.encoder.passage_table import TO_THE_END, Bounds, PassageTable, passage_text
from sbertkit.errors import DamagedIndex, InputError
from sbertkit.index.live_rows import LiveRows
from sbertkit.index.segment import Rows, VectorSegment
from sbertkit.index.vector_search import VectorSearch
from sbertkit.lexical.bm25 import Bm25
from sbertkit.lexical.postings_file import PostingsFile
from sbertkit.lexical.search import LexicalSearch, LexicalSegment
from sbertkit.retrieval.document_store import DocumentStore, StoredRow
from sbertkit.retrieval.filters import parse_filter
from sbertkit.retrieval.filters.known_fields import FieldInfo, check_fields, fields_of_segments
from sbertkit.retrieval.filters.segment_fields import SegmentFields
from sbertkit.retrieval.manifest import Manifest
from sbertkit.retrieval.manifest_entries import PASSAGES_FILE, SegmentEntry
from sbertkit.retrieval.modes import DENSE
from sbertkit.retrieval.results import Hit, Passage

Mask = npt.NDArray[np.bool_]

_DEEPER = 4
"""By how much the search goes deeper where too few documents were among the passages found."""
_MAX_FILTERS = 8
"""Filters whose documents are remembered."""
_MAX_PASSAGES = 8
"""Of a document, among the best: so deep a search goes at once where documents have as many."""


Opened = TypeVar("Opened", VectorSegment, VectorSearch)


class Wanted(NamedTuple):
    """What a search is to give.

    Attributes:
        k: How many hits.
        exact: Whether to compare with every vector.
        passages: Whether a hit is a passage; else a document, with its best passage.
        explain: Whether each hit says how it was searched for.
        mode: One of `MODES`.
    """

    k: int
    exact: bool = False
    passages: bool = False
    explain: bool = False
    mode: str = DENSE


class Found(NamedTuple):
    """A vector found: its score, and its row through all segments."""

    score: float
    row: int


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment, opened.

    Attributes:
        entry: Its entry in the manifest.
        opened_vectors: Its vectors; ``None`` if the index was opened without.
        documents: Its documents.
        passages: The document and the part of it that each vector stands for.
        fields: What filters read.
        words: Its words; ``None`` if the index has none.
        live: Its documents that are not deleted; ``None`` if none is deleted.
        live_rows: Its vectors of those documents; likewise.
    """

    entry: SegmentEntry
    opened_vectors: VectorSegment | None
    documents: DocumentStore
    passages: PassageTable
    fields: SegmentFields
    words: PostingsFile | None = None
    live: LiveRows | None = None
    live_rows: LiveRows | None = None

    @property
    def vectors(self) -> VectorSegment:
        """Its vectors.

        Raises:
            InputError: The index was opened without.
        """
        return _present(self.opened_vectors)

    @property
    def count(self) -> int:
        """Number of documents that are not deleted."""
        return self.passages.documents if self.live is None else self.live.count

    @property
    def row_count(self) -> int:
        """Number of their vectors."""
        return len(self.passages) if self.live_rows is None else self.live_rows.count

    def mask(self) -> Mask:
        """Whether each document is live, (n,), as an array of its own."""
        if self.live is None:
            return np.ones(self.passages.documents, np.bool_)
        return self.live.mask.copy()

    def live_documents(self) -> Iterator[SourcedDocument]:
        """Its documents that are not deleted, in order, one at a time."""
        return self.documents.documents(None if self.live is None else self.live.mask)

    def with_mask(self, mask: Mask) -> "Segment":
        """The segment with other documents deleted."""
        live = None if mask.all() else LiveRows(mask)
        deleted = 0 if live is None else len(mask) - live.count
        return self.with_live(live, replace(self.entry, deleted=deleted))

    def among(self, mask: Mask) -> "Segment":
        """The segment with only those of its live documents that a mask has, (n,)."""
        live = self.mask() & mask
        return self.with_live(None if live.all() else LiveRows(live), self.entry)

    def with_live(self, live: LiveRows | None, entry: SegmentEntry) -> "Segment":
        """The segment with these documents, and its entry in another manifest."""
        rows = live
        if live is not None and self.passages.rows is not None:
            rows = LiveRows(live.mask[self.passages.rows[:, 0]])
        return replace(self, live=live, live_rows=rows, entry=entry)

    def close(self) -> None:
        """Closes its files."""
        self.documents.close()
        self.fields.close()

    def document_of(self, row: int) -> int:
        """The number of the document of a vector."""
        return row if self.passages.rows is None else int(self.passages.rows[row, 0])


class View:
    """The segments that one manifest names; never changed, safe to share between threads.

    Attributes:
        manifest: The manifest.
        segments: Its segments in its order.
        has_vectors: Whether their vectors can be searched.

    Args:
        manifest: See above.
        segments: See above.
        vectors: The search over their vectors; ``None`` if they were not opened.
        whole: The view that this one has some documents of, if it was filtered.
    """

    def __init__(
        self,
        manifest: Manifest,
        segments: Iterable[Segment],
        vectors: VectorSearch | None,
        whole: "View | None" = None,
    ) -> None:
        self.manifest = manifest
        self.segments = tuple(segments)
        self.has_vectors = vectors is not None
        self._vectors = vectors
        self._whole = whole
        rows = [len(segment.passages) for segment in self.segments]
        self._starts = np.concatenate([[0], np.cumsum(rows, dtype=np.int64)])
        counts = [segment.passages.documents for segment in self.segments]
        self._document_starts = np.cumsum([0, *counts], dtype=np.int64)
        self._matching: dict[str, View] = {}

    def __len__(self) -> int:
        return sum(segment.count for segment in self.segments)

    @property
    def vectors(self) -> VectorSearch:
        """The search over the vectors.

        Raises:
            InputError: The index was opened without.
        """
        return _present(self._vectors)

    @cached_property
    def lexical(self) -> LexicalSearch:
        """The search over the words of all documents, also those that a filter leaves out."""
        if self._whole is not None:
            return self._whole.lexical
        segments = [
            LexicalSegment(segment.words, None if segment.live is None else segment.live.mask)
            for segment in self.segments
            if segment.words is not None
        ]
        entry = self.manifest.lexical
        return LexicalSearch(segments, Bm25() if entry is None else entry.bm25)

    @property
    def row_count(self) -> int:
        """Number of vectors of all documents."""
        return sum(segment.row_count for segment in self.segments)

    @cached_property
    def live(self) -> LiveRows | None:
        """The vectors of documents that are not deleted, through all segments; ``None``: all."""
        if all(segment.live_rows is None for segment in self.segments):
            return None
        return LiveRows(
            np.concatenate(
                [
                    np.ones(len(segment.passages), np.bool_)
                    if segment.live_rows is None
                    else segment.live_rows.mask
                    for segment in self.segments
                ]
            )
        )

    def search(self, vectors: Vectors, wanted: Wanted) -> list[list[Hit]]:
        """The hits of each query vector (q, dim); see `SearchIndex.search`."""
        plan = self.plan(wanted) if wanted.explain and len(self) else None
        return [self.hits_of(best, plan) for best in self.nearest(vectors, wanted)]

    def plan(self, wanted: Wanted) -> str:
        """How vectors are searched, in words."""
        return self.vectors.plan(wanted.k, exact=wanted.exact, live=self.live)

    def nearest(self, vectors: Vectors, wanted: Wanted) -> list[list[Found]]:
        """The best vectors for each query, best first; of a document one, unless passages count."""
        if not len(self):
            return [[] for _ in vectors]
        divided = any(segment.passages.rows is not None for segment in self.segments)
        if divided and not wanted.passages:
            found = self._best_passages(vectors, wanted)
        else:
            found = self._nearest(vectors, wanted, wanted.k)
        return [best[: wanted.k] for best in found]

    def best_rows(self, vector: Vectors, numbers: Rows) -> dict[int, Found]:
        """The best vector of each of some documents, by their numbers through all segments.

        Args:
            vector: The query, (1, dim).
            numbers: Those documents, ascending.
        """
        rows = np.concatenate(
            [
                segment.passages.rows_of(numbers[(first <= numbers) & (numbers < end)] - first)
                + start
                for segment, start, (first, end) in zip(
                    self.segments, self._starts[:-1], pairwise(self._document_starts), strict=True
                )
            ]
        )
        (scores,) = self.vectors.scores(vector, rows[None])
        best: dict[int, Found] = {}
        for row, score in zip(rows.tolist(), np.clip(scores, -1, 1).tolist(), strict=True):
            number = self.number_of(row)
            if number not in best or score > best[number].score:
                best[number] = Found(score, row)
        return best

    def number_of(self, row: int) -> int:
        """The number through all segments of the document of a vector."""
        place, number = self._document_of(row)
        return int(self._document_starts[place]) + number

    def _best_passages(self, queries: Vectors, wanted: Wanted) -> list[list[Found]]:
        """The best passage of each of the `k` best documents of a query."""
        k = min(wanted.k, len(self))
        passages = min(_MAX_PASSAGES, math.ceil(self.row_count / len(self)))
        depth = 2 * k * passages
        found: list[list[Found]] = [[] for _ in queries]
        left = np.arange(len(queries))
        while len(left):
            depth = min(depth, self.row_count)
            nearest = self._nearest(queries[left], wanted, depth)
            for query, rows in zip(left.tolist(), nearest, strict=True):
                best: dict[tuple[int, int], Found] = {}
                for one in rows:
                    best.setdefault(self._document_of(one.row), one)
                found[query] = list(best.values())[:k]
            short = [len(found[query]) < k for query in left.tolist()]
            left = left[short if depth < self.row_count else []]
            depth *= _DEEPER
        return found

    def _nearest(self, queries: Vectors, wanted: Wanted, k: int) -> list[list[Found]]:
        rows, scores = self.vectors.search(queries, k, exact=wanted.exact, live=self.live)
        return [
            [Found(score, row) for row, score in zip(*of_query, strict=True)]
            for of_query in zip(rows.tolist(), scores.tolist(), strict=True)
        ]

    def masks(self, condition: str) -> list[Mask]:
        """Whether each document of each segment, also a deleted one, matches a filter.

        Raises:
            BadFilter: The filter cannot be read, or names a field that no document has.
        """
        expression = parse_filter(condition)
        check_fields(expression, condition, [segment.fields for segment in self.segments])
        return [segment.fields.matching(expression) for segment in self.segments]

    def filtered(self, masks: Sequence[Mask]) -> "View":
        """The documents that some masks have, one for each segment."""
        among = [segment.among(mask) for segment, mask in zip(self.segments, masks, strict=True)]
        whole = self if self._whole is None else self._whole
        return View(self.manifest, among, self._vectors, whole)

    def matching(self, condition: str | None) -> "View":
        """The documents that match a filter, all without one; kept for the next search.

        Raises:
            BadFilter: See `masks`.
        """
        if condition is None:
            return self
        known = self._matching.get(condition) if isinstance(condition, str) else None
        if known is None:
            known = self.filtered(self.masks(condition))
            # Replaced and not emptied, so that threads need no lock.
            kept = self._matching if len(self._matching) < _MAX_FILTERS else {}
            self._matching = {**kept, condition: known}
        return known

    def fields(self) -> dict[str, FieldInfo]:
        """The fields that a filter may name, those that most documents have first."""
        return fields_of_segments([segment.fields for segment in self.segments])

    def _place_of(self, row: int) -> tuple[int, int]:
        """The number of the segment of a row, and the row there."""
        place = int(np.searchsorted(self._starts, row, side="right")) - 1
        return place, row - int(self._starts[place])

    def _document_of(self, row: int) -> tuple[int, int]:
        """The number of the segment of a row, and the number of the document there."""
        place, row = self._place_of(row)
        return place, self.segments[place].document_of(row)

    def find(self, ids: Sequence[str]) -> dict[str, tuple[int, StoredRow]]:
        """Where documents are stored, by id: segment and number there; unknown ids are left out."""
        found = {}
        for place, segment in enumerate(self.segments):
            for document_id, stored in segment.documents.find(ids).items():
                if segment.live is None or segment.live.mask[stored.row]:
                    found[document_id] = (place, stored)
        return found

    def get(self, document_id: str) -> Document | None:
        """The document of an id, if there is one."""
        for place, stored in self.find([document_id]).values():
            return self.segments[place].documents.at([stored.row])[stored.row]
        return None

    def documents(self) -> Iterator[Document]:
        """All documents, one at a time."""
        for segment in self.segments:
            for sourced in segment.live_documents():
                yield sourced.document

    def documents_at(self, numbers: Rows) -> list[Document]:
        """The documents of some numbers through all segments, in the order given."""
        places = np.searchsorted(self._document_starts, numbers, side="right") - 1
        rows = (numbers - self._document_starts[places]).tolist()
        stored = {
            place: self.segments[place].documents.at(
                [row for row, of in zip(rows, places.tolist(), strict=True) if of == place]
            )
            for place in set(places.tolist())
        }
        return [stored[place][row] for place, row in zip(places.tolist(), rows, strict=True)]

    def sample(self, drawn: Rows) -> tuple[list[str], Vectors]:
        """The vectors (n, dim) with these numbers, ascending, and the ids of their documents."""
        ids: list[str] = []
        vectors = [np.empty((0, self.manifest.encoder.dim), np.float32)]
        start = 0
        for segment in self.segments:
            end = start + segment.row_count
            rows = np.arange(len(segment.passages))
            if segment.live_rows is not None:
                rows = np.flatnonzero(segment.live_rows.mask)
            rows = rows[drawn[(start <= drawn) & (drawn < end)] - start]
            numbers = segment.passages.document_of(rows).tolist()
            documents = segment.documents.at(numbers)
            ids += [documents[number].id for number in numbers]
            vectors.append(segment.vectors.at(rows))
            start = end
        return ids, np.concatenate(vectors)

    def close(self) -> None:
        """Closes the files."""
        for segment in self.segments:
            segment.close()

    def hits_of(self, ranked: Sequence[Found], plan: str | None) -> list[Hit]:
        """The hits of vectors that were found, in their order."""
        placed = [self._place_of(row) for _, row in ranked]
        numbers: dict[int, list[int]] = {}
        for place, row in placed:
            numbers.setdefault(place, []).append(self.segments[place].document_of(row))
        stored = {place: self.segments[place].documents.at(of) for place, of in numbers.items()}
        hits = []
        for (score, _), (place, row) in zip(ranked, placed, strict=True):
            segment = self.segments[place]
            id_, text, metadata = stored[place][segment.document_of(row)]
            passage = _passage(text, segment.passages.bounds_of(row))
            hit = Hit(id_, score, text, metadata, passage)
            hit.plan = plan
            hits.append(hit)
        return hits


def _present(opened: Opened | None) -> Opened:
    if opened is None:
        raise InputError("the index was opened for mode lexical alone, without its vectors")
    return opened


def _passage(text: str, bounds: Bounds) -> Passage:
    start, end = bounds
    if end > len(text):
        raise DamagedIndex(
            f"{PASSAGES_FILE} has a passage that ends at character {end} of a text of {len(text)}; "
            "restore the index from a backup or build it again"
        )
    return Passage(passage_text(text, bounds), start, len(text) if end == TO_THE_END else end)
