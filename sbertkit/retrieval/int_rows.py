"""Small tables of whole numbers as .npy files, whose header is compared and never parsed."""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from sbertkit.files import read_regular

Int64 = npt.NDArray[np.int64]

_HEADER_LIMIT = 1_000
_MAGIC = b"\x93NUMPY\x01\x00"


def write_rows(path: Path, rows: Int64) -> None:
    """Writes an array (n, columns)."""
    np.save(path, rows.astype("<i8"), allow_pickle=False)


def read_rows(path: Path, count: int, columns: int) -> Int64:
    """The array (count, columns) of a file, whose hash has been checked.

    Raises:
        ValueError: Its header is not the one that is written for so many rows and columns.
    """
    size = count * columns * 8
    raw = read_regular(path, limit=_HEADER_LIMIT + size)
    start = len(raw) - size
    dictionary = f"{{'descr': '<i8', 'fortran_order': False, 'shape': ({count}, {columns}), }}"
    begin = _MAGIC + max(0, start - len(_MAGIC) - 2).to_bytes(2, "little")
    header = raw[: max(0, start)]
    if not header.startswith(begin) or header[len(begin) :].strip() != dictionary.encode():
        raise ValueError(f"expected a .npy file of {count} rows of {columns} int64")
    return np.frombuffer(raw, "<i8", offset=start).reshape(count, columns)
