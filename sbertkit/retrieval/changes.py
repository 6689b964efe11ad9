"""Changes to an index: documents added, replaced and deleted; each call is one commit."""

import hashlib
import json
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt

from sbertkit.arguments import output_folder
from sbertkit.data import Document, ReadOptions, SourcedDocument, repair_surrogates
from sbertkit.encoder import Encoder
from sbertkit.errors import InputError, InputTypeError, UnknownId
from sbertkit.progress import track
from sbertkit.retrieval.corpus import Corpus, CorpusReader
from sbertkit.retrieval.document_store import (
    DocumentStore,
    StoredRow,
    rendered,
    stage_documents,
)
from sbertkit.retrieval.imported_vectors import import_by_id, own_vectors
from sbertkit.retrieval.manifest import SegmentEntry, read_manifest
from sbertkit.retrieval.merge_policy import is_wasteful, tail_to_merge
from sbertkit.retrieval.opening import check_encoder, open_view
from sbertkit.retrieval.results import Changes
from sbertkit.retrieval.segment_writer import NewRows, Origin, write_segment
from sbertkit.retrieval.tombstones import write_tombstones
from sbertkit.retrieval.view import Segment, View
from sbertkit.retrieval.workspace import Workspace, index_lock, new_generation, refuse_links
from sbertkit.storage import caller_errors, storage_errors

logger = logging.getLogger(__name__)

Mask = npt.NDArray[np.bool_]

MODES = ("add", "upsert", "update")
"""What becomes of the documents that are there: ids must be new; those given again are replaced;
and those not given are deleted."""

_STAGED_FILE = "staged.db"
_GIVEN_FILE = "given.npy"
_DOCUMENTS_A_STEP = 1_000


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

    A document whose text and further fields are the stored ones is left as it is. Only texts that
    the index does not have yet under the same id, or under one that goes, are encoded.

    Args:
        path: The index folder.
        corpus: As for a build.
        encoder: Gives the encoder for a view of the index; called once all documents have been read
            and accepted, if any text is to be encoded.
        mode: One of `MODES`.
        read: How the corpus is read.
        progress: Whether progress is shown on standard error.
        known: An earlier view of the index.

    Raises:
        InputError: A document is refused, or with ``add`` an id is there already.
        ModelMismatch: The encoder is not the one that built the index.
        DamagedIndex: The index is damaged.
        StorageError: The disk is full, a permission is missing or another process writes.
    """
    reader = CorpusReader(corpus, read or ReadOptions())
    with _changing(path, known) as (view, workspace):
        root = workspace.root
        folder = workspace.new_segment()
        staged = folder / _STAGED_FILE
        plan = _Plan(view, mode, reader)
        with track("reading", None, shown=progress) as advance:
            count = stage_documents(staged, plan.new_rows(), reader.stands_twice, advance)
        reader.warn()
        if count + plan.unchanged == 0 and (mode == "update" or reader.named):
            raise reader.empty_corpus_error()
        if mode == "update":
            plan.delete_what_was_not_met()
        if None in plan.origins:
            plan.find_moved_texts(staged)
        if mode == "update":
            plan.check_that_it_is_the_same_corpus(root)
        changes = plan.changes()
        if changes:

            def checked() -> Encoder:
                with caller_errors():
                    loaded = encoder(view)
                _check(root, view, loaded)
                return loaded

            given = None
            if None in plan.origins:
                given = _own_vectors(reader, view, staged)
                changes = replace(changes, encoded=0) if given else changes
            new = NewRows(staged, plan.origins, checked, given) if count else None
            _commit(workspace, view, plan.masks, new, progress=progress)
        return changes


def _own_vectors(reader: CorpusReader, view: View, staged: Path) -> Path | None:
    """A file with the vectors of staged documents by row, if the corpus brought them along."""
    entry = view.manifest.encoder
    source = own_vectors(reader, entry.fingerprint, entry.precision)
    if source is None:
        return None
    given = staged.with_name(_GIVEN_FILE)
    with closing(DocumentStore(staged)) as store:
        import_by_id(source, store, given, entry.dim)
    return given


def delete_documents(
    path: str | os.PathLike[str],
    ids: Iterable[str],
    *,
    missing_ok: bool = False,
    known: View | None = None,
) -> Changes:
    """Deletes the documents of some ids from an index, all or none, in one commit.

    Args:
        path: The index folder.
        ids: Their ids.
        missing_ok: Pass over ids that are not there.
        known: An earlier view of the index.

    Raises:
        UnknownId: An id is not there; nothing is deleted.
        InputError: An id is given twice.
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
                "deleted: leave what is unknown out, or pass missing_ok (--missing-ok)"
            )
        if found:
            masks = [segment.mask() for segment in view.segments]
            for place, stored in found.values():
                masks[place][stored.row] = False
            _commit(workspace, view, masks)
        return Changes(deleted=len(found), documents=len(view) - len(found))


