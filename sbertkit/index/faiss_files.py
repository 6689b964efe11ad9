"""Writing and reading faiss indexes."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any

import numpy as np

from sbertkit.arrays import Vectors
from sbertkit.errors import DamagedIndex
from sbertkit.files import open_regular
from sbertkit.forks import fork_safe_lock
from sbertkit.index.faiss_library import load_faiss
from sbertkit.storage import storage_errors

ROWS_PER_CHUNK = 16_384

_READING = fork_safe_lock()
"""faiss has one limit for the whole process."""


def write_index(index: Any, vectors: Vectors, path: Path) -> None:
    """Adds all vectors to a trained faiss index and writes it.

    Raises:
        StorageError: It cannot be written.
    """
    starts = range(0, len(vectors), ROWS_PER_CHUNK)
    with storage_errors(path):
        _write(index, (vectors[start : start + ROWS_PER_CHUNK] for start in starts), path)


def write_flat_index(path: Path, chunks: Iterable[Vectors], dim: int) -> None:
    """Writes unit vectors as faiss's ``IndexFlatIP``, for other programs.

    Args:
        path: The file.
        chunks: Arrays (n, dim); faiss numbers their rows from 0.
        dim: Size of a vector.
    """
    _write(load_faiss().IndexFlatIP(dim), chunks, path)


def read_index(path: Path, check: Callable[[BufferedReader], None]) -> Any:
    """The faiss index of a file whose hash has been checked.

    Args:
        path: The file.
        check: Raises `ValueError` if it is not what the kind is written as.

    Raises:
        DamagedIndex: It is not, or faiss does not accept it.
    """
    faiss = load_faiss()
    try:
        with open_regular(path) as file:
            check(file)
            file.seek(0)
            # A file that would have faiss open another is refused: it cannot be beside a stream.
            reader = faiss.PyCallbackIOReader(file.read)
            with _allocating(os.fstat(file.fileno()).st_size):
                return faiss.read_index(reader, faiss.IO_FLAG_ONDISK_SAME_DIR)
    except (RuntimeError, MemoryError, ValueError) as error:
        raise DamagedIndex(f"{path} is no faiss index: {' '.join(str(error).split())}") from error


@contextmanager
def _allocating(limit: int) -> Iterator[None]:
    """Lets faiss allocate so many bytes for an array that a file announces, in all threads."""
    faiss = load_faiss()
    with _READING:
        known = faiss.get_deserialization_vector_byte_limit()
        faiss.set_deserialization_vector_byte_limit(limit)
        try:
            yield
        finally:
            faiss.set_deserialization_vector_byte_limit(known)


def _write(index: Any, chunks: Iterable[Vectors], path: Path) -> None:
    """Adds vectors to an index and writes it."""
    for chunk in chunks:
        index.add(np.ascontiguousarray(chunk))
    faiss = load_faiss()
    # Through a Python file: faiss's own ignores a full disk and takes UTF-8 paths alone.
    with path.open("wb") as file:
        faiss.write_index(index, faiss.PyCallbackIOWriter(file.write))
