"""Vectors in two clusters each, as codes of a few numbers."""

from pathlib import Path

import numpy as np
import pytest

from sbertkit.arrays import Vectors
from sbertkit.errors import DamagedIndex
from sbertkit.index.kinds.base import SearchSettings
from sbertkit.index.kinds.ivfpq import CENTROIDS, LISTS_FILE, IvfPq
from sbertkit.index.segment import VECTORS_FILE, VectorSegment, write_vectors
from sbertkit.index.vector_search import VectorSearch
from sbertkit.metrics.cosine import unit_rows


def vectors(count: int, dim: int = 32, seed: int = 0) -> Vectors:
    drawn = np.random.default_rng(seed).standard_normal((count, dim)).astype(np.float32)
    return np.ascontiguousarray(unit_rows(drawn), np.float32)


def written(folder: Path, kind: IvfPq, rows: Vectors) -> tuple[VectorSegment, dict[str, Vectors]]:
    learnt = kind.train(rows)
    write_vectors(folder / VECTORS_FILE, [rows], rows.shape[1])
    VectorSegment.write(folder, kind, learnt)
    return VectorSegment.open(folder, *rows.shape), learnt


def test_the_second_cluster_is_near_in_another_direction_than_the_first(tmp_path: Path) -> None:
    rows = vectors(500)
    segment, learnt = written(tmp_path, IvfPq(20, 2), rows)
    centroids = learnt[CENTROIDS].astype(np.float64)
    for row, (first, second) in zip(rows, segment.content.lists, strict=True):
        products = centroids @ row
        assert first == products.argmax()
        difference = row - centroids[first]
        others = np.argsort(-products)[1:12]
        losses = [
            ((row - centroids[other]) ** 2).sum()
            + (difference @ (row - centroids[other])) ** 2 / (difference @ difference)
            for other in others
        ]
        assert losses[others.tolist().index(second)] == pytest.approx(min(losses), abs=1e-5)


@pytest.mark.parametrize("clusters", [1, 2, 7])
def test_a_search_of_all_clusters_finds_each_of_the_nearest_once(
    tmp_path: Path, clusters: int
) -> None:
    rows, queries = vectors(2_000), vectors(50, seed=1)
    segment, learnt = written(tmp_path, IvfPq(clusters, 2), rows)
    search = VectorSearch([segment], learnt, SearchSettings(clusters, 400))
    for asked in (queries, queries[:1]):
        found = search.search(asked, 10)
        exact = search.search(asked, 10, exact=True)
        assert all(len(set(one)) == 10 for one in found.rows.tolist())
        assert (found.rows == exact.rows).mean() > 0.99


@pytest.mark.parametrize("number", [-2, 20])
def test_a_cluster_that_there_is_not_is_damage(tmp_path: Path, number: int) -> None:
    kind = IvfPq(20, 2)
    segment, _ = written(tmp_path, kind, vectors(100))
    changed = np.array(segment.content.lists)
    changed[3, 1] = number
    np.save(tmp_path / LISTS_FILE, changed)
    with pytest.raises(DamagedIndex, match="clusters beyond 20"):
        kind.open(tmp_path, 100, 32)
