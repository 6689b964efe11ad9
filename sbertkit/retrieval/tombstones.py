"""The deleted rows of all segments, in one file per generation."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from sbertkit.errors import DamagedIndex
from sbertkit.files import read_regular
from sbertkit.index.live_rows import LiveRows
from sbertkit.retrieval.manifest import TOMBSTONES_FOLDER, Manifest
from sbertkit.sealed import SealedFile
from sbertkit.storage import sync_file, sync_folder

Mask = npt.NDArray[np.bool_]

_HEADER_LIMIT = 1_000
_MAGIC = b"\x93NUMPY\x01\x00"


def write_tombstones(root: Path, generation: int, live: Sequence[LiveRows | None]) -> SealedFile:
    """Writes the deleted rows as pairs (segment, row), and syncs them to the disk.

    Args:
        root: The index folder.
        generation: The generation of the file.
        live: The live rows of each segment in the manifest's order; ``None`` if all are live.
    """
    pairs = [
        np.stack([np.full(len(rows), place), rows], axis=1)
        for place, of_segment in enumerate(live)
        if of_segment is not None
        for rows in [np.flatnonzero(~of_segment.mask)]
    ]
    folder = root / TOMBSTONES_FOLDER
    folder.mkdir(exist_ok=True)
    path = folder / f"{generation:06d}.npy"
    np.save(path, np.concatenate(pairs).astype("<i8"), allow_pickle=False)
    sync_file(path)
    sync_folder(folder)
    sync_folder(root)
    return SealedFile.of(root, path)


def read_tombstones(root: Path, manifest: Manifest) -> list[LiveRows | None]:
    """The live rows of each segment; the file's hash has been checked.

    Raises:
        DamagedIndex: It does not fit the manifest.
    """
    if manifest.tombstones is None:
        return [None] * len(manifest.segments)
    path = root / manifest.tombstones.path
    try:
        pairs = _read_pairs(path, manifest.deleted)
        if (pairs < 0).any():
            raise ValueError("expected segments and rows from 0")
        deleted = [pairs[pairs[:, 0] == place, 1] for place in range(len(manifest.segments))]
        live = [
            live_rows(segment.documents, rows)
            for segment, rows in zip(manifest.segments, deleted, strict=True)
        ]
    except (ValueError, IndexError) as error:
        raise DamagedIndex(f"{path} cannot be read: {error}") from error
    for segment, rows in zip(manifest.segments, live, strict=True):
        if segment.deleted != (0 if rows is None else len(rows.mask) - rows.count):
            raise DamagedIndex(f"{path} does not fit the segment {segment.id}")
    return live


def _read_pairs(path: Path, count: int) -> npt.NDArray[np.int64]:
    """The pairs (count, 2) of a file, whose header must be the one that is written; not parsed."""
    raw = read_regular(path, limit=_HEADER_LIMIT + count * 16)
    start = len(raw) - count * 16
    dictionary = f"{{'descr': '<i8', 'fortran_order': False, 'shape': ({count}, 2), }}"
    begin = _MAGIC + max(0, start - len(_MAGIC) - 2).to_bytes(2, "little")
    header = raw[: max(0, start)]
    if not header.startswith(begin) or header[len(begin) :].strip() != dictionary.encode():
        raise ValueError(f"expected a .npy file of {count} rows of two int64")
    return np.frombuffer(raw, "<i8", offset=start).reshape(count, 2)


def live_rows(count: int, deleted: npt.NDArray[np.int64]) -> LiveRows | None:
    """The live rows of a segment; ``None`` if none is deleted."""
    if not len(deleted):
        return None
    mask = np.ones(count, np.bool_)
    mask[deleted] = False
    return LiveRows(mask)
