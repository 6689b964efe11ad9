"""Re-ranked searches: what is scored, in which order hits come, and what is refused."""

import logging
import pickle
import threading
from pathlib import Path

import numpy as np
import pytest
from index_cases import documents, mixed_documents
from tiny_rerankers import cross_encoder

from sbertkit import Encoder, InputError, InputTypeError, Reranker, SearchIndex

CORPUS = [*documents(300), ("twin1", "the same text twice"), ("twin2", "the same text twice")]
QUERY = "some words about nothing"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny cross-encoder."""
    return cross_encoder(tmp_path_factory.mktemp("reranker") / "model")


@pytest.fixture(scope="module")
def reranker(model: Path) -> Reranker:
    """It, loaded."""
    return Reranker.load(model)


@pytest.fixture(scope="module")
def index(tiny_encoder: Encoder, tmp_path_factory: pytest.TempPathFactory) -> SearchIndex:
    """An index of short texts."""
    return SearchIndex.build(CORPUS, tiny_encoder, tmp_path_factory.mktemp("index") / "short")


def test_the_first_candidates_are_ordered_by_the_reranker(
    index: SearchIndex, reranker: Reranker
) -> None:
    first = index.search(QUERY, 40)
    scores = reranker.score([(QUERY, hit.text) for hit in first], activated=False)
    order = np.argsort(-scores, kind="stable")
    found = index.search(QUERY, 10, rerank=reranker, rerank_depth=40)
    assert [hit.id for hit in found] == [first[place].id for place in order[:10]]
    np.testing.assert_allclose([hit.score for hit in found], scores[order[:10]], atol=1e-5)
    for hit in found:
        (same,) = (one for one in first if one.id == hit.id)
        assert (hit.text, hit.metadata, hit.passage) == (same.text, same.metadata, same.passage)


def test_by_default_100_candidates_are_scored_and_never_fewer_than_hits(
    index: SearchIndex, reranker: Reranker
) -> None:
    assert index.search(QUERY, 5, rerank=reranker) == index.search(
        QUERY, 5, rerank=reranker, rerank_depth=100
    )
    found = index.search(QUERY, 150, rerank=reranker, rerank_depth=3)
    assert len(found) == 150
    assert {hit.id for hit in found} == {hit.id for hit in index.search(QUERY, 150)}
    assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)


def test_a_batch_gives_what_single_searches_give(index: SearchIndex, reranker: Reranker) -> None:
    queries = [text for _, text in CORPUS[:150]]
    batch = index.search_batch(queries, 4, rerank=reranker, rerank_depth=7)
    for query, hits in zip(queries[::30], batch[::30], strict=True):
        single = index.search(query, 4, rerank=reranker, rerank_depth=7)
        assert [hit.id for hit in hits] == [hit.id for hit in single]
        np.testing.assert_allclose(
            [hit.score for hit in hits], [hit.score for hit in single], atol=1e-5
        )
    assert index.search_batch([], 4, rerank=reranker) == []


def test_the_reranker_reads_no_signs_of_conditions(index: SearchIndex, reranker: Reranker) -> None:
    written = 'words "the same text" -nothing'
    found = index.search(written, 5, rerank=reranker)
    assert {hit.id for hit in found} <= {"twin1", "twin2"}
    plain = reranker.score([("words the same text", hit.text) for hit in found], activated=False)
    np.testing.assert_allclose([hit.score for hit in found], plain, atol=1e-5)
    (dense, *_) = index.search(written, 1, mode="dense", rerank=reranker)  # all of it is words
    whole = reranker.score([(written, dense.text)], activated=False)
    np.testing.assert_allclose(dense.score, whole[0], atol=1e-5)


def test_equal_scores_keep_the_order_of_the_stage_before(
    index: SearchIndex, reranker: Reranker
) -> None:
    before = [hit.id for hit in index.search(QUERY, 302) if hit.id.startswith("twin")]
    for _ in range(3):
        found = index.search(QUERY, 302, rerank=reranker)
        twins = [hit for hit in found if hit.id.startswith("twin")]
        assert twins[0].score == twins[1].score
        assert [hit.id for hit in twins] == before


def test_explained_hits_have_score_and_rank_of_each_stage(
    index: SearchIndex, reranker: Reranker
) -> None:
    first = index.search(QUERY, 20, mode="dense", explain=True)
    assert [hit.stages["dense"] for hit in first] == [
        (hit.score, rank) for rank, hit in enumerate(first, 1)
    ]
    found = index.search(QUERY, 5, mode="dense", rerank=reranker, rerank_depth=20, explain=True)
    dense = {hit.id: hit.stages["dense"] for hit in first}
    for rank, hit in enumerate(found, 1):
        assert hit.stages == {"dense": dense[hit.id], "rerank": (hit.score, rank)}
        assert hit.plan == first[0].plan
        assert hit.matched == index.matcher(QUERY).words(hit.text)
        assert pickle.loads(pickle.dumps(hit)).stages == hit.stages  # our own
    assert all(hit.stages == {} for hit in index.search(QUERY, 5, rerank=reranker))
    both = index.search(QUERY, 5, rerank=reranker, rerank_depth=20, explain=True)
    assert [list(hit.stages) for hit in both] == 5 * [["dense", "lexical", "hybrid", "rerank"]]


def test_the_best_passage_of_a_long_document_is_what_is_read(
    tiny_encoder: Encoder, reranker: Reranker, tmp_path: Path
) -> None:
    with SearchIndex.build(mixed_documents(60), tiny_encoder, tmp_path / "long") as index:
        for hits in ("documents", "passages"):
            first = index.search(QUERY, 30, hits=hits)
            assert any(hit.passage.text != hit.text for hit in first)
            scores = reranker.score([(QUERY, hit.passage.text) for hit in first], activated=False)
            found = index.search(QUERY, 30, hits=hits, rerank=reranker, rerank_depth=30)
            order = np.argsort(-scores, kind="stable")
            assert [hit.passage for hit in found] == [first[place].passage for place in order]


def test_a_filter_is_obeyed_and_a_search_without_hits_is_empty(
    tiny_encoder: Encoder, reranker: Reranker, tmp_path: Path
) -> None:
    corpus = [{"id": str(n), "text": f"text {n} of many", "n": n} for n in range(30)]
    with SearchIndex.build(corpus, tiny_encoder, tmp_path / "filtered") as index:
        found = index.search(QUERY, 9, filter="n >= 25", rerank=reranker)
        assert sorted(hit.metadata["n"] for hit in found) == [25, 26, 27, 28, 29]
        assert index.search_batch([QUERY, QUERY], 9, filter="n > 99", rerank=reranker) == [[], []]


def test_a_name_is_loaded_once(
    index: SearchIndex, model: Path, reranker: Reranker, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = index.search(QUERY, 3, rerank=reranker)
    assert [hit.id for hit in index.search(QUERY, 3, rerank=model)] == [hit.id for hit in expected]
    monkeypatch.setattr(Reranker, "load", None)
    for name in (model, str(model)):
        again = index.search(QUERY, 3, rerank=name)
        assert [hit.id for hit in again] == [hit.id for hit in expected]


def test_truncated_pairs_are_reported_once_per_search(
    index: SearchIndex, model: Path, caplog: pytest.LogCaptureFixture
) -> None:
    short = Reranker.load(model, max_tokens=12)
    with caplog.at_level(logging.WARNING):
        index.search_batch([QUERY] * 100, 3, rerank=short, rerank_depth=5)
    lines = [line for line in caplog.messages if "truncated" in line]
    assert len(lines) == 1
    assert lines[0].startswith("500 of 500 pairs were truncated to 12 tokens")


def test_threads_share_an_index_and_a_reranker(index: SearchIndex, reranker: Reranker) -> None:
    expected = [hit.id for hit in index.search(QUERY, 10, rerank=reranker, rerank_depth=20)]
    found: list[list[str]] = []

    def search() -> None:
        hits = index.search(QUERY, 10, rerank=reranker, rerank_depth=20)
        found.append([hit.id for hit in hits])

    threads = [threading.Thread(target=search) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 6


def test_what_cannot_be_reranked_is_refused(
    index: SearchIndex, reranker: Reranker, tiny_encoder: Encoder
) -> None:
    vector = tiny_encoder.encode(QUERY)
    with pytest.raises(InputTypeError, match="query 1 is no text, which a re-ranker reads"):
        index.search(vector, rerank=reranker)
    with pytest.raises(InputTypeError, match="expected a list of queries, found str"):
        index.search_batch(QUERY, rerank=reranker)
    with pytest.raises(InputError, match="query 2 is blank"):
        index.search_batch([QUERY, " "], rerank=reranker)
    with pytest.raises(InputError, match="query 100 is blank"):
        index.search_batch([*[QUERY] * 99, "\n"], rerank=reranker)
    with pytest.raises(InputError, match="rerank_depth"):
        index.search(QUERY, rerank=reranker, rerank_depth=0)
    with pytest.raises(InputTypeError, match="rerank_depth"):
        index.search(QUERY, rerank=reranker, rerank_depth=1.5)  # type: ignore[arg-type]
    with pytest.raises(InputTypeError, match="rerank must be a Reranker or the name of its model"):
        index.search(QUERY, rerank=tiny_encoder)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no-such-model"):
        index.search(QUERY, rerank="no-such-model")
