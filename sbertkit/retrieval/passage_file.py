"""The file of a segment that says which document, and which part of it, each vector stands for."""

from pathlib import Path

import numpy as np

from sbertkit.encoder.passage_table import TO_THE_END, PassageTable
from sbertkit.errors import DamagedIndex
from sbertkit.retrieval.int_rows import read_rows, write_rows
from sbertkit.retrieval.manifest_entries import PASSAGES_FILE, SegmentEntry


def write_passages(folder: Path, passages: PassageTable) -> None:
    """Writes the passages of a segment; nothing if each document is one passage."""
    if passages.rows is not None:
        write_rows(folder / PASSAGES_FILE, passages.rows)


def read_passages(folder: Path, entry: SegmentEntry) -> PassageTable:
    """The passages of a segment, whose files' hashes have been checked.

    Raises:
        DamagedIndex: The file does not fit the manifest.
    """
    if entry.passages is None:
        return PassageTable(entry.documents)
    path = folder / PASSAGES_FILE
    try:
        rows = read_rows(path, entry.passages, 3)
        steps = np.diff(rows[:, 0])
        ends = (int(rows[0, 0]), int(rows[-1, 0]))
        if ends != (0, entry.documents - 1) or not np.isin(steps, (0, 1)).all():
            raise ValueError("expected passages of each document, in order")
        _, starts, ends_ = rows.T
        later = np.r_[False, steps == 0]  # not the first of its document
        whole = ends_ == TO_THE_END
        alone = ~later & ~np.r_[later[1:], False]
        placed = np.where(whole, alone & (starts == 0), (starts >= 0) & (starts < ends_))
        if not placed.all() or (np.diff(starts)[steps == 0] < 0).any():
            raise ValueError("expected places in a text, in order")
    except ValueError as error:
        raise DamagedIndex(f"{path} cannot be read: {error}") from error
    return PassageTable(entry.documents, rows)
