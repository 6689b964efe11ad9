"""Writing a segment: staged documents, vectors from a source, and an index over them."""

import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np

from sbertkit.arrays import Vectors
from sbertkit.data.chunk_log import ChunkLog
from sbertkit.data.vector_files import NpyWriter
from sbertkit.encoder import Encoder
from sbertkit.encoder.report import EncodeStats
from sbertkit.errors import DamagedIndex, InputError
from sbertkit.index.kinds import IndexKind, choose_kind
from sbertkit.index.segment import VECTORS_FILE, Rows, VectorSegment, unit_chunk, write_vectors
from sbertkit.retrieval.document_store import DOCUMENTS_FILE, DocumentStore, stage_documents
from sbertkit.retrieval.manifest import Manifest, SegmentEntry, check_file
from sbertkit.retrieval.view import Segment, View
from sbertkit.retrieval.workspace import CHUNKS_FILE, Workspace
from sbertkit.schema import as_record
from sbertkit.storage import caller_items, storage_errors

logger = logging.getLogger(__name__)

Origin = tuple[int, int]
"""Where a vector is stored already: the number of a segment of a view, and the row there."""

_NEW_FILE = "new.npy"
_ROWS_PER_CHUNK = 4_096


class VectorSource(Protocol):
    """Where the vectors of a segment come from: the encoder, other segments or a file."""

    def write(self, documents: DocumentStore, path: Path) -> None:
        """Writes a unit row for each document, in order, to a ``.npy`` file."""
        ...


def write_segment(root: Path, folder: Path, vectors: VectorSource, kind: IndexKind) -> SegmentEntry:
    """Writes vectors and index of a segment; gives its entry for the manifest.

    Args:
        root: The index folder.
        folder: The segment's folder, where its documents are staged.
        vectors: Where its vectors come from.
        kind: The kind of its index, with its settings.
    """
    with closing(DocumentStore(folder / DOCUMENTS_FILE)) as documents:
        vectors.write(documents, folder / VECTORS_FILE)
        count = len(documents)
    VectorSegment.write(folder, kind)
    return SegmentEntry.of(root, folder, count, kind.name)


@dataclass(frozen=True, slots=True)
class EncodedVectors:
    """Vectors that an encoder computes.

    Attributes:
        encoder: The encoder.
        rows: The documents that are encoded, by row; ``None`` for all.
        logged: Whether to log the chunks that are on the disk, and to continue after those that an
            interrupted build has logged.
        progress: Whether progress is shown on standard error.
    """

    encoder: Encoder
    rows: Collection[int] | None = None
    logged: bool = False
    progress: bool = False

    def write(self, documents: DocumentStore, path: Path) -> None:
        """See `VectorSource`."""
        log_path = path.with_name(CHUNKS_FILE)
        total = len(documents if self.rows is None else self.rows)
        run, texts = self.encoder.start_run(), documents.texts(self.rows)
        with storage_errors(path), ExitStack() as stack:
            log = stack.enter_context(closing(self._log(log_path))) if self.logged else None
            if log is not None:
                for chunk in log.chunks:
                    run.stats.merge(as_record(chunk.note, EncodeStats, log_path))
                if log.chunks:
                    logger.warning("%d documents of %d were encoded before", log.rows, total)
                texts = log.texts(("", text) for text in texts)
            chunks = log.chunks if log is not None else ()
            writer = stack.enter_context(closing(NpyWriter(path, self.encoder.dim, chunks)))
            for vectors in caller_items(run.vectors(texts, total=total, progress=self.progress)):
                digest = writer.append(unit_chunk(vectors, writer.rows))
                if log is not None:
                    writer.sync()
                    log.add(log.drawn(len(vectors)), digest, asdict(run.chunk_stats))
            writer.finish()
        log_path.unlink(missing_ok=True)

    def _log(self, path: Path) -> ChunkLog:
        encoder = self.encoder
        job = {"dim": encoder.dim, "encoder": encoder.fingerprint, "precision": encoder.precision}
        return ChunkLog(path, job)


@dataclass(frozen=True, slots=True)
class StoredVectors:
    """Vectors that are stored already.

    Attributes:
        stores: Each gives the vectors (n, dim) of some of its rows.
        origins: For each document the number of a store and the row there, (n, 2).
        dim: Size of a vector.
    """

    stores: Sequence[Callable[[Rows], Vectors]]
    origins: Rows
    dim: int

    def write(self, documents: DocumentStore, path: Path) -> None:
        """See `VectorSource`."""
        starts = range(0, len(documents), _ROWS_PER_CHUNK)
        write_vectors(path, map(self._chunk, starts), self.dim)

    def _chunk(self, start: int) -> Vectors:
        origins = self.origins[start : start + _ROWS_PER_CHUNK]
        vectors = np.empty((len(origins), self.dim), np.float32)
        for store in np.unique(origins[:, 0]):
            rows = np.flatnonzero(origins[:, 0] == store)
            vectors[rows] = self.stores[store](origins[rows, 1])
        return vectors


