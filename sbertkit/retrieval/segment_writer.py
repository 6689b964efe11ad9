"""Writing a segment from rows that are stored already and from new ones."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from sbertkit.arrays import Vectors
from sbertkit.encoder import Encoder
from sbertkit.errors import DamagedIndex, InputError
from sbertkit.index import VECTORS_FILE, VectorSegment, choose_kind, unit_pools, write_vectors
from sbertkit.index.kinds import IndexKind
from sbertkit.retrieval.document_store import DOCUMENTS_FILE, DocumentStore, stage_documents
from sbertkit.retrieval.manifest import Manifest, SegmentEntry, check_file
from sbertkit.retrieval.view import Segment, View
from sbertkit.retrieval.workspace import Workspace
from sbertkit.storage import caller_items

Origin = tuple[int, int]
"""Where a vector is stored already: the number of a segment, and the row there."""

_ROWS_A_STEP = 4_096


class NewRows(NamedTuple):
    """New documents of a segment.

    Attributes:
        database: The documents, staged in a file that is used up.
        origins: Where each one's vector is already; ``None`` for those that are to be encoded.
        encoder: Gives the encoder; called if any is.
        vectors: A file with a unit row for each document, so that none is encoded; it is used up.
    """

    database: Path
    origins: Sequence[Origin | None]
    encoder: Callable[[], Encoder]
    vectors: Path | None = None


def write_segment(
    workspace: Workspace,
    folder: Path,
    view: View,
    sources: Sequence[Segment],
    new: NewRows | None = None,
    *,
    progress: bool = False,
) -> SegmentEntry:
    """Writes the live rows of some segments, and new ones after them, as one segment.

    Args:
        workspace: Where the folder is.
        folder: The new segment's.
        view: What `NewRows.origins` refer to.
        sources: The segments.
        new: The new rows.
        progress: Whether progress is shown on standard error.
    """
    _check_sources(workspace.root, view, sources, new)
    count = _write_documents(folder / DOCUMENTS_FILE, sources, new)
    pools: Iterator[Vectors] = chain.from_iterable(_stored(source) for source in sources)
    truncated = 0
    if new is None:
        write_vectors(folder / VECTORS_FILE, pools, view.manifest.encoder.dim)
    else:
        with closing(DocumentStore(folder / DOCUMENTS_FILE)) as store:
            first = sum(source.count for source in sources)
            texts = (
                text
                for text, origin in zip(
                    islice(store.texts(), first, None), new.origins, strict=True
                )
                if origin is None
            )
            encoding = _Encoding(new, texts, progress=progress)
            fresh = _interleaved(new.origins, view, unit_pools(encoding.pools))
            write_vectors(folder / VECTORS_FILE, chain(pools, fresh), view.manifest.encoder.dim)
            truncated = encoding.truncated()
            if new.vectors is not None:
                new.vectors.unlink()
    kind, clusters = kind_for(view.manifest, count)
    VectorSegment.write(folder, kind, kind.parameters(count, clusters), {"truncated": truncated})
    return SegmentEntry.of(workspace.root, folder, count, kind.name)


def _check_sources(root: Path, view: View, sources: Sequence[Segment], new: NewRows | None) -> None:
    """Refuses to copy from files that were damaged since they were opened.

    A copy would have a valid hash of its own, and nobody could find the damage any more.
    """
    copied = {segment.entry.id for segment in sources}
    if new is not None:
        places = {origin[0] for origin in new.origins if origin is not None}
        copied |= {view.segments[place].entry.id for place in places}
    for segment in view.manifest.segments:
        for entry in segment.files if segment.id in copied else ():
            if Path(entry.path).name in (DOCUMENTS_FILE, VECTORS_FILE):
                problem = check_file(root, entry, hashed=True)
                if problem is not None:
                    raise DamagedIndex(
                        f"{root / problem.file}: {problem.reason}; nothing was changed: restore it "
                        f"from a backup, or save what can be with: sbertkit repair {root}"
                    )


def _write_documents(path: Path, sources: Sequence[Segment], new: NewRows | None) -> int:
    """Writes the documents of a segment; gives their number."""
    if new is not None and not sources:
        new.database.rename(path)
        return len(new.origins)
    documents = [
        source.documents.documents(None if source.live is None else source.live.mask)
        for source in sources
    ]
    if new is None:
        return stage_documents(path, chain(*documents), _clash, lambda _: None)
    with closing(DocumentStore(new.database)) as staged:
        count = stage_documents(path, chain(*documents, staged.documents()), _clash, lambda _: None)
    new.database.unlink()
    return count


def _clash(document_id: str, *_places: int) -> InputError:
    return DamagedIndex(f"id {document_id!r} stands in two segments; build the index again")


class _Encoding:
    """The texts of new rows on their way through the encoder, which none may need."""

    def __init__(self, new: NewRows, texts: Iterator[str], *, progress: bool) -> None:
        total = sum(origin is None for origin in new.origins)
        encoded = total and new.vectors is None
        self._run = new.encoder().start_run() if encoded else None
        self.pools: Iterator[Vectors] = iter(()) if new.vectors is None else _given(new)
        if self._run is not None:
            self.pools = caller_items(self._run.vectors(texts, total=total, progress=progress))

    def truncated(self) -> int:
        """Number of texts that were cut; told once all pools have been drawn."""
        return 0 if self._run is None else len(self._run.report().truncated)


def _given(new: NewRows) -> Iterator[Vectors]:
    """The vectors that are given, of those rows that are stored nowhere."""
    vectors = np.load(str(new.vectors), mmap_mode="r", allow_pickle=False)
    rows = np.array([row for row, origin in enumerate(new.origins) if origin is None])
    for start in range(0, len(rows), _ROWS_A_STEP):
        yield vectors[rows[start : start + _ROWS_A_STEP]]


def kind_for(manifest: Manifest, count: int) -> tuple[IndexKind, int | None]:
    """The kind of a segment with so many rows, and its clusters, as the index was asked for."""
    clusters = manifest.clusters
    if clusters is not None and clusters > count:
        clusters = None
    kind = "ivf" if manifest.clusters is not None else manifest.kind
    return choose_kind(kind, count, clusters), clusters


def _stored(segment: Segment) -> Iterator[Vectors]:
    rows = np.flatnonzero(segment.mask())
    for start in range(0, len(rows), _ROWS_A_STEP):
        yield segment.vectors.at(rows[start : start + _ROWS_A_STEP])


def _interleaved(
    origins: Sequence[Origin | None], view: View, encoded: Iterator[Vectors]
) -> Iterator[Vectors]:
    """The vectors of rows in order, each from where it is stored or the next that was encoded."""
    dim = view.manifest.encoder.dim
    waiting = np.empty((0, dim), np.float32)
    for start in range(0, len(origins), _ROWS_A_STEP):
        part = origins[start : start + _ROWS_A_STEP]
        places = np.array([(-1, -1) if origin is None else origin for origin in part])
        vectors = np.empty((len(part), dim), np.float32)
        for place in np.unique(places[:, 0]):
            rows = np.flatnonzero(places[:, 0] == place)
            if place >= 0:
                vectors[rows] = view.segments[place].vectors.at(places[rows, 1])
                continue
            while len(waiting) < len(rows):
                waiting = np.concatenate([waiting, next(encoded)])
            vectors[rows], waiting = waiting[: len(rows)], waiting[len(rows) :]
        yield vectors
    for _ in encoded:  # so that the run comes to its end
        pass
