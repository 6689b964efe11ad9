"""Random vectors, and segments of every kind over them."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from sbertkit.arrays import Vectors
from sbertkit.index.kinds.base import IndexKind, SearchSettings
from sbertkit.index.kinds.table import KINDS, KindWish
from sbertkit.index.segment import VECTORS_FILE, VectorSegment, unit_chunk, write_vectors
from sbertkit.index.vector_search import VectorSearch

ALL_KINDS = sorted(KINDS)


def random_rows(count: int, dim: int = 16, seed: int = 0) -> Vectors:
    return np.random.default_rng(seed).normal(size=(count, dim)).astype(np.float32)


def unit(rows: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
    exact = rows.astype(np.float64)
    return exact / np.linalg.norm(exact, axis=1, keepdims=True)


def unit32(rows: npt.NDArray[np.floating]) -> Vectors:
    return unit(rows).astype(np.float32)


SETTINGS = {
    "hnsw": SearchSettings(64, 20),
    "ivf": SearchSettings(8, 20),
    "ivfpq": SearchSettings(8, 120),
    "factory": SearchSettings(64, 50),
}
"""Of a search that does not compare all vectors."""


def chosen(kind: str, rows: Vectors, clusters: int | None = None) -> IndexKind:
    factory = "HNSW16,SQ8" if kind == "factory" else None
    return KindWish(kind, clusters=clusters, factory=factory).choose(*rows.shape)


def made(
    folder: Path, rows: Vectors, kind: str | IndexKind, clusters: int | None = None
) -> VectorSearch:
    """The search over one segment with these vectors."""
    return made_of(folder, [rows], kind, clusters)


def made_of(
    folder: Path, parts: Sequence[Vectors], kind: str | IndexKind, clusters: int | None = None
) -> VectorSearch:
    """The search over a segment for each part."""
    every = np.concatenate(parts)
    wanted = chosen(kind, every, clusters) if isinstance(kind, str) else kind
    learnt = wanted.train(unit32(every)) if wanted.trained else {}
    segments = []
    for number, rows in enumerate(parts):
        place = folder if len(parts) == 1 else folder / str(number)
        place.mkdir(parents=True, exist_ok=True)
        write_vectors(place / VECTORS_FILE, [unit_chunk(rows)], rows.shape[1])
        own = wanted if wanted.trained or not isinstance(kind, str) else chosen(kind, rows)
        VectorSegment.write(place, wanted if len(parts) == 1 else own, learnt)
        segments.append(VectorSegment.open(place, *rows.shape))
    return VectorSearch(segments, learnt, SETTINGS.get(wanted.name))


def oracle(
    rows: Vectors, queries: Vectors, k: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Rows and float64 scores of the nearest, equal scores by row."""
    scores = unit(queries) @ unit(rows).T
    best = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return best, np.take_along_axis(scores, best, axis=1)
