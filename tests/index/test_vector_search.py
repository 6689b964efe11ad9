"""The search over vectors: exact scores and complete answers from every kind."""

import threading
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from segment_cases import ALL_KINDS, made, made_of, oracle, random_rows, unit, unit32

from sbertkit.arrays import Vectors
from sbertkit.index.live_rows import LiveRows
from sbertkit.index.segment import VectorSegment
from sbertkit.index.vector_search import VectorSearch


def reopened(search: VectorSearch) -> VectorSearch:
    """The search over the same files, opened again."""
    segments = [VectorSegment.open(one.folder, *one.stored.shape) for one in search.segments]
    return VectorSearch(segments, search._searchers.learnt, search.settings)


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_every_row_is_its_own_nearest(tmp_path: Path, kind: str) -> None:
    rows = random_rows(3_000)
    search = made(tmp_path, rows, kind)
    found = search.search(unit32(rows), 1)
    np.testing.assert_array_equal(found.rows[:, 0], np.arange(3_000))
    np.testing.assert_allclose(found.scores[:, 0], 1, atol=1e-6)
    assert found.scores.max() <= 1


@pytest.mark.parametrize("kind", ALL_KINDS)
@pytest.mark.parametrize("k", [1, 10, 200, 1_500, 3_000, 10**9])
def test_scores_are_the_cosines_in_float64(tmp_path: Path, kind: str, k: int) -> None:
    rows, queries = random_rows(3_000), random_rows(7, seed=1)
    found = made(tmp_path, rows, kind).search(unit32(queries), k)
    assert found.rows.shape == found.scores.shape == (7, min(k, 3_000))
    exact = np.take_along_axis(unit(queries) @ unit(rows).T, found.rows, axis=1)
    np.testing.assert_allclose(found.scores, exact, atol=5e-7)
    assert (np.diff(found.scores, axis=1) <= 0).all()
    for line in found.rows:
        assert len(set(line.tolist())) == len(line)
        assert line.min() >= 0


@pytest.mark.parametrize("k", [1, 5, 100, 500])
def test_flat_finds_the_exact_nearest(tmp_path: Path, k: int) -> None:
    rows, queries = random_rows(500), random_rows(40, seed=1)
    found = made(tmp_path, rows, "flat").search(unit32(queries), k)
    np.testing.assert_array_equal(found.rows, oracle(rows, queries, k)[0])


def test_hnsw_and_ivf_find_nearly_all_of_the_nearest(tmp_path: Path) -> None:
    rows, queries = random_rows(3_000), random_rows(100, seed=1)
    expected = oracle(rows, queries, 10)[0]
    for kind, at_least in (("hnsw", 0.95), ("ivf", 0.6)):
        found = made(tmp_path / kind, rows, kind).search(unit32(queries), 10)
        hit = [
            len(set(a) & set(b))
            for a, b in zip(found.rows.tolist(), expected.tolist(), strict=True)
        ]
        assert np.mean(hit) / 10 >= at_least


def test_all_kinds_give_a_row_the_same_score(tmp_path: Path) -> None:
    rows, queries = random_rows(2_000), random_rows(20, seed=1)
    scores: dict[tuple[int, int], float] = {}
    for kind in ALL_KINDS:
        search = made(tmp_path / kind, rows, kind)
        for k in (1, 3, 10, 200, 2_000):
            found = search.search(unit32(queries), k)
            for query in range(20):
                pairs = zip(found.rows[query].tolist(), found.scores[query].tolist(), strict=True)
                for row, score in pairs:
                    assert scores.setdefault((query, row), score) == score
    assert len(scores) == 20 * 2_000


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_a_query_has_the_same_answer_alone_and_among_others(tmp_path: Path, kind: str) -> None:
    rows = random_rows(2_000)
    queries = unit(random_rows(50, seed=1)).astype(np.float32)
    search = made(tmp_path, rows, kind)
    together = search.search(queries, 10)
    for number in range(50):
        alone = search.search(queries[number : number + 1], 10)
        np.testing.assert_array_equal(alone.rows[0], together.rows[number])
        np.testing.assert_array_equal(alone.scores[0], together.scores[number])


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_opening_again_changes_no_answer(tmp_path: Path, kind: str) -> None:
    rows = random_rows(2_000)
    queries = unit(random_rows(50, seed=1)).astype(np.float32)
    search = made(tmp_path, rows, kind)
    first = search.search(queries, 20)
    again = reopened(search).search(queries, 20)
    np.testing.assert_array_equal(first.rows, again.rows)
    np.testing.assert_array_equal(first.scores, again.scores)