class NewDocuments(NamedTuple):
    """New documents of a segment.

    Attributes:
        database: The documents, staged in a file that is moved or removed.
        origins: Where each one's vector is stored already, if it is.
        source: Gives the source of the vectors of the others, from their rows.
    """

    database: Path
    origins: Sequence[Origin | None]
    source: Callable[[Collection[int]], VectorSource]


def merge_segments(
    workspace: Workspace, view: View, segments: Sequence[Segment], new: NewDocuments | None = None
) -> SegmentEntry:
    """Writes the live rows of some segments, and new documents after them, as one segment.

    Args:
        workspace: Where it is written; with new documents, in their folder.
        view: What the origins refer to.
        segments: Segments of the view.
        new: The new documents.
    """
    folder = workspace.new_segment() if new is None else new.database.parent
    origins = () if new is None else new.origins
    kind = kind_for(view.manifest, sum(segment.count for segment in segments) + len(origins))
    _check_copied(workspace.root, view, segments, origins)
    vectors: VectorSource
    if new is not None and not segments and not any(origins):
        new.database.rename(folder / DOCUMENTS_FILE)
        vectors = new.source(range(len(origins)))
    else:
        vectors = _stored_vectors(view, segments, new, folder / _NEW_FILE)
        _merge_documents(folder / DOCUMENTS_FILE, segments, new)
    entry = write_segment(workspace.root, folder, vectors, kind)
    del vectors  # which may have the file mapped
    (folder / _NEW_FILE).unlink(missing_ok=True)
    return entry


def clusters_for(manifest: Manifest, count: int) -> int | None:
    """The clusters that the index was asked for, if a segment has as many documents."""
    return manifest.clusters if manifest.clusters and manifest.clusters <= count else None


def kind_for(manifest: Manifest, count: int) -> IndexKind:
    """The kind of a segment with so many documents, as the index was asked for."""
    return choose_kind(manifest.kind, count, clusters_for(manifest, count))


def _check_copied(
    root: Path, view: View, segments: Iterable[Segment], origins: Iterable[Origin | None]
) -> None:
    """Refuses to copy from files that were damaged since they were opened.

    A copy would have a valid hash of its own, so that the damage could not be found any more.
    """
    copied = {segment.entry.id for segment in segments}
    places = {origin[0] for origin in origins if origin is not None}
    copied |= {view.segments[place].entry.id for place in places}
    for segment in view.manifest.segments:
        for entry in segment.files if segment.id in copied else ():
            if Path(entry.path).name in (DOCUMENTS_FILE, VECTORS_FILE):
                problem = check_file(root, entry, hashed=True)
                if problem is not None:
                    raise DamagedIndex(
                        f"{root / problem.file}: {problem.reason}; nothing was changed: restore it "
                        f"from a backup, or save what can be saved with: sbertkit repair {root}"
                    )


def _stored_vectors(
    view: View, segments: Iterable[Segment], new: NewDocuments | None, path: Path
) -> StoredVectors:
    """The vectors of live rows and new documents; those that are not stored go to a file first."""
    places = {segment.entry.id: place for place, segment in enumerate(view.segments)}
    stores: list[Callable[[Rows], Vectors]] = [segment.vectors.at for segment in view.segments]
    origins = [np.empty((0, 2), np.int64)]
    for segment in segments:
        rows = np.flatnonzero(segment.mask())
        origins.append(np.stack([np.full(len(rows), places[segment.entry.id]), rows], axis=1))
    if new is not None:
        missing = [row for row, origin in enumerate(new.origins) if origin is None]
        if missing:
            with closing(DocumentStore(new.database)) as documents:
                new.source(set(missing)).write(documents, path)
            stores.append(np.load(path, mmap_mode="r", allow_pickle=False).__getitem__)
        written = iter(range(len(missing)))
        origins.append(
            np.array([origin or (len(view.segments), next(written)) for origin in new.origins])
        )
    return StoredVectors(stores, np.concatenate(origins), view.manifest.encoder.dim)


def _merge_documents(path: Path, segments: Iterable[Segment], new: NewDocuments | None) -> None:
    """Writes the documents of live rows, and new ones after them."""
    documents = [segment.live_documents() for segment in segments]
    if new is None:
        stage_documents(path, chain(*documents), _duplicate)
        return
    with closing(DocumentStore(new.database)) as staged:
        stage_documents(path, chain(*documents, staged.documents()), _duplicate)
    new.database.unlink()


def _duplicate(document_id: str, *_lines: int) -> InputError:
    return DamagedIndex(f"duplicate id {document_id!r} in two segments; build the index again")
