"""Reading faiss files step by step, to check them before faiss reads them.

A faiss file can hold an index of any type, and name other files that faiss then opens and writes
to; and it announces how much memory to allocate before the data follows. So a file is read in the
order in which faiss reads it: the types must be those that a kind is written with, and all that is
announced must be there. Every function raises `ValueError` otherwise.
"""

import os
import struct
from io import BufferedReader

_HEADER = struct.Struct("<4siqqq?i")
"""Type, size of a vector, number of vectors, two unused numbers, trained, metric."""
_COUNT = struct.Struct("<Q")


def read_header(file: BufferedReader, name: bytes, rows: int, dim: int) -> None:
    """Reads the header of an index, which must be of this type and have so many vectors."""
    found = _HEADER.unpack(read_bytes(file, _HEADER.size))
    # Another metric than the inner product, 0, would have more bytes follow.
    expect("faiss index", (name, dim, rows, 0), (*found[:3], found[-1]))


def expect(what: str, expected: object, found: object) -> None:
    """Refuses anything else than expected."""
    if found != expected:
        raise ValueError(f"expected {what} {expected}, found {found}")


def read_count(file: BufferedReader) -> int:
    """The next 64-bit number."""
    (number,) = _COUNT.unpack(read_bytes(file, _COUNT.size))
    return int(number)


def read_bytes(file: BufferedReader, count: int) -> bytes:
    """The next bytes."""
    skip(file, count)
    file.seek(-count, os.SEEK_CUR)
    return file.read(count)


def skip(file: BufferedReader, count: int) -> None:
    """Skips bytes, all of which must be there."""
    left = os.fstat(file.fileno()).st_size - file.tell()
    if count > left:
        raise ValueError(f"expected {count} more bytes, found {left}")
    file.seek(count, os.SEEK_CUR)
