"""Writing a segment: staged documents, and their vectors from a source."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np

from sbertkit.arrays import Vectors
from sbertkit.encoder.passage_table import Int64, PassageTable
from sbertkit.errors import DamagedIndex, InputError
from sbertkit.index.kinds.flat import Flat
from sbertkit.index.segment import VECTORS_FILE, Rows, VectorSegment, write_vectors
from sbertkit.retrieval.document_store import DOCUMENTS_FILE, DocumentStore, stage_documents
from sbertkit.retrieval.filters.field_file import write_fields
from sbertkit.retrieval.manifest import check_file
from sbertkit.retrieval.manifest_entries import PASSAGES_FILE, SegmentEntry
from sbertkit.retrieval.passage_file import write_passages
from sbertkit.retrieval.view import Segment, View
from sbertkit.retrieval.workspace import Workspace

_ROWS_PER_CHUNK = 4_096


class VectorSource(Protocol):
    """Where the vectors of a segment come from: the encoder, other segments or a file."""

    def write(self, documents: DocumentStore, path: Path) -> PassageTable:
        """Writes a unit row for each passage, in order, to a ``.npy`` file; gives the passages."""
        ...


def write_segment(root: Path, folder: Path, vectors: VectorSource) -> SegmentEntry:
    """Writes vectors and passages of a segment; gives its entry for the manifest.

    Args:
        root: The index folder.
        folder: The segment's folder, where its documents are staged.
        vectors: Where its vectors come from.
    """
    with closing(DocumentStore(folder / DOCUMENTS_FILE)) as documents:
        passages = vectors.write(documents, folder / VECTORS_FILE)
    return finish_segment(root, folder, passages)


def finish_segment(root: Path, folder: Path, passages: PassageTable) -> SegmentEntry:
    """Writes what a segment has besides documents and vectors; gives its entry.

    It has no vector index yet, see `vector_index`.
    """
    write_passages(folder, passages)
    with closing(DocumentStore(folder / DOCUMENTS_FILE)) as documents:
        write_fields(folder, documents.metadata())
    VectorSegment.write(folder, Flat(), {})
    return SegmentEntry.of(root, folder, passages, Flat.name)


@dataclass(frozen=True, slots=True)
class StoredVectors:
    """Vectors that are stored already.

    Attributes:
        stores: Each gives the vectors (n, dim) of some of its rows.
        origins: For each vector the number of a store and the row there, (n, 2).
        passages: What each stands for.
        dim: Size of a vector.
    """

    stores: Sequence[Callable[[Rows], Vectors]]
    origins: Int64
    passages: PassageTable
    dim: int

    def write(self, documents: DocumentStore, path: Path) -> PassageTable:
        """See `VectorSource`."""
        del documents
        starts = range(0, len(self.origins), _ROWS_PER_CHUNK)
        write_vectors(path, map(self._chunk, starts), self.dim)
        return self.passages

    def _chunk(self, start: int) -> Vectors:
        origins = self.origins[start : start + _ROWS_PER_CHUNK]
        vectors = np.empty((len(origins), self.dim), np.float32)
        for store in np.unique(origins[:, 0]):
            rows = np.flatnonzero(origins[:, 0] == store)
            vectors[rows] = self.stores[store](origins[rows, 1])
        return vectors


class NewDocuments(NamedTuple):
    """New documents of a segment, and their vectors.

    Attributes:
        database: The documents, staged in a file that is moved or removed.
        passages: What their vectors stand for.
        origins: The number of a segment of the view, and the row there, of each vector, (n, 2); of
            those in the file a segment beyond the last, and the row in the file.
        vectors: The file of vectors that no segment has, if there are any; it is moved or removed.
    """

    database: Path
    passages: PassageTable
    origins: Int64
    vectors: Path | None


def merge_segments(
    workspace: Workspace, view: View, segments: Sequence[Segment], new: NewDocuments | None = None
) -> SegmentEntry:
    """Writes the live documents of some segments, and new ones after them, as one segment.

    Args:
        workspace: Where it is written; with new documents, in their folder.
        view: What the origins refer to.
        segments: Segments of the view.
        new: The new documents.
    """
    folder = workspace.new_segment() if new is None else new.database.parent
    _check_copied(workspace.root, view, segments, new)
    if new is not None and not segments and new.vectors and not stored_origins(new, view):
        new.database.rename(folder / DOCUMENTS_FILE)
        new.vectors.rename(folder / VECTORS_FILE)
        return finish_segment(workspace.root, folder, new.passages)
    vectors = _stored_vectors(view, segments, new)
    _merge_documents(folder / DOCUMENTS_FILE, segments, new)
    entry = write_segment(workspace.root, folder, vectors)
    del vectors  # which may have the file mapped
    if new is not None and new.vectors is not None:
        new.vectors.unlink()
    return entry


def stored_origins(new: NewDocuments, view: View) -> set[int]:
    """The numbers of the segments of a view that have vectors of new documents."""
    return {place for place in np.unique(new.origins[:, 0]).tolist() if place < len(view.segments)}


def _check_copied(
    root: Path, view: View, segments: Iterable[Segment], new: NewDocuments | None
) -> None:
    """Refuses to copy from files that were damaged since they were opened.

    A copy would have a valid hash of its own, so that the damage could not be found any more.
    """
    copied = {segment.entry.id for segment in segments}
    places = set() if new is None else stored_origins(new, view)
    copied |= {view.segments[place].entry.id for place in places}
    for segment in view.manifest.segments:
        for entry in segment.files if segment.id in copied else ():
            if Path(entry.path).name in (DOCUMENTS_FILE, VECTORS_FILE, PASSAGES_FILE):
                problem = check_file(root, entry, hashed=True)
                if problem is not None:
                    raise DamagedIndex(
                        f"{root / problem.file}: {problem.reason}; nothing was changed: restore it "
                        f"from a backup, or save what can be saved with: sbertkit repair {root}"
                    )


def _stored_vectors(
    view: View, segments: Iterable[Segment], new: NewDocuments | None
) -> StoredVectors:
    """The vectors of the live documents of some segments, and of new ones."""
    places = {segment.entry.id: place for place, segment in enumerate(view.segments)}
    stores: list[Callable[[Rows], Vectors]] = [segment.vectors.at for segment in view.segments]
    origins = [np.empty((0, 2), np.int64)]
    passages = [np.empty((0, 3), np.int64)]
    documents = 0
    for segment in segments:
        numbers = np.flatnonzero(segment.mask())
        rows = segment.passages.rows_of(numbers)
        place = places[segment.entry.id]
        origins.append(np.stack([np.full(len(rows), place), rows], axis=1))
        passages.append(segment.passages.renumbered(numbers, documents))
        documents += len(numbers)
    if new is not None:
        if new.vectors is not None:
            stores.append(np.load(new.vectors, mmap_mode="r", allow_pickle=False).__getitem__)
        origins.append(new.origins)
        numbers = np.arange(new.passages.documents)
        passages.append(new.passages.renumbered(numbers, documents))
        documents += len(numbers)
    table = PassageTable.from_rows(documents, np.concatenate(passages))
    return StoredVectors(stores, np.concatenate(origins), table, view.manifest.encoder.dim)


def _merge_documents(path: Path, segments: Iterable[Segment], new: NewDocuments | None) -> None:
    """Writes the documents of live rows, and new ones after them."""
    documents = [segment.live_documents() for segment in segments]
    if new is None:
        stage_documents(path, chain(*documents), duplicate_id)
        return
    with closing(DocumentStore(new.database)) as staged:
        stage_documents(path, chain(*documents, staged.documents()), duplicate_id)
    new.database.unlink()


def duplicate_id(document_id: str, *_lines: int) -> InputError:
    """The error for an id in two segments."""
    return DamagedIndex(f"duplicate id {document_id!r} in two segments; build the index again")
