"""One generation of an index, opened: what is searched and what a change starts from."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from sbertkit.arrays import Vectors
from sbertkit.data import Document, SourcedDocument
from sbertkit.index.live_rows import LiveRows
from sbertkit.index.segment import VectorSegment
from sbertkit.retrieval.document_store import DocumentStore, StoredRow
from sbertkit.retrieval.manifest import Manifest, SegmentEntry
from sbertkit.retrieval.results import Hit


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment, opened.

    Attributes:
        entry: Its entry in the manifest.
        vectors: Its vectors.
        documents: Its documents.
        live: Its rows that are not deleted; ``None`` if none is deleted.
    """

    entry: SegmentEntry
    vectors: VectorSegment
    documents: DocumentStore
    live: LiveRows | None

    @property
    def count(self) -> int:
        """Number of rows that are not deleted."""
        return len(self.vectors) if self.live is None else self.live.count

    def mask(self) -> npt.NDArray[np.bool_]:
        """Whether each row is live, (n,), as an array of its own."""
        if self.live is None:
            return np.ones(len(self.vectors), np.bool_)
        return self.live.mask.copy()

    def live_documents(self) -> Iterator[SourcedDocument]:
        """Its documents that are not deleted, in order, one at a time."""
        return self.documents.documents(None if self.live is None else self.live.mask)

    def with_mask(self, mask: npt.NDArray[np.bool_]) -> "Segment":
        """The segment with other rows deleted."""
        live = None if mask.all() else LiveRows(mask)
        deleted = 0 if live is None else len(mask) - live.count
        return replace(self, live=live, entry=replace(self.entry, deleted=deleted))


class View:
    """The segments that one manifest names; never changed, safe to share between threads.

    Args:
        manifest: The manifest.
        segments: Its segments in its order.
    """

    def __init__(self, manifest: Manifest, segments: Iterable[Segment]) -> None:
        self.manifest = manifest
        self.segments = tuple(segments)

    def __len__(self) -> int:
        return sum(segment.count for segment in self.segments)

    def search(self, vectors: Vectors, k: int, *, exact: bool) -> list[list[Hit]]:
        """The hits of each query vector (q, dim); see `SearchIndex.search`."""
        found = [
            (segment, segment.vectors.search(vectors, k, exact=exact, live=segment.live))
            for segment in self.segments
        ]
        hits = []
        for query in range(len(vectors)):
            ranked = sorted(
                (-score, place, row)
                for place, (_, neighbors) in enumerate(found)
                for row, score in zip(
                    neighbors.rows[query].tolist(), neighbors.scores[query].tolist(), strict=True
                )
            )
            hits.append(self._hits(ranked[:k]))
        return hits

    def find(self, ids: Sequence[str]) -> dict[str, tuple[int, StoredRow]]:
        """Where documents are stored, by id: segment number and row; unknown ids are left out."""
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

    def sample(self, drawn: npt.NDArray[np.int64]) -> tuple[list[str], Vectors]:
        """Ids and vectors (n, dim) of the documents with these numbers, in ascending order."""
        ids: list[str] = []
        vectors = [np.empty((0, self.manifest.encoder.dim), np.float32)]
        start = 0
        for segment in self.segments:
            end = start + segment.count
            rows = np.flatnonzero(segment.mask())[drawn[(start <= drawn) & (drawn < end)] - start]
            documents = segment.documents.at(rows.tolist())
            ids += [documents[row].id for row in rows.tolist()]
            vectors.append(segment.vectors.at(rows))
            start = end
        return ids, np.concatenate(vectors)

    def close(self) -> None:
        """Closes the files."""
        for segment in self.segments:
            segment.documents.close()

    def _hits(self, ranked: Sequence[tuple[float, int, int]]) -> list[Hit]:
        rows: dict[int, list[int]] = {}
        for _, place, row in ranked:
            rows.setdefault(place, []).append(row)
        documents = {
            place: self.segments[place].documents.at(of_place) for place, of_place in rows.items()
        }
        return [
            Hit(document.id, -negative, document.text, document.metadata)
            for negative, document in (
                (negative, documents[place][row]) for negative, place, row in ranked
            )
        ]