def compact_index(
    path: str | os.PathLike[str], *, progress: bool = False, known: View | None = None
) -> Changes:
    """Writes all segments of an index as one without the deleted rows, in one commit.

    An index that is so already is left as it is.

    Args:
        path: The index folder.
        progress: Whether progress is shown on standard error.
        known: An earlier view of the index.

    Raises:
        InputError: It is no index.
        DamagedIndex: It is damaged.
        StorageError: The disk is full, a permission is missing or another process writes.
    """
    with _changing(path, known) as (view, workspace):
        if len(view.segments) > 1 or view.manifest.deleted:
            entries = []
            if len(view):
                folder = workspace.new_segment()
                entries = [write_segment(workspace, folder, view, view.segments, progress=progress)]
            _put(workspace, view, [(entry, None) for entry in entries])
        return Changes(documents=len(view))


@contextmanager
def _changing(path: str | os.PathLike[str], known: View | None) -> Iterator[tuple[View, Workspace]]:
    """Yields the newest state of an index and a place for the next, with the right to write."""
    root = output_folder(path)
    read_manifest(root)  # what is no index gets no lock
    with index_lock(root), storage_errors(root):
        refuse_links(root)
        view = open_view(root, known)
        with new_generation(root) as workspace:
            yield view, workspace


class _Plan:
    """What the documents of a corpus change of a view.

    Attributes:
        masks: Which rows of each segment stay.
        origins: Of each new row, where its vector is already, if anywhere.
        unchanged: Documents that are left as they are.
    """

    def __init__(self, view: View, mode: str, reader: CorpusReader) -> None:
        self.masks = [segment.mask() for segment in view.segments]
        self.origins: list[Origin | None] = []
        self.unchanged = 0
        self._added = self._changed = self._deleted = 0
        self._view = view
        self._mode = mode
        self._reader = reader
        self._lines = [np.full(len(mask), -1, np.int64) for mask in self.masks]

    def new_rows(self) -> Iterator[SourcedDocument]:
        """The documents that are to be stored anew.

        Raises:
            InputError: An id stands twice, or is there already and may not be.
        """
        while step := list(islice(self._reader.documents, _DOCUMENTS_A_STEP)):
            known = self._view.find([sourced.document.id for sourced in step])
            for sourced in step:
                there = known.get(sourced.document.id)
                if there is None:
                    self._added += 1
                    self.origins.append(None)
                    yield sourced
                elif self._differs(sourced, *there):
                    yield sourced

    def delete_what_was_not_met(self) -> None:
        """Deletes the documents that did not stand in the corpus."""
        for mask, lines in zip(self.masks, self._lines, strict=True):
            gone = mask & (lines < 0)
            self._deleted += int(np.count_nonzero(gone))
            mask[gone] = False

    def find_moved_texts(self, staged: Path) -> None:
        """Finds the texts of new rows among those that go, such as of lines that have moved on."""
        going: dict[bytes, Origin] = {}
        for place, (segment, mask) in enumerate(zip(self._view.segments, self.masks, strict=True)):
            gone = segment.mask() & ~mask
            if gone.any():
                for row, text in segment.documents.texts_at(np.flatnonzero(gone).tolist()):
                    going[_digest(text)] = (place, row)
        if not going:
            return
        with closing(DocumentStore(staged)) as store:
            for number, text in enumerate(store.texts()):
                if self.origins[number] is None:
                    self.origins[number] = going.get(_digest(text))

    def check_that_it_is_the_same_corpus(self, root: Path) -> None:
        """Refuses a corpus in another place that has nothing of what the index holds.

        Raises:
            InputError: It is such a corpus.
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

    def changes(self) -> Changes:
        """The counts."""
        return Changes(
            added=self._added,
            changed=self._changed,
            deleted=self._deleted,
            unchanged=self.unchanged,
            encoded=sum(origin is None for origin in self.origins),
            documents=len(self._view) + self._added - self._deleted,
        )

    def _differs(self, sourced: SourcedDocument, place: int, stored: StoredRow) -> bool:
        """Whether a document whose id is there takes the place of the stored one."""
        document, line = sourced
        first = int(self._lines[place][stored.row])
        if first >= 0:
            raise self._reader.stands_twice(document.id, first, line)
        if self._mode == "add":
            raise InputError(
                f"{self._reader.name}: id {document.id!r} on {self._reader.unit} {line} is in the "
                "index already; nothing was added: leave it out, or replace what is there with "
                "upsert"
            )
        self._lines[place][stored.row] = line
        same_text = document.text == stored.text
        if same_text and self._has_fields(document, place, stored):
            self.unchanged += 1
            return False
        self._changed += 1
        self.masks[place][stored.row] = False
        self.origins.append((place, stored.row) if same_text else None)
        return True

    def _has_fields(self, document: Document, place: int, stored: StoredRow) -> bool:
        """Whether a document has the further fields of a stored row, in whatever order."""
        if rendered(document) == stored.metadata:
            return True
        there = self._view.segments[place].documents.at([stored.row])[stored.row]
        return _sorted_keys(document) == _sorted_keys(there)


def _sorted_keys(document: Document) -> str:
    return json.dumps(dict(document.metadata), sort_keys=True)


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _check(root: Path, view: View, encoder: Encoder) -> None:
    """Refuses another encoder than the index's, and says where its precision is another."""
    entry = view.manifest.encoder
    check_encoder(root, entry, encoder)
    if encoder.precision != entry.precision:
        logger.warning(
            "%s was built in %s, the new vectors are computed in %s",
            root,
            entry.precision,
            encoder.precision,
        )


