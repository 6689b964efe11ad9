"""Vectors with their ids to a file, part by part: .npy or Parquet."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
import numpy.typing as npt

from sbertkit.arguments import output_file
from sbertkit.errors import InputError, MissingDependency
from sbertkit.storage import foreign_errors, staged_file, storage_errors

Vectors = npt.NDArray[np.float32]


class VectorWriter(Protocol):
    """Takes the rows of a file in order."""

    def write(self, ids: Sequence[str], texts: Sequence[str], vectors: Vectors) -> None:
        """Adds rows: ids and texts (n), vectors (n, dim) float32."""
        ...


class NpyWriter:
    """Writes a float32 matrix as .npy without knowing beforehand how many rows it will have.

    Args:
        file: A file opened for writing bytes, at its start.
        dim: Size of a row.
    """

    def __init__(self, file: IO[bytes], dim: int) -> None:
        self._file = file
        self._dim = dim
        self.rows = 0
        self._write_header()

    def write(self, ids: Sequence[str], texts: Sequence[str], vectors: Vectors) -> None:
        """Adds rows; ids and texts have no place in this format."""
        del ids, texts
        self.append(vectors)

    def append(self, vectors: Vectors) -> None:
        """Adds rows (n, dim)."""
        self._file.write(np.ascontiguousarray(vectors, dtype="<f4").data)
        self.rows += len(vectors)

    def finish(self) -> None:
        """Writes the true number of rows into the header, and out what is still in memory."""
        self._file.seek(0)
        self._write_header()
        self._file.flush()

    def _write_header(self) -> None:
        # NumPy leaves room in the header for the first dimension to grow, so that its length stays.
        shape = (self.rows, self._dim)
        np.lib.format.write_array_header_1_0(
            self._file, {"descr": "<f4", "fortran_order": False, "shape": shape}
        )


class _GuardedWriter:
    """Another writer whose failures name the file that the caller wants, not the temporary one."""

    def __init__(self, writer: VectorWriter, path: Path) -> None:
        self._writer = writer
        self._path = path

    def write(self, ids: Sequence[str], texts: Sequence[str], vectors: Vectors) -> None:
        """Adds rows."""
        with storage_errors(self._path):
            self._writer.write(ids, texts, vectors)


class _ParquetWriter:
    """Writes the columns ``id``, ``text`` and ``vector`` (a list of fixed size)."""

    def __init__(self, pyarrow: Any, writer: Any, schema: Any) -> None:
        self._pyarrow = pyarrow
        self._writer = writer
        self._schema = schema

    def write(self, ids: Sequence[str], texts: Sequence[str], vectors: Vectors) -> None:
        """Adds rows as one row group."""
        pyarrow = self._pyarrow
        flat = pyarrow.array(np.ascontiguousarray(vectors, dtype=np.float32).reshape(-1))
        columns = [
            pyarrow.array(ids, pyarrow.string()),
            pyarrow.array(texts, pyarrow.string()),
            pyarrow.FixedSizeListArray.from_arrays(flat, vectors.shape[1]),
        ]
        self._writer.write_batch(pyarrow.record_batch(columns, schema=self._schema))


def vector_file(path: str | os.PathLike[str]) -> Path:
    """The file to write, all links followed, whose name ends in ``.npy`` or ``.parquet``.

    Raises:
        InputError: Another name, or something that is no regular file.
    """
    target = output_file(path)
    if target.suffix.lower() not in _WRITERS:
        raise InputError(f"{path}: expected a name that ends in {' or '.join(sorted(_WRITERS))}")
    return target


@contextmanager
def open_vector_writer(path: str | os.PathLike[str], dim: int) -> Iterator[VectorWriter]:
    """A writer of the format that the name tells; the file appears when the block ends well.

    Args:
        path: A name that ends in ``.npy`` or ``.parquet``.
        dim: Size of a vector.

    Raises:
        InputError: Another name.
        StorageError: The disk is full or a permission is missing.
    """
    target = vector_file(path)
    write = _WRITERS[target.suffix.lower()]
    with (
        storage_errors(target),
        staged_file(target) as staged,
        write(staged, dim) as writer,
        foreign_errors(),
    ):
        yield _GuardedWriter(writer, target)


@contextmanager
def _npy_writer(path: Path, dim: int) -> Iterator[VectorWriter]:
    with path.open("wb") as file:
        writer = NpyWriter(file, dim)
        yield writer
        writer.finish()


@contextmanager
def _parquet_writer(path: Path, dim: int) -> Iterator[VectorWriter]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingDependency("Parquet files need pyarrow: pip install pyarrow") from error
    schema = pyarrow.schema(
        [
            ("id", pyarrow.string()),
            ("text", pyarrow.string()),
            ("vector", pyarrow.list_(pyarrow.float32(), dim)),
        ]
    )
    with pyarrow.parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        yield _ParquetWriter(pyarrow, writer, schema)


_WRITERS = {".npy": _npy_writer, ".parquet": _parquet_writer}
