"""Vectors with their ids to a file, chunk by chunk: .npy or Parquet."""

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import IO, Any

import numpy as np

from sbertkit.arguments import output_file
from sbertkit.arrays import Vectors
from sbertkit.data.chunk_log import Chunk, ChunkLog, check_output
from sbertkit.data.vector_parquet import (
    Bounds,
    VectorOrigin,
    VectorParquetWriter,
    VectorRows,
    vector_rows,
)
from sbertkit.errors import InputError
from sbertkit.lock import LOCK_FILE, writer_lock
from sbertkit.storage import (
    caller_errors,
    clear_folder,
    made_parents,
    publish_file,
    sha256_file,
    storage_errors,
    sync_file,
)


def digest_of(content: bytes | memoryview) -> str:
    """The SHA-256 of bytes, in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


class NpyWriter:
    """Writes a float32 matrix as .npy without knowing beforehand how many rows it will have.

    Args:
        path: The file; whatever follows the chunks that it has already is truncated.
        dim: Size of a row.
        chunks: The chunks that it has already.

    Raises:
        InputError: There are fewer rows, or they have changed.
    """

    def __init__(self, path: Path, dim: int, chunks: Sequence[Chunk] = ()) -> None:
        rows = sum(chunk.rows for chunk in chunks)
        self.rows = 0
        self._dim = dim
        self._file: IO[bytes] = path.open("r+b" if rows else "wb")
        try:
            self._write_header()
            start = self._file.tell()
            end = start + rows * dim * 4
            if self._file.seek(0, os.SEEK_END) < end:
                raise InputError(f"{path} has fewer than {rows} rows; start again without resume")
            self._file.seek(start)
            for chunk in chunks:
                check_output(chunk, digest_of(self._file.read(chunk.rows * dim * 4)), path)
            self._file.seek(self._file.truncate(end))
        except BaseException:
            self.close()
            raise
        self.rows = rows

    def append(self, vectors: Vectors) -> str:
        """Adds rows (n, dim); gives the SHA-256 of their bytes."""
        content = np.ascontiguousarray(vectors, dtype="<f4").data
        self._file.write(content)
        self.rows += len(vectors)
        return digest_of(content)

    def sync(self) -> None:
        """Puts all rows on the disk."""
        self._file.flush()
        os.fsync(self._file.fileno())

    def finish(self) -> None:
        """Writes the true number of rows into the header, puts all on the disk and closes."""
        self._file.seek(0)
        self._write_header()
        self.sync()
        self._file.close()

    def close(self) -> None:
        """Closes the file as it is."""
        with suppress(OSError):  # what is still in memory belongs to a file that is given up
            self._file.close()

    def _write_header(self) -> None:
        # NumPy leaves room in the header for the first dimension to grow, so that its length stays.
        shape = (self.rows, self._dim)
        np.lib.format.write_array_header_1_0(
            self._file, {"descr": "<f4", "fortran_order": False, "shape": shape}
        )


class VectorWriter:
    """Takes the rows of a file in order, chunk by chunk.

    Attributes:
        log: The chunks that are on the disk.
        made: The encoder of the vectors, which a Parquet file names.
    """

    def __init__(
        self,
        chunks: "_NpyChunks | _ParquetChunks",
        log: ChunkLog,
        path: Path,
        made: VectorOrigin,
    ) -> None:
        self.made = made
        self.log = log
        self._parts = chunks
        self._path = path

    def write(
        self,
        ids: Sequence[str],
        texts: Sequence[str],
        vectors: Vectors,
        note: Mapping[str, Any] | None = None,
        bounds: Sequence[Bounds] | None = None,
    ) -> None:
        """Adds a chunk: ids and texts (n), vectors (n, dim) float32, a note for the log.

        Start and end of passages (n) are their `bounds`.
        """
        rows = VectorRows(ids, texts, vectors, bounds)
        with storage_errors(self._path):  # which name the file that the caller wants
            output = self._parts.append(rows)
            self.log.add(list(zip(ids, texts, strict=True)), output, note or {})


def vector_file(path: str | os.PathLike[str]) -> Path:
    """The file to write, all links followed, whose name ends in ``.npy`` or ``.parquet``.

    Raises:
        InputError: Another name, or something that is no regular file.
    """
    target = output_file(path)
    if target.suffix.lower() not in _FORMATS:
        raise InputError(f"{path}: expected a name that ends in {' or '.join(sorted(_FORMATS))}")
    return target


@contextmanager
def open_vector_writer(
    path: str | os.PathLike[str],
    dim: int,
    *,
    job: Mapping[str, Any] | None = None,
    made: VectorOrigin = VectorOrigin(),  # noqa: B008  # frozen
    passages: bool = False,
    resume: bool = False,
) -> Iterator[VectorWriter]:
    """A writer of the format that the suffix names; the file appears when the block succeeds.

    Until then its chunks are in a hidden folder next to it, which a killed process leaves behind.

    Args:
        path: A name that ends in ``.npy`` or ``.parquet``.
        dim: Size of a vector.
        job: What decides the vectors besides the texts; see `ChunkLog`.
        made: See `VectorWriter`.
        passages: Whether the rows are passages, whose bounds a Parquet file keeps.
        resume: Continue the output of such a process, and keep that of this one if the block
            fails.

    Raises:
        InputError: Another name, or the chunks are of another job.
        StorageError: The disk is full, a permission is missing or another process writes the file.
    """
    target = vector_file(path)
    folder = target.with_name(f".{target.name}.chunks")
    with (
        storage_errors(target),
        made_parents(target),
        writer_lock(target, lambda: folder),
        _emptied(folder, resume=resume),
    ):
        log = ChunkLog(folder / "chunks.jsonl", {"dim": dim, **(job or {})})
        try:
            chunks = _FORMATS[target.suffix.lower()](folder, dim, log, passages=passages)
            try:
                with caller_errors():
                    writer = VectorWriter(chunks, log, target, made)
                    yield writer
                finished = chunks.finish(writer.made)
            finally:
                chunks.close()
        finally:
            log.close()
        publish_file(finished, target)


@contextmanager
def _emptied(folder: Path, *, resume: bool) -> Iterator[None]:
    """Removes the chunks before and after the block, unless they are to be resumed."""
    if not resume:
        clear_folder(folder, (LOCK_FILE,))
    try:
        yield
    except BaseException:
        if not resume:
            clear_folder(folder, (LOCK_FILE,))
        raise
    clear_folder(folder, (LOCK_FILE,))


class _NpyChunks:
    """One file that grows; ids and texts have no place in this format."""

    def __init__(self, folder: Path, dim: int, log: ChunkLog, *, passages: bool) -> None:
        del passages
        self._path = folder / "vectors.npy"
        self._writer = NpyWriter(self._path, dim, log.chunks)

    def append(self, rows: VectorRows) -> str:
        """Puts a chunk on the disk; gives the SHA-256 of what was written."""
        output = self._writer.append(rows.vectors)
        self._writer.sync()
        return output

    def finish(self, made: VectorOrigin) -> Path:
        """The file of all chunks."""
        del made
        self._writer.finish()
        return self._path

    def close(self) -> None:
        """Frees the open file."""
        self._writer.close()


class _ParquetChunks:
    """A file for each chunk, with the columns that the whole file has."""

    def __init__(self, folder: Path, dim: int, log: ChunkLog, *, passages: bool) -> None:
        self._passages = passages
        self._folder = folder
        self._dim = dim
        self._next = count(len(log.chunks))
        for number, chunk in enumerate(log.chunks):
            path = self._chunk(number)
            if not path.is_file():
                raise InputError(f"{path} is missing; start again without resume")
            check_output(chunk, sha256_file(path), path)

    def append(self, rows: VectorRows) -> str:
        """Puts a chunk on the disk; gives the SHA-256 of what was written."""
        path = self._chunk(next(self._next))
        with VectorParquetWriter(
            path, self._dim, VectorOrigin(), passages=self._passages
        ) as writer:
            writer.write_rows(rows)
        sync_file(path)
        return sha256_file(path)

    def finish(self, made: VectorOrigin) -> Path:
        """The file of all chunks."""
        path = self._folder / "vectors.parquet"
        with VectorParquetWriter(path, self._dim, made, passages=self._passages) as writer:
            for number in range(next(self._next)):
                with self._chunk(number).open("rb") as chunk:
                    for rows in vector_rows(chunk):
                        writer.write_rows(rows)
        sync_file(path)
        return path

    def close(self) -> None:
        """Nothing: no file is open between chunks."""

    def _chunk(self, number: int) -> Path:
        return self._folder / f"{number:08d}.parquet"


_FORMATS: dict[str, Any] = {".npy": _NpyChunks, ".parquet": _ParquetChunks}
