"""The recall that an index is tuned to: reached, stored, measured again, and refused."""

from pathlib import Path

import numpy as np
import pytest

from sbertkit import BuildOptions, Encoder, SearchIndex
from sbertkit.arrays import Vectors
from sbertkit.errors import InputError, InputTypeError, MissingFile

WORDS = [f"{a}{b}" for a in ("ka", "lo", "mi", "nu", "re", "so") for b in ("ta", "pe", "vi", "du")]


def texts(count: int, seed: int = 0) -> list[str]:
    drawn = np.random.default_rng(seed).choice(WORDS, (count, 12))
    return [f"{' '.join(line)} {number}" for number, line in enumerate(drawn.tolist())]


def corpus(count: int, start: int = 0) -> list[tuple[str, str]]:
    return [(f"d{start + at}", text) for at, text in enumerate(texts(count, seed=start))]


@pytest.fixture(scope="module")
def documents() -> list[tuple[str, str]]:
    return corpus(2_000)


@pytest.fixture(scope="module")
def queries(tiny_encoder: Encoder) -> Vectors:
    """Queries of another form than those that an index is tuned with."""
    return tiny_encoder.encode([" ".join(text.split()[:4]) for text in texts(300, seed=99)])


def recall(index: SearchIndex, queries: Vectors) -> float:
    found = index.search_batch(queries, 10)
    exact = index.search_batch(queries, 10, exact=True)
    shares = [
        sum(hit.score >= best[-1].score - 1e-6 for hit in hits) / len(best)
        for hits, best in zip(found, exact, strict=True)
    ]
    return float(np.mean(shares))


@pytest.mark.parametrize("kind", ["hnsw", "ivf", "ivfpq", "factory"])
@pytest.mark.parametrize("target", [0.9, 0.99])
def test_an_index_reaches_the_recall_that_was_asked_for(
    tmp_path: Path,
    tiny_encoder: Encoder,
    documents: list[tuple[str, str]],
    queries: Vectors,
    kind: str,
    target: float,
) -> None:
    options = BuildOptions(factory="IVF32,SQ8" if kind == "factory" else None)
    with SearchIndex.build(
        documents, tiny_encoder, tmp_path / "i", kind=kind, recall=target, options=options
    ) as index:
        measured = index.info().measured
        assert measured is not None
        assert measured.bound >= target
        assert measured.recall >= measured.bound
        assert measured.chosen in measured.tried
        assert measured.source == "parts of documents"
        assert measured.changed == 0
        assert recall(index, queries) >= target - 0.01
    with SearchIndex.open(tmp_path / "i", tiny_encoder) as again:
        assert again.info().measured == measured
        assert again.verify() == ()


def test_a_flat_index_has_no_recall_to_measure(
    tmp_path: Path, tiny_encoder: Encoder, documents: list[tuple[str, str]]
) -> None:
    with SearchIndex.build(documents, tiny_encoder, tmp_path / "i", recall=1.0) as index:
        assert index.info().kind == "flat"
        assert index.info().measured is None


@pytest.mark.parametrize("kind", ["hnsw", "ivf", "ivfpq"])
def test_a_small_index_of_equal_texts_reaches_its_recall_by_comparing_all(
    tmp_path: Path, tiny_encoder: Encoder, kind: str, queries: Vectors
) -> None:
    mixed = [
        (name, "the same text" if at % 2 else text) for at, (name, text) in enumerate(corpus(300))
    ]
    with SearchIndex.build(mixed, tiny_encoder, tmp_path / "i", kind=kind, recall=0.99) as index:
        assert recall(index, queries) == 1


def test_given_queries_are_tuned_with(
    tmp_path: Path, tiny_encoder: Encoder, documents: list[tuple[str, str]]
) -> None:
    asked = texts(200, seed=5)
    (tmp_path / "q.txt").write_text("\n".join(asked))
    with SearchIndex.build(
        documents, tiny_encoder, tmp_path / "i", kind="ivfpq", queries=tmp_path / "q.txt"
    ) as index:
        measured = index.info().measured
        assert measured is not None
        assert (measured.queries, measured.source) == (200, str(tmp_path / "q.txt"))


