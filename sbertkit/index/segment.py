"""A segment's vectors on disk and the search over them.

Files: ``vectors.npy`` (float32 unit rows, memory-mapped), ``index.faiss`` (not for kind flat) and
``build.json`` (kind and parameters). None is changed once written.
"""

import json
import os
from collections.abc import Iterable
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sbertkit.arrays import Vectors
from sbertkit.data.vector_files import NpyWriter
from sbertkit.errors import DamagedIndex, InputError
from sbertkit.files import open_regular, read_regular
from sbertkit.index.faiss_files import read_index, write_index
from sbertkit.index.faiss_library import load_faiss
from sbertkit.index.kinds import KINDS, IndexKind
from sbertkit.index.live_rows import LiveRows
from sbertkit.index.opened_file import OpenedFile
from sbertkit.schema import as_record, read_record
from sbertkit.storage import storage_errors

Rows = npt.NDArray[np.int64]
"""Row numbers."""

VECTORS_FILE = "vectors.npy"
INDEX_FILE = "index.faiss"
BUILD_FILE = "build.json"

_RESCORE_BYTES = 64 * 2**20
_NPY_MAGIC = b"\x93NUMPY\x01\x00"
_SPARE_CANDIDATES = 10
_EXHAUSTIVE_SHARE = 4
"""If more than one row in this many is a candidate, exhaustive search is not slower."""
_ANY_ROWS = 1_000
"""A setting up to this may exceed the number of vectors."""
_SCORE_ERROR = 1e-5
"""Above the difference between the float32 scores of faiss and ours for unit vectors."""


@dataclass(frozen=True, slots=True)
class _Build:
    """The content of ``build.json``."""

    kind: str
    parameters: dict[str, Any]

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"unknown kind {self.kind[:50]!r}")
        expected = KINDS[self.kind].settings()
        if self.parameters.keys() != expected:
            raise ValueError(f"expected the parameters {', '.join(sorted(expected)) or 'of none'}")


def segment_files(kind: str) -> tuple[str, ...]:
    """The names of the files of vectors in a segment of a kind."""
    indexed = (INDEX_FILE,) if KINDS[kind].has_file else ()
    return (VECTORS_FILE, *indexed, BUILD_FILE)


class Neighbors(NamedTuple):
    """The nearest rows of each query, best first.

    Attributes:
        rows: Row numbers (q, k).
        scores: Cosines (q, k) float32.
    """

    rows: Rows
    scores: npt.NDArray[np.float32]


