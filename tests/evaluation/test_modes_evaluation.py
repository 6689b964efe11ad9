"""Retrieval measures by words, and by vectors and words."""

from pathlib import Path

import pytest
from index_cases import documents
from tiny_rerankers import write_collection

from sbertkit import Encoder, Fusion, InputError, InputTypeError, SearchIndex
from sbertkit.evaluation import evaluate_retrieval

CORPUS = dict(documents(60))
QUERIES = {f"q{number}": text for number, text in enumerate(list(CORPUS.values())[:5])}
QRELS = {f"q{number}": {f"d{number}": 1, f"d{number + 20}": 2, "x": 1} for number in range(5)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A collection of short texts, one of whose relevant documents is missing."""
    return write_collection(tmp_path / "collection", CORPUS, QUERIES, QRELS)


@pytest.fixture
def index(tiny_encoder: Encoder, tmp_path: Path) -> SearchIndex:
    return SearchIndex.build(list(CORPUS.items()), tiny_encoder, tmp_path / "index")


def test_words_of_a_collection_are_found_as_in_an_index(
    folder: Path, index: SearchIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_index = evaluate_retrieval(index, folder, mode="lexical")
    for query, text in QUERIES.items():
        hits = index.search(text, 60, mode="lexical")
        assert by_index.run[query] == {hit.id: hit.score for hit in hits}
    encoder = index.encoder
    monkeypatch.setattr(Encoder, "start_run", None)
    for system in (None, encoder):
        by_collection = evaluate_retrieval(system, folder, mode="lexical")
        assert by_collection.run == by_index.run
        assert by_collection.measures == by_index.measures
        assert by_collection.missing == by_index.missing == ("x",)
        assert by_collection.encoded is None


def test_an_encoder_is_fused_with_words_as_an_index_is(
    folder: Path, index: SearchIndex, tiny_encoder: Encoder
) -> None:
    for fusion in (Fusion(), Fusion(weight=0.2), Fusion("rrf")):
        by_index = evaluate_retrieval(index, folder, mode="hybrid", fusion=fusion)
        by_encoder = evaluate_retrieval(tiny_encoder, folder, mode="hybrid", fusion=fusion)
        for query, text in QUERIES.items():
            hits = index.search(text, 60, mode="hybrid", fusion=fusion)
            assert by_index.run[query] == {hit.id: hit.score for hit in hits}
            assert by_encoder.run[query] == pytest.approx(by_index.run[query], abs=1e-6)
        weight = 0.5 if fusion.weight is None else fusion.weight
        assert by_index.fusion == by_encoder.fusion == Fusion(fusion.method, weight)
        assert by_index.to_dict()["fusion"] == {"method": fusion.method, "weight": weight}
    assert evaluate_retrieval(index, folder).fusion is None


def test_modes_that_do_not_suit_the_system_are_refused(folder: Path, tiny_encoder: Encoder) -> None:
    with pytest.raises(InputError, match="mode must be one of"):
        evaluate_retrieval(tiny_encoder, folder, mode="words")
    with pytest.raises(InputError, match="searched already"):
        evaluate_retrieval({"q0": {"d0": 1.0}}, folder, mode="hybrid")
    for mode in ("dense", "hybrid"):
        with pytest.raises(InputTypeError, match="expected an Encoder"):
            evaluate_retrieval(None, folder, mode=mode)
