"""The vectors of one segment: exact scores and complete answers from every kind."""

import json
import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sbertkit.arrays import Vectors
from sbertkit.errors import DamagedIndex, InputError, StorageError
from sbertkit.index import segment as segment_module
from sbertkit.index.kinds import KINDS, Hnsw, choose_kind
from sbertkit.index.live_rows import LiveRows
from sbertkit.index.segment import VECTORS_FILE, VectorSegment, unit_chunk, write_vectors

ALL_KINDS = sorted(KINDS)


def random_rows(count: int, dim: int = 16, seed: int = 0) -> Vectors:
    return np.random.default_rng(seed).normal(size=(count, dim)).astype(np.float32)


def unit(rows: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
    exact = rows.astype(np.float64)
    return exact / np.linalg.norm(exact, axis=1, keepdims=True)


def made(folder: Path, rows: Vectors, kind: str, clusters: int | None = None) -> VectorSegment:
    folder.mkdir(parents=True, exist_ok=True)
    write_vectors(folder / VECTORS_FILE, [unit_chunk(rows)], rows.shape[1])
    VectorSegment.write(folder, choose_kind(kind, len(rows), clusters))
    return VectorSegment.open(folder, *rows.shape)


def oracle(rows: Vectors, queries: Vectors, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and float64 scores of the nearest, equal scores by row."""
    scores = unit(queries) @ unit(rows).T
    best = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return best, np.take_along_axis(scores, best, axis=1)


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_every_row_is_its_own_nearest(tmp_path: Path, kind: str) -> None:
    rows = random_rows(3_000)
    segment = made(tmp_path, rows, kind)
    found = segment.search(unit(rows).astype(np.float32), 1)
    np.testing.assert_array_equal(found.rows[:, 0], np.arange(3_000))
    np.testing.assert_allclose(found.scores[:, 0], 1, atol=1e-6)
    assert found.scores.max() <= 1


@pytest.mark.parametrize("kind", ALL_KINDS)
@pytest.mark.parametrize("k", [1, 10, 200, 1_500, 3_000, 10**9])
def test_scores_are_the_cosines_in_float64(tmp_path: Path, kind: str, k: int) -> None:
    rows, queries = random_rows(3_000), random_rows(7, seed=1)
    found = made(tmp_path, rows, kind).search(unit(queries).astype(np.float32), k)
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
    found = made(tmp_path, rows, "flat").search(unit(queries).astype(np.float32), k)
    np.testing.assert_array_equal(found.rows, oracle(rows, queries, k)[0])


def test_hnsw_and_ivf_find_nearly_all_of_the_nearest(tmp_path: Path) -> None:
    rows, queries = random_rows(3_000), random_rows(100, seed=1)
    expected = oracle(rows, queries, 10)[0]
    for kind, at_least in (("hnsw", 0.95), ("ivf", 0.6)):
        found = made(tmp_path / kind, rows, kind).search(unit(queries).astype(np.float32), 10)
        hit = [
            len(set(a) & set(b))
            for a, b in zip(found.rows.tolist(), expected.tolist(), strict=True)
        ]
        assert np.mean(hit) / 10 >= at_least


def test_all_kinds_give_a_row_the_same_score(tmp_path: Path) -> None:
    rows, queries = random_rows(2_000), random_rows(20, seed=1)
    scores: dict[tuple[int, int], float] = {}
    for kind in ALL_KINDS:
        segment = made(tmp_path / kind, rows, kind)
        for k in (1, 3, 10, 200, 2_000):
            found = segment.search(unit(queries).astype(np.float32), k)
            for query in range(20):
                pairs = zip(found.rows[query].tolist(), found.scores[query].tolist(), strict=True)
                for row, score in pairs:
                    assert scores.setdefault((query, row), score) == score
    assert len(scores) == 20 * 2_000


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_a_query_has_the_same_answer_alone_and_among_others(tmp_path: Path, kind: str) -> None:
    rows = random_rows(2_000)
    queries = unit(random_rows(50, seed=1)).astype(np.float32)
    segment = made(tmp_path, rows, kind)
    together = segment.search(queries, 10)
    for number in range(50):
        alone = segment.search(queries[number : number + 1], 10)
        np.testing.assert_array_equal(alone.rows[0], together.rows[number])
        np.testing.assert_array_equal(alone.scores[0], together.scores[number])


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_opening_again_changes_no_answer(tmp_path: Path, kind: str) -> None:
    rows = random_rows(2_000)
    queries = unit(random_rows(50, seed=1)).astype(np.float32)
    first = made(tmp_path, rows, kind).search(queries, 20)
    again = VectorSegment.open(tmp_path, *rows.shape).search(queries, 20)
    np.testing.assert_array_equal(first.rows, again.rows)
    np.testing.assert_array_equal(first.scores, again.scores)


@pytest.mark.parametrize("kind", ALL_KINDS)
@pytest.mark.parametrize("copies", [2, 12, 300, 2_000])
def test_equal_scores_are_in_the_order_of_rows(tmp_path: Path, kind: str, copies: int) -> None:
    rows = random_rows(2_000)
    same = np.random.default_rng(5).choice(2_000, size=copies, replace=False)
    rows[same] = rows[same[0]]
    segment = made(tmp_path, rows, kind)
    query = unit(rows[same[:1]]).astype(np.float32)
    for k in (1, 2, 10, 100):
        found = segment.search(query, k).rows[0].tolist()
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
    found = made(tmp_path_factory.mktemp("s"), rows, kind).search(
        unit(queries).astype(np.float32), k
    )
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
    segment = made(tmp_path, rows, "ivf", clusters)
    for k in (1, 3, 39, 40, 41):
        found = segment.search(unit(rows).astype(np.float32), k)
        assert found.rows.shape == (40, min(k, 40))
        assert (found.rows >= 0).all()


def test_too_few_candidates_are_made_up_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # 500 clusters of about 2 rows, of which 31 are looked at: some 60 candidates of the 100 wanted.
    rows = random_rows(1_000)
    segment = made(tmp_path, rows, "ivf", 500)
    asked: list[int] = []
    whole = segment_module.VectorSegment._exhaustive

    def counted(
        self: VectorSegment, queries: Vectors, wanted: int, live: LiveRows | None
    ) -> npt.NDArray[np.int64]:
        asked.append(len(queries))
        return whole(self, queries, wanted, live)

    monkeypatch.setattr(VectorSegment, "_exhaustive", counted)
    queries = random_rows(20, seed=1)
    found = segment.search(unit(queries).astype(np.float32), 90)
    assert sum(asked) >= 20
    np.testing.assert_array_equal(found.rows, oracle(rows, queries, 90)[0])


@pytest.mark.parametrize("kind", ALL_KINDS)
@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_handful_of_rows_is_a_segment(tmp_path: Path, kind: str, count: int) -> None:
    rows = random_rows(count)
    segment = made(tmp_path, rows, kind)
    assert len(segment) == count
    assert segment.kind == kind
    found = segment.search(unit(rows).astype(np.float32), 10)
    np.testing.assert_array_equal(found.rows[:, 0], np.arange(count))
    assert found.rows.shape == (count, count)


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_threads_share_a_segment(tmp_path: Path, kind: str) -> None:
    rows = random_rows(3_000)
    queries = unit(random_rows(30, seed=1)).astype(np.float32)
    segment = made(tmp_path, rows, kind)
    ks = (1, 5, 10, 50, 100, 300)
    expected = {k: segment.search(queries, k) for k in ks}
    wrong: list[int] = []

    def search(offset: int) -> None:
        for turn in range(12):
            k = ks[(turn + offset) % len(ks)]
            found = segment.search(queries, k)
            if not np.array_equal(found.rows, expected[k].rows):
                wrong.append(k)

    threads = [threading.Thread(target=search, args=(offset,)) for offset in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_rescoring_holds_a_bounded_part_of_the_vectors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, queries = random_rows(900), random_rows(11, seed=1)
    segment = made(tmp_path, rows, "flat")
    exact = unit(queries).astype(np.float32)
    expected = {k: segment.search(exact, k) for k in (1, 10, 900)}
    sizes: list[int] = []
    einsum = np.einsum

    def watched(subscripts: str, *operands: np.ndarray, optimize: bool) -> np.ndarray:
        sizes.append(operands[1].nbytes)
        return einsum(subscripts, *operands, optimize=optimize)

    monkeypatch.setattr(np, "einsum", watched)
    for limit in (1, 64, 1_000, 100_000):
        monkeypatch.setattr(segment_module, "_RESCORE_BYTES", limit)
        for k, whole in expected.items():
            sizes.clear()
            part = segment.search(exact, k)
            assert max(sizes) <= max(limit, 64)
            np.testing.assert_array_equal(part.rows, whole.rows)
            np.testing.assert_array_equal(part.scores, whole.scores)


def test_rows_of_any_length_are_stored_with_unit_length(tmp_path: Path) -> None:
    rows = random_rows(6)
    scaled = rows * np.array([[1e-30], [1e-20], [1], [1e10], [1e18], [3e37]], dtype=np.float32)
    chunks = (scaled[:2], scaled[2:2], scaled[2:])
    write_vectors(tmp_path / "v.npy", map(unit_chunk, chunks), 16)
    stored = np.load(tmp_path / "v.npy")
    np.testing.assert_allclose(stored, unit(rows), atol=1e-7)
    np.testing.assert_allclose(np.linalg.norm(stored.astype(np.float64), axis=1), 1, atol=1e-7)


@pytest.mark.parametrize("value", [0.0, np.nan, np.inf, -np.inf])
def test_a_row_without_direction_is_refused_by_its_number(value: float) -> None:
    rows = random_rows(4)
    rows[2] = value
    with pytest.raises(InputError, match=r"document 7 .*no direction"):
        unit_chunk(rows, first=4)


@pytest.mark.parametrize("name", ["build.json", VECTORS_FILE, "index.faiss"])
def test_files_that_cannot_be_written_are_a_storage_error(tmp_path: Path, name: str) -> None:
    rows = random_rows(4)
    (tmp_path / name).mkdir()
    with pytest.raises(StorageError, match=r"cannot write [^\n]*$"):
        made(tmp_path, rows, "hnsw")


@pytest.mark.parametrize("kind", ["hnsw", "ivf"])
def test_an_index_that_does_not_fit_the_vectors_is_damaged(tmp_path: Path, kind: str) -> None:
    made(tmp_path / "a", random_rows(50), kind)
    made(tmp_path / "b", random_rows(49), kind)
    (tmp_path / "b" / "index.faiss").replace(tmp_path / "a" / "index.faiss")
    with pytest.raises(DamagedIndex, match="is no faiss index: expected faiss index"):
        VectorSegment.open(tmp_path / "a", 50, 16)


@pytest.mark.parametrize(("rows", "dim"), [(6, 16), (4, 16), (5, 17), (0, 16), (10**9, 16)])
def test_another_number_or_size_of_vectors_than_the_file_has_is_damage(
    tmp_path: Path, rows: int, dim: int
) -> None:
    made(tmp_path, random_rows(5), "flat")
    with pytest.raises(DamagedIndex, match=f"does not hold {rows} vectors of size {dim}"):
        VectorSegment.open(tmp_path, rows, dim)


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY", b"\x93NUMPY\x02\x00" + bytes(500)])
def test_a_file_that_is_no_matrix_is_damage(tmp_path: Path, content: bytes) -> None:
    made(tmp_path, random_rows(5), "flat")
    (tmp_path / VECTORS_FILE).write_bytes(content)
    with pytest.raises(DamagedIndex, match="does not hold"):
        VectorSegment.open(tmp_path, 5, 16)


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"kind": "flat"}', '{"kind": "new", "parameters": {}}', "\x00"]
)
def test_build_settings_that_make_no_sense_are_damage(tmp_path: Path, content: str) -> None:
    made(tmp_path, random_rows(5), "flat")
    (tmp_path / "build.json").write_text(content)
    with pytest.raises(DamagedIndex, match=r"build\.json"):
        VectorSegment.open(tmp_path, 5, 16)


@dataclass(frozen=True, slots=True)
class _Wide(Hnsw):
    """A kind with more links, as another package may add it."""

    name: ClassVar[str] = "wide"
    links: int = 48


def test_a_kind_is_one_class_in_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KINDS, "wide", _Wide)
    rows = random_rows(500)
    segment = made(tmp_path, rows, "wide")
    assert segment.kind == "wide"
    assert json.loads((tmp_path / "build.json").read_text())["parameters"]["links"] == 48
    found = segment.search(unit(rows).astype(np.float32), 1)
    np.testing.assert_array_equal(found.rows[:, 0], np.arange(500))


def test_the_build_is_described_beside_the_vectors(tmp_path: Path) -> None:
    made(tmp_path, random_rows(100), "ivf", 7)
    content = json.loads((tmp_path / "build.json").read_text())
    assert content == {"kind": "ivf", "parameters": {"clusters": 7, "probes": 7}}


def test_a_folder_whose_name_is_not_unicode_holds_an_index(tmp_path: Path) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
    try:
        folder.mkdir()
    except OSError:
        pytest.skip("this file system takes Unicode names alone")
    rows = random_rows(50)
    for kind in ALL_KINDS:
        segment = made(folder / kind, rows, kind)
        assert segment.search(unit(rows).astype(np.float32), 1).rows[49, 0] == 49
