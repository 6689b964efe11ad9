"""Which kind is built, and with what settings."""

import sys
from pathlib import Path
from typing import Any

import pytest

from sbertkit.errors import InputError, InputTypeError, MissingDependency
from sbertkit.index import faiss_library
from sbertkit.index.kinds import AUTO_FLAT_LIMIT, KINDS, Hnsw, Ivf, check_kind, choose_kind


def test_there_are_these_kinds() -> None:
    assert sorted(KINDS) == ["flat", "hnsw", "ivf"]


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_kind_is_known_by_its_name(kind: str) -> None:
    for count in (1, 5, 50_000, 10_000_000):
        assert choose_kind(kind, count).name == kind


@pytest.mark.parametrize(
    ("count", "expected"),
    [(1, "flat"), (AUTO_FLAT_LIMIT, "flat"), (AUTO_FLAT_LIMIT + 1, "hnsw"), (10**8, "hnsw")],
)
def test_auto_goes_by_the_number_of_documents(count: int, expected: str) -> None:
    assert choose_kind("auto", count).name == expected


def test_auto_with_clusters_is_ivf() -> None:
    assert choose_kind("auto", 100, 10).name == "ivf"


@pytest.mark.parametrize("kind", ["", "FLAT", "ivfpq", "Flat "])
def test_an_unknown_kind_is_refused_with_those_that_are_known(kind: str) -> None:
    with pytest.raises(InputError, match=f"{kind!r}; expected auto, flat, hnsw, ivf"):
        check_kind(kind, None)


@pytest.mark.parametrize("kind", [None, 3, ["flat"], b"flat"])
def test_a_kind_that_is_no_str_is_a_wrong_type(kind: Any) -> None:
    with pytest.raises(InputTypeError, match="kind must be a str"):
        check_kind(kind, None)


@pytest.mark.parametrize("kind", ["flat", "hnsw"])
def test_clusters_for_a_kind_without_them_are_refused(kind: str) -> None:
    with pytest.raises(InputError, match="has no clusters"):
        check_kind(kind, 4)


@pytest.mark.parametrize("clusters", [0, -1])
def test_fewer_than_one_cluster_is_refused(clusters: int) -> None:
    with pytest.raises(InputError, match=f"at least 1, not {clusters}"):
        check_kind("ivf", clusters)


@pytest.mark.parametrize("clusters", [2.0, "4", True, [4]])
def test_clusters_that_are_no_whole_number_are_a_wrong_type(clusters: Any) -> None:
    with pytest.raises(InputTypeError, match="whole number"):
        check_kind("ivf", clusters)


@pytest.mark.parametrize(("clusters", "count"), [(256, 40), (41, 40), (2, 1)])
def test_more_clusters_than_documents_are_refused_with_a_number_that_works(
    clusters: int, count: int
) -> None:
    with pytest.raises(InputError) as caught:
        choose_kind("ivf", count, clusters)
    message = str(caught.value)
    assert str(clusters) in message
    assert str(count) in message
    works = int(message.rsplit(" ", 1)[1])
    assert choose_kind("ivf", count, works).name == "ivf"


@pytest.mark.parametrize("count", [1, 2, 38, 39, 40, 1_000, 123_456, 50_000_000])
def test_default_clusters_are_never_more_than_the_documents_can_fill(count: int) -> None:
    kind = Ivf.for_count(count)
    assert 1 <= kind.clusters <= max(1, count // 39)
    assert 1 <= kind.probes <= kind.clusters


@pytest.mark.parametrize("clusters", [1, 2, 7, 8, 9, 500])
def test_given_clusters_are_taken_and_probed_in_part(clusters: int) -> None:
    kind = Ivf.for_count(1_000, clusters)
    assert kind.clusters == clusters
    assert 1 <= kind.probes <= clusters


def test_hnsw_looks_at_64_candidates_at_least() -> None:
    assert [Hnsw().search_parameters(k).efSearch for k in (1, 32, 100)] == [64, 64, 200]


def test_two_builds_of_faiss_are_refused_with_the_command_to_keep_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("faiss", "faiss_cpu-1.15.1.dist-info", "faiss_gpu-1.7.2.dist-info"):
        (tmp_path / name).mkdir()
    (tmp_path / "faiss" / "__init__.py").write_text("raise SystemError('of the other build')")
    monkeypatch.delitem(sys.modules, "faiss", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(MissingDependency, match="pip uninstall"):
        faiss_library.load_faiss.__wrapped__()


def test_a_missing_faiss_is_reported_with_the_command_to_get_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(MissingDependency, match=r'pip install "sbertkit\[cpu\]"'):
        faiss_library.load_faiss.__wrapped__()
