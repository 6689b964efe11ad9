"""Repairing a damaged index from its intact files."""

import os
import shutil
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np

from sbertkit.encoder import Encoder
from sbertkit.encoder.passage_table import PassageTable
from sbertkit.errors import DamagedIndex, InputError
from sbertkit.index.live_rows import LiveRows
from sbertkit.index.segment import VECTORS_FILE, segment_files
from sbertkit.lexical.postings_file import WORDS_FILE
from sbertkit.retrieval.bundled_encoder import bundle_encoder
from sbertkit.retrieval.document_store import DOCUMENTS_FILE, DocumentStore
from sbertkit.retrieval.encoded_vectors import EncodedVectors
from sbertkit.retrieval.filters.field_file import FIELDS_FILE
from sbertkit.retrieval.inspection import unnamed
from sbertkit.retrieval.journal import is_made
from sbertkit.retrieval.lexical_index import with_words
from sbertkit.retrieval.manifest import Manifest, check_files
from sbertkit.retrieval.manifest_entries import (
    ENCODER_FOLDER,
    PASSAGES_FILE,
    SEGMENTS_FOLDER,
    ExportEntry,
    RecallEntry,
    SegmentEntry,
    TrainedEntry,
)
from sbertkit.retrieval.opening import check_encoder, load_encoder
from sbertkit.retrieval.passage_file import read_passages
from sbertkit.retrieval.results import Problem, Repair
from sbertkit.retrieval.segment_writer import VectorSource, write_segment
from sbertkit.retrieval.tombstones import read_tombstones, write_tombstones
from sbertkit.retrieval.tuning_queries import text_queries
from sbertkit.retrieval.vector_index import IndexWork
from sbertkit.retrieval.workspace import Workspace, locked_index, new_generation

Entry = TypeVar("Entry", TrainedEntry, RecallEntry)

_COPIED = (DOCUMENTS_FILE, VECTORS_FILE, PASSAGES_FILE)
_SOURCES = {
    VECTORS_FILE: "stored texts",
    PASSAGES_FILE: "stored texts",
    FIELDS_FILE: "stored metadata",
}
"""What files are rebuilt from, all others from the stored vectors."""


def repair_index(
    path: str | os.PathLike[str],
    *,
    accept_loss: bool = False,
    model: str | None = None,
    device: str = "auto",
    trust_remote_code: bool = False,
    progress: bool = False,
) -> Repair:
    """Repairs a damaged index in one commit.

    Vector indexes are rebuilt from the stored vectors, vectors from the stored texts with the
    encoder that built the index, and a damaged bundled encoder from its model. Documents and the
    list of deleted ones have no second source. A repaired index has the present format.

    Args:
        path: The index folder.
        accept_loss: Continue without data that cannot be recovered: without the documents of
            segments whose texts are damaged; with the deleted documents if the list of them is
            damaged.
        model: Where the model is now, if not where the index names it; it is loaded if vectors or
            the bundled encoder are damaged.
        device: Where to run the model.
        trust_remote_code: Run Python code that comes with the model.
        progress: Whether progress is shown on standard error.

    Returns:
        What was repaired and what was lost.

    Raises:
        DamagedIndex: Data cannot be recovered, or the manifest is damaged; nothing is changed.
        ModelMismatch: The encoder is not the one that built the index.
        InputError: It is no index, or the encoder cannot be loaded.
        StorageError: The disk is full, a permission is missing or another process writes.
    """
    with locked_index(path) as (root, manifest):
        load = partial(
            load_encoder, root, model=model, device=device, trust_remote_code=trust_remote_code
        )
        work = _Repair(root, manifest, load, accept_loss=accept_loss, progress=progress)
        kept = tuple(unnamed(root, manifest))
        if not work.bad:
            return Repair(kept=kept)
        work.assess()
        if work.lost and not accept_loss:
            raise DamagedIndex(_refusal(root, work.lost, kept))
        with new_generation(root) as workspace:
            work.repair(workspace)
        return Repair(tuple(work.repaired), tuple(work.lost), kept)


def _refusal(root: Path, lost: Sequence[Problem], kept: Sequence[Problem]) -> str:
    """The message for a repair that would lose data."""
    more = f" (and {len(lost) - 1} more)" if len(lost) > 1 else ""
    others = [problem.file for problem in kept if is_made(problem.file)]
    remedy = "restore it from a backup"
    if others:
        remedy = f"restore it, or the manifest.json that {others[0]} belongs to, from a backup"
    return (
        f"{root / lost[0].file} cannot be recovered{more}: {lost[0].reason}; nothing was changed: "
        f"{remedy}, or continue with the rest by accept_loss (--accept-loss)"
    )


