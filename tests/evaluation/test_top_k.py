"""Exact search chunk by chunk against sorting everything at once."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sbertkit.arrays import Vectors
from sbertkit.evaluation import top_k
from sbertkit.evaluation.top_k import TopK


def search(
    queries: Vectors, chunks: Sequence[tuple[Sequence[str], Vectors]], k: int
) -> list[dict[str, float]]:
    best = TopK(queries, k)
    for ids, vectors in chunks:
        best.add(ids, vectors)
    return best.hits()


def sorted_all(
    queries: np.ndarray, ids: Sequence[str], vectors: np.ndarray, k: int
) -> list[list[tuple[str, float]]]:
    scores = queries @ vectors.T
    return [
        sorted(zip(ids, row.tolist(), strict=True), key=lambda one: (one[1], one[0]), reverse=True)[
            :k
        ]
        for row in scores
    ]


@given(
    seed=st.integers(0, 10_000),
    documents=st.integers(1, 60),
    k=st.integers(1, 70),
    sizes=st.lists(st.integers(1, 20), min_size=1, max_size=8),
    values=st.integers(1, 4),
)
def test_the_best_are_those_of_sorting_everything(
    seed: int, documents: int, k: int, sizes: list[int], values: int
) -> None:
    random = np.random.default_rng(seed)
    # Few distinct values: most scores are shared by many documents.
    queries = random.integers(-values, values + 1, (3, 2)).astype(np.float32)
    vectors = random.integers(-values, values + 1, (documents, 2)).astype(np.float32)
    ids = [f"d{number}" for number in random.permutation(documents)]
    chunks, start, turn = [], 0, 0
    while start < documents:
        end = start + sizes[turn % len(sizes)]
        chunks.append((ids[start:end], vectors[start:end]))
        start, turn = end, turn + 1
    found = search(queries, chunks, k)
    expected = sorted_all(queries, ids, vectors, k)
    for have, want in zip(found, expected, strict=True):
        assert have == dict(want)


def test_a_large_chunk_is_scored_in_smaller_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(top_k, "_SCORES_PER_CHUNK", 8)
    monkeypatch.setattr(top_k, "_MIN_CHUNK", 3)
    random = np.random.default_rng(0)
    queries = random.normal(size=(4, 5)).astype(np.float32)
    vectors = random.normal(size=(50, 5)).astype(np.float32)
    ids = [str(number) for number in range(50)]
    found = search(queries, [(ids, vectors)], 7)
    for have, want in zip(found, sorted_all(queries, ids, vectors, 7), strict=True):
        assert have == pytest.approx(dict(want), abs=1e-6)


def test_no_document_is_no_hit() -> None:
    assert search(np.ones((2, 3), np.float32), [], 5) == [{}, {}]
