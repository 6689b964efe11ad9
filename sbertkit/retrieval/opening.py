"""Opening an index folder: one generation as a whole, checked before it is parsed."""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from sbertkit.data.streams import reading
from sbertkit.encoder import Encoder
from sbertkit.errors import DamagedIndex, InputError, ModelMismatch, SbertkitError
from sbertkit.index import VECTORS_FILE, VectorSegment
from sbertkit.retrieval.carried import load_carried
from sbertkit.retrieval.document_store import DOCUMENTS_FILE, DocumentStore
from sbertkit.retrieval.manifest import (
    SEGMENTS_FOLDER,
    EncoderEntry,
    Manifest,
    check_file,
    read_manifest,
)

READ_ATTEMPTS = 10
"""How often a reader starts again when a writer puts a newer generation in its way."""

HASH_ALL_BYTES = 2**30
"""Size of an index up to which opening it hashes every file."""


class Segment(NamedTuple):
    """A segment's vectors and documents."""

    vectors: VectorSegment
    documents: DocumentStore


def open_segments(root: Path) -> tuple[Manifest, list[Segment]]:
    """The manifest and its opened segments, of one and the same generation."""
    for _ in range(READ_ATTEMPTS):
        manifest = read_manifest(root)
        try:
            return manifest, open_generation(root, manifest)
        except SbertkitError:
            # A writer may have put a newer generation in the place of this one meanwhile.
            if read_manifest(root) == manifest:
                raise
    raise DamagedIndex(f"{root} was rewritten {READ_ATTEMPTS} times while it was being opened")


def open_generation(root: Path, manifest: Manifest) -> list[Segment]:
    """The segments that a manifest names, their files checked before any is parsed.

    Raises:
        DamagedIndex: A file is missing, cut or changed.
        StorageError: A file cannot be read.
    """
    hash_all = sum(entry.bytes for entry in manifest.files()) <= HASH_ALL_BYTES
    for entry in manifest.files():
        # The vectors are mapped and not parsed, so that a large file of them need not be read.
        hashed = hash_all or Path(entry.path).name != VECTORS_FILE
        problem = check_file(root, entry, hashed=hashed)
        if problem is not None:
            raise DamagedIndex(
                f"{root / problem.file}: {problem.reason}; restore it from a backup or build the "
                "index again"
            )
    opened: list[Segment] = []
    try:
        with reading(str(root)):
            for segment in manifest.segments:
                folder = root / SEGMENTS_FOLDER / segment.id
                vectors = VectorSegment.open(folder, segment.documents, manifest.encoder.dim)
                opened.append(Segment(vectors, DocumentStore(folder / DOCUMENTS_FILE)))
                if len(opened[-1].documents) != segment.documents:
                    raise DamagedIndex(f"{folder}: vectors and documents differ in number")
    except BaseException:
        close_segments(opened)
        raise
    return opened


def close_segments(segments: Iterable[Segment]) -> None:
    """Frees the files of segments."""
    for segment in segments:
        segment.documents.close()


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
        carried = load_carried(root, manifest)
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
            name, device=device, trust_remote_code=trust_remote_code, **entry.options
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
    raise ModelMismatch(
        f"{root} was built with {entry.name} (fingerprint {entry.fingerprint[:12]}), the encoder "
        f"given is {encoder.options.model} ({encoder.fingerprint[:12]}){sizes}; open it with the "
        "encoder that built it, or build the index again"
    )
