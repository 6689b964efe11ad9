"""Which kind is built, and with what settings."""

import sys
from pathlib import Path
from typing import Any

import pytest

from sbertkit.errors import InputError, InputTypeError, MissingDependency
from sbertkit.index import faiss_library
from sbertkit.index.kinds import AUTO_FLAT_LIMIT, NAMES
from sbertkit.index.kinds.factory import Factory
from sbertkit.index.kinds.ivf import Ivf
from sbertkit.index.kinds.ivfpq import IvfPq
from sbertkit.index.kinds.table import KINDS, KindWish


def wish(kind: str, clusters: int | None = None, **more: Any) -> KindWish:
    factory = "SQ8" if kind == "factory" else None
    return KindWish(kind, clusters=clusters, factory=factory, **more)


def test_the_names_are_those_of_the_table() -> None:
    assert tuple(KINDS) == NAMES


@pytest.mark.parametrize("kind", NAMES)
def test_a_kind_is_known_by_its_name(kind: str) -> None:
    for count in (1, 5, 50_000, 10_000_000):
        assert wish(kind).choose(count, 384).name == kind


@pytest.mark.parametrize(
    ("count", "expected"),
    [(1, "flat"), (AUTO_FLAT_LIMIT, "flat"), (AUTO_FLAT_LIMIT + 1, "ivfpq"), (10**8, "ivfpq")],
)
def test_auto_goes_by_the_number_of_vectors(count: int, expected: str) -> None:
    assert wish("auto").choose(count, 384).name == expected


def test_auto_with_clusters_is_ivfpq() -> None:
    kind = wish("auto", 10).choose(100, 384)
    assert isinstance(kind, IvfPq)
    assert kind.clusters == 10


def test_auto_with_recall_1_is_exhaustive_at_any_size() -> None:
    assert wish("auto", recall=1.0).choose(10**8, 384).name == "flat"


@pytest.mark.parametrize("kind", ["hnsw", "ivf", "ivfpq", "factory"])
def test_recall_1_of_another_kind_than_flat_is_refused(kind: str) -> None:
    with pytest.raises(InputError, match="choose kind 'flat' or 'auto', or a recall below 1"):
        wish(kind, recall=1.0)


@pytest.mark.parametrize("recall", [0, -0.5, 1.5, float("nan")])
def test_a_recall_that_nothing_has_is_refused(recall: float) -> None:
    with pytest.raises(InputError, match="above 0 and at most 1"):
        wish("auto", recall=recall)


@pytest.mark.parametrize("recall", ["0.9", None, True])
def test_a_recall_that_is_no_number_is_a_wrong_type(recall: Any) -> None:
    with pytest.raises(InputTypeError, match="recall must be a number"):
        wish("auto", recall=recall)


def test_a_smaller_memory_makes_smaller_codes() -> None:
    sizes = []
    for memory in (None, 22_000_000):
        kind = wish("auto", memory=memory).choose(300_000, 384)
        assert isinstance(kind, IvfPq)
        assert memory is None or kind.memory(300_000, 384) <= memory
        sizes.append(kind.numbers_per_code)
    assert sizes == [4, 8]


def test_short_vectors_get_finer_codes() -> None:
    sizes = [IvfPq.choices(1_000, dim, None)[0].numbers_per_code for dim in (64, 256, 384, 1_024)]
    assert sizes == [2, 2, 4, 4]


def test_a_memory_below_the_flat_vectors_makes_a_small_index_ivfpq() -> None:
    assert wish("auto").choose(40_000, 384).name == "flat"
    assert wish("auto", memory=20_000_000).choose(40_000, 384).name == "ivfpq"


@pytest.mark.parametrize("kind", ["auto", "flat", "hnsw", "ivf", "ivfpq"])
def test_a_memory_below_the_smallest_index_is_refused_with_what_is_needed(kind: str) -> None:
    with pytest.raises(InputError, match=r"1\.0 kB of memory were given, .*; allow that"):
        wish(kind, memory=1_000).choose(300_000, 384)


def test_a_factory_string_goes_with_kind_factory_alone() -> None:
    for kind, factory in (("factory", None), ("auto", "SQ8"), ("hnsw", "SQ8"), ("factory", "")):
        with pytest.raises(InputError, match="factory string"):
            KindWish(kind, factory=factory)


@pytest.mark.parametrize("string", ["no such index", "IVF8", "HNSW,SQ9"])
def test_a_string_that_faiss_does_not_know_is_refused(string: str) -> None:
    with pytest.raises(InputError, match="faiss makes no index of"):
        Factory(string).check_for(1_000, 16)


def test_a_string_with_more_clusters_than_vectors_is_refused() -> None:
    with pytest.raises(InputError, match="wants 4096 clusters, but there are only 1000"):
        Factory("IVF4096,SQ8").check_for(1_000, 16)


@pytest.mark.parametrize("kind", ["", "FLAT", "pq", "Flat "])
def test_an_unknown_kind_is_refused_with_those_that_are_known(kind: str) -> None:
    with pytest.raises(InputError, match=f"{kind!r}; expected auto, flat, hnsw, ivf"):
        wish(kind)


@pytest.mark.parametrize("kind", [None, 3, ["flat"], b"flat"])
def test_a_kind_that_is_no_str_is_a_wrong_type(kind: Any) -> None:
    with pytest.raises(InputTypeError, match="kind must be a str"):
        KindWish(kind)


@pytest.mark.parametrize("kind", ["flat", "hnsw"])
def test_clusters_for_a_kind_without_them_are_refused(kind: str) -> None:
    with pytest.raises(InputError, match="has no clusters"):
        wish(kind, 4)


@pytest.mark.parametrize("clusters", [0, -1])
def test_fewer_than_one_cluster_is_refused(clusters: int) -> None:
    with pytest.raises(InputError, match=f"at least 1, not {clusters}"):
        wish("ivf", clusters)


@pytest.mark.parametrize("clusters", [2.0, "4", True, [4]])
def test_clusters_that_are_no_whole_number_are_a_wrong_type(clusters: Any) -> None:
    with pytest.raises(InputTypeError, match="whole number"):
        wish("ivf", clusters)


@pytest.mark.parametrize(("clusters", "count"), [(256, 40), (41, 40), (2, 1)])
def test_more_clusters_than_documents_are_refused_with_a_number_that_works(
    clusters: int, count: int
) -> None:
    with pytest.raises(InputError) as caught:
        wish("ivf", clusters).check_for(count)
    message = str(caught.value)
    assert str(clusters) in message
    assert str(count) in message
    works = int(message.rsplit(" ", 1)[1])
    wish("ivf", works).check_for(count)
    assert wish("ivf", works).choose(count, 16) == Ivf(works)
    # An index that has got that small has as many as by default.
    assert wish("ivf", clusters).choose(count, 16) == wish("ivf").choose(count, 16)


@pytest.mark.parametrize("count", [1, 2, 38, 39, 40, 1_000, 123_456, 50_000_000])
def test_default_clusters_are_never_more_than_the_documents_can_fill(count: int) -> None:
    for kind in (Ivf.for_count(count), IvfPq.choices(count, 384, None)[0]):
        assert 1 <= kind.clusters <= max(1, count // 39)


@pytest.mark.parametrize("kind", ["hnsw", "ivf", "ivfpq", "factory"])
@pytest.mark.parametrize("rows", [1, 3, 50, 5_000, 10**6])
def test_widths_ascend_to_the_last_one(kind: str, rows: int) -> None:
    widths = wish(kind).choose(rows, 16).widths(rows)
    assert widths == sorted(set(widths))
    assert widths[0] >= 1
    assert len(widths) < 60


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
