"""Opening an index folder: one generation as a whole, checked before it is parsed."""

import os
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path

from sbertkit.data.streams import reading
from sbertkit.encoder import Encoder
from sbertkit.errors import DamagedIndex, InputError, ModelMismatch, SbertkitError
from sbertkit.index import VECTORS_FILE, LiveRows, VectorSegment
from sbertkit.retrieval.bundled_encoder import load_bundled
from sbertkit.retrieval.document_store import DOCUMENTS_FILE, DocumentStore
from sbertkit.retrieval.manifest import (
    SEGMENTS_FOLDER,
    EncoderEntry,
    FileEntry,
    Manifest,
    SegmentEntry,
    check_file,
    read_manifest,
)
from sbertkit.retrieval.tombstones import read_tombstones
from sbertkit.retrieval.view import Segment, View

READ_ATTEMPTS = 10
"""How often a reader starts again when a writer puts a newer generation in its way."""

HASH_ALL_BYTES = 2**30
"""Size of an index up to which opening it hashes every file."""


def open_view(root: Path, known: View | None = None) -> View:
    """The state of an index folder now: one generation as a whole, its files checked.

    Args:
        root: The index folder.
        known: An earlier state; its segments that are still there are not opened again.

    Raises:
        DamagedIndex: A file is missing, cut or changed.
        InputError: The folder is no index.
        StorageError: A file cannot be read.
    """
    opened = _Opened(root, known)
    for _ in range(READ_ATTEMPTS):
        manifest = read_manifest(root)
        try:
            return opened.view(manifest)
        except SbertkitError:
            # A writer may have put a newer generation in the place of this one meanwhile.
            if read_manifest(root) == manifest:
                raise
    raise DamagedIndex(f"{root} was rewritten {READ_ATTEMPTS} times while it was being opened")


def open_generation(root: Path, manifest: Manifest) -> View:
    """The segments that a manifest names, their files checked before any is parsed.

    Raises:
        DamagedIndex: A file is missing, cut or changed.
        StorageError: A file cannot be read.
    """
    return _Opened(root, None).view(manifest)


class _Opened:
    """What has been checked and opened of a folder, so that a further attempt need not again."""

    def __init__(self, root: Path, known: View | None) -> None:
        self._root = root
        self._checked: set[FileEntry] = set()
        self._segments: dict[str, Segment] = {}
        if known is not None:
            self._checked.update(known.manifest.files())
            self._segments.update((segment.entry.id, segment) for segment in known.segments)

    def view(self, manifest: Manifest) -> View:
        """The view of a generation; see `open_generation`."""
        self._check(manifest)
        with reading(str(self._root)):
            live = read_tombstones(self._root, manifest)
            return View(
                manifest,
                [
                    self._segment(entry, rows, manifest.encoder.dim)
                    for entry, rows in zip(manifest.segments, live, strict=True)
                ],
            )

    def _check(self, manifest: Manifest) -> None:
        hash_all = sum(entry.bytes for entry in manifest.files()) <= HASH_ALL_BYTES
        for entry in manifest.files():
            if entry in self._checked:
                continue
            # The vectors are mapped and not parsed, so that a large file need not be read.
            hashed = hash_all or Path(entry.path).name != VECTORS_FILE
            problem = check_file(self._root, entry, hashed=hashed)
            if problem is not None:
                raise DamagedIndex(
                    f"{self._root / problem.file}: {problem.reason}; restore it from a backup or "
                    f"build the index again, or save what can be with: sbertkit repair {self._root}"
                )
            self._checked.add(entry)

    def _segment(self, entry: SegmentEntry, live: LiveRows | None, dim: int) -> Segment:
        known = self._segments.get(entry.id)
        if known is not None and known.entry.files == entry.files:
            return replace(known, entry=entry, live=live)
        folder = self._root / SEGMENTS_FOLDER / entry.id
        vectors = VectorSegment.open(folder, entry.documents, dim)
        if vectors.kind != entry.kind:
            raise DamagedIndex(f"{folder}: expected kind {entry.kind}, found {vectors.kind}")
        documents = DocumentStore(folder / DOCUMENTS_FILE)
        if len(documents) != entry.documents:
            raise DamagedIndex(f"{folder}: vectors and documents differ in number")
        self._segments[entry.id] = Segment(entry, vectors, documents, live)
        return self._segments[entry.id]


def load_encoder(
    root: Path,
    manifest: Manifest,
    *,
    model: str | None = None,
    device: str = "auto",
    trust_remote_code: bool = False,
) -> Encoder:
    """The encoder that an index carries; else the one it names, where it says or as it was given.

    Args:
        root: The index folder.
        manifest: What the index says; its files have been checked.
        model: Where it is now, if not there.
        device: Where to run it.
        trust_remote_code: Run Python code that comes with it.

    Raises:
        InputError: It cannot be loaded.
    """
    if model is None and device in ("auto", "cpu"):
        carried = load_bundled(root, manifest)
        if carried is not None:
            return carried
    entry = manifest.encoder
    if device not in ("auto", "cpu"):  # what is always there needs no torch to be found
        from sbertkit.encoder.backends.torch import choose_device

        choose_device(device)
    name = model or entry.name
    with suppress(OSError):  # what may not be looked at is not there
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
            f"the encoder of {root} cannot be loaded: {error}; if it is elsewhere now, say where "
            "with model (--model)"
        ) from error


def check_encoder(root: Path, entry: EncoderEntry, encoder: Encoder) -> None:
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