@dataclass(frozen=True, slots=True)
class _CopiedVectors:
    """The vectors of a segment that are intact."""

    file: Path
    passages: PassageTable

    def write(self, _documents: DocumentStore, path: Path) -> PassageTable:
        """See `VectorSource`."""
        shutil.copyfile(self.file, path)
        return self.passages


class _Repair:
    """A repair in progress.

    Attributes:
        bad: What is wrong, by the file's path.
        lost: What cannot be recovered.
        repaired: What was rebuilt.
    """

    def __init__(
        self,
        root: Path,
        manifest: Manifest,
        load: Callable[[Manifest], Encoder],
        *,
        accept_loss: bool,
        progress: bool,
    ) -> None:
        self.bad = {problem.file: problem for problem in check_files(root, manifest)}
        self.lost: list[Problem] = []
        self.repaired: list[Problem] = []
        self._root = root
        self._manifest = manifest
        self._load = load
        self._accept_loss = accept_loss
        self._progress = progress
        self._loaded: Encoder | None = None

    def assess(self) -> None:
        """Finds what cannot be recovered."""
        for entry in self._manifest.segments:
            problem = self._problem(entry, DOCUMENTS_FILE)
            if problem is not None:
                self.lost.append(
                    Problem(problem.file, f"{problem.reason}; {entry.live:,} documents are lost")
                )
        if self._deleted_unknown():
            problem = self.bad[self._manifest.tombstones.path]  # type: ignore[union-attr]
            live = self._newest_of_each_id()
            again = sum(
                (entry.documents if rows is None else rows.count) - entry.live
                for entry, rows in zip(self._manifest.segments, live, strict=True)
                if self._problem(entry, DOCUMENTS_FILE) is None
            )
            if again:  # else all were replaced by documents that are there
                reason = f"the list of deleted documents is lost, {again:,} would come back"
                self.lost.append(Problem(problem.file, f"{problem.reason}; {reason}"))
            else:
                self.repaired.append(Problem(problem.file, "rebuilt from the stored documents"))

    def repair(self, workspace: Workspace) -> None:
        """Makes and commits the next generation."""
        live: list[LiveRows | None]
        if self._deleted_unknown():
            live = self._newest_of_each_id()
        else:
            live = read_tombstones(self._root, self._manifest)
        kept = [
            (self._repaired_segment(workspace, entry), rows)
            for entry, rows in zip(self._manifest.segments, live, strict=True)
            if self._problem(entry, DOCUMENTS_FILE) is None and (rows is None or rows.count)
        ]
        exported = self._manifest.exported
        if self._bundled_is_bad():
            exported = self._rebundled(workspace)
        tombstones = None
        workspace.sync()
        if any(rows is not None for _, rows in kept):
            tombstones = write_tombstones(
                self._root, workspace.generation, [rows for _, rows in kept]
            )
        manifest = replace(
            self._manifest,
            generation=workspace.generation,
            segments=with_words(
                workspace,
                self._manifest.lexical,
                [
                    replace(entry, deleted=0 if rows is None else len(rows.mask) - rows.count)
                    for entry, rows in kept
                ],
            ),
            exported=exported,
            tombstones=tombstones,
            trained=self._intact(self._manifest.trained, "trained again on the stored vectors"),
            measured=self._intact(self._manifest.measured, "measured again with new queries"),
        )
        manifest = IndexWork(partial(text_queries, self._encoder)).settle(workspace, manifest)
        workspace.sync()
        workspace.commit(manifest)

    def _intact(self, entry: Entry | None, repaired: str) -> Entry | None:
        """The entry, unless a file of it is bad; what it names is then made again."""
        bad = [] if entry is None else [file for file in entry.files if file.path in self.bad]
        self.repaired += [Problem(file.path, repaired) for file in bad]
        return None if bad else entry

    def _problem(self, entry: SegmentEntry, name: str) -> Problem | None:
        return self.bad.get(f"{SEGMENTS_FOLDER}/{entry.id}/{name}")

    def _deleted_unknown(self) -> bool:
        tombstones = self._manifest.tombstones
        return tombstones is not None and tombstones.path in self.bad

    def _bundled_is_bad(self) -> bool:
        exported = self._manifest.exported
        return exported is not None and any(entry.path in self.bad for entry in exported.files)

    def _rebundled(self, workspace: Workspace) -> ExportEntry | None:
        """The bundled encoder, exported again; ``None`` if that fails and the loss is accepted."""
        exported = None
        try:
            exported = bundle_encoder(self._encoder(), self._root, workspace.new_name())
        except InputError:
            if not self._accept_loss:
                raise
        if exported is None:
            reason = "the bundled encoder is lost; a search loads the model instead"
            self.lost.append(Problem(ENCODER_FOLDER, reason))
        else:
            self.repaired.append(Problem(ENCODER_FOLDER, "rebuilt from the model"))
        return exported

    def _repaired_segment(self, workspace: Workspace, entry: SegmentEntry) -> SegmentEntry:
        """The segment, or its replacement if a file of it is bad."""
        names = (PASSAGES_FILE, FIELDS_FILE, *segment_files(entry.kind))
        wrong = [name for name in names if self._problem(entry, name) is not None]
        if self._problem(entry, WORDS_FILE) is not None:
            path = f"{SEGMENTS_FOLDER}/{entry.id}/{WORDS_FILE}"
            self.repaired.append(Problem(path, "rebuilt from the stored texts"))
            entry = entry.without_words()
        if not wrong:
            return entry
        old, folder = self._root / SEGMENTS_FOLDER / entry.id, workspace.new_segment()
        shutil.copyfile(old / DOCUMENTS_FILE, folder / DOCUMENTS_FILE)
        new = write_segment(self._root, folder, self._vectors(entry, wrong))
        self._check_copies(entry, new)
        for name in wrong:
            path = f"{SEGMENTS_FOLDER}/{entry.id}/{name}"
            source = _SOURCES.get(name, "stored vectors")
            self.repaired.append(Problem(path, f"rebuilt from the {source}"))
        return new

    def _vectors(self, entry: SegmentEntry, wrong: Sequence[str]) -> VectorSource:
        """The vectors of a segment some files of which are bad."""
        folder = self._root / SEGMENTS_FOLDER / entry.id
        if PASSAGES_FILE in wrong:  # they may be divided in another way by now
            return EncodedVectors(self._encoder(), self._manifest.long, progress=self._progress)
        passages = read_passages(folder, entry)
        if VECTORS_FILE not in wrong:
            return _CopiedVectors(folder / VECTORS_FILE, passages)
        long = self._manifest.long
        return EncodedVectors(self._encoder(), long, passages, progress=self._progress)

    def _check_copies(self, old: SegmentEntry, new: SegmentEntry) -> None:
        """Refuses copies that are not what the manifest names."""
        known = {Path(file.path).name: file.sha256 for file in old.files}
        for file in new.files:
            name = Path(file.path).name
            copied = name in _COPIED and self._problem(old, name) is None
            if copied and file.sha256 != known[name] and self._problem(old, PASSAGES_FILE) is None:
                raise DamagedIndex(f"{file.path} changed while it was read; try again")

    def _encoder(self) -> Encoder:
        """The encoder that built the index: the bundled one, if it is intact."""
        if self._loaded is None:
            manifest = self._manifest
            if self._bundled_is_bad():
                manifest = replace(manifest, exported=None)
            try:
                self._loaded = self._load(manifest)
            except InputError as error:
                raise InputError(
                    f"{error}; nothing was changed. If only the bundled encoder is damaged, "
                    "accept_loss (--accept-loss) continues without it"
                ) from error
            check_encoder(self._root, manifest.encoder, self._loaded)
        return self._loaded

    def _newest_of_each_id(self) -> list[LiveRows | None]:
        """All rows but those whose id is in a newer segment, too, which replaced them."""
        newer: set[str] = set()
        live: list[LiveRows | None] = []
        for entry in reversed(self._manifest.segments):
            mask = np.ones(entry.documents, np.bool_)
            if self._problem(entry, DOCUMENTS_FILE) is None:
                path = self._root / SEGMENTS_FOLDER / entry.id / DOCUMENTS_FILE
                with closing(DocumentStore(path)) as store:
                    ids = [sourced.document.id for sourced in store.documents()]
                mask[[row for row, one in enumerate(ids) if one in newer]] = False
                newer.update(ids)
            live.append(None if mask.all() else LiveRows(mask))
        return live[::-1]
