"""The deleted documents of all segments, in one file per generation."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from sbertkit.errors import DamagedIndex
from sbertkit.index.live_rows import LiveRows
from sbertkit.retrieval.int_rows import read_rows, write_rows
from sbertkit.retrieval.manifest import TOMBSTONES_FOLDER, Manifest
from sbertkit.sealed import SealedFile
from sbertkit.storage import sync_file, sync_folder

Mask = npt.NDArray[np.bool_]


def write_tombstones(root: Path, generation: int, live: Sequence[LiveRows | None]) -> SealedFile:
    """Writes the deleted documents as pairs (segment, number), and syncs them to the disk.

    Args:
        root: The index folder.
        generation: The generation of the file.
        live: The live documents of each segment in the manifest's order; ``None`` if all are live.
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
    write_rows(path, np.concatenate(pairs))
    sync_file(path)
    sync_folder(folder)
    sync_folder(root)
    return SealedFile.of(root, path)


def read_tombstones(root: Path, manifest: Manifest) -> list[LiveRows | None]:
    """The live documents of each segment; the file's hash has been checked.

    Raises:
        DamagedIndex: It does not fit the manifest.
    """
    if manifest.tombstones is None:
        return [None] * len(manifest.segments)
    path = root / manifest.tombstones.path
    try:
        pairs = read_rows(path, manifest.deleted, 2)
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


def live_rows(count: int, deleted: npt.NDArray[np.int64]) -> LiveRows | None:
    """The live documents of a segment; ``None`` if none is deleted."""
    if not len(deleted):
        return None
    mask = np.ones(count, np.bool_)
    mask[deleted] = False
    return LiveRows(mask)
