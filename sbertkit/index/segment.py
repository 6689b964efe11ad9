"""A segment's vectors on disk and the search over them.

Files: ``vectors.npy`` (float32 unit rows, memory-mapped), ``index.faiss`` (not for kind flat) and
``build.json`` (kind, parameters, measured recall). None is changed once written.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from sbertkit.arrays import Vectors
from sbertkit.data.chunk_log import Chunk
from sbertkit.data.vector_files import NpyWriter
from sbertkit.errors import DamagedIndex, InputError
from sbertkit.files import open_regular, read_regular
from sbertkit.index.faiss_library import load_faiss
from sbertkit.index.kinds import (
    KINDS,
    IndexKind,
    Parameters,
    Rows,
    read_index,
    write_index,
)
from sbertkit.index.live_rows import LiveRows
from sbertkit.index.opened_file import OpenedFile
from sbertkit.schema import read_record
from sbertkit.storage import storage_errors

VECTORS_FILE = "vectors.npy"
INDEX_FILE = "index.faiss"
BUILD_FILE = "build.json"

_RESCORE_BYTES = 64 * 2**20
_NPY_MAGIC = b"\x93NUMPY\x01\x00"
_SPARE_CANDIDATES = 10
_EXHAUSTIVE_SHARE = 4
"""From one candidate in this many rows on, to look at every row is not more work."""
_ANY_ROWS = 1_000
"""Up to this a setting may be more than there are vectors."""
_SCORE_ERROR = 1e-5
"""More than the float32 scores of faiss and of ours differ for unit vectors."""


Setting = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]


@dataclass(frozen=True, slots=True)
class _Build:
    """What a search needs of ``build.json``."""

    kind: str
    parameters: dict[str, Setting]

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"unknown kind {self.kind[:50]!r}")
        expected = KINDS[self.kind].settings
        if self.parameters.keys() != expected:
            raise ValueError(f"expected the parameters {', '.join(sorted(expected)) or 'of none'}")


def segment_files(kind: IndexKind) -> tuple[str, ...]:
    """The names of a segment's files of vectors."""
    indexed = () if kind.build is None else (INDEX_FILE,)
    return (VECTORS_FILE, *indexed, BUILD_FILE)


class Neighbours(NamedTuple):
    """The nearest rows of each query, best first.

    Attributes:
        rows: Row numbers (q, k).
        scores: Cosines (q, k) float32.
    """

    rows: Rows
    scores: npt.NDArray[np.float32]


def unit_pools(pools: Iterable[Vectors], *, row: int = 0) -> Iterator[Vectors]:
    """The rows of arrays (n, dim) scaled to unit length.

    Args:
        pools: The arrays.
        row: Number of the first row, for messages.

    Raises:
        InputError: A row is zero or not finite, so that it has no direction.
    """
    for pool in pools:
        norms = np.linalg.norm(pool.astype(np.float64), axis=1, keepdims=True)
        usable = np.isfinite(norms) & (norms > 0)
        if not usable.all():
            raise InputError(
                f"document {row + int(np.argmin(usable)) + 1} of the index has a zero or infinite "
                "vector, which has no direction; the model does not suit it"
            )
        yield (pool / norms).astype(np.float32)
        row += len(pool)


def write_vectors(
    path: Path,
    pools: Iterable[Vectors],
    dim: int,
    *,
    chunks: Sequence[Chunk] = (),
    written: Callable[[int, str], None] = lambda *_: None,
) -> None:
    """Writes unit rows as .npy, pool by pool, with memory for one pool.

    Args:
        path: The file.
        pools: Arrays (n, dim) of unit rows.
        dim: Size of a row.
        chunks: The chunks that are in the file already and stay.
        written: Called with the number of rows of each pool, and the SHA-256 of their bytes, once
            they are on the disk.

    Raises:
        InputError: A chunk that is in the file has changed.
        StorageError: The disk is full or a permission is missing.
    """
    with storage_errors(path), closing(NpyWriter(path, dim, chunks)) as writer:
        for pool in pools:
            digest = writer.append(pool)
            writer.sync()
            written(len(pool), digest)
        writer.finish()