def test_an_index_whose_recall_cannot_be_measured_says_so_and_compares_all(
    tmp_path: Path, tiny_encoder: Encoder, caplog: pytest.LogCaptureFixture
) -> None:
    same = [(f"d{number}", "the very same words") for number in range(2_000)]
    with SearchIndex.build(same, tiny_encoder, tmp_path / "i", kind="ivfpq") as index:
        assert index.info().measured is None
        assert "the recall cannot be measured" in caplog.text
        hits = index.search("the very same words", 10, mode="dense", explain=True)
        assert [hit.id for hit in hits] == [f"d{number}" for number in range(10)]
        assert "compared with all 2,000" in str(hits[0].plan)


@pytest.mark.parametrize("asked", [[], ["one"], ["same"] * 50, [" "] * 50])
def test_too_few_queries_are_refused_and_nothing_is_written(
    tmp_path: Path, tiny_encoder: Encoder, asked: list[str]
) -> None:
    for given in (asked, _file(tmp_path / "q.txt", asked)):
        with pytest.raises(InputError, match=r"at least 30 different|expected queries, found none"):
            SearchIndex.build(
                [("a", "text")], tiny_encoder, tmp_path / "i", kind="ivf", queries=given
            )
    assert not (tmp_path / "i").exists()
    with pytest.raises(MissingFile):
        SearchIndex.build([("a", "text")], tiny_encoder, tmp_path / "i", queries="none.txt")


def _file(path: Path, lines: list[str]) -> str:
    path.write_text("\n".join(lines))
    return str(path)


