"""Retrieval measures of answers that a re-ranker has ordered again."""

import logging
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from index_cases import documents, mixed_documents
from tiny_rerankers import cross_encoder, write_collection

from sbertkit import Encoder, InputError, Reranker, SearchIndex
from sbertkit.evaluation import evaluate_retrieval

CORPUS = dict(documents(60))
QUERIES = {f"q{number}": text for number, text in enumerate(list(CORPUS.values())[:5])}
QRELS = {f"q{number}": {f"d{number}": 1, f"d{number + 20}": 2} for number in range(5)}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny cross-encoder."""
    return cross_encoder(tmp_path_factory.mktemp("reranker") / "model")


@pytest.fixture(scope="module")
def reranker(model: Path) -> Reranker:
    """It, loaded."""
    return Reranker.load(model)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A collection of short texts."""
    return write_collection(tmp_path / "collection", CORPUS, QUERIES, QRELS)


def check_order(
    before: Mapping[str, Mapping[str, float]],
    after: Mapping[str, Mapping[str, float]],
    reranker: Reranker,
    depth: int,
    corpus: Mapping[str, str],
) -> None:
    """Asserts that the first documents have the re-ranker's scores, and the others come last."""
    for query, found in before.items():
        first = sorted(found, key=lambda one: (found[one], one), reverse=True)
        pairs = [(QUERIES[query], corpus[one]) for one in first[:depth]]
        scores = reranker.score(pairs, activated=False)
        np.testing.assert_allclose([after[query][one] for one in first[:depth]], scores, atol=1e-5)
        last = [after[query][one] for one in first[depth:]]
        assert last == sorted(last, reverse=True)
        assert len(set(last)) == len(last)
        assert max(last) < min(scores)
        assert set(after[query]) == set(found)


def test_answers_of_encoder_index_and_run_are_ordered_again(
    folder: Path, tmp_path: Path, tiny_encoder: Encoder, reranker: Reranker
) -> None:
    plain = evaluate_retrieval(tiny_encoder, folder)
    assert plain.reranked is None
    by_encoder = evaluate_retrieval(tiny_encoder, folder, rerank=reranker, rerank_depth=20)
    check_order(plain.run, by_encoder.run, reranker, 20, CORPUS)
    by_run = evaluate_retrieval(plain.run, folder, rerank=reranker, rerank_depth=20)
    with SearchIndex.build(list(CORPUS.items()), tiny_encoder, tmp_path / "index") as index:
        by_index = evaluate_retrieval(index, folder, rerank=reranker, rerank_depth=20)
    for result in (by_run, by_index):
        check_order(plain.run, result.run, reranker, 20, CORPUS)
        assert result.measures == pytest.approx(by_encoder.measures)
        assert result.reranked is not None
        assert result.reranked.texts == 5 * 20
        assert result.to_dict()["reranked"]["texts"] == 100
    assert by_encoder.measures["nDCG@10"] != plain.measures["nDCG@10"]
    assert by_encoder.measures["R@100"] == plain.measures["R@100"]


def test_of_a_divided_document_the_passage_that_was_found_is_read(
    tmp_path: Path, tiny_encoder: Encoder, reranker: Reranker
) -> None:
    corpus = dict(mixed_documents(60))
    folder = write_collection(tmp_path / "collection", corpus, QUERIES, QRELS)
    with SearchIndex.build(list(corpus.items()), tiny_encoder, tmp_path / "index") as index:
        plain = evaluate_retrieval(index, folder)
        after = evaluate_retrieval(index, folder, rerank=reranker, rerank_depth=30)
        for query, found in plain.run.items():
            first = sorted(found, key=lambda one: (found[one], one), reverse=True)[:30]
            hits = {
                hit.id: hit.passage.text for hit in index.search(QUERIES[query], 60, mode="dense")
            }
            scores = reranker.score([(QUERIES[query], hits[one]) for one in first], activated=False)
            np.testing.assert_allclose([after.run[query][one] for one in first], scores, atol=1e-5)


def test_a_run_with_unknown_documents_and_queries_is_measured(
    folder: Path, reranker: Reranker, caplog: pytest.LogCaptureFixture
) -> None:
    run = {"q0": {"d0": 3.0, "nowhere": 2.0, "d20": 1.0}, "strange": {"d1": 1.0}}
    with caplog.at_level(logging.WARNING):
        result = evaluate_retrieval(run, folder, rerank=reranker)
    assert list(result.run["q0"])[-1] == "nowhere"
    assert result.run["q0"]["nowhere"] < min(result.run["q0"]["d0"], result.run["q0"]["d20"])
    assert result.reranked is not None
    assert result.reranked.texts == 2


def test_a_model_that_cannot_rerank_is_refused_before_anything_is_encoded(
    folder: Path, model: Path, tiny_encoder: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Encoder, "start_run", None)
    with pytest.raises(InputError, match="no cross-encoder"):
        evaluate_retrieval(tiny_encoder, folder, rerank="all-MiniLM-L6-v2")
    with pytest.raises(InputError, match="rerank_depth"):
        evaluate_retrieval(tiny_encoder, folder, rerank=model, rerank_depth=0)