def _checked_ids(ids: Iterable[str], *, missing_ok: bool) -> list[str]:
    if isinstance(ids, str | bytes | Mapping) or not isinstance(ids, Iterable):
        raise InputTypeError(f"expected a list of ids, found {ids!r}; put a single one in []")
    wanted: dict[str, None] = {}
    for document_id in ids:
        if not isinstance(document_id, str):
            raise InputTypeError(f"an id must be a str, not {document_id!r}")
        if document_id in wanted and not missing_ok:
            raise InputError(f"id {document_id!r} is given twice; nothing was deleted")
        wanted[repair_surrogates(document_id)] = None
    return list(wanted)


def _commit(
    workspace: Workspace,
    view: View,
    masks: Sequence[Mask],
    new: NewRows | None = None,
    *,
    progress: bool = False,
) -> None:
    """Makes the next generation: what is left of the segments, and the new rows."""
    left = [
        segment.with_mask(mask)
        for segment, mask in zip(view.segments, masks, strict=True)
        if mask.any()
    ]
    start = len(left)
    if new is not None:
        start = tail_to_merge([segment.count for segment in left], len(new.origins))
    kept: list[tuple[SegmentEntry, Segment | None]] = []
    for segment in left[:start]:
        if is_wasteful(len(segment.vectors), segment.count):
            entry = write_segment(workspace, workspace.new_segment(), view, [segment])
            kept.append((entry, None))
        else:
            kept.append((segment.entry, segment))
    if new is not None:
        folder = new.database.parent
        entry = write_segment(workspace, folder, view, left[start:], new, progress=progress)
        kept.append((entry, None))
    _put(workspace, view, kept)


def _put(
    workspace: Workspace, view: View, kept: Sequence[tuple[SegmentEntry, Segment | None]]
) -> None:
    """Commits a manifest with these segments: new ones, or those of the view with what is live."""
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
        )
    )
