"""Writing and reading faiss indexes."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from sbertkit.arrays import Vectors
from sbertkit.errors import DamagedIndex
from sbertkit.files import open_regular
from sbertkit.index.faiss_library import load_faiss
from sbertkit.index.kinds import IndexKind
from sbertkit.storage import storage_errors

_ROWS_PER_CHUNK = 16_384


def write_index(kind: IndexKind, vectors: Vectors, path: Path) -> None:
    """Builds the faiss index of a kind over all vectors and writes it.

    Raises:
        StorageError: It cannot be written.
    """
    index = kind.build(vectors)
    starts = range(0, len(vectors), _ROWS_PER_CHUNK)
    with storage_errors(path):
        _write(index, (vectors[start : start + _ROWS_PER_CHUNK] for start in starts), path)


def write_flat_index(path: Path, chunks: Iterable[Vectors], dim: int) -> None:
    """Writes unit vectors as faiss's ``IndexFlatIP``, for other programs.

    Args:
        path: The file.
        chunks: Arrays (n, dim); faiss numbers their rows from 0.
        dim: Size of a vector.
    """
    _write(load_faiss().IndexFlatIP(dim), chunks, path)


def read_index(kind: IndexKind, path: Path, rows: int, dim: int) -> Any:
    """The faiss index of a file whose hash has been checked.

    Args:
        kind: The kind.
        path: The file.
        rows: How many vectors it must hold.
        dim: Their size.

    Raises:
        DamagedIndex: It is not what the kind is written as, or faiss does not accept it.
    """
    faiss = load_faiss()
    try:
        with open_regular(path) as file:
            kind.check_file(file, rows, dim)
            file.seek(0)
            return faiss.read_index(faiss.PyCallbackIOReader(file.read))
    except (RuntimeError, MemoryError, ValueError) as error:
        raise DamagedIndex(f"{path} is no faiss index: {' '.join(str(error).split())}") from error


def _write(index: Any, chunks: Iterable[Vectors], path: Path) -> None:
    """Adds vectors to an index and writes it."""
    for chunk in chunks:
        index.add(np.ascontiguousarray(chunk))
    faiss = load_faiss()
    # Through a Python file: faiss's own ignores a full disk and takes UTF-8 paths alone.
    with path.open("wb") as file:
        faiss.write_index(index, faiss.PyCallbackIOWriter(file.write))
