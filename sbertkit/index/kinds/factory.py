"""An index of faiss by its factory string, for those who know faiss."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import msgspec

from sbertkit.errors import DamagedIndex, InputError
from sbertkit.index.faiss_files import read_index, write_index
from sbertkit.index.faiss_library import load_faiss
from sbertkit.index.faiss_search import faiss_search, only_live
from sbertkit.index.kinds.base import (
    BYTES_PER_NUMBER,
    INDEX_FILE,
    Candidates,
    IndexKind,
    Part,
    Searcher,
    doubling,
    training_rows,
)

if TYPE_CHECKING:
    from sbertkit.arrays import Vectors
    from sbertkit.index.live_rows import LiveRows

_TRAINING_ROWS = 200_000
_MAX_WIDTH = 4_096
_MAX_NUMBER = 2**20
_MAX_LINKS = 1_024


@dataclass(frozen=True, slots=True)
class Factory(IndexKind):
    """An index of faiss by its factory string.

    Attributes:
        string: The string, as ``faiss.index_factory`` takes it, such as ``IVF1024,SQ8``.
    """

    name: ClassVar[str] = "factory"
    width_name: ClassVar[str | None] = "nprobe or efSearch"
    string: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]

    def memory(self, count: int, dim: int) -> int:
        """See `IndexKind`; bytes of codes and centroids, without links of graphs."""
        index = self._empty(dim)
        lists = getattr(_inner(index), "nlist", 0)
        try:
            code = index.sa_code_size()
        except RuntimeError:  # it stores vectors as they are
            code = dim * BYTES_PER_NUMBER
        return int(count * code + lists * dim * BYTES_PER_NUMBER)

    def check_for(self, count: int, dim: int) -> None:
        """See `IndexKind`."""
        lists = getattr(_inner(self._empty(dim)), "nlist", 0)
        if lists > count:
            raise InputError(
                f"factory {self.string!r} wants {lists} clusters, but there are only {count} "
                "vectors; choose fewer"
            )

    def write(self, vectors: "Vectors", folder: Path, learnt: dict[str, "Vectors"]) -> None:
        """See `IndexKind`."""
        del learnt
        index = self._empty(vectors.shape[1])
        try:
            if not index.is_trained:
                index.train(training_rows(vectors, _TRAINING_ROWS))
            write_index(index, vectors, folder / INDEX_FILE)
        except RuntimeError as error:
            raise InputError(
                f"faiss cannot build {self.string!r} over {len(vectors)} vectors: {_line(error)}"
            ) from error
        try:
            self.open(folder, *vectors.shape)
        except DamagedIndex as error:
            raise InputError(
                f"faiss cannot read back what factory {self.string!r} makes: {_line(error)}"
            ) from error

    def open(self, folder: Path, rows: int, dim: int) -> Any:
        """See `IndexKind`."""
        path = folder / INDEX_FILE
        index = read_index(path, lambda _: None)
        found = (index.ntotal, index.d, index.metric_type)
        if found != (rows, dim, load_faiss().METRIC_INNER_PRODUCT):
            raise DamagedIndex(f"{path} is no index of {rows} vectors of size {dim}")
        return index

    def searcher(self, part: Part) -> Searcher:
        """See `IndexKind`."""
        return _Faiss(part.content)

    def width_for(self, width: int, count: int) -> int:
        """See `IndexKind`; it may be a graph."""
        return max(width, count)

    def widths(self, rows: int) -> list[int]:
        """See `IndexKind`."""
        return doubling(1, min(max(2, rows), _MAX_WIDTH))

    def _empty(self, dim: int) -> Any:
        # faiss ends the process, or takes all memory, for some numbers.
        numbers = [int(number) for number in re.findall(r"\d+", self.string)]
        links = [int(number) for number in re.findall(r"(?:HNSW|NSG)(\d+)", self.string)]
        if not all(0 < one <= _MAX_NUMBER for one in numbers) or max(links, default=0) > _MAX_LINKS:
            raise InputError(
                f"factory {self.string!r}: expected numbers from 1 to {_MAX_NUMBER:,}, and at most "
                f"{_MAX_LINKS:,} links of a graph"
            )
        faiss = load_faiss()
        try:
            index = faiss.index_factory(dim, self.string, faiss.METRIC_INNER_PRODUCT)
        except (RuntimeError, MemoryError) as error:
            raise InputError(
                f"faiss makes no index of {self.string!r} for vectors of size {dim}: {_line(error)}"
            ) from error
        if isinstance(faiss.downcast_index(index), faiss.IndexRefine):
            raise InputError(
                f"factory {self.string!r} scores candidates again, which sbertkit does from the "
                "stored vectors; leave RFlat or Refine(...) out"
            )
        return index


class _Faiss:
    """An index of any type."""

    def __init__(self, index: Any) -> None:
        self._index = index

    def search(
        self, queries: "Vectors", width: int, count: int, live: "LiveRows | None"
    ) -> Candidates:
        """See `Searcher`; all rows are searched, and what is not live is left out."""
        faiss = load_faiss()
        if isinstance(_inner(self._index), faiss.IndexHNSW):
            count = min(count, width)
        depth = count if live is None else min(self._index.ntotal, 4 * count)
        parameters = _parameters(faiss, self._index, width, depth)
        found = faiss_search(self._index, queries, depth, parameters)
        if live is None:
            return found
        return only_live(found, live, count)


def _parameters(faiss: Any, index: Any, width: int, depth: int) -> Any:
    index = faiss.downcast_index(index)
    if isinstance(index, faiss.IndexPreTransform):
        inner = _parameters(faiss, index.index, width, depth)
        return None if inner is None else faiss.SearchParametersPreTransform(index_params=inner)
    if isinstance(index, faiss.IndexIVF):
        return faiss.SearchParametersIVF(nprobe=min(width, index.nlist))
    if isinstance(index, faiss.IndexHNSW):
        return faiss.SearchParametersHNSW(efSearch=max(width, depth))
    return None


def _inner(index: Any) -> Any:
    """The index behind transforms."""
    faiss = load_faiss()
    index = faiss.downcast_index(index)
    return _inner(index.index) if isinstance(index, faiss.IndexPreTransform) else index


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300]
