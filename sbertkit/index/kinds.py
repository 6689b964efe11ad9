"""The kinds of vector index: the settings of each, what builds it, and how it is searched.

A kind is a class in `KINDS`. What it finds are candidates only: a segment scores them again from
the stored vectors, so that every kind gives the same exact scores. Importing this module loads
neither faiss nor NumPy.
"""

import struct
from dataclasses import dataclass, fields
from io import BufferedReader
from math import isqrt
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

import msgspec

from sbertkit.arguments import whole_number
from sbertkit.errors import InputError, InputTypeError
from sbertkit.index.faiss_layout import expect, read_bytes, read_count, read_header, skip
from sbertkit.index.faiss_library import load_faiss

if TYPE_CHECKING:
    from sbertkit.arrays import Vectors

AUTO_FLAT_LIMIT = 50_000
"""Documents up to which `auto` searches exhaustively."""

Setting = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]

_TRAINING_ROWS = 100_000
_POINTS_PER_CLUSTER = 39
"""Vectors that a cluster should have at least, after the k-means of faiss."""


@dataclass(frozen=True, slots=True)
class IndexKind:
    """A kind of index; the fields of its dataclass are its settings.

    Attributes:
        name: Its name.
        has_file: Whether it has a faiss index; otherwise the stored vectors are searched.
    """

    name: ClassVar[str]
    has_file: ClassVar[bool] = True

    @classmethod
    def settings(cls) -> set[str]:
        """The names of its settings."""
        return {field.name for field in fields(cls)}

    @classmethod
    def for_count(cls, count: int, clusters: int | None = None) -> Self:
        """The settings for so many vectors, and clusters if the kind has them."""
        del count, clusters
        return cls()

    def build(self, vectors: "Vectors") -> Any:
        """An empty faiss index, trained for these vectors."""
        raise NotImplementedError

    def search_parameters(self, k: int) -> Any:
        """The faiss search parameters for `k` results; new for each search, as threads share it."""
        raise NotImplementedError

    def check_file(self, file: BufferedReader, rows: int, dim: int) -> None:
        """Refuses a faiss file that `build` would not give for so many vectors of this size.

        Raises:
            ValueError: It is something else, or truncated.
        """
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Flat(IndexKind):
    """Exhaustive search of the stored vectors."""

    name: ClassVar[str] = "flat"
    has_file: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class Hnsw(IndexKind):
    """A graph of links (HNSW) over vectors in 8 bits per number.

    Attributes:
        links: Links per vector and level.
        ef_construction: Candidates per vector when it is added.
        ef_search: Candidates per query, at least.
    """

    name: ClassVar[str] = "hnsw"
    links: Setting = 32
    ef_construction: Setting = 100
    ef_search: Setting = 64

    def build(self, vectors: "Vectors") -> Any:
        """See `IndexKind`."""
        faiss = load_faiss()
        bits, metric = faiss.ScalarQuantizer.QT_8bit, faiss.METRIC_INNER_PRODUCT
        index = faiss.IndexHNSWSQ(vectors.shape[1], bits, self.links, metric)
        index.hnsw.efConstruction = self.ef_construction
        index.train(_training_rows(vectors, _TRAINING_ROWS))
        return index

    def search_parameters(self, k: int) -> Any:
        """See `IndexKind`."""
        return load_faiss().SearchParametersHNSW(efSearch=max(self.ef_search, 2 * k))

    def check_file(self, file: BufferedReader, rows: int, dim: int) -> None:
        """See `IndexKind`."""
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


@dataclass(frozen=True, slots=True)
class Ivf(IndexKind):
    """Clusters of whole vectors, of which a query searches the nearest.

    Attributes:
        clusters: Number of clusters.
        probes: Clusters that a query searches.
    """

    name: ClassVar[str] = "ivf"
    clusters: Setting
    probes: Setting

    @classmethod
    def for_count(cls, count: int, clusters: int | None = None) -> Self:
        """See `IndexKind`."""
        if clusters is None:
            clusters = max(1, min(4 * isqrt(count), count // _POINTS_PER_CLUSTER))
        return cls(clusters, probes=min(clusters, max(8, clusters // 16)))

    def build(self, vectors: "Vectors") -> Any:
        """See `IndexKind`."""
        faiss = load_faiss()
        dim, metric = vectors.shape[1], faiss.METRIC_INNER_PRODUCT
        index = faiss.IndexIVFFlat(faiss.IndexFlatIP(dim), dim, self.clusters, metric)
        # How few vectors a cluster may have is for the caller to decide, not for faiss to warn of.
        index.cp.min_points_per_centroid = 1
        index.train(_training_rows(vectors, max(_TRAINING_ROWS, 64 * self.clusters)))
        return index

    def search_parameters(self, k: int) -> Any:
        """See `IndexKind`."""
        del k
        return load_faiss().SearchParametersIVF(nprobe=self.probes)

    def check_file(self, file: BufferedReader, rows: int, dim: int) -> None:
        """See `IndexKind`."""
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
        numbers = [number for (number,) in struct.iter_unpack("<Q", _counted(file))]
        expect("vectors in all lists", rows, sum(numbers[step - 1 :: step]))
        skip(file, rows * (dim * 4 + 8))


KINDS: dict[str, type[IndexKind]] = {kind.name: kind for kind in (Flat, Hnsw, Ivf)}


def choose_kind(kind: str, count: int, clusters: int | None = None) -> IndexKind:
    """The kind of that name, or the one that `auto` stands for, with settings for `count` vectors.

    Raises:
        InputError: An unknown kind, clusters for a kind that has none, or more clusters than
            vectors.
    """
    check_kind(kind, clusters)
    if kind == "auto":
        by_size = Flat if count <= AUTO_FLAT_LIMIT else Hnsw
        kind = by_size.name if clusters is None else _clustered()[0]
    if clusters is not None and clusters > count:
        works = max(1, count // _POINTS_PER_CLUSTER)
        raise InputError(
            f"{clusters} clusters were asked for, but there are only {count} documents; "
            f"choose at most {count}, for instance {works}"
        )
    return KINDS[kind].for_count(count, clusters)


def check_kind(kind: str, clusters: int | None) -> None:
    """Refuses what is wrong for any number of vectors.

    Raises:
        InputError: An unknown kind, or clusters for a kind that has none.
        InputTypeError: Clusters that are no whole number.
    """
    if not isinstance(kind, str):
        raise InputTypeError(f"kind must be a str, not {kind!r}")
    if kind not in KINDS and kind != "auto":
        raise InputError(f"unknown kind {kind!r}; expected auto, {', '.join(sorted(KINDS))}")
    if clusters is None:
        return
    whole_number("clusters", clusters)
    if kind not in ("auto", *_clustered()):
        better = " or ".join(map(repr, _clustered()))
        raise InputError(f"kind {kind!r} has no clusters; leave them out or choose kind {better}")


def _clustered() -> list[str]:
    """The names of the kinds with clusters."""
    return [name for name, kind in KINDS.items() if "clusters" in kind.settings()]


def _counted(file: BufferedReader) -> bytes:
    """The bytes of an array of 64-bit numbers, whose count comes first."""
    return read_bytes(file, read_count(file) * 8)


def _training_rows(vectors: "Vectors", count: int) -> "Vectors":
    """At most `count` of the vectors, the same ones every time."""
    import numpy as np

    if len(vectors) <= count:
        return np.ascontiguousarray(vectors)
    rows = np.random.default_rng(0).choice(len(vectors), size=count, replace=False)
    return np.ascontiguousarray(vectors[np.sort(rows)])
