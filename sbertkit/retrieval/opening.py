"""Opening an index folder: one whole generation, its files checked before they are parsed."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from sbertkit.data.streams import reading
from sbertkit.errors import DamagedIndex, InputError, ModelMismatch, SbertkitError
from sbertkit.index.live_rows import LiveRows
from sbertkit.index.segment import VECTORS_FILE, VectorSegment
from sbertkit.index.vector_search import VectorSearch
from sbertkit.lexical.postings_file import WORDS_FILE, PostingsFile
from sbertkit.retrieval.document_store import DOCUMENTS_FILE, DocumentStore
from sbertkit.retrieval.filters.field_file import FIELDS_FILE
from sbertkit.retrieval.filters.segment_fields import SegmentFields
from sbertkit.retrieval.hashing import Hashing
from sbertkit.retrieval.manifest import Manifest, check_file, read_manifest
from sbertkit.retrieval.manifest_entries import (
    PASSAGES_FILE,
    SEGMENTS_FOLDER,
    EncoderEntry,
    SegmentEntry,
)
from sbertkit.retrieval.passage_file import read_passages
from sbertkit.retrieval.results import Problem
from sbertkit.retrieval.tombstones import read_tombstones
from sbertkit.retrieval.trained_files import read_learnt
from sbertkit.retrieval.view import Segment, View
from sbertkit.sealed import SealedFile

if TYPE_CHECKING:
    from sbertkit.encoder import Encoder

T = TypeVar("T")

READ_ATTEMPTS = 10
"""How often a reader starts again when a writer commits a newer generation meanwhile."""

_TEXT_FILES = (DOCUMENTS_FILE, PASSAGES_FILE, FIELDS_FILE, WORDS_FILE)
"""What is read of a segment whose vectors are not searched."""

_SMALL_BYTES = 2**18
"""A file up to this size is hashed sooner than a thread begins."""

HASH_ALL_BYTES = 2**30
"""Size of an index up to which opening it hashes every file."""


def open_view(root: Path, known: View | None = None, *, vectors: bool = True) -> View:
    """The current state of an index folder: one whole generation, its files checked.

    Args:
        root: The index folder.
        known: An earlier state, whose segments are not opened again.
        vectors: Whether the vectors are opened; else only documents and words are read and checked.

    Raises:
        DamagedIndex: A file is missing, truncated or changed.
        InputError: The folder is no index.
        StorageError: A file cannot be read.
    """
    with Hashing(root) as hashing:
        opened = _Opened(root, known, hashing, vectors=vectors)
        return _newest(root, opened.checked)


def open_with_encoder(
    root: Path,
    load: "Callable[[Manifest], Encoder]",
    prepare: Callable[[Manifest], None] | None = None,
) -> "tuple[View, Encoder]":
    """As `open_view`, with the encoder, which is loaded while the vectors are hashed.

    Args:
        root: The index folder.
        load: Loads the encoder of an index.
        prepare: Called before while all files are hashed, of which it reads none.

    Raises:
        DamagedIndex: As `open_view`.
        InputError: As `open_view`, or the encoder cannot be loaded.
        ModelMismatch: It is not the one that built the index.
        StorageError: A file cannot be read.
    """
    with Hashing(root) as hashing:
        opened = _Opened(root, None, hashing, prepare=prepare)

        def attempt(manifest: Manifest) -> "tuple[View, Encoder]":
            with opened.parsed(manifest) as view:
                opened.wait(manifest, _of_encoder(manifest))
                encoder = load(manifest)
                check_encoder(root, manifest.encoder, encoder)
                opened.wait(manifest)
                return view, encoder

        return _newest(root, attempt)


def _newest(root: Path, attempt: Callable[[Manifest], T]) -> T:
    """What an attempt makes of the newest generation."""
    for _ in range(READ_ATTEMPTS):
        manifest = read_manifest(root)
        try:
            return attempt(manifest)
        except SbertkitError:
            # A writer may have committed a newer generation meanwhile.
            if read_manifest(root) == manifest:
                raise
    raise DamagedIndex(f"{root} was rewritten {READ_ATTEMPTS} times while it was being opened")


def open_generation(root: Path, manifest: Manifest) -> View:
    """The segments that a manifest names, their files checked before any is parsed.

    Raises:
        DamagedIndex: A file is missing, truncated or changed.
        StorageError: A file cannot be read.
    """
    with Hashing(root) as hashing:
        return _Opened(root, None, hashing).checked(manifest)


class _Opened:
    """Files that were checked and opened, so that the next attempt need not do it again."""

    def __init__(
        self,
        root: Path,
        known: View | None,
        hashing: Hashing,
        *,
        vectors: bool = True,
        prepare: Callable[[Manifest], None] | None = None,
    ) -> None:
        self._root = root
        self._hashing = hashing
        self._prepare = prepare
        self._vectors = vectors
        self._known = known if known is not None and known.has_vectors == vectors else None
        self._checked: set[SealedFile] = set()
        self._segments: dict[str, Segment] = {}
        if known is not None and self._known is known:
            self._checked.update(known.manifest.files())
            self._segments.update((segment.entry.id, segment) for segment in known.segments)

    def checked(self, manifest: Manifest) -> View:
        """The view of a generation, all its files hashed."""
        with self.parsed(manifest) as view:
            self.wait(manifest)
            return view

    @contextmanager
    def parsed(self, manifest: Manifest) -> Iterator[View]:
        """The view of a generation for the block; its vectors and encoder are still being hashed.

        If the block fails, what was opened for it is closed.
        """
        try:
            yield self._parsed(manifest)
        except BaseException:
            known = set() if self._known is None else {one.entry.id for one in self._known.segments}
            for name in self._segments.keys() - known:
                self._segments.pop(name).close()
            raise

    def _parsed(self, manifest: Manifest) -> View:
        try:
            self._check(manifest)
            if self._prepare is not None:
                self._prepare(manifest)
            encoder = _of_encoder(manifest)
            parsed = [one for one in manifest.files() if not _is_vectors(one)]
            self.wait(manifest, [one for one in parsed if one not in encoder])
            with reading(str(self._root)):
                live = read_tombstones(self._root, manifest)
                segments = [
                    self._segment(entry, rows, manifest.encoder.dim)
                    for entry, rows in zip(manifest.segments, live, strict=True)
                ]
                search = self._search(manifest, segments) if self._vectors else None
                return View(manifest, segments, search)
        except DamagedIndex:
            self.wait(manifest)  # which says more of a file that was changed
            raise

    def wait(self, manifest: Manifest, files: Iterable[SealedFile] | None = None) -> None:
        """Waits until the files of a generation, or some of them, are hashed.

        Raises:
            DamagedIndex: A file was changed.
        """
        self._refuse(self._hashing.wait(manifest.files() if files is None else files))

    def _search(self, manifest: Manifest, segments: Sequence[Segment]) -> VectorSearch:
        """The search over the vectors of segments."""
        for segment in segments:
            kind = segment.vectors.kind
            if kind.trained and (manifest.trained is None or manifest.trained.kind != kind):
                raise DamagedIndex(f"{segment.vectors.folder}: the index was trained otherwise")
        vectors = [segment.vectors for segment in segments]
        known = self._known
        if known is not None:
            same = [id(one) for one in known.vectors.segments] == [id(one) for one in vectors]
            if same and known.manifest.trained == manifest.trained:
                return known.vectors.with_settings(manifest.settings)
        learnt = read_learnt(self._root, manifest.trained, manifest.encoder.dim)
        return VectorSearch(vectors, learnt, manifest.settings)

    def _check(self, manifest: Manifest) -> None:
        """Checks the sizes of files, and the hashes of small ones; begins to hash the others."""
        hash_all = sum(entry.bytes for entry in manifest.files()) <= HASH_ALL_BYTES
        for entry in sorted(manifest.files(), key=_is_vectors):  # which are needed last
            name = Path(entry.path).name
            read = self._vectors or name in _TEXT_FILES or entry == manifest.tombstones
            if entry in self._checked or not read:
                continue
            # They are memory-mapped, not parsed, so that a large file need not be read at all.
            hashed = hash_all or not _is_vectors(entry)
            small = entry.bytes <= _SMALL_BYTES
            self._refuse(check_file(self._root, entry, hashed=hashed and small))
            if hashed and not small:
                self._hashing.start(entry)
            self._checked.add(entry)

    def _refuse(self, problem: Problem | None) -> None:
        if problem is not None:
            raise DamagedIndex(
                f"{self._root / problem.file}: {problem.reason}; restore it from a backup or "
                "build the index again, or save what can be saved with: sbertkit repair "
                f"{self._root}"
            )

    def _segment(self, entry: SegmentEntry, live: LiveRows | None, dim: int) -> Segment:
        known = self._segments.get(entry.id)
        if known is not None and known.entry.files == entry.files:
            return known.with_live(live, entry)
        folder = self._root / SEGMENTS_FOLDER / entry.id
        vectors = VectorSegment.open(folder, entry.rows, dim) if self._vectors else None
        passages = read_passages(folder, entry)
        if vectors is not None and vectors.kind.name != entry.kind:
            raise DamagedIndex(f"{folder}: expected kind {entry.kind}, found {vectors.kind.name}")
        documents = DocumentStore(folder / DOCUMENTS_FILE)
        if len(documents) != entry.documents:
            raise DamagedIndex(f"{folder}: vectors and documents differ in number")
        fields = SegmentFields(documents, folder / FIELDS_FILE if entry.has_fields else None)
        words = PostingsFile(folder / WORDS_FILE, entry.documents) if entry.has_words else None
        segment = Segment(entry, vectors, documents, passages, fields, words)
        segment = segment.with_live(live, entry)
        self._segments[entry.id] = segment
        return segment


def _is_vectors(entry: SealedFile) -> bool:
    return Path(entry.path).name == VECTORS_FILE


def _of_encoder(manifest: Manifest) -> tuple[SealedFile, ...]:
    return () if manifest.exported is None else manifest.exported.files


def load_encoder(
    root: Path,
    manifest: Manifest,
    *,
    model: str | None = None,
    device: str = "auto",
    trust_remote_code: bool = False,
) -> "Encoder":
    """The bundled encoder of an index; else the one it names, at its relative path or by name.

    Args:
        root: The index folder.
        manifest: The manifest, whose files have been checked.
        model: Where the model is now, if not there.
        device: Where to run it.
        trust_remote_code: Run Python code that comes with it.

    Raises:
        InputError: It cannot be loaded.
    """
    from sbertkit.encoder import Encoder

    if model is None and device in ("auto", "cpu"):
        from sbertkit.retrieval.bundled_encoder import load_bundled

        bundled = load_bundled(root, manifest)
        if bundled is not None:
            return bundled
    entry = manifest.encoder
    if device not in ("auto", "cpu"):  # the CPU needs no torch to be found
        from sbertkit.encoder.backends.torch import choose_device

        choose_device(device)
    name = model or entry.name
    with suppress(OSError):  # no permission
        if model is None and entry.relative is not None and (root / entry.relative).is_dir():
            name = os.path.normpath(root / entry.relative)
    try:
        return Encoder.load(
            name, device=device, trust_remote_code=trust_remote_code, **asdict(entry.options)
        )
    except InputError as error:
        if model is not None:
            raise
        raise InputError(
            f"the encoder of {root} cannot be loaded: {error}; if it was moved, give its new "
            "place with model (--model)"
        ) from error


def check_encoder(root: Path, entry: EncoderEntry, encoder: "Encoder") -> None:
    """Refuses an encoder that is not the one that built the index.

    Raises:
        ModelMismatch: It is another.
    """
    if encoder.fingerprint == entry.fingerprint:
        return
    sizes = "" if encoder.dim == entry.dim else f" (vectors of size {entry.dim} and {encoder.dim})"
    if encoder.options.model == entry.name and not sizes:
        sizes = ", with other weights, pooling, prompts or limit of tokens"
    raise ModelMismatch(
        f"{root} was built with {entry.name} (fingerprint {entry.fingerprint[:12]}), the encoder "
        f"given is {encoder.options.model} ({encoder.fingerprint[:12]}){sizes}; open it with the "
        "encoder that built it, or build the index again"
    )
