"""Approximate search against exact search worked out by hand."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from sbertkit.errors import InputError, InputTypeError
from sbertkit.evaluation import evaluate_index, index_quality

if TYPE_CHECKING:
    from sbertkit.encoder import Encoder
    from sbertkit.retrieval import Hit, SearchIndex

Build = Callable[..., "SearchIndex"]
DOCUMENTS = 400


@pytest.fixture(scope="module")
def build(tiny_encoder: "Encoder", tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Builds an index of a kind over texts of which no two are equal."""
    from sbertkit.retrieval import BuildOptions, SearchIndex

    made: dict[tuple[str, Any], SearchIndex] = {}

    def build(kind: str, clusters: int | None = None) -> SearchIndex:
        if (kind, clusters) not in made:
            random = np.random.default_rng(0)
            words = ["boat", "goat", "train", "cheese", "mountain", "noon", "rain", "roof", "hill"]
            texts = [
                (f"d{number}", f"{' '.join(random.choice(words, 6))} {number}")
                for number in range(DOCUMENTS)
            ]
            place = tmp_path_factory.mktemp(kind) / "index"
            made[kind, clusters] = SearchIndex.build(
                texts, tiny_encoder, place, kind=kind, options=BuildOptions(clusters)
            )
        return made[kind, clusters]

    return build


def test_a_flat_index_has_full_recall(build: Build) -> None:
    result = evaluate_index(build("flat"), queries=50)
    assert (result.recall, result.min_recall) == (1.0, 1.0)
    assert (result.kind, result.documents, result.queries, result.k) == ("flat", DOCUMENTS, 50, 10)
    assert result.bytes_per_vector["index"] == 0.0
    dim = build("flat").encoder.dim
    assert result.bytes_per_vector["vectors"] == pytest.approx(4 * dim, abs=1)
    assert result.measures is None
    assert json.loads(json.dumps(result.to_dict(), allow_nan=False)) == result.to_dict()


def test_recall_is_the_share_of_the_best_that_the_index_finds(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Of so few documents the tuned search would compare all.
    monkeypatch.setattr("sbertkit.index.vector_search._EXHAUSTIVE_SHARE", 1)
    monkeypatch.setattr("sbertkit.index.tuning._RESCORED", (20,))
    monkeypatch.setattr("sbertkit.index.tuning.MAX_RESCORED", 20)
    index = build("ivf", 40)  # of which some are looked at
    result = evaluate_index(index, queries=60, k=5)
    ids, vectors = index.sample(60)
    shares = []
    for query, vector in zip(ids, vectors, strict=True):
        best = [hit for hit in build("flat").search(vector, 6) if hit.id != query][:5]
        found = [hit for hit in index.search(vector, 6) if hit.id != query][:5]
        min_score = best[-1].score - 1e-6
        shares.append(sum(hit.score >= min_score for hit in found) / 5)
    assert 0.2 < np.mean(shares) < 1.0  # or else this test would tell nothing
    assert result.recall == pytest.approx(np.mean(shares))
    assert result.min_recall == min(shares)
    assert result.bytes_per_vector["index"] > 0


def test_documents_are_drawn_once_and_the_seed_repeats(build: Build) -> None:
    index = build("flat")
    ids, vectors = index.sample(100, seed=3)
    assert len(set(ids)) == 100
    again, same = index.sample(100, seed=3)
    assert ids == again
    np.testing.assert_array_equal(vectors, same)
    assert ids != index.sample(100, seed=4)[0]
    everything, _ = index.sample(10_000)
    assert sorted(everything) == sorted(f"d{number}" for number in range(DOCUMENTS))
    for document, vector in zip(ids[:5], vectors, strict=False):
        assert index.search(vector, 1)[0].id == document


def test_exact_search_looks_at_every_vector_whatever_the_kind(build: Build) -> None:
    _, vectors = build("flat").sample(30)
    for hits, best in zip(
        build("ivf", 40).search_batch(vectors, 7, exact=True),
        build("flat").search_batch(vectors, 7),
        strict=True,
    ):
        assert [hit.id for hit in hits] == [hit.id for hit in best]


def test_another_document_of_the_same_score_is_as_good() -> None:
    def hits(*scores: float) -> list["Hit"]:
        from sbertkit.retrieval import Hit

        return [Hit(str(score), score, "", {}) for score in scores]

    assert index_quality._recall(hits(0.9, 0.8), hits(0.9, 0.8)) == 1.0
    assert index_quality._recall(hits(0.9, 0.8 - 1e-8), hits(0.9, 0.8)) == 1.0
    assert index_quality._recall(hits(0.9, 0.7), hits(0.9, 0.8)) == 0.5
    assert index_quality._recall([], hits(0.9)) == 0.0
    assert index_quality._recall([], []) == 1.0


def test_latencies_are_ordered_and_above_zero(build: Build) -> None:
    result = evaluate_index(build("hnsw"), queries=40)
    for latency in (result.latency, result.exact_latency):
        assert 0 < latency.p50 <= latency.p95 <= latency.p99


def test_qrels_show_the_drop_of_a_measure(build: Build, tmp_path: Path) -> None:
    folder = tmp_path / "set"
    (folder / "qrels").mkdir(parents=True)
    ids, _ = build("flat").sample(40)
    texts = {document: build("flat").get(document).text for document in ids}
    corpus = "".join(json.dumps({"_id": key, "text": text}) + "\n" for key, text in texts.items())
    (folder / "corpus.jsonl").write_text(corpus)
    queries = [{"_id": f"q{key}", "text": text} for key, text in texts.items()]
    (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in queries))
    qrels = "".join(f"q{key}\t{key}\t1\n" for key in texts)
    (folder / "qrels" / "test.tsv").write_text(qrels)
    exact = evaluate_index(build("flat"), folder)
    assert exact.measures is not None
    assert exact.measures["nDCG@10"] == (1.0, 1.0, 0.0)  # each query is its document's own text
    lossy = evaluate_index(build("ivf", 40), folder, k=3, measures=["RR@5"])
    assert lossy.k == 5  # a measure's depth must be searched
    assert lossy.measures is not None
    found = lossy.measures["RR@5"]
    assert found.exact == 1.0
    assert found.drop == found.exact - found.approximate


@pytest.mark.parametrize("name", ["k", "queries"])
def test_counts_below_one_are_refused(build: Build, name: str) -> None:
    with pytest.raises(InputError, match=name):
        evaluate_index(build("flat"), **dict.fromkeys([name], 0))  # type: ignore[arg-type]


def test_something_else_than_an_index_is_a_wrong_type(tiny_encoder: "Encoder") -> None:
    with pytest.raises(InputTypeError, match="SearchIndex"):
        evaluate_index(tiny_encoder)  # type: ignore[arg-type]