def test_a_recall_that_is_not_reached_is_refused_with_what_is(
    tmp_path: Path,
    tiny_encoder: Encoder,
    documents: list[tuple[str, str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sbertkit.index.vector_search._EXHAUSTIVE_SHARE", 1)
    with pytest.raises(InputError, match=r"recall 0.999 is not reached: at best 0\.\d+ "):
        SearchIndex.build(
            documents,
            tiny_encoder,
            tmp_path / "i",
            kind="factory",
            recall=0.999,
            options=BuildOptions(factory="PQ1x4"),
        )
    assert not (tmp_path / "i").exists()


def test_a_memory_that_is_too_small_is_refused_before_anything_is_encoded(
    tmp_path: Path, tiny_encoder: Encoder, documents: list[tuple[str, str]]
) -> None:
    with pytest.raises(InputError, match=r"of memory were given, but the smallest index"):
        SearchIndex.build(documents, tiny_encoder, tmp_path / "i", memory="2kB")
    for size in ("two", "-1", "1 X", ""):
        with pytest.raises(InputError, match="memory must be"):
            SearchIndex.build(documents, tiny_encoder, tmp_path / "i", memory=size)


@pytest.mark.parametrize("kind", ["hnsw", "ivf", "ivfpq"])
def test_a_changed_index_is_measured_again(
    tmp_path: Path, tiny_encoder: Encoder, documents: list[tuple[str, str]], kind: str
) -> None:
    with SearchIndex.build(
        documents, tiny_encoder, tmp_path / "i", kind=kind, recall=0.95
    ) as index:
        index.add(corpus(100, start=5_000))
        measured = index.info().measured
        assert measured is not None
        assert (measured.generation, measured.changed) == (1, 100)
        index.add(corpus(150, start=6_000))
        index.delete([f"d{number}" for number in range(100)])
        measured = index.info().measured
        assert measured is not None
        assert (measured.generation, measured.changed) == (3, 100)
        assert measured.bound >= 0.95
        index.compact()
        measured = index.info().measured
        assert measured is not None
        assert (measured.generation, measured.changed) == (5, 0)
        assert index.verify() == ()


def test_tuning_changes_the_kind_without_encoding_documents(
    tmp_path: Path,
    tiny_encoder: Encoder,
    documents: list[tuple[str, str]],
    queries: Vectors,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with SearchIndex.build(documents, tiny_encoder, tmp_path / "i") as index:
        index.add(corpus(1_500, start=9_000))
        index.delete(["d5", "d7"])
        exact = index.search_batch(queries, 10)
        stored = next((tmp_path / "i" / "segments").glob("*/vectors.npy")).stat().st_ino
        for kind in ("ivfpq", "hnsw", "ivf", "flat", "ivfpq"):
            info = index.tune(0.97, kind=kind)
            assert info.kind == kind
            assert (info.measured is None) == (kind == "flat")
            assert index.verify() == ()
            assert recall(index, queries) >= 0.95
            assert [hit.id for hit in index.search_batch(queries, 10, exact=True)[0]] == [
                hit.id for hit in exact[0]
            ]
        places = [path.stat().st_ino for path in (tmp_path / "i").glob("segments/*/vectors.npy")]
        assert stored in places
        monkeypatch.setattr(Encoder, "encode", None)  # the queries are stored
        tuned = index.tune(0.9)
        assert tuned.measured is not None
        assert tuned.measured.bound >= 0.9
        assert tuned.recall == 0.9


def test_a_refused_tuning_changes_nothing(
    tmp_path: Path,
    tiny_encoder: Encoder,
    documents: list[tuple[str, str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sbertkit.index.vector_search._EXHAUSTIVE_SHARE", 1)
    with SearchIndex.build(documents, tiny_encoder, tmp_path / "i", kind="ivfpq") as index:
        before = sorted(path.name for path in (tmp_path / "i").rglob("*"))
        info = index.info()
        with pytest.raises(InputError, match="is not reached"):
            index.tune(0.999, kind="factory", factory="PQ1x4")
        with pytest.raises(InputError, match="of memory were given"):
            index.tune(0.9, memory=10)
        assert index.info() == info
        assert sorted(path.name for path in (tmp_path / "i").rglob("*")) == before


def test_an_index_that_outgrows_flat_is_given_another_kind(
    tmp_path: Path, tiny_encoder: Encoder, monkeypatch: pytest.MonkeyPatch, queries: Vectors
) -> None:
    monkeypatch.setattr("sbertkit.index.kinds.table.AUTO_FLAT_LIMIT", 1_500)
    with SearchIndex.build(corpus(1_000), tiny_encoder, tmp_path / "i") as index:
        assert index.info().kind == "flat"
        index.add(corpus(1_000, start=3_000))
        assert index.info().kind == "ivfpq"
        assert index.info().measured is not None
        index.add(corpus(7_000, start=5_000))  # which is more than it was trained for
        assert index.info().kind == "ivfpq"
        assert index.verify() == ()
        assert recall(index, queries) >= 0.9


@pytest.mark.parametrize("name", ["queries.npy", "centroids.npy", "codebook.npy", "codes.npy"])
def test_damage_to_what_belongs_to_the_recall_is_found_and_repaired(
    tmp_path: Path, tiny_encoder: Encoder, documents: list[tuple[str, str]], name: str
) -> None:
    SearchIndex.build(documents, tiny_encoder, tmp_path / "i", kind="ivfpq").close()
    (path,) = (tmp_path / "i").rglob(name)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    assert [Path(problem.file).name for problem in SearchIndex.verify_at(tmp_path / "i")] == [name]
    with pytest.raises(InputError, match="SHA-256"):
        SearchIndex.open(tmp_path / "i", tiny_encoder)
    assert SearchIndex.repair_at(tmp_path / "i").repaired
    with SearchIndex.open(tmp_path / "i", tiny_encoder) as index:
        assert index.verify() == ()
        assert index.info().measured is not None
        assert index.info().kind == "ivfpq"


def test_a_search_explains_its_plan(
    tmp_path: Path,
    tiny_encoder: Encoder,
    documents: list[tuple[str, str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sbertkit.index.vector_search._EXHAUSTIVE_SHARE", 1)
    with SearchIndex.build(documents, tiny_encoder, tmp_path / "i", kind="hnsw") as index:
        plans = {
            index.search("kata lope", mode="dense", explain=True)[0].plan,
            index.search("kata lope", mode="dense", explain=True, exact=True)[0].plan,
        }
        assert any(str(plan).startswith("hnsw: ") for plan in plans)
        assert "compared with all 2,000 vectors" in plans
        assert index.search("kata lope")[0].plan is None


def test_a_recall_out_of_reach_is_refused_before_the_corpus_is_encoded(
    tmp_path: Path,
    tiny_encoder: Encoder,
    documents: list[tuple[str, str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sbertkit.retrieval.trial._SHARE", 2)
    monkeypatch.setattr("sbertkit.retrieval.build.write_segment", None)
    options = BuildOptions(factory="PQ1x4")
    with pytest.raises(InputError, match=r"sample of 1,000 documents kind 'factory' finds 0\.\d+"):
        SearchIndex.build(documents, tiny_encoder, tmp_path / "i", kind="factory", options=options)
    assert not (tmp_path / "i").exists()


@pytest.mark.parametrize(
    ("factory", "message"),
    [
        ("PQ8x4fs,RFlat", "leave RFlat or Refine"),
        ("IVF16,PQ8x4fs,Refine(Flat)", "leave RFlat or Refine"),
        ("HNSW0", "expected numbers from 1"),
        ("HNSW100000", "at most 1,024 links"),
        ("IVF0,Flat", "expected numbers from 1"),
        ("IVF999999999,Flat", "expected numbers from 1"),
        ("IVF4096,Flat", "wants 4096 clusters"),
        ("ZnLattice4x10_6", "faiss cannot read back|faiss cannot build|faiss makes no"),
        ("nothing", "faiss makes no index"),
    ],
)
def test_a_factory_that_cannot_serve_is_refused_and_nothing_is_written(
    tmp_path: Path,
    tiny_encoder: Encoder,
    documents: list[tuple[str, str]],
    factory: str,
    message: str,
) -> None:
    options = BuildOptions(factory=factory)
    with pytest.raises(InputError, match=message):
        SearchIndex.build(documents, tiny_encoder, tmp_path / "i", kind="factory", options=options)
    assert not (tmp_path / "i").exists()
    with SearchIndex.build(documents, tiny_encoder, tmp_path / "flat") as index:
        with pytest.raises(InputError, match=message):
            index.tune(0.9, kind="factory", factory=factory)
        assert index.info().kind == "flat"


@pytest.mark.parametrize("factory", ["HNSW8", "NSG16"])
def test_a_graph_by_its_factory_is_described(
    tmp_path: Path, tiny_encoder: Encoder, documents: list[tuple[str, str]], factory: str
) -> None:
    options = BuildOptions(factory=factory)
    with SearchIndex.build(
        documents, tiny_encoder, tmp_path / "i", kind="factory", recall=0.5, options=options
    ) as index:
        assert index.info().kind == "factory"
        assert index.tune(0.5).measured is not None


def test_tuning_what_cannot_be_measured_is_refused(tmp_path: Path, tiny_encoder: Encoder) -> None:
    same = [(f"d{row}", "one text for all of them") for row in range(4_000)]
    with SearchIndex.build(same, tiny_encoder, tmp_path / "i", kind="ivfpq") as index:
        with pytest.raises(InputError, match="cannot be measured"):
            index.tune(0.99)
        assert index.info().measured is None


@pytest.fixture
def approximate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small indexes are not compared exhaustively, and no segments are merged."""
    monkeypatch.setattr("sbertkit.index.vector_search._EXHAUSTIVE_SHARE", 1)
    monkeypatch.setattr("sbertkit.retrieval.merge_policy.CHEAP", 0)


def own(index: SearchIndex, some: list[tuple[str, str]]) -> float:
    """The share of documents that are found by their own text."""
    hits = index.search_batch([text for _, text in some], 1, mode="dense")
    found = [bool(of) and of[0].id == id_ for of, (id_, _) in zip(hits, some, strict=True)]
    return float(np.mean(found))


@pytest.mark.usefixtures("approximate")
def test_codes_are_made_again_with_what_is_learnt_again(
    tmp_path: Path, tiny_encoder: Encoder
) -> None:
    first, options = corpus(500), BuildOptions(clusters=8)
    with SearchIndex.build(
        first, tiny_encoder, tmp_path / "i", kind="ivfpq", options=options
    ) as index:
        index.add(corpus(100, start=5_000))
        assert own(index, first) >= 0.9
    (path,) = (tmp_path / "i").rglob("codebook.npy")
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    coded = {path.parent.name for path in (tmp_path / "i").rglob("codes.npy")}
    assert SearchIndex.repair_at(tmp_path / "i").repaired
    assert coded.isdisjoint(path.parent.name for path in (tmp_path / "i").rglob("codes.npy"))
    with SearchIndex.open(tmp_path / "i", tiny_encoder) as index:
        assert index.verify() == ()
        assert own(index, first) >= 0.9


@pytest.mark.usefixtures("approximate")
def test_an_index_that_outgrows_its_clusters_has_no_codes_of_the_old_ones(
    tmp_path: Path, tiny_encoder: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sbertkit.retrieval.vector_index.OUTGROWN", 1.5)
    first = corpus(1_000)
    options = BuildOptions(clusters=8)
    with SearchIndex.build(
        first, tiny_encoder, tmp_path / "i", kind="ivfpq", options=options
    ) as index:
        index.add(corpus(2_000, start=5_000))
        assert len(list((tmp_path / "i" / "segments").iterdir())) >= 2
        assert own(index, first) >= 0.9


@pytest.mark.usefixtures("approximate")
def test_a_few_documents_are_added_to_an_index_of_a_factory(
    tmp_path: Path, tiny_encoder: Encoder
) -> None:
    options = BuildOptions(factory="IVF16,SQ8")
    with SearchIndex.build(
        corpus(300), tiny_encoder, tmp_path / "i", kind="factory", options=options
    ) as index:
        few = corpus(2, start=1_000)
        index.add(few)
        assert own(index, few) == 1
        index.tune(0.99)
        flat = {path.name for path in (tmp_path / "i" / "segments").iterdir()}
        index.add(corpus(40, start=2_000))
        assert flat < {path.name for path in (tmp_path / "i" / "segments").iterdir()}
        assert index.verify() == ()
        index.delete([f"d{number}" for number in range(295)])
        index.compact()
        assert index.info().kind == "factory"
        assert own(index, few) == 1
        with pytest.raises(InputError, match="wants 64 clusters"):
            index.tune(0.9, factory="IVF64,SQ8", kind="factory")


def test_an_index_may_get_fewer_documents_than_clusters(
    tmp_path: Path, tiny_encoder: Encoder
) -> None:
    options = BuildOptions(clusters=100)
    with pytest.raises(InputError, match="100 clusters were asked for, but there are only 50"):
        SearchIndex.build(corpus(50), tiny_encoder, tmp_path / "no", kind="ivf", options=options)
    some = corpus(200)
    with SearchIndex.build(
        some, tiny_encoder, tmp_path / "i", kind="ivf", options=options
    ) as index:
        index.delete([id_ for id_, _ in some[:120]])
        assert index.info().documents == 80
        index.compact()
        index.tune(0.9)
        assert own(index, some[120:]) == 1


def test_queries_of_another_type_are_refused(tmp_path: Path, tiny_encoder: Encoder) -> None:
    with (
        SearchIndex.build(corpus(30), tiny_encoder, tmp_path / "i") as index,
        pytest.raises(InputTypeError, match="queries must be a path or a list of texts"),
    ):
        index.tune(0.9, queries=5)  # type: ignore[arg-type]
