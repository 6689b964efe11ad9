"""Changes to an index: documents added, replaced and deleted; each call is one commit."""

import hashlib
import json
import logging
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt

from sbertkit.arguments import output_folder
from sbertkit.data import Document, ReadOptions, SourcedDocument
from sbertkit.data.document_columns import ColumnChoice
from sbertkit.encoder import Encoder
from sbertkit.errors import InputError, InputTypeError, UnknownId
from sbertkit.retrieval.corpus import Corpus, CorpusReader, stored_id
from sbertkit.retrieval.document_store import DocumentStore, StoredRow, rendered
from sbertkit.retrieval.imported_vectors import ImportedVectors, own_vectors
from sbertkit.retrieval.manifest import SegmentEntry, read_manifest
from sbertkit.retrieval.merge_policy import is_wasteful, tail_to_merge
from sbertkit.retrieval.opening import check_encoder, open_view
from sbertkit.retrieval.results import Changes
from sbertkit.retrieval.segment_writer import (
    EncodedVectors,
    NewDocuments,
    Origin,
    VectorSource,
    merge_segments,
)
from sbertkit.retrieval.tombstones import write_tombstones
from sbertkit.retrieval.view import Segment, View
from sbertkit.retrieval.workspace import Workspace, index_lock, new_generation, refuse_links
from sbertkit.storage import caller_errors, storage_errors

logger = logging.getLogger(__name__)

Mask = npt.NDArray[np.bool_]

MODES = ("add", "upsert", "update")
"""``add`` wants new ids, ``upsert`` replaces known ones, ``update`` deletes all others as well."""

_STAGED_FILE = "staged.db"
_DOCUMENTS_PER_CHUNK = 1_000


def change_documents(
    path: str | os.PathLike[str],
    corpus: Corpus,
    encoder: Callable[[View], Encoder],
    *,
    mode: str,
    read: ReadOptions | None = None,
    progress: bool = False,
    known: View | None = None,
) -> Changes:
    """Takes the documents of a corpus into an index, in one commit.

    A document whose text and metadata are the stored ones is left unchanged. A text is encoded only
    if the index has it neither under the same id nor under an id that is removed.

    Args:
        path: The index folder.
        corpus: As for a build.
        encoder: Gives the encoder for a view of the index; called once all documents have been read
            and accepted, if there are texts to encode.
        mode: One of `MODES`.
        read: How the corpus is read.
        progress: Whether progress is shown on standard error.
        known: An earlier view of the index.

    Raises:
        InputError: A document is refused, or with ``add`` an id is not new.
        ModelMismatch: The encoder is not the one that built the index.
        DamagedIndex: The index is damaged.
        StorageError: The disk is full, a permission is missing or another process writes.
    """
    with _changing(path, known) as (view, workspace):
        reader = CorpusReader(corpus, read or ReadOptions(), view.manifest.columns)
        root, entry = workspace.root, view.manifest.encoder
        staged = workspace.new_segment() / _STAGED_FILE
        plan = _Plan(view, mode, reader)
        count = reader.stage(staged, plan.new_documents(), progress=progress)
        if count + plan.unchanged == 0 and (mode == "update" or reader.named):
            raise reader.empty_corpus_error()
        if mode != "update" and reader.numbered:
            plan.check_ids()
        if mode == "update":
            plan.delete_missing()
        if None in plan.origins:
            plan.reuse_vectors(staged)
        if mode == "update":
            plan.check_same_corpus(root)
            if reader.numbered:
                plan.count_by_text(staged)
        own = (
            own_vectors(reader, entry.fingerprint, entry.precision)
            if None in plan.origins
            else None
        )
        changes = plan.changes(encoded=own is None)

        def source(rows: Collection[int]) -> VectorSource:
            if own is not None:
                return ImportedVectors(own, entry.dim)
            with caller_errors():
                loaded = encoder(view)
            _check(root, view, loaded)
            return EncodedVectors(loaded, rows, progress=progress)

        if changes:
            origins = plan.origins if own is None else [None] * count
            new = NewDocuments(staged, origins, source) if count else None
            _commit(workspace, view, plan.masks, new, reader.columns)
        return changes


def delete_documents(
    path: str | os.PathLike[str],
    ids: Iterable[str | int],
    *,
    missing_ok: bool = False,
    known: View | None = None,
) -> Changes:
    """Deletes the documents of some ids from an index, all or none, in one commit.

    Args:
        path: The index folder.
        ids: Their ids.
        missing_ok: Ignore unknown ids.
        known: An earlier view of the index.

    Raises:
        UnknownId: An id is unknown; nothing is deleted.
        InputError: A duplicate id.
        InputTypeError: Not an iterable of str.
        StorageError: The disk is full, a permission is missing or another process writes.
    """
    wanted = _checked_ids(ids, missing_ok=missing_ok)
    with _changing(path, known) as (view, workspace):
        found = view.find(wanted)
        unknown = [document_id for document_id in wanted if document_id not in found]
        if unknown and not missing_ok:
            more = f" and {len(unknown) - 1} more" if len(unknown) > 1 else ""
            raise UnknownId(
                f"the index {path} has no document with the id {unknown[0]!r}{more}; nothing was "
                "deleted: leave unknown ids out, or pass missing_ok (--missing-ok)"
            )
        if found:
            masks = [segment.mask() for segment in view.segments]
            for place, stored in found.values():
                masks[place][stored.row] = False
            _commit(workspace, view, masks)
        return Changes(deleted=len(found), documents=len(view) - len(found))


