"""A segment's vectors on disk, and what its kind of index stores beside them.

Files: ``vectors.npy`` (float32 unit rows, memory-mapped), those of the kind, and ``build.json``
(kind and parameters). None is changed once written.
"""

import json
from collections.abc import Iterable
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sbertkit.arrays import Vectors
from sbertkit.data.vector_files import NpyWriter
from sbertkit.errors import DamagedIndex, InputError
from sbertkit.files import read_regular
from sbertkit.index.kinds.base import IndexKind
from sbertkit.index.kinds.table import KINDS
from sbertkit.index.npy_files import map_opened
from sbertkit.opened_file import OpenedFile
from sbertkit.schema import as_record, read_record
from sbertkit.storage import storage_errors

Rows = npt.NDArray[np.int64]
"""Row numbers."""

VECTORS_FILE = "vectors.npy"
BUILD_FILE = "build.json"


@dataclass(frozen=True, slots=True)
class _Build:
    """The content of ``build.json``."""

    kind: str
    parameters: dict[str, Any]

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"unknown kind {self.kind[:50]!r}")
        missing = sorted(KINDS[self.kind].settings() - self.parameters.keys())
        if missing:
            raise ValueError(f"expected the parameters {', '.join(missing)}")


def segment_files(kind: str) -> tuple[str, ...]:
    """The names of the files of vectors in a segment of a kind."""
    return (VECTORS_FILE, *KINDS[kind].files, BUILD_FILE)


def unit_chunk(vectors: Vectors, first: int = 0) -> Vectors:
    """Rows (n, dim) scaled to unit length.

    Args:
        vectors: The rows.
        first: Number of the first document, for messages.

    Raises:
        InputError: A row is zero or not finite, so that it has no direction.
    """
    # Squares and quotients in float64, without a copy of the rows in it.
    norms = np.sqrt(np.einsum("nd,nd->n", vectors, vectors, dtype=np.float64))[:, None]
    usable = np.isfinite(norms) & (norms > 0)
    if not usable.all():
        raise InputError(
            f"document {first + int(np.argmin(usable)) + 1} of the index has a zero or infinite "
            "vector, which has no direction; the model does not suit it"
        )
    unit: Vectors = np.empty(vectors.shape, np.float32)
    np.divide(vectors, norms, out=unit, dtype=np.float64, casting="same_kind")
    return unit


def write_vectors(path: Path, chunks: Iterable[Vectors], dim: int) -> None:
    """Writes unit rows as .npy, with memory for one chunk.

    Args:
        path: The file.
        chunks: Arrays (n, dim) of unit rows.
        dim: Size of a row.

    Raises:
        StorageError: The disk is full or a permission is missing.
    """
    with storage_errors(path), closing(NpyWriter(path, dim)) as writer:
        for chunk in chunks:
            writer.append(chunk)
        writer.finish()


class VectorSegment:
    """The vectors of one segment, opened.

    Attributes:
        kind: Kind of its index, with its settings.
        content: What the kind has opened, if it stores anything.
        folder: The folder of its files.

    Args:
        vectors: Unit rows (n, dim), usually memory-mapped.
        kind: See above.
        content: See above.
        file: The file of the vectors.
    """

    def __init__(self, vectors: Vectors, kind: IndexKind, content: Any, file: OpenedFile) -> None:
        self.kind = kind
        self.content = content
        self.folder = file.path.parent
        self._vectors = vectors
        self._file = file

    @classmethod
    def write(cls, folder: Path, kind: IndexKind, learnt: dict[str, Vectors]) -> None:
        """Builds the index over a folder's ``vectors.npy`` and writes ``build.json``.

        Those of another index are removed first, which may be links to an older segment's files.

        Args:
            folder: The segment's folder.
            kind: The kind, with the settings to build with.
            learnt: What the kind has learnt for all segments, if it is trained.

        Raises:
            StorageError: The disk is full or a permission is missing.
        """
        with storage_errors(folder):
            for name in (BUILD_FILE, *(name for one in KINDS.values() for name in one.files)):
                (folder / name).unlink(missing_ok=True)
        vectors = np.load(folder / VECTORS_FILE, mmap_mode="r", allow_pickle=False)
        kind.write(vectors, folder, learnt)
        build = _Build(kind.name, asdict(kind))
        with storage_errors(folder):
            text = json.dumps(asdict(build), indent=2) + "\n"
            (folder / BUILD_FILE).write_text(text, encoding="utf-8")

    @classmethod
    def open(cls, folder: Path, rows: int, dim: int) -> "VectorSegment":
        """The segment of a folder whose files' hashes have been checked.

        Args:
            folder: The segment's folder.
            rows: How many vectors it has.
            dim: Their size.

        Raises:
            DamagedIndex: The files do not fit together.
        """
        kind = cls.kind_at(folder, rows)
        vectors, file = map_vectors(folder, rows, dim)
        return cls(vectors, kind, kind.open(folder, rows, dim), file)

    @staticmethod
    def kind_at(folder: Path, rows: int) -> IndexKind:
        """The kind of the segment of a folder with so many vectors, with its settings.

        Raises:
            DamagedIndex: The file does not name them.
        """
        path = folder / BUILD_FILE
        try:
            build = read_record(read_regular(path), _Build, path)
            kind = as_record(build.parameters, KINDS[build.kind], path)
            kind.check(rows)
        except InputError as error:
            raise DamagedIndex(str(error)) from error
        except ValueError as error:
            raise DamagedIndex(f"{path}: {error}") from error
        return kind

    def __len__(self) -> int:
        return len(self._vectors)

    @property
    def stored(self) -> Vectors:
        """The stored vectors (n, dim), memory-mapped.

        Raises:
            DamagedIndex: The file was overwritten since it was opened.
        """
        self._file.check()
        return self._vectors

    def at(self, rows: Rows) -> Vectors:
        """A copy of the stored vectors of some rows, (n, dim); errors as `stored`."""
        return np.array(self.stored[rows])


def map_vectors(folder: Path, rows: int, dim: int) -> tuple[Vectors, OpenedFile]:
    """The stored vectors (rows, dim) of a folder, memory-mapped, and their file.

    Raises:
        DamagedIndex: The file does not have this number of vectors of this size.
    """
    vectors: Vectors
    vectors, file = map_opened(folder / VECTORS_FILE, np.float32, (rows, dim))
    return vectors, file
