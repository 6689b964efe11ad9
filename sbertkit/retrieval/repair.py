"""Mending a damaged index from what is whole in it; nothing is invented."""

import os
import shutil
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from sbertkit.arguments import output_folder
from sbertkit.encoder import Encoder
from sbertkit.errors import DamagedIndex, InputError
from sbertkit.index import (
    BUILD_FILE,
    INDEX_FILE,
    KINDS,
    VECTORS_FILE,
    LiveRows,
    VectorSegment,
    unit_pools,
    write_vectors,
)
from sbertkit.retrieval.bundled_encoder import bundle_encoder
from sbertkit.retrieval.document_store import DOCUMENTS_FILE, DocumentStore
from sbertkit.retrieval.inspection import unnamed
from sbertkit.retrieval.journal import is_made
from sbertkit.retrieval.manifest import (
    ENCODER_FOLDER,
    SEGMENTS_FOLDER,
    ExportEntry,
    FileEntry,
    Manifest,
    SegmentEntry,
    check_files,
    read_manifest,
)
from sbertkit.retrieval.opening import check_encoder, load_encoder
from sbertkit.retrieval.results import Problem, Repair
from sbertkit.retrieval.segment_writer import kind_for
from sbertkit.retrieval.tombstones import read_tombstones, write_tombstones
from sbertkit.retrieval.workspace import Workspace, index_lock, new_generation, refuse_links
from sbertkit.storage import storage_errors


@dataclass(frozen=True, slots=True)
class EncoderOptions:
    """How the encoder is loaded, if vectors or the carried encoder are lost.

    Attributes:
        model: Where the model is now, if not where the index says.
        device: Where to run it.
        trust_remote_code: Run Python code that comes with it.
    """

    model: str | None = None
    device: str = "auto"
    trust_remote_code: bool = False


def repair_index(
    path: str | os.PathLike[str],
    options: EncoderOptions = EncoderOptions(),
    *,
    accept_loss: bool = False,
    progress: bool = False,
) -> Repair:
    """Makes a damaged index whole again, in one commit.

    Vector indexes are built anew from the stored vectors, vectors from the stored texts with the
    encoder that built the index, and that is put into the folder again if it was damaged there.
    Documents and the list of deleted ones have no second source.

    Args:
        path: The index folder.
        options: How the encoder is loaded, where one is needed.
        accept_loss: Go on without what cannot be saved: without the documents of segments whose
            texts are lost; with deleted documents where the list of them is.
        progress: Whether progress is shown on standard error.

    Returns:
        What was mended and what was lost.

    Raises:
        DamagedIndex: Something cannot be saved, or the manifest is damaged; nothing is changed.
        ModelMismatch: The encoder is not the one that built the index.
        InputError: It is no index, or the encoder cannot be loaded.
        StorageError: The disk is full, a permission is missing or another process writes.
    """
    root = output_folder(path)
    read_manifest(root)
    with index_lock(root), storage_errors(root):
        refuse_links(root)
        manifest = read_manifest(root)
        work = _Repair(root, manifest, options, accept_loss=accept_loss, progress=progress)
        kept = tuple(unnamed(root, manifest))
        if not work.bad:
            return Repair(kept=kept)
        work.look()
        if work.lost and not accept_loss:
            raise DamagedIndex(_refusal(root, work.lost, kept))
        with new_generation(root) as workspace:
            work.mend(workspace)
        return Repair(tuple(work.mended), tuple(work.lost), kept)


def _refusal(root: Path, lost: Sequence[Problem], kept: Sequence[Problem]) -> str:
    """The message of a repair that would lose something."""
    more = f" (and {len(lost) - 1} more)" if len(lost) > 1 else ""
    others = [problem.file for problem in kept if is_made(problem.file)]
    remedy = "restore it from a backup"
    if others:
        remedy = f"restore it, or the manifest.json that {others[0]} belongs to, from a backup"
    return (
        f"{root / lost[0].file} cannot be saved{more}: {lost[0].reason}; nothing was changed: "
        f"{remedy}, or continue with the rest by accept_loss (--accept-loss)"
    )


