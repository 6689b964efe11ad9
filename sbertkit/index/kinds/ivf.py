"""Clusters of whole vectors, of which a query probes the nearest.

Sivic and Zisserman, Video Google, 2003; Jégou et al., Product quantization for nearest neighbor
search, 2011.
"""

import struct
from dataclasses import dataclass
from io import BufferedReader
from math import isqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from sbertkit.errors import DamagedIndex
from sbertkit.index.faiss_files import read_index, write_index
from sbertkit.index.faiss_layout import expect, read_bytes, read_count, read_header, skip
from sbertkit.index.faiss_library import load_faiss
from sbertkit.index.kinds.base import (
    BYTES_PER_NUMBER,
    INDEX_FILE,
    IndexKind,
    Part,
    Searcher,
    Setting,
    doubling,
    training_rows,
)
from sbertkit.index.kinds.probed_lists import Lists, ProbedLists

if TYPE_CHECKING:
    from sbertkit.arrays import Vectors

POINTS_PER_CLUSTER = 39
"""Vectors that a cluster should have at least, after the k-means of faiss."""
_TRAINING_ROWS = 100_000


def clusters_for(count: int) -> int:
    """The number of clusters for so many vectors."""
    return max(1, min(4 * isqrt(count), count // POINTS_PER_CLUSTER))


@dataclass(frozen=True, slots=True)
class Ivf(IndexKind):
    """Clusters of whole vectors, of which a query probes the nearest.

    Attributes:
        clusters: Number of clusters.
    """

    name: ClassVar[str] = "ivf"
    width_name: ClassVar[str | None] = "probes"
    clusters: Setting

    @classmethod
    def for_count(cls, count: int, clusters: int | None = None) -> Self:
        """See `IndexKind`."""
        return cls(clusters_for(count) if clusters is None else clusters)

    def memory(self, count: int, dim: int) -> int:
        """See `IndexKind`; the vectors are in the index once more."""
        return (count + self.clusters) * dim * BYTES_PER_NUMBER + 8 * count

    def write(self, vectors: "Vectors", folder: Path, learnt: dict[str, "Vectors"]) -> None:
        """See `IndexKind`."""
        del learnt
        faiss = load_faiss()
        dim, metric = vectors.shape[1], faiss.METRIC_INNER_PRODUCT
        index = faiss.IndexIVFFlat(faiss.IndexFlatIP(dim), dim, self.clusters, metric)
        # How few vectors a cluster may have is for the caller to decide, not for faiss to warn of.
        index.cp.min_points_per_centroid = 1
        index.train(training_rows(vectors, max(_TRAINING_ROWS, 64 * self.clusters)))
        write_index(index, vectors, folder / INDEX_FILE)

    def open(self, folder: Path, rows: int, dim: int) -> Any:
        """See `IndexKind`."""
        return read_index(folder / INDEX_FILE, lambda file: _check_file(file, rows, dim))

    def searcher(self, part: Part) -> Searcher:
        """See `IndexKind`."""
        return ProbedLists(part.content, lambda: _lists(part.content))

    def widths(self, rows: int) -> list[int]:
        """See `IndexKind`."""
        del rows
        return doubling(1, self.clusters)


def _lists(index: Any) -> Lists:
    """The number of the cluster of each row.

    Raises:
        DamagedIndex: A cluster has a row that is not there.
    """
    faiss = load_faiss()
    lists = np.empty(index.ntotal, np.int32)
    for number in range(index.nlist):
        size = index.invlists.list_size(number)
        if size:
            rows = faiss.rev_swig_ptr(index.invlists.get_ids(number), size)
            if rows.min() < 0 or rows.max() >= len(lists):
                raise DamagedIndex(
                    f"cluster {number} has rows beyond the {len(lists)} of the index"
                )
            lists[rows] = number
    return lists


def _check_file(file: BufferedReader, rows: int, dim: int) -> None:
    """Refuses what `write` would not write for so many vectors of this size."""
    read_header(file, b"IwFl", rows, dim)
    clusters = read_count(file)
    read_count(file)
    read_header(file, b"IxFI", clusters, dim)
    expect("numbers of the centroids", clusters * dim, read_count(file))
    skip(file, clusters * dim * 4)
    expect("direct map", bytes(9), read_bytes(file, 9))
    expect("type of lists", b"ilar", read_bytes(file, 4))
    expect("lists", clusters, read_count(file))
    expect("bytes per vector", dim * 4, read_count(file))
    # The lengths of all lists, or number and length of each list that is not empty.
    step = {b"full": 1, b"sprs": 2}.get(read_bytes(file, 4), 0)
    if not step:
        raise ValueError("expected lengths of lists")
    counted = read_bytes(file, read_count(file) * 8)
    numbers = [number for (number,) in struct.iter_unpack("<Q", counted)]
    expect("vectors in all lists", rows, sum(numbers[step - 1 :: step]))
    skip(file, rows * (dim * 4 + 8))