def unit_chunk(vectors: Vectors, first: int = 0) -> Vectors:
    """Rows (n, dim) scaled to unit length.

    Args:
        vectors: The rows.
        first: Number of the first document, for messages.

    Raises:
        InputError: A row is zero or not finite, so that it has no direction.
    """
    norms = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    usable = np.isfinite(norms) & (norms > 0)
    if not usable.all():
        raise InputError(
            f"document {first + int(np.argmin(usable)) + 1} of the index has a zero or infinite "
            "vector, which has no direction; the model does not suit it"
        )
    unit: Vectors = (vectors / norms).astype(np.float32)
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
    """The vectors of one segment, opened for search.

    Args:
        vectors: Unit rows (n, dim), usually memory-mapped.
        kind: Kind of the index, with its settings.
        index: Its faiss index, if the kind has one.
        file: The file of the vectors.
    """

    def __init__(self, vectors: Vectors, kind: IndexKind, index: Any, file: OpenedFile) -> None:
        self._vectors = vectors
        self._file = file
        self._kind = kind
        self._index = index

    @classmethod
    def write(cls, folder: Path, kind: IndexKind) -> None:
        """Builds the index over a folder's ``vectors.npy`` and writes ``build.json``.

        Args:
            folder: The segment's folder.
            kind: The kind, with the settings to build with.

        Raises:
            StorageError: The disk is full or a permission is missing.
        """
        if kind.has_file:
            vectors = np.load(folder / VECTORS_FILE, mmap_mode="r", allow_pickle=False)
            write_index(kind, vectors, folder / INDEX_FILE)
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
        kind = _read_kind(folder / BUILD_FILE, rows)
        vectors, file = _map_vectors(folder / VECTORS_FILE, rows, dim)
        index = read_index(kind, folder / INDEX_FILE, rows, dim) if kind.has_file else None
        return cls(vectors, kind, index, file)

    def __len__(self) -> int:
        return len(self._vectors)

    @property
    def kind(self) -> str:
        """Name of the kind."""
        return self._kind.name

    def at(self, rows: Rows) -> Vectors:
        """The stored vectors of some rows, (n, dim).

        Raises:
            DamagedIndex: The file was overwritten since it was opened.
        """
        self._file.check()
        stored: Vectors = np.array(self._vectors[rows])
        return stored

    def search(
        self, queries: Vectors, k: int, *, exact: bool = False, live: LiveRows | None = None
    ) -> Neighbors:
        """The `k` nearest rows, fewer only where the segment has fewer; equal scores by row.

        Args:
            queries: Unit rows (q, dim) float32.
            k: How many.
            exact: Compare with every row, whatever the kind.
            live: The rows that are not deleted, at least one; ``None`` for all.

        Raises:
            DamagedIndex: The file of the vectors was overwritten since it was opened.
        """
        self._file.check()
        count = len(self) if live is None else live.count
        k = min(k, count)
        wanted = min(count, max(2 * k, k + _SPARE_CANDIDATES))
        candidates = self._exhaustive if exact else self._candidates
        found, final = self._ranked(queries, candidates(queries, wanted, live), k, count)
        # Rows beyond the candidates may score as high as the last hit (many equal texts); which of
        # them comes first must not depend on the candidates of faiss.
        while not final.all():
            wanted = min(count, 4 * wanted)
            rest = queries[~final]
            better, now = self._ranked(rest, self._exhaustive(rest, wanted, live), k, count)
            found.rows[~final], found.scores[~final] = better
            final[~final] = now
        return found

    def _candidates(self, queries: Vectors, wanted: int, live: LiveRows | None) -> Rows:
        """Rows (q, wanted) that hold the nearest, in no order."""
        if self._index is None or wanted * _EXHAUSTIVE_SHARE >= len(self):
            return self._exhaustive(queries, wanted, live)
        parameters = self._kind.search_parameters(wanted)
        if live is not None:
            parameters.sel = live.selector
        try:
            _, rows = self._index.search(queries, wanted, params=parameters)
        except (RuntimeError, MemoryError) as error:
            raise self._damaged(" ".join(str(error).split())) from error
        if rows.max() >= len(self):
            raise self._damaged(f"it returned row {rows.max()} of {len(self)}")
        # If clusters or links lead to too few rows, faiss pads with -1.
        short = (rows < 0).any(axis=1)
        if short.any():
            rows[short] = self._exhaustive(queries[short], wanted, live)
        found: Rows = rows
        return found

    def _damaged(self, reason: str) -> DamagedIndex:
        return DamagedIndex(f"{self._file.path.with_name(INDEX_FILE)} cannot be used: {reason}")

    def _exhaustive(self, queries: Vectors, wanted: int, live: LiveRows | None) -> Rows:
        """The nearest rows (q, wanted) of all that are not deleted."""
        if live is None:
            return self._nearest(queries, wanted)
        # Products with whole chunks are much faster than with selected rows one by one, which are
        # left to the queries that find many deleted rows.
        rows = self._nearest(queries, min(len(self), wanted + min(wanted, len(self) - live.count)))
        usable = live.mask[rows]
        rows = np.take_along_axis(rows, np.argsort(~usable, axis=1, kind="stable"), axis=1)
        rows = np.ascontiguousarray(rows[:, :wanted])
        short = np.count_nonzero(usable, axis=1) < wanted
        if short.any():
            rows[short] = live.nearest(queries[short], self._vectors, wanted)
        return rows

    def _nearest(self, queries: Vectors, wanted: int) -> Rows:
        faiss = load_faiss()
        _, rows = faiss.knn(queries, self._vectors, wanted, metric=faiss.METRIC_INNER_PRODUCT)
        found: Rows = rows.astype(np.int64, copy=False)
        return found

    def _ranked(
        self, queries: Vectors, candidates: Rows, k: int, count: int
    ) -> tuple[Neighbors, npt.NDArray[np.bool_]]:
        """The best `k` of the candidates (q, c), and whether no other of `count` rows is better."""
        candidates = np.sort(candidates, axis=1)  # so that equal scores are in the order of rows
        scores = self._scores(queries, candidates)
        best = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        scores_of_best = np.take_along_axis(scores, best, axis=1)
        final = scores.min(axis=1) < scores_of_best[:, -1] - _SCORE_ERROR
        if candidates.shape[1] == count:
            final[:] = True
        neighbors = Neighbors(
            np.take_along_axis(candidates, best, axis=1), np.clip(scores_of_best, -1.0, 1.0)
        )
        return neighbors, final

    def _scores(self, queries: Vectors, candidates: Rows) -> npt.NDArray[np.float32]:
        """Exact cosines (q, c) of the stored vectors, with bounded memory."""
        scores = np.empty(candidates.shape, dtype=np.float32)
        rows = max(1, _RESCORE_BYTES // (self._vectors.shape[1] * 4))
        columns = min(rows, candidates.shape[1])
        for top in range(0, len(queries), rows // columns):
            for left in range(0, candidates.shape[1], columns):
                chunk = np.s_[top : top + rows // columns, left : left + columns]
                stored = self._vectors[candidates[chunk]]  # (q, c, dim)
                # (q, dim) and (q, c, dim) give (q, c)
                scores[chunk] = np.einsum("qd,qcd->qc", queries[chunk[0]], stored, optimize=False)
        return scores


def _read_kind(path: Path, rows: int) -> IndexKind:
    """The kind of a segment of so many vectors, with its settings.

    Raises:
        DamagedIndex: The file does not name them.
    """
    try:
        build = read_record(read_regular(path), _Build, path)
        kind = as_record(build.parameters, KINDS[build.kind], path)
    except InputError as error:
        raise DamagedIndex(str(error)) from error
    # More clusters, probes or candidates are never used, and would take memory.
    limit = max(rows, _ANY_ROWS)
    for name, value in asdict(kind).items():
        if value > limit:
            raise DamagedIndex(f"{path}: expected {name} up to {limit}, found {value}")
    return kind


def _map_vectors(path: Path, rows: int, dim: int) -> tuple[Vectors, OpenedFile]:
    """The matrix of a .npy file, memory-mapped, and the file.

    Only the length of the header is read, since the hash of a large file may be unchecked.

    Raises:
        DamagedIndex: The file does not have this number of vectors of this size.
    """
    with open_regular(path) as file:
        status = os.fstat(file.fileno())
        start = status.st_size - rows * dim * 4
        begin = file.read(len(_NPY_MAGIC) + 2)
        length = len(begin) + int.from_bytes(begin[len(_NPY_MAGIC) :], "little")
        if rows < 1 or not begin.startswith(_NPY_MAGIC) or start != length:
            raise DamagedIndex(f"{path} does not hold {rows} vectors of size {dim}")
        vectors = np.memmap(file, dtype="<f4", mode="r", offset=start, shape=(rows, dim))
    return vectors, OpenedFile(path, status)