def compact_index(path: str | os.PathLike[str], *, known: View | None = None) -> Changes:
    """Rewrites all segments of an index as one without the deleted rows, in one commit.

    An index that is compact already is left unchanged.

    Args:
        path: The index folder.
        known: An earlier view of the index.

    Raises:
        InputError: It is no index.
        DamagedIndex: It is damaged.
        StorageError: The disk is full, a permission is missing or another process writes.
    """
    with _changing(path, known) as (view, workspace):
        if len(view.segments) > 1 or view.manifest.deleted:
            entries = [merge_segments(workspace, view, view.segments)] if len(view) else []
            _put(workspace, view, [(entry, None) for entry in entries])
        return Changes(documents=len(view))


@contextmanager
def _changing(path: str | os.PathLike[str], known: View | None) -> Iterator[tuple[View, Workspace]]:
    """Yields the newest state of an index and a workspace for the next one, locked for writing."""
    root = output_folder(path)
    read_manifest(root)  # no lock file where there is no index
    with index_lock(root), storage_errors(root):
        refuse_links(root)
        view = open_view(root, known)
        with new_generation(root) as workspace:
            yield view, workspace


class _Plan:
    """What the documents of a corpus change in a view.

    Attributes:
        masks: Which rows of each segment remain.
        origins: Where the vector of each new row is stored already, if it is.
        unchanged: Documents that are left unchanged.
    """

    def __init__(self, view: View, mode: str, reader: CorpusReader) -> None:
        self.masks = [segment.mask() for segment in view.segments]
        self.origins: list[Origin | None] = []
        self.unchanged = 0
        self._added = self._changed = self._deleted = self._moved = 0
        self._view = view
        self._mode = mode
        self._reader = reader
        self._lines = [np.full(len(mask), -1, np.int64) for mask in self.masks]

    def new_documents(self) -> Iterator[SourcedDocument]:
        """The documents that are new or changed.

        Raises:
            InputError: A duplicate id, or with ``add`` one that is not new.
        """
        while chunk := list(islice(self._reader.documents, _DOCUMENTS_PER_CHUNK)):
            known = self._view.find([sourced.document.id for sourced in chunk])
            for sourced in chunk:
                stored = known.get(sourced.document.id)
                if stored is None:
                    self._added += 1
                    self.origins.append(None)
                    yield sourced
                elif self._differs(sourced, *stored):
                    yield sourced

    def check_ids(self) -> None:
        """Refuses texts without ids from memory, and warns of lines that replaced others.

        Raises:
            InputError: They are from memory.
        """
        if not self._reader.named:
            raise InputError(
                f"{self._reader.name}: documents to {self._mode} need ids of their own, found "
                "texts without; nothing was changed: pass tuples (id, text)"
            )
        if self._changed:
            logger.warning(
                "%s has replaced %d documents of the index: their ids are the numbers of their "
                "lines, as it has no column of ids",
                self._reader.name,
                self._changed,
            )

    def delete_missing(self) -> None:
        """Deletes the documents that are not in the corpus."""
        for mask, lines in zip(self.masks, self._lines, strict=True):
            missing = mask & (lines < 0)
            self._deleted += int(np.count_nonzero(missing))
            mask[missing] = False

    def reuse_vectors(self, staged: Path) -> None:
        """Finds the texts of new rows among the removed ones, such as moved lines."""
        removed: dict[bytes, Origin] = {}
        for place, (segment, mask) in enumerate(zip(self._view.segments, self.masks, strict=True)):
            rows = np.flatnonzero(segment.mask() & ~mask).tolist()
            for row, text in segment.documents.texts_at(rows):
                removed[_digest(text)] = (place, row)
        if not removed:
            return
        with closing(DocumentStore(staged)) as store:
            for number, text in enumerate(store.texts()):
                if self.origins[number] is None:
                    self.origins[number] = removed.get(_digest(text))

    def count_by_text(self, staged: Path) -> None:
        """Counts documents by text and metadata, as their ids are the numbers of lines.

        So many are changed as one line takes the place of another.
        """
        removed: Counter[bytes] = Counter()
        for segment, mask in zip(self._view.segments, self.masks, strict=True):
            gone = segment.documents.documents(segment.mask() & ~mask)
            removed.update(_digest(_content(sourced.document)) for sourced in gone)
        with closing(DocumentStore(staged)) as store:
            new = Counter(_digest(_content(sourced.document)) for sourced in store.documents())
        self._moved = (removed & new).total()
        added, deleted = (new - removed).total(), (removed - new).total()
        self._changed = min(added, deleted)
        self._added, self._deleted = added - self._changed, deleted - self._changed

    def check_same_corpus(self, root: Path) -> None:
        """Refuses another corpus than the one of the index.

        Raises:
            InputError: The corpus has another path and none of the texts of the index.
        """
        built_from, path = self._view.manifest.corpus, self._reader.path
        elsewhere = built_from and path and Path(built_from).resolve() != Path(path).resolve()
        kept = self.unchanged or any(origin is not None for origin in self.origins)
        if elsewhere and len(self._view) and not kept:
            raise InputError(
                f"{self._reader.name} has none of the {len(self._view):,} texts of {root}, which "
                f"was built from {built_from}; nothing was changed: give this corpus an index of "
                "its own, or replace that one by building it without --update"
            )

    def changes(self, *, encoded: bool) -> Changes:
        """The counts, and whether the missing vectors are encoded."""
        return Changes(
            added=self._added,
            changed=self._changed,
            deleted=self._deleted,
            unchanged=self.unchanged,
            moved=self._moved,
            encoded=self.origins.count(None) if encoded else 0,
            documents=len(self._view) + self._added - self._deleted,
        )

    def _differs(self, sourced: SourcedDocument, place: int, stored: StoredRow) -> bool:
        """Whether a document with a known id replaces the stored one."""
        document, line = sourced
        first = int(self._lines[place][stored.row])
        if first >= 0:
            raise self._reader.duplicate_error(document.id, first, line)
        if self._mode == "add":
            raise InputError(
                f"{self._reader.name}: id {document.id!r} on {self._reader.unit} {line} is in the "
                "index already; nothing was added: leave it out, or replace the stored document "
                "with upsert"
            )
        self._lines[place][stored.row] = line
        same_text = document.text == stored.text
        if same_text and self._has_metadata(document, place, stored):
            self.unchanged += 1
            return False
        self._changed += 1
        self.masks[place][stored.row] = False
        self.origins.append((place, stored.row) if same_text else None)
        return True

    def _has_metadata(self, document: Document, place: int, stored: StoredRow) -> bool:
        """Whether a document has the metadata of a stored row, in any order."""
        if rendered(document) == stored.metadata:
            return True
        known = self._view.segments[place].documents.at([stored.row])[stored.row]
        return _sorted_keys(document) == _sorted_keys(known)


