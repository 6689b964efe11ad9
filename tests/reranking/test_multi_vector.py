"""Multi-vector encoders as re-rankers, against sentence-transformers' MultiVectorEncoder."""

import logging
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_models
from index_cases import documents
from sentence_transformers import MultiVectorEncoder
from tiny_rerankers import DOCUMENTS, PAIRS, QUERIES, multi_vector

from sbertkit import Encoder, InputError, InputTypeError, Reranker, SearchIndex
from sbertkit.reranking.multi_vector import max_sim

SETTINGS: list[dict[str, Any]] = [
    {},
    {"similarity_fn_name": "meanmaxsim"},
    {"query_length": 12, "document_length": 20},
    {"query_expansion": {"strategy": "fixed", "length": 16, "attend": True}},
    {"prompts": {"query": "find: ", "document": "text: "}},
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny multi-vector encoder."""
    return multi_vector(tmp_path_factory.mktemp("multi") / "model")


def expected(path: Path) -> np.ndarray:
    library = MultiVectorEncoder(str(path))
    queries, texts = library.encode_query(list(QUERIES)), library.encode_document(list(DOCUMENTS))
    scores: np.ndarray = library.similarity(queries, texts).numpy().ravel()
    return scores


@pytest.mark.parametrize("options", SETTINGS)
def test_scores_are_the_max_sim_of_the_library(tmp_path: Path, options: dict[str, Any]) -> None:
    path = multi_vector(tmp_path / "model", **options)
    reranker = Reranker.load(path)
    found = reranker.score(PAIRS)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected(path), atol=1e-4)
    assert np.ptp(found) > 1e-3
    assert reranker.activation == "Identity"


def test_max_sim_is_that_of_its_formula() -> None:
    query = np.array([[1, 0], [0, 1]], np.float32)
    texts = [
        np.array(rows, np.float32).reshape(-1, 2) for rows in ([[0.5, 1]], [], [[1, 0], [0, 2]])
    ]
    assert max_sim(query, texts).tolist() == [1.5, 0, 3]
    assert max_sim(query, texts, mean=True).tolist() == [0.75, 0, 1.5]
    assert max_sim(query[:0], texts).tolist() == [0, 0, 0]
    assert max_sim(query, []).shape == (0,)


def test_truncated_documents_are_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = multi_vector(tmp_path / "model", document_length=10)
    with caplog.at_level(logging.WARNING):
        report = Reranker.load(path).score_with_report(PAIRS).report
    tokenizer = MultiVectorEncoder(str(path)).tokenizer
    lost = [max(0, len(tokenizer(text)["input_ids"]) - 10) for _, text in PAIRS]
    assert report.truncated == tuple(row for row, count in enumerate(lost) if count)
    assert report.tokens_lost == sum(lost)
    assert "pairs were truncated" in caplog.text


def test_a_search_is_ordered_by_it(folder: Path, tiny_encoder: Encoder, tmp_path: Path) -> None:
    reranker = Reranker.load(folder)
    with SearchIndex.build(documents(60), tiny_encoder, tmp_path / "index") as index:
        first = index.search("some words", 20)
        scores = reranker.score([("some words", hit.text) for hit in first])
        found = index.search("some words", 5, rerank=reranker, rerank_depth=20)
        order = np.argsort(-scores, kind="stable")[:5]
        assert [hit.id for hit in found] == [first[place].id for place in order]


def test_ranking_copies_and_rows_are_those_of_any_reranker(folder: Path) -> None:
    reranker = Reranker.load(folder)
    scores = reranker.score([(QUERIES[0], text) for text in DOCUMENTS])
    ranked = reranker.rank(QUERIES[0], DOCUMENTS)
    assert [one.place for one in ranked] == np.argsort(-scores, kind="stable").tolist()
    again = pickle.loads(pickle.dumps(reranker))  # our own
    assert again.fingerprint == reranker.fingerprint
    np.testing.assert_array_equal(again.score(PAIRS), reranker.score(PAIRS))
    assert reranker.score([]).shape == (0,)
    assert reranker.score(iter(PAIRS)).shape == (len(PAIRS),)
    with pytest.raises(InputTypeError, match="row 1: expected a pair"):
        reranker.score([PAIRS[0], "text"])  # type: ignore[list-item]
    with pytest.raises(InputError, match="row 0: the query is blank"):
        reranker.score([("", "text")])


def test_what_it_cannot_do_is_refused(folder: Path, tmp_path: Path) -> None:
    for options in ({"precision": "int8"}, {"backend": "onnx"}, {"max_tokens": 9}):
        with pytest.raises(InputError, match="is a multi-vector encoder"):
            Reranker.load(folder, **options)  # type: ignore[arg-type]
    reranker = Reranker.load(folder)
    for refused in (reranker.save, reranker.export):
        with pytest.raises(InputError, match="is a multi-vector encoder"):
            refused(tmp_path / "out")
    with pytest.raises(InputError, match=r"not supported|cross-encoder"):
        Encoder.load(folder)


def test_pickled_weights_and_foreign_code_are_refused(tmp_path: Path) -> None:
    path = multi_vector(tmp_path / "model")
    (path / "1_Dense" / "model.safetensors").rename(path / "1_Dense" / "pytorch_model.bin")
    with pytest.raises(InputError, match=r"1_Dense has no \*.safetensors file"):
        Reranker.load(path)
    path = multi_vector(tmp_path / "other")
    modules = tiny_models.read_json(path / "modules.json")
    modules[2]["type"] = "own.Mask"
    tiny_models.write_json(path / "modules.json", modules)
    with pytest.raises(InputError, match="trust_remote_code"):
        Reranker.load(path)