@pytest.mark.parametrize("kind", ALL_KINDS)
@pytest.mark.parametrize("copies", [2, 12, 300, 2_000])
def test_equal_scores_are_in_the_order_of_rows(tmp_path: Path, kind: str, copies: int) -> None:
    rows = random_rows(2_000)
    same = np.random.default_rng(5).choice(2_000, size=copies, replace=False)
    rows[same] = rows[same[0]]
    search = made(tmp_path, rows, kind)
    query = unit(rows[same[:1]]).astype(np.float32)
    for k in (1, 2, 10, 100):
        found = search.search(query, k).rows[0].tolist()
        expected = sorted(same.tolist())[:k]
        if copies > 2 * k + 10 or copies == 2_000 or kind == "flat":
            assert found[: len(expected)] == expected
        among = [row for row in found if row in set(same.tolist())]
        assert among == sorted(among)
        assert found[: len(among)] == among


@given(
    count=st.integers(1, 60),
    groups=st.integers(1, 5),
    k=st.integers(1, 70),
    kind=st.sampled_from(ALL_KINDS),
    seed=st.integers(0, 99),
)
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_small_and_repetitive_segments_answer_as_the_oracle(
    tmp_path_factory: pytest.TempPathFactory, count: int, groups: int, k: int, kind: str, seed: int
) -> None:
    centres = random_rows(groups, 8, seed)
    rows = centres[np.random.default_rng(seed).integers(groups, size=count)]
    queries = np.concatenate([centres, -centres])
    found = made(tmp_path_factory.mktemp("s"), rows, kind).search(unit32(queries), k)
    scores = unit(queries) @ unit(rows).T
    for query in range(len(queries)):
        # Equal rows score the same to the last bit, different groups differ by far more.
        expected = sorted(range(count), key=lambda row: (-round(scores[query, row], 5), row))
        assert found.rows[query].tolist() == expected[:k]


@pytest.mark.parametrize("clusters", [1, 40, 39, 10])
def test_clusters_with_few_members_still_give_all_that_is_asked_for(
    tmp_path: Path, clusters: int
) -> None:
    rows = random_rows(40)
    search = made(tmp_path, rows, "ivf", clusters)
    for k in (1, 3, 39, 40, 41):
        found = search.search(unit32(rows), k)
        assert found.rows.shape == (40, min(k, 40))
        assert (found.rows >= 0).all()


def test_too_few_candidates_are_made_up_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # 500 clusters of about 2 rows, of which 31 are looked at: some 60 candidates of the 90 wanted.
    rows = random_rows(1_000)
    search = made(tmp_path, rows, "ivf", 500)
    asked: list[int] = []
    whole = VectorSearch._exhaustive

    def counted(
        self: VectorSearch, queries: Vectors, wanted: int, live: LiveRows | None
    ) -> npt.NDArray[np.int64]:
        asked.append(len(queries))
        return whole(self, queries, wanted, live)

    monkeypatch.setattr(VectorSearch, "_exhaustive", counted)
    queries = random_rows(20, seed=1)
    found = search.search(unit32(queries), 90)
    assert sum(asked) >= 20
    np.testing.assert_array_equal(found.rows, oracle(rows, queries, 90)[0])


