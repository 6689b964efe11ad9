"""The kinds of vector index: what builds each, and how its candidates are drawn.

A kind is one entry of `KINDS`. What it finds are candidates only: a segment scores them again from
the stored vectors, so that every kind gives the same exact scores.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from io import BufferedReader
from math import isqrt
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sbertkit.arguments import whole_number
from sbertkit.arrays import Vectors
from sbertkit.errors import DamagedIndex, InputError, InputTypeError
from sbertkit.files import open_regular
from sbertkit.index.faiss_layout import walk_hnsw, walk_ivf
from sbertkit.index.faiss_library import load_faiss
from sbertkit.storage import storage_errors

Rows = npt.NDArray[np.int64]
Parameters = Mapping[str, int]

AUTO_FLAT_LIMIT = 50_000
"""Documents up to which `auto` searches exhaustively."""

_ADD_ROWS = 16_384
_TRAINING_ROWS = 100_000
_POINTS_PER_CLUSTER = 39
"""Vectors that a cluster should have at least, after the k-means of faiss."""


@dataclass(frozen=True, slots=True)
class IndexKind:
    """A kind of index.

    Attributes:
        name: Its name.
        parameters: From the number of vectors and of clusters asked for to the settings to build
            and search with.
        build: An empty, trained faiss index for vectors under those settings; ``None`` for a kind
            that searches the stored vectors themselves.
        search: The faiss search parameters for `k` results; made anew for each search, since
            threads share the index.
        walk: Refuses a faiss file that `build` would not give for so many vectors of this size.
    """

    name: str
    parameters: Callable[[int, int | None], dict[str, int]]
    build: Callable[[Vectors, Parameters], Any] | None = None
    search: Callable[[Parameters, int], Any] | None = None
    walk: Callable[[BufferedReader, int, int], None] | None = None

    @property
    def settings(self) -> frozenset[str]:
        """The names of its settings."""
        return frozenset(self.parameters(1, None))


def _flat_parameters(_count: int, _clusters: int | None) -> dict[str, int]:
    return {}


def _hnsw_parameters(_count: int, _clusters: int | None) -> dict[str, int]:
    return {"links": 32, "ef_construction": 100, "ef_search": 64}


def _build_hnsw(vectors: Vectors, parameters: Parameters) -> Any:
    faiss = load_faiss()
    index = faiss.IndexHNSWSQ(
        vectors.shape[1],
        faiss.ScalarQuantizer.QT_8bit,
        parameters["links"],
        faiss.METRIC_INNER_PRODUCT,
    )
    index.hnsw.efConstruction = parameters["ef_construction"]
    index.train(_sample(vectors, _TRAINING_ROWS))
    return index


def _search_hnsw(parameters: Parameters, k: int) -> Any:
    return load_faiss().SearchParametersHNSW(efSearch=max(parameters["ef_search"], 2 * k))


def _ivf_parameters(count: int, clusters: int | None) -> dict[str, int]:
    if clusters is None:
        clusters = max(1, min(4 * isqrt(count), count // _POINTS_PER_CLUSTER))
    return {"clusters": clusters, "probes": min(clusters, max(8, clusters // 16))}


def _build_ivf(vectors: Vectors, parameters: Parameters) -> Any:
    faiss = load_faiss()
    dim = vectors.shape[1]
    index = faiss.IndexIVFFlat(
        faiss.IndexFlatIP(dim), dim, parameters["clusters"], faiss.METRIC_INNER_PRODUCT
    )
    # How few vectors a cluster may have is for the caller to say, not for faiss on the terminal.
    index.cp.min_points_per_centroid = 1
    index.train(_sample(vectors, max(_TRAINING_ROWS, 64 * parameters["clusters"])))
    return index


def _search_ivf(parameters: Parameters, _k: int) -> Any:
    return load_faiss().SearchParametersIVF(nprobe=parameters["probes"])


KINDS: dict[str, IndexKind] = {
    kind.name: kind
    for kind in (
        IndexKind("flat", _flat_parameters),
        IndexKind("hnsw", _hnsw_parameters, _build_hnsw, _search_hnsw, walk_hnsw),
        IndexKind("ivf", _ivf_parameters, _build_ivf, _search_ivf, walk_ivf),
    )
}


def choose_kind(kind: str, count: int, clusters: int | None = None) -> IndexKind:
    """The kind of that name, or the one that `auto` stands for with `count` vectors.

    Raises:
        InputError: An unknown kind, clusters for a kind that has none, or more clusters than
            vectors.
    """
    check_kind(kind, clusters)
    if kind == "auto":
        by_size = "flat" if count <= AUTO_FLAT_LIMIT else "hnsw"
        kind = by_size if clusters is None else "ivf"
    if clusters is not None and clusters > count:
        works = max(1, count // _POINTS_PER_CLUSTER)
        raise InputError(
            f"{clusters} clusters were asked for, but there are only {count} documents; "
            f"choose at most {count}, for instance {works}"
        )
    return KINDS[kind]


def check_kind(kind: str, clusters: int | None) -> None:
    """Refuses what is wrong whatever the number of vectors.

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
    if kind not in ("auto", "ivf"):
        raise InputError(f"kind {kind!r} has no clusters; leave them out or choose kind 'ivf'")


def write_index(kind: IndexKind, vectors: Vectors, parameters: Parameters, path: Path) -> None:
    """Builds the kind's faiss index over all vectors and writes it.

    Raises:
        StorageError: It cannot be written.
    """
    if kind.build is None:
        return
    index = kind.build(vectors, parameters)
    for start in range(0, len(vectors), _ADD_ROWS):
        index.add(np.ascontiguousarray(vectors[start : start + _ADD_ROWS]))
    faiss = load_faiss()
    # Through a Python file: faiss's own says nothing when the last bytes do not fit on the disk,
    # and takes no path that is not UTF-8.
    with storage_errors(path), path.open("wb") as file:
        faiss.write_index(index, faiss.PyCallbackIOWriter(file.write))


def read_index(kind: IndexKind, path: Path, rows: int, dim: int) -> Any:
    """The faiss index of a file whose hash has been checked; ``None`` for a kind without one.

    Args:
        kind: The kind.
        path: The file.
        rows: How many vectors it must hold.
        dim: Their size.

    Raises:
        DamagedIndex: It is not what the kind is written as, or faiss does not accept it.
    """
    if kind.walk is None:
        return None
    faiss = load_faiss()
    try:
        with open_regular(path) as file:
            kind.walk(file, rows, dim)
            file.seek(0)
            return faiss.read_index(faiss.PyCallbackIOReader(file.read))
    except (RuntimeError, MemoryError, ValueError) as error:
        raise DamagedIndex(f"{path} is no faiss index: {' '.join(str(error).split())}") from error


def _sample(vectors: Vectors, count: int) -> Vectors:
    """At most `count` of the vectors, the same ones every time."""
    if len(vectors) <= count:
        return np.ascontiguousarray(vectors)
    rows = np.random.default_rng(0).choice(len(vectors), size=count, replace=False)
    return np.ascontiguousarray(vectors[np.sort(rows)])