class _Repair:
    """A repair that goes on.

    Attributes:
        bad: What is wrong, by the file's path.
        lost: What cannot be saved.
        mended: What was made anew.
    """

    def __init__(
        self,
        root: Path,
        manifest: Manifest,
        options: EncoderOptions,
        *,
        accept_loss: bool,
        progress: bool,
    ) -> None:
        self.bad = {problem.file: problem for problem in check_files(root, manifest)}
        self.lost: list[Problem] = []
        self.mended: list[Problem] = []
        self._root = root
        self._manifest = manifest
        self._options = options
        self._accept_loss = accept_loss
        self._progress = progress
        self._loaded: Encoder | None = None

    def look(self) -> None:
        """Finds what cannot be saved."""
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
            if again:  # else all were replaced by newer ones, as these tell
                reason = f"which {again:,} documents were deleted is lost, they would come back"
                self.lost.append(Problem(problem.file, f"{problem.reason}; {reason}"))
            else:
                self.mended.append(Problem(problem.file, "made anew from the stored documents"))

    def mend(self, workspace: Workspace) -> None:
        """Makes and commits the next generation."""
        live: list[LiveRows | None]
        if self._deleted_unknown():
            live = self._newest_of_each_id()
        else:
            live = read_tombstones(self._root, self._manifest)
        kept = [
            (self._whole(workspace, entry), rows)
            for entry, rows in zip(self._manifest.segments, live, strict=True)
            if self._problem(entry, DOCUMENTS_FILE) is None and (rows is None or rows.count)
        ]
        exported = self._manifest.exported
        if self._carried_is_bad():
            exported = self._carried_anew(workspace)
        tombstones = None
        workspace.sync()
        if any(rows is not None for _, rows in kept):
            tombstones = write_tombstones(
                self._root, workspace.generation, [rows for _, rows in kept]
            )
        workspace.commit(
            replace(
                self._manifest,
                generation=workspace.generation,
                segments=tuple(
                    replace(entry, deleted=0 if rows is None else len(rows.mask) - rows.count)
                    for entry, rows in kept
                ),
                exported=exported,
                tombstones=tombstones,
            )
        )

    def _problem(self, entry: SegmentEntry, name: str) -> Problem | None:
        return self.bad.get(f"{SEGMENTS_FOLDER}/{entry.id}/{name}")

    def _deleted_unknown(self) -> bool:
        tombstones = self._manifest.tombstones
        return tombstones is not None and tombstones.path in self.bad

    def _carried_is_bad(self) -> bool:
        exported = self._manifest.exported
        return exported is not None and any(entry.path in self.bad for entry in exported.files)

    def _carried_anew(self, workspace: Workspace) -> ExportEntry | None:
        """The encoder of the folder, made anew; ``None`` where that cannot be and need not."""
        exported = None
        try:
            exported = bundle_encoder(self._encoder(), self._root, workspace.new_name())
        except InputError:
            if not self._accept_loss:
                raise
        if exported is None:
            reason = "the encoder in the folder is lost; a search loads the model instead"
            self.lost.append(Problem(ENCODER_FOLDER, reason))
        else:
            self.mended.append(Problem(ENCODER_FOLDER, "made anew from the model"))
        return exported

    def _whole(self, workspace: Workspace, entry: SegmentEntry) -> SegmentEntry:
        """The segment, or what takes its place."""
        wrong = [
            name
            for name in (VECTORS_FILE, INDEX_FILE, BUILD_FILE)
            if self._problem(entry, name) is not None
        ]
        if not wrong:
            return entry
        old = self._root / SEGMENTS_FOLDER / entry.id
        new = workspace.new_segment()
        shutil.copyfile(old / DOCUMENTS_FILE, new / DOCUMENTS_FILE)
        if VECTORS_FILE in wrong:
            self._encode(new, entry.documents)
        else:
            shutil.copyfile(old / VECTORS_FILE, new / VECTORS_FILE)
        self._check_copies(entry, new)
        _, clusters = kind_for(self._manifest, entry.documents)
        kind = KINDS[entry.kind]
        VectorSegment.write(
            new, kind, kind.parameters(entry.documents, clusters), {"truncated": None}
        )
        for name in wrong:
            source = "from the stored texts" if name == VECTORS_FILE else "from the stored vectors"
            self.mended.append(
                Problem(f"{SEGMENTS_FOLDER}/{entry.id}/{name}", f"made anew {source}")
            )
        return SegmentEntry.of(self._root, new, entry.documents, kind.name)

    def _check_copies(self, entry: SegmentEntry, folder: Path) -> None:
        """Refuses copies that are not what the manifest names."""
        known = {Path(file.path).name: file.sha256 for file in entry.files}
        for name in (DOCUMENTS_FILE, VECTORS_FILE):
            copied = FileEntry.of(self._root, folder / name)
            if self._problem(entry, name) is None and copied.sha256 != known[name]:
                raise DamagedIndex(f"{folder / name} changed while it was read; try again")

    def _encode(self, folder: Path, count: int) -> None:
        encoder = self._encoder()
        with closing(DocumentStore(folder / DOCUMENTS_FILE)) as store:
            vectors = encoder.start_run().vectors(
                store.texts(), total=count, progress=self._progress
            )
            write_vectors(folder / VECTORS_FILE, unit_pools(vectors), encoder.dim)

    def _encoder(self) -> Encoder:
        """The encoder that built the index: the one in the folder, if it is whole."""
        if self._loaded is None:
            manifest, options = self._manifest, self._options
            if self._carried_is_bad():
                manifest = replace(manifest, exported=None)
            try:
                self._loaded = load_encoder(
                    self._root,
                    manifest,
                    model=options.model,
                    device=options.device,
                    trust_remote_code=options.trust_remote_code,
                )
            except InputError as error:
                raise InputError(
                    f"{error}; nothing was changed. Where only the encoder in the folder is lost, "
                    "--accept-loss goes on without it"
                ) from error
            check_encoder(self._root, manifest.encoder, self._loaded)
        return self._loaded

    def _newest_of_each_id(self) -> list[LiveRows | None]:
        """All rows but those whose id stands again in a newer segment, which replaced them."""
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
