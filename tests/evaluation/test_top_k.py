"""Exact search in parts against sorting everything at once."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sbertkit.evaluation import top_k
from sbertkit.evaluation.top_k import exact_search


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
    parts, start, turn = [], 0, 0
    while start < documents:
        end = start + sizes[turn % len(sizes)]
        parts.append((ids[start:end], vectors[start:end]))
        start, turn = end, turn + 1
    found = exact_search(queries, parts, k)
    expected = sorted_all(queries, ids, vectors, k)
    for have, want in zip(found, expected, strict=True):
        assert have == dict(want)


def test_a_large_part_is_scored_block_by_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(top_k, "_SCORES", 8)
    monkeypatch.setattr(top_k, "_LEAST_BLOCK", 3)
    random = np.random.default_rng(0)
    queries = random.normal(size=(4, 5)).astype(np.float32)
    vectors = random.normal(size=(50, 5)).astype(np.float32)
    ids = [str(number) for number in range(50)]
    found = exact_search(queries, [(ids, vectors)], 7)
    for have, want in zip(found, sorted_all(queries, ids, vectors, 7), strict=True):
        assert have == pytest.approx(dict(want), abs=1e-6)


def test_no_document_is_no_hit() -> None:
    assert exact_search(np.ones((2, 3), np.float32), [], 5) == [{}, {}]