class VectorSegment:
    """The vectors of one segment, opened for search.

    Args:
        vectors: Unit rows (n, dim), usually memory-mapped.
        kind: Kind of the index.
        parameters: Its settings.
        index: Its faiss index; ``None`` for kind flat.
        file: The file of the vectors.
    """

    def __init__(
        self,
        vectors: Vectors,
        kind: IndexKind,
        parameters: Parameters,
        index: Any,
        file: OpenedFile,
    ) -> None:
        self._vectors = vectors
        self._file = file
        self._kind = kind
        self._parameters = parameters
        self._index = index

    @classmethod
    def write(
        cls, folder: Path, kind: IndexKind, parameters: Parameters, notes: dict[str, Any]
    ) -> None:
        """Builds the index over a folder's ``vectors.npy`` and writes ``build.json``.

        Args:
            folder: The segment's folder.
            kind: Kind to build.
            parameters: Its settings.
            notes: More to keep in ``build.json``.

        Raises:
            StorageError: The disk is full or a permission is missing.
        """
        vectors = np.load(folder / VECTORS_FILE, mmap_mode="r", allow_pickle=False)
        write_index(kind, vectors, parameters, folder / INDEX_FILE)
        build = {
            "kind": kind.name,
            "parameters": dict(parameters),
            "measured_recall": None,
            **notes,
        }
        with storage_errors(folder):
            text = json.dumps(build, indent=2) + "\n"
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
        build = _read_build(folder / BUILD_FILE, rows)
        kind = KINDS[build.kind]
        vectors, file = _map_vectors(folder / VECTORS_FILE, rows, dim)
        index = read_index(kind, folder / INDEX_FILE, rows, dim)
        return cls(vectors, kind, build.parameters, index, file)

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
    ) -> Neighbours:
        """The `k` nearest rows, fewer only where the segment has fewer; equal scores by row.

        Args:
            queries: Unit rows (q, dim) float32.
            k: How many.
            exact: Look at every row, whatever the kind.
            live: The rows that may be found, at least one; ``None`` for all.

        Raises:
            DamagedIndex: The file of the vectors was overwritten since it was opened.
        """
        self._file.check()
        count = len(self) if live is None else live.count
        k = min(k, count)
        wanted = min(count, max(2 * k, k + _SPARE_CANDIDATES))
        candidates = self._exhaustive if exact else self._candidates
        found, settled = self._ranked(queries, candidates(queries, wanted, live), k, count)
        # Where rows beyond the candidates may score as high as the last hit (many equal texts),
        # which of them comes first must not hang on what faiss happened to find.
        while not settled.all():
            wanted = min(count, 4 * wanted)
            asked = queries[~settled]
            better, now = self._ranked(asked, self._exhaustive(asked, wanted, live), k, count)
            found.rows[~settled], found.scores[~settled] = better
            settled[~settled] = now
        return found

    def _candidates(self, queries: Vectors, wanted: int, live: LiveRows | None) -> Rows:
        """Rows (q, wanted) that hold the nearest, in no order."""
        if (
            self._index is None
            or self._kind.search is None
            or wanted * _EXHAUSTIVE_SHARE >= len(self)
        ):
            return self._exhaustive(queries, wanted, live)
        parameters = self._kind.search(self._parameters, wanted)
        if live is not None:
            parameters.sel = live.selector
        try:
            _, rows = self._index.search(queries, wanted, params=parameters)
        except (RuntimeError, MemoryError) as error:
            raise self._damaged(" ".join(str(error).split())) from error
        if rows.max() >= len(self):
            raise self._damaged(f"it gives row {rows.max()} of {len(self)}")
        # Where clusters or links lead to too few rows, faiss fills up with -1.
        short = (rows < 0).any(axis=1)
        if short.any():
            rows[short] = self._exhaustive(queries[short], wanted, live)
        found: Rows = rows
        return found

    def _damaged(self, reason: str) -> DamagedIndex:
        return DamagedIndex(f"{self._file.path.with_name(INDEX_FILE)} cannot be used: {reason}")

    def _exhaustive(self, queries: Vectors, wanted: int, live: LiveRows | None) -> Rows:
        """Rows (q, wanted) that are the nearest of all that may be found."""
        if live is None:
            return self._nearest(queries, wanted)
        # The products of whole blocks are much faster than those of chosen rows one by one, so
        # that these are left to the queries that meet many deleted rows.
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
    ) -> tuple[Neighbours, npt.NDArray[np.bool_]]:
        """The best `k` of the candidates (q, c), and whether no other of `count` can be there."""
        candidates = np.sort(candidates, axis=1)  # equal scores then keep the order of rows
        scores = self._scores(queries, candidates)
        best = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        scores_of_best = np.take_along_axis(scores, best, axis=1)
        settled = scores.min(axis=1) < scores_of_best[:, -1] - _SCORE_ERROR
        if candidates.shape[1] == count:
            settled[:] = True
        neighbours = Neighbours(
            np.take_along_axis(candidates, best, axis=1), np.clip(scores_of_best, -1.0, 1.0)
        )
        return neighbours, settled

    def _scores(self, queries: Vectors, candidates: Rows) -> npt.NDArray[np.float32]:
        """Exact cosines (q, c) of the stored vectors, with a bounded part of them in memory."""
        scores = np.empty(candidates.shape, dtype=np.float32)
        rows = max(1, _RESCORE_BYTES // (self._vectors.shape[1] * 4))
        columns = min(rows, candidates.shape[1])
        for top in range(0, len(queries), rows // columns):
            for left in range(0, candidates.shape[1], columns):
                part = np.s_[top : top + rows // columns, left : left + columns]
                stored = self._vectors[candidates[part]]  # (q, c, dim)
                # (q, dim) and (q, c, dim) give (q, c)
                scores[part] = np.einsum("qd,qcd->qc", queries[part[0]], stored, optimize=False)
        return scores


def _read_build(path: Path, rows: int) -> _Build:
    """How a segment of so many vectors was built.

    Raises:
        DamagedIndex: The file does not say it.
    """
    try:
        build = read_record(read_regular(path), _Build, path)
    except InputError as error:
        raise DamagedIndex(str(error)) from error
    # So many clusters, probes or candidates are never asked for, and would take memory.
    limit = max(rows, _ANY_ROWS)
    for name, value in build.parameters.items():
        if value > limit:
            raise DamagedIndex(f"{path}: expected {name} up to {limit}, found {value}")
    return build


def _map_vectors(path: Path, rows: int, dim: int) -> tuple[Vectors, OpenedFile]:
    """The matrix of a .npy file, memory-mapped, and the file.

    Of the header only the length is looked at, since a large file's hash may not have been checked.

    Raises:
        DamagedIndex: The file has not this number of vectors of this size.
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