@pytest.mark.parametrize("kind", ALL_KINDS)
@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_handful_of_rows_is_a_segment(tmp_path: Path, kind: str, count: int) -> None:
    rows = random_rows(count)
    search = made(tmp_path, rows, kind)
    assert len(search) == count
    assert search.segments[0].kind.name == kind
    found = search.search(unit32(rows), 10)
    np.testing.assert_array_equal(found.rows[:, 0], np.arange(count))
    assert found.rows.shape == (count, count)


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_threads_share_a_segment(tmp_path: Path, kind: str) -> None:
    rows = random_rows(3_000)
    queries = unit(random_rows(30, seed=1)).astype(np.float32)
    search = made(tmp_path, rows, kind)
    ks = (1, 5, 10, 50, 100, 300)
    expected = {k: search.search(queries, k) for k in ks}
    wrong: list[int] = []

    def look(offset: int) -> None:
        for turn in range(12):
            k = ks[(turn + offset) % len(ks)]
            found = search.search(queries, k)
            if not np.array_equal(found.rows, expected[k].rows):
                wrong.append(k)

    threads = [threading.Thread(target=look, args=(offset,)) for offset in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_several_segments_are_searched_as_one(tmp_path: Path, kind: str) -> None:
    rows, queries = random_rows(3_000), random_rows(40, seed=1)
    parts = [rows[:1_000], rows[1_000:1_003], rows[1_003:]]
    found = made_of(tmp_path, parts, kind).search(unit32(queries), 10)
    exact = np.take_along_axis(unit(queries) @ unit(rows).T, found.rows, axis=1)
    np.testing.assert_allclose(found.scores, exact, atol=5e-7)
    expected = oracle(rows, queries, 10)[0]
    hits = [len({*a} & {*b}) for a, b in zip(found.rows.tolist(), expected.tolist(), strict=True)]
    assert np.mean(hits) >= (6 if kind in ("ivf", "ivfpq") else 9)
    best = made_of(tmp_path / "e", parts, kind).search(unit32(queries), 10, exact=True)
    np.testing.assert_array_equal(best.rows, expected)


@pytest.mark.parametrize("kind", ALL_KINDS)
@pytest.mark.parametrize("share", [0.001, 0.02, 0.3, 0.9])
@pytest.mark.parametrize("near", [None, True, False])
def test_among_live_rows_the_nearest_are_found(
    tmp_path: Path, kind: str, share: float, near: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Also where the live rows are those nearest to the topic of the queries, or farthest from it.
    monkeypatch.setattr("sbertkit.index.vector_search.FEW_ROWS", 50)
    rows, topic = random_rows(4_000), random_rows(1, seed=1)
    queries = unit32(topic + 0.5 * random_rows(30, seed=3))
    order = np.argsort(-(unit(topic) @ unit(rows).T)[0])
    count = int(share * 4_000)
    if near is None:
        alive = np.random.default_rng(2).choice(4_000, count, replace=False)
    else:
        alive = order[:count] if near else order[-count:]
    mask = np.zeros(4_000, np.bool_)
    mask[alive] = True
    search = made_of(tmp_path, [rows[:2_500], rows[2_500:]], kind)
    live = LiveRows(mask)
    found = search.search(queries, 10, live=live)
    expected = search.search(queries, 10, live=live, exact=True)
    assert found.rows.shape == expected.rows.shape == (30, min(10, count))
    assert mask[found.rows].all()
    scores = np.where(mask, unit(queries) @ unit(rows).T, -2)
    best = np.argsort(-scores, axis=1)[:, : found.rows.shape[1]]
    np.testing.assert_array_equal(expected.rows, best)
    whole = search.search(queries, 10, exact=True).rows
    wanted = _recall(search.search(queries, 10).rows, whole)
    assert _recall(found.rows, best) >= wanted - 0.1


def _recall(found: npt.NDArray[np.int64], best: npt.NDArray[np.int64]) -> float:
    hits = [len({*a} & {*b}) for a, b in zip(found.tolist(), best.tolist(), strict=True)]
    return float(np.mean(hits)) / best.shape[1]


def test_a_graph_is_searched_without_a_selector_of_faiss() -> None:
    # With bounded_queue=False faiss 1.15 ignores a selector (its issue 5504). If this fails, it
    # does so no more, and a graph may be searched with one.
    faiss = pytest.importorskip("faiss")
    rows = unit32(random_rows(500))
    index = faiss.IndexHNSWFlat(16, 16, faiss.METRIC_INNER_PRODUCT)
    index.add(rows)
    chosen = faiss.IDSelectorRange(0, 5)
    loose = faiss.SearchParametersHNSW(efSearch=64, bounded_queue=False, sel=chosen)
    assert index.search(rows[100:101], 10, params=loose)[1].max() >= 5