def _sorted_keys(document: Document) -> str:
    return json.dumps(dict(document.metadata), sort_keys=True)


def _content(document: Document) -> str:
    return f"{document.text}\0{_sorted_keys(document)}"


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _check(root: Path, view: View, encoder: Encoder) -> None:
    """Refuses another encoder than the index's, and warns of another precision."""
    entry = view.manifest.encoder
    check_encoder(root, entry, encoder)
    if encoder.precision != entry.precision:
        logger.warning(
            "%s was built in %s, the new vectors are computed in %s",
            root,
            entry.precision,
            encoder.precision,
        )


def _checked_ids(ids: Iterable[str | int], *, missing_ok: bool) -> list[str]:
    if isinstance(ids, str | bytes | Mapping) or not isinstance(ids, Iterable):
        raise InputTypeError(f"expected a list of ids, found {ids!r}; put a single one in []")
    wanted: dict[str, None] = {}
    for document_id in map(stored_id, ids):
        if document_id in wanted and not missing_ok:
            raise InputError(f"duplicate id {document_id!r}; nothing was deleted")
        wanted[document_id] = None
    return list(wanted)


def _commit(
    workspace: Workspace,
    view: View,
    masks: Sequence[Mask],
    new: NewDocuments | None = None,
    columns: ColumnChoice | None = None,
) -> None:
    """Commits the next generation: the remaining rows of the segments, and the new ones."""
    remaining = [
        segment.with_mask(mask)
        for segment, mask in zip(view.segments, masks, strict=True)
        if mask.any()
    ]
    start = len(remaining)
    if new is not None:
        start = tail_to_merge([segment.count for segment in remaining], len(new.origins))
    kept: list[tuple[SegmentEntry, Segment | None]] = []
    for segment in remaining[:start]:
        if is_wasteful(len(segment.vectors), segment.count):
            kept.append((merge_segments(workspace, view, [segment]), None))
        else:
            kept.append((segment.entry, segment))
    if new is not None:
        kept.append((merge_segments(workspace, view, remaining[start:], new), None))
    _put(workspace, view, kept, columns)


def _put(
    workspace: Workspace,
    view: View,
    kept: Sequence[tuple[SegmentEntry, Segment | None]],
    columns: ColumnChoice | None = None,
) -> None:
    """Commits a manifest with these segments, new ones or some of the view with their live rows."""
    live = [None if segment is None else segment.live for _, segment in kept]
    workspace.sync()
    tombstones = None
    if any(rows is not None for rows in live):
        tombstones = write_tombstones(workspace.root, workspace.generation, live)
    workspace.commit(
        replace(
            view.manifest,
            generation=workspace.generation,
            segments=tuple(entry for entry, _ in kept),
            tombstones=tombstones,
            columns=columns or view.manifest.columns,
        )
    )
