"""Clusters of vectors in 4 bits per few numbers (IVF with PQ fast-scan), for the whole index.

Jégou et al., Product quantization for nearest neighbor search, 2011; André et al., Quicker ADC,
2019. The centroids and the codebook are learnt once from a sample and shared by all segments: a
segment stores the clusters and the code of each of its vectors, and all segments together are
searched as one.

Each vector is in two clusters: the nearest, and the one that is near in another direction, so that
a query for which one of them is far finds it in the other (Sun et al., SOAR, 2023). Half as many
vectors are compared for the same recall.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from sbertkit.errors import DamagedIndex
from sbertkit.index.faiss_files import ROWS_PER_CHUNK
from sbertkit.index.faiss_library import load_faiss
from sbertkit.index.gpu import gpu_count, on_gpus
from sbertkit.index.kinds.base import (
    BYTES_PER_NUMBER,
    IndexKind,
    Part,
    Searcher,
    Setting,
    doubling,
    training_rows,
)
from sbertkit.index.kinds.ivf import POINTS_PER_CLUSTER
from sbertkit.index.kinds.probed_lists import ProbedLists
from sbertkit.index.npy_files import map_array, write_array
from sbertkit.storage import storage_errors

if TYPE_CHECKING:
    from sbertkit.arrays import Vectors

LISTS_FILE = "lists.npy"
CODES_FILE = "codes.npy"
CENTROIDS = "centroids"
CODEBOOK = "codebook"

_NUMBERS_PER_CODE = (2, 4, 8)
_ENOUGH_CODES = 96
"""Codes per vector with which few of the nearest are missing among a few hundred candidates."""
_MAX_FINE = 4
"""Numbers that 4 bits stand for at most, unless memory is to be saved."""

_BITS = 4
_CODEWORDS = 2**_BITS
_BLOCK = 32
"""Codes that fast-scan looks at together."""
_CODEBOOK_ROWS = 32_768
_POINTS_PER_CENTROID = 40
_CLUSTERS_PER_VECTOR = 2
_SECOND_AMONG = 12
"""The second cluster of a vector is one of so many nearest."""
_NO_CLUSTER = -1
_ENTRIES_AT_ONCE = 65_536
_MAX_PARTS = 32
"""An index is joined from at most about so many: for each of them all clusters are looked at."""
_ROWS_AT_ONCE = 2_048
_ITERATIONS = 4
"""Of k-means; more do not make the clusters better for search."""


class _Codes(NamedTuple):
    """Clusters (n, 2) int32 and code (n, bytes) uint8 of each vector of a segment."""

    lists: npt.NDArray[np.int32]
    codes: npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class IvfPq(IndexKind):
    """Clusters of vectors in 4 bits per few numbers.

    Attributes:
        clusters: Number of clusters.
        numbers_per_code: Numbers of a vector that 4 bits stand for.
    """

    name: ClassVar[str] = "ivfpq"
    files: ClassVar[tuple[str, ...]] = (LISTS_FILE, CODES_FILE)
    width_name: ClassVar[str | None] = "probes"
    trained: ClassVar[bool] = True
    clusters: Setting
    numbers_per_code: Setting

    @classmethod
    def choices(cls, count: int, dim: int, clusters: int | None) -> list[Self]:
        """The kind for so many vectors of this size, from the finest codes to the coarsest."""
        if clusters is None:
            clusters = max(1, min(2 * isqrt(count), count // POINTS_PER_CLUSTER))
        return [cls(clusters, numbers) for numbers in _NUMBERS_PER_CODE if numbers >= finest(dim)]

    def check(self, rows: int) -> None:
        """See `IndexKind`; the clusters are those of the index, not of a segment."""

    def memory(self, count: int, dim: int) -> int:
        """See `IndexKind`; a cluster wastes half a block on average."""
        code = self._code_size(dim)
        padding = min(self.clusters, count) * _BLOCK // 2 * code
        entries = _CLUSTERS_PER_VECTOR * count
        return entries * (code + 8) + padding + self.clusters * dim * BYTES_PER_NUMBER

    def train(self, vectors: "Vectors") -> dict[str, "Vectors"]:
        """See `IndexKind`."""
        faiss = load_faiss()
        dim = vectors.shape[1]
        # Few vectors are repeated: faiss wants one for each cluster and each codeword.
        least = max(self.clusters, _CODEWORDS)
        rows = vectors if len(vectors) >= least else np.resize(vectors, (least, dim))
        means = faiss.Kmeans(
            dim,
            self.clusters,
            niter=_ITERATIONS,
            spherical=True,
            seed=1,
            min_points_per_centroid=1,
            max_points_per_centroid=_POINTS_PER_CENTROID,
            gpu=gpu_count() > 0,
        )
        means.train(rows)
        quantizer = faiss.ProductQuantizer(
            self._padded(dim), self._padded(dim) // self.numbers_per_code, _BITS
        )
        quantizer.cp.min_points_per_centroid = 1
        quantizer.train(self._wide(training_rows(rows, _CODEBOOK_ROWS)))
        codebook = faiss.vector_to_array(quantizer.centroids)
        return {
            CENTROIDS: np.ascontiguousarray(means.centroids, np.float32),
            CODEBOOK: codebook.reshape(-1, _CODEWORDS * self.numbers_per_code),
        }

    def learnt_shapes(self, dim: int) -> dict[str, tuple[int, ...]]:
        """See `IndexKind`."""
        codes = self._padded(dim) // self.numbers_per_code
        return {
            CENTROIDS: (self.clusters, dim),
            CODEBOOK: (codes, _CODEWORDS * self.numbers_per_code),
        }

    @property
    def training_rows(self) -> int:
        """See `IndexKind`."""
        return max(_POINTS_PER_CENTROID * self.clusters, _CODEBOOK_ROWS)

    def write(self, vectors: "Vectors", folder: Path, learnt: dict[str, "Vectors"]) -> None:
        """See `IndexKind`."""
        dim, count = vectors.shape[1], len(vectors)
        coarse, quantizer = self._quantizers(dim, learnt)
        coarse = on_gpus(coarse)
        lists = np.empty((count, _CLUSTERS_PER_VECTOR), np.int32)
        codes = np.empty((count, self._code_size(dim)), np.uint8)
        for start in range(0, count, ROWS_PER_CHUNK):
            rows = np.ascontiguousarray(vectors[start : start + ROWS_PER_CHUNK])
            products, nearest = coarse.search(rows, min(_SECOND_AMONG, self.clusters))
            end = start + len(rows)
            lists[start:end] = _two_clusters(rows, products, nearest, learnt[CENTROIDS])
            codes[start:end] = quantizer.compute_codes(self._wide(rows))
        with storage_errors(folder):
            write_array(folder / LISTS_FILE, lists)
            write_array(folder / CODES_FILE, codes)

    def open(self, folder: Path, rows: int, dim: int) -> _Codes:
        """See `IndexKind`."""
        lists = map_array(folder / LISTS_FILE, np.int32, (rows, _CLUSTERS_PER_VECTOR))
        first, second = lists.min(axis=0)
        if first < 0 or second < _NO_CLUSTER or lists.max() >= self.clusters:
            raise DamagedIndex(f"{folder / LISTS_FILE} names clusters beyond {self.clusters}")
        return _Codes(lists, map_array(folder / CODES_FILE, np.uint8, (rows, self._code_size(dim))))

    def searchers(
        self, parts: Sequence[Part], dim: int, learnt: dict[str, "Vectors"]
    ) -> list[tuple[Searcher, int]]:
        """See `IndexKind`; one searches all."""
        each = [part.content.lists for part in parts]
        lists = each[0] if len(each) == 1 else np.concatenate(each)
        index = self._joined([part.content.codes for part in parts], lists, dim, learnt)
        return [(_Padded(ProbedLists(index, lambda: lists), self._padded(dim)), len(parts))]

    def widths(self, rows: int) -> list[int]:
        """See `IndexKind`."""
        del rows
        return doubling(1, self.clusters)

    def _joined(
        self,
        codes: Sequence[npt.NDArray[np.uint8]],
        lists: npt.NDArray[np.int32],
        dim: int,
        learnt: dict[str, "Vectors"],
    ) -> Any:
        """The faiss index over the codes of all segments, rows numbered through.

        It is put together from indexes over some of the clusters each, so that codes are in memory
        twice for a few at a time only.
        """
        faiss = load_faiss()
        coarse = faiss.IndexFlatIP(self._padded(dim))
        coarse.add(self._wide(learnt[CENTROIDS]))
        ends = np.cumsum(_sizes(lists, self.clusters))
        at_once = max(_ENTRIES_AT_ONCE, int(ends[-1]) // _MAX_PARTS)
        joined: Any = None
        first = 0
        while first < self.clusters:
            start = int(ends[first - 1]) if first else 0
            last = max(first + 1, int(np.searchsorted(ends, start + at_once)))
            rows = _rows_by_cluster(lists, range(first, last))
            sizes = np.diff(ends[first:last], prepend=start)
            part = self._packed(coarse, learnt[CODEBOOK], codes, rows, first, sizes)
            if joined is None:
                joined = part
            else:
                joined.invlists.merge_from(part.invlists, 0)
            first = last
        joined.ntotal = len(lists)
        joined.referenced_objects = (coarse,)
        return joined

    def _packed(
        self,
        coarse: Any,
        codebook: "Vectors",
        codes: Sequence[npt.NDArray[np.uint8]],
        rows: npt.NDArray[np.int64],
        first: int,
        sizes: npt.NDArray[np.int64],
    ) -> Any:
        """The faiss index over some clusters that follow each other.

        Args:
            coarse: The centroids of all clusters.
            codebook: The centroids of the parts of a vector.
            codes: Of each segment, those of its rows.
            rows: The rows of these clusters, one cluster after another.
            first: The first of them.
            sizes: How many rows each has.
        """
        faiss = load_faiss()
        index = faiss.IndexIVFPQ(
            coarse, coarse.d, self.clusters, len(codebook), _BITS, faiss.METRIC_INNER_PRODUCT
        )
        index.own_fields = False
        index.by_residual = False
        index.is_trained = True
        faiss.copy_array_to_vector(codebook.ravel(), index.pq.centroids)
        entries = _codes_of(codes, rows)
        start = 0
        for number, size in enumerate(sizes.tolist(), first):
            if size:
                of_list = slice(start, start + size)
                index.invlists.add_entries(
                    number, size, faiss.swig_ptr(rows[of_list]), faiss.swig_ptr(entries[of_list])
                )
            start += size
        packed = faiss.IndexIVFPQFastScan(index, _BLOCK)
        packed.own_fields = False
        return packed

    def _quantizers(self, dim: int, learnt: dict[str, "Vectors"]) -> tuple[Any, Any]:
        """What gives the cluster of a vector, and its code."""
        faiss = load_faiss()
        coarse = faiss.IndexFlatIP(dim)
        coarse.add(learnt[CENTROIDS])
        codebook = learnt[CODEBOOK]
        quantizer = faiss.ProductQuantizer(self._padded(dim), len(codebook), _BITS)
        faiss.copy_array_to_vector(codebook.ravel(), quantizer.centroids)
        return coarse, quantizer

    def _padded(self, dim: int) -> int:
        """The size of a vector that codes, of which there are an even number, divide."""
        step = 2 * self.numbers_per_code
        return -(-dim // step) * step

    def _code_size(self, dim: int) -> int:
        return self._padded(dim) // self.numbers_per_code * _BITS // 8

    def _wide(self, vectors: "Vectors") -> "Vectors":
        """Vectors with zeros up to the padded size."""
        return _wide(vectors, self._padded(vectors.shape[1]))


def finest(dim: int) -> int:
    """Numbers of a vector of this size that 4 bits stand for, if memory does not matter.

    Coarser codes are faster and need more candidates, which cost little; too coarse ones need too
    many.
    """
    fine = (numbers for numbers in _NUMBERS_PER_CODE if numbers <= _MAX_FINE)
    return max((one for one in fine if dim // one >= _ENOUGH_CODES), default=_NUMBERS_PER_CODE[0])


class _Padded:
    """A searcher whose vectors have zeros at their end."""

    def __init__(self, lists: ProbedLists, width: int) -> None:
        self._lists = lists
        self._width = width

    def search(self, queries: "Vectors", width: int, count: int, live: Any) -> Any:
        """See `Searcher`."""
        return self._lists.search(_wide(queries, self._width), width, count, live)


def _two_clusters(
    vectors: "Vectors",
    products: npt.NDArray[np.float32],
    nearest: npt.NDArray[np.int64],
    centroids: "Vectors",
) -> npt.NDArray[np.int64]:
    """The clusters (n, 2) of vectors; the second is `_NO_CLUSTER` if there is one cluster alone.

    Args:
        vectors: Unit rows (n, dim).
        products: Their products with the nearest centroids (n, c), unit rows, the greatest first.
        nearest: The numbers of those.
        centroids: All centroids.

    Source: Sun et al. 2023, equation 6 with lambda 1: the second minimizes ``|s|^2 + (r.s)^2 /
    |r|^2``, where r and s are the differences between the vector and the first and the second.
    """
    if nearest.shape[1] == 1:
        return np.concatenate([nearest, np.full_like(nearest, _NO_CLUSTER)], axis=1)
    found = np.empty((len(vectors), _CLUSTERS_PER_VECTOR), np.int64)
    for start in range(0, len(vectors), _ROWS_AT_ONCE):
        chunk = slice(start, start + _ROWS_AT_ONCE)
        others = nearest[chunk, 1:]
        first = vectors[chunk] - centroids[nearest[chunk, 0]]  # (n, dim)
        along = np.einsum("nd,nd->n", first, vectors[chunk])[:, None]
        along = along - np.matmul(centroids[others], first[:, :, None])[:, :, 0]  # (n, c)
        length = np.maximum(np.einsum("nd,nd->n", first, first), np.finfo(np.float32).tiny)
        loss = 2 - 2 * products[chunk, 1:] + along**2 / length[:, None]
        second = np.take_along_axis(others, loss.argmin(axis=1)[:, None], axis=1)
        found[chunk] = np.concatenate([nearest[chunk, :1], second], axis=1)
    return found


def _sizes(lists: npt.NDArray[np.int32], clusters: int) -> npt.NDArray[np.int64]:
    """How many vectors are in each cluster."""
    sizes = np.zeros(clusters, np.int64)
    for start in range(0, len(lists), ROWS_PER_CHUNK):
        numbers = lists[start : start + ROWS_PER_CHUNK]
        sizes += np.bincount(numbers[numbers != _NO_CLUSTER], minlength=clusters)
    return sizes


def _rows_by_cluster(lists: npt.NDArray[np.int32], clusters: range) -> npt.NDArray[np.int64]:
    """The rows of some clusters, cluster by cluster, ascending in each."""
    rows, numbers = [], []
    for start in range(0, len(lists), ROWS_PER_CHUNK):
        chunk = lists[start : start + ROWS_PER_CHUNK]
        inside, place = np.nonzero((clusters.start <= chunk) & (chunk < clusters.stop))
        rows.append(inside + start)
        numbers.append(chunk[inside, place])
    order = np.argsort(np.concatenate(numbers), kind="stable")
    return np.concatenate(rows)[order]


def _codes_of(
    codes: Sequence[npt.NDArray[np.uint8]], rows: npt.NDArray[np.int64]
) -> npt.NDArray[np.uint8]:
    """The codes of rows, which are numbered through all segments."""
    found = np.empty((len(rows), codes[0].shape[1]), np.uint8)
    start = 0
    for segment in codes:
        inside = (start <= rows) & (rows < start + len(segment))
        found[inside] = segment[rows[inside] - start]
        start += len(segment)
    return found


def _wide(vectors: "Vectors", width: int) -> "Vectors":
    if vectors.shape[1] == width:
        return np.ascontiguousarray(vectors)
    wide = np.zeros((len(vectors), width), np.float32)
    wide[:, : vectors.shape[1]] = vectors
    return wide
