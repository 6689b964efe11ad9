"""What faiss files are made of, looked at before faiss reads them.

A faiss file can hold an index of any type, and name other files that faiss then opens and writes
to; and it says how much memory to take before what belongs there follows. So a file is walked
through in the order in which faiss reads it: the types must be those that a kind is written with,
and all that is announced must be there.
"""

import os
import struct
from io import BufferedReader

import numpy as np

_HEADER = struct.Struct("<4siqqq?i")
"""Type, size of a vector, number of vectors, two unused numbers, trained, metric."""
_SIZE = struct.Struct("<Q")
_HNSW_ARRAYS = (8, 4, 4, 8, 4)
"""Bytes a number of the arrays of links, of which the levels of all vectors come third."""
_HNSW_NUMBERS = 5 * 4
_QUANTIZER = struct.Struct("<iifQQ")


def walk_hnsw(file: BufferedReader, rows: int, dim: int) -> None:
    """Walks through links over 8-bit vectors.

    Raises:
        ValueError: It is something else, or cut.
    """
    _header(file, b"IHNs", rows, dim)
    for width in _HNSW_ARRAYS:
        _skip(file, _number(file) * width)
    _skip(file, _HNSW_NUMBERS)
    _header(file, b"IxSQ", rows, dim)
    *_, size, code = _QUANTIZER.unpack(_bytes(file, _QUANTIZER.size))
    _expect("vectors of size", (dim, dim), (size, code))
    _skip(file, _number(file) * 4)
    _expect("bytes of vectors", rows * dim, _number(file))
    _skip(file, rows * dim)


def walk_ivf(file: BufferedReader, rows: int, dim: int) -> None:
    """Walks through clusters of whole vectors.

    Raises:
        ValueError: It is something else, or cut.
    """
    _header(file, b"IwFl", rows, dim)
    clusters = _number(file)
    _number(file)
    _header(file, b"IxFI", clusters, dim)
    _expect("numbers of the centres", clusters * dim, _number(file))
    _skip(file, clusters * dim * 4)
    _expect("direct map", bytes(9), _bytes(file, 9))
    _expect("type of lists", b"ilar", _bytes(file, 4))
    _expect("lists and bytes a vector", (clusters, dim * 4), (_number(file), _number(file)))
    # The lengths of all lists, or each list's number and length where many are empty.
    step = {b"full": 1, b"sprs": 2}.get(_bytes(file, 4), 0)
    if not step:
        raise ValueError("expected lengths of lists")
    lengths = np.frombuffer(_bytes(file, _number(file) * 8), "<u8")[step - 1 :: step]
    _expect("vectors in all lists", rows, sum(lengths.tolist()))
    _skip(file, rows * (dim * 4 + 8))


def _header(file: BufferedReader, name: bytes, rows: int, dim: int) -> None:
    found = _HEADER.unpack(_bytes(file, _HEADER.size))
    # Another metric than the inner product, 0, would have more bytes follow.
    _expect("faiss index", (name, dim, rows, 0), (*found[:3], found[-1]))


def _expect(what: str, expected: object, found: object) -> None:
    if found != expected:
        raise ValueError(f"expected {what} {expected}, found {found}")


def _number(file: BufferedReader) -> int:
    (number,) = _SIZE.unpack(_bytes(file, _SIZE.size))
    return int(number)


def _bytes(file: BufferedReader, count: int) -> bytes:
    _skip(file, count)
    file.seek(-count, os.SEEK_CUR)
    return file.read(count)


def _skip(file: BufferedReader, count: int) -> None:
    left = os.fstat(file.fileno()).st_size - file.tell()
    if count > left:
        raise ValueError(f"expected {count} more bytes, found {left}")
    file.seek(count, os.SEEK_CUR)
