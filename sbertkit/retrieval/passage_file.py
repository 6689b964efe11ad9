"""The file of a segment that says which document, and which part of it, each vector stands for."""

from pathlib import Path

import numpy as np

from sbertkit.encoder.passage_table import TO_THE_END, PassageTable
from sbertkit.errors import DamagedIndex
from sbertkit.retrieval.int_rows import read_rows, write_rows
from sbertkit.retrieval.manifest import PASSAGES_FILE, SegmentEntry


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
        if (rows[:, 1] < 0).any() or (rows[:, 2] < TO_THE_END).any():
            raise ValueError("expected places in a text")
    except ValueError as error:
        raise DamagedIndex(f"{path} cannot be read: {error}") from error
    return PassageTable(entry.documents, rows)
