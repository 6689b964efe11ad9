"""A graph of links (HNSW) over vectors in 8 bits per number.

Malkov and Yashunin, Efficient and robust approximate nearest neighbor search using Hierarchical
Navigable Small World graphs, 2018.
"""

import math
import struct
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from sbertkit.index.faiss_files import read_index, write_index
from sbertkit.index.faiss_layout import expect, read_bytes, read_count, read_header, skip
from sbertkit.index.faiss_library import load_faiss
from sbertkit.index.faiss_search import faiss_search, only_live
from sbertkit.index.kinds.base import (
    INDEX_FILE,
    Candidates,
    IndexKind,
    Part,
    Searcher,
    Setting,
    doubling,
    training_rows,
)

if TYPE_CHECKING:
    from sbertkit.arrays import Vectors
    from sbertkit.index.live_rows import LiveRows

_TRAINING_ROWS = 100_000
_DEEPER = 4
"""Up to this many times deeper the graph is searched to find enough live rows."""
_MAX_WIDTH = 4_096


@dataclass(frozen=True, slots=True)
class Hnsw(IndexKind):
    """A graph of links over vectors in 8 bits per number.

    Attributes:
        links: Links per vector and level.
        ef_construction: Candidates per vector when it is added.
    """

    name: ClassVar[str] = "hnsw"
    width_name: ClassVar[str | None] = "ef_search"
    links: Setting = 32
    ef_construction: Setting = 100

    def memory(self, count: int, dim: int) -> int:
        """See `IndexKind`; links of the lowest level are twice as many."""
        return count * (dim + 8 * self.links + 16)

    def write(self, vectors: "Vectors", folder: Path, learnt: dict[str, "Vectors"]) -> None:
        """See `IndexKind`."""
        del learnt
        faiss = load_faiss()
        bits, metric = faiss.ScalarQuantizer.QT_8bit, faiss.METRIC_INNER_PRODUCT
        index = faiss.IndexHNSWSQ(vectors.shape[1], bits, self.links, metric)
        index.hnsw.efConstruction = self.ef_construction
        index.train(training_rows(vectors, _TRAINING_ROWS))
        write_index(index, vectors, folder / INDEX_FILE)

    def open(self, folder: Path, rows: int, dim: int) -> Any:
        """See `IndexKind`."""
        return read_index(folder / INDEX_FILE, lambda file: _check_file(file, rows, dim))

    def searcher(self, part: Part) -> Searcher:
        """See `IndexKind`."""
        return _Graph(part.content, part.rows)

    def width_for(self, width: int, count: int) -> int:
        """See `IndexKind`; a walk finds what it keeps."""
        return max(width, count)

    def widths(self, rows: int) -> list[int]:
        """See `IndexKind`."""
        return doubling(10, min(max(10, rows), _MAX_WIDTH))


class _Graph:
    """The graph of a segment of so many rows."""

    def __init__(self, index: Any, rows: int) -> None:
        self._index = index
        self._rows = rows

    def search(
        self, queries: "Vectors", width: int, count: int, live: "LiveRows | None"
    ) -> Candidates:
        """See `Searcher`.

        The graph is searched as without deleted rows or a filter, only deeper, and what is not
        live is left out. So it is never lost among rows that lead nowhere.
        """
        depth = count = min(count, width)
        if live is not None:
            share = max(live.count / self._rows, 1 / _DEEPER)
            depth = min(self._rows, math.ceil(1.2 * count / share) + 10)
        found = faiss_search(
            self._index,
            queries,
            depth,
            load_faiss().SearchParametersHNSW(efSearch=math.ceil(width * depth / count)),
        )
        return found if live is None else only_live(found, live, count)


def _check_file(file: BufferedReader, rows: int, dim: int) -> None:
    """Refuses what `write` would not write for so many vectors of this size."""
    read_header(file, b"IHNs", rows, dim)
    for width in (8, 4, 4, 8, 4):  # bytes per number of the arrays of links
        skip(file, read_count(file) * width)
    skip(file, 5 * 4)
    read_header(file, b"IxSQ", rows, dim)
    quantizer = struct.Struct("<iifQQ")
    *_, size, code = quantizer.unpack(read_bytes(file, quantizer.size))
    expect("vectors of size", (dim, dim), (size, code))
    skip(file, read_count(file) * 4)
    expect("bytes of vectors", rows * dim, read_count(file))
    skip(file, rows * dim)
