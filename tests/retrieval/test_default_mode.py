"""What a search takes that names no mode: vectors and words, where there are words."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from index_cases import documents, mixed_documents

from sbertkit import Encoder, Fusion, SearchIndex
from sbertkit.errors import InputError, InputTypeError
from sbertkit.retrieval.manifest_entries import LexicalEntry

CORPUS = documents(400)
QUERIES = [text for _, text in CORPUS[:5]]


@pytest.fixture(scope="module")
def index(tiny_encoder: Encoder, tmp_path_factory: pytest.TempPathFactory) -> SearchIndex:
    """An index with words, of which some documents are deleted."""
    corpus = [
        {"id": one, "text": text, "even": row % 2 == 0} for row, (one, text) in enumerate(CORPUS)
    ]
    index = SearchIndex.build(corpus, tiny_encoder, tmp_path_factory.mktemp("i") / "index")
    index.add([{"id": "new", "text": QUERIES[0], "even": True}])
    index.delete(["d1", "d2"])
    return index


@pytest.fixture(scope="module")
def bare(tiny_encoder: Encoder, tmp_path_factory: pytest.TempPathFactory) -> SearchIndex:
    """An index without words."""
    path = tmp_path_factory.mktemp("bare") / "index"
    return SearchIndex.build(CORPUS, tiny_encoder, path, lexical=False)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"exact": True},
        {"filter": "even = true"},
        {"explain": True},
        {"k": 10**30},
        {"fusion": Fusion(weight=0.9)},
        {"fusion": Fusion("rrf")},
    ],
    ids=str,
)
def test_texts_are_searched_for_by_vectors_and_words(
    index: SearchIndex, options: dict[str, Any]
) -> None:
    assert index.default_mode == index.info().default_mode == "hybrid"
    found = index.search_batch(QUERIES, **options)
    assert found == index.search_batch(QUERIES, mode="hybrid", **options)
    assert found[0] == index.search(QUERIES[0], **options)
    assert found == index.search_batch(iter(QUERIES), **options)  # type: ignore[arg-type]
    assert found == index.search_batch(np.array(QUERIES), **options)
    assert found[0] != index.search(QUERIES[0], mode="dense", k=options.get("k", 10))


def test_vectors_are_compared_with_vectors(index: SearchIndex, tiny_encoder: Encoder) -> None:
    vectors = tiny_encoder.encode(QUERIES)
    for queries in (vectors, list(vectors), vectors.tolist(), iter(vectors)):
        found = index.search_batch(queries, explain=True)  # type: ignore[arg-type]
        expected = index.search_batch(vectors, mode="dense", explain=True)
        assert found == expected
        assert all(list(hit.stages) == ["dense"] for hits in found for hit in hits)
    with pytest.raises(InputTypeError, match="must be a text or a vector"):
        index.search_batch(["text", vectors[0]])


def test_passages_are_found_by_vectors(tiny_encoder: Encoder, tmp_path: Path) -> None:
    with SearchIndex.build(mixed_documents(40), tiny_encoder, tmp_path / "i") as index:
        assert index.info().vectors > 40
        passages = index.search("some words", 90, hits="passages")
        assert passages == index.search("some words", 90, mode="dense", hits="passages")
        assert len(passages) > 40
        assert index.search("some words", 90) == index.search("some words", 90, mode="hybrid")


def test_without_words_texts_are_searched_for_by_vectors(bare: SearchIndex) -> None:
    assert bare.default_mode == bare.info().default_mode == "dense"
    assert bare.search_batch(QUERIES) == bare.search_batch(QUERIES, mode="dense")
    with pytest.raises(InputError, match="no lexical index"):
        bare.search(QUERIES[0], mode="hybrid")


def test_words_that_are_made_or_removed_change_the_default(
    tiny_encoder: Encoder, tmp_path: Path
) -> None:
    with SearchIndex.build(CORPUS, tiny_encoder, tmp_path / "i", lexical=False) as index:
        for lexical, mode in ((True, "hybrid"), (False, "dense")):
            index.compact(lexical=lexical)
            assert index.default_mode == mode
            assert index.search("word", 3, explain=True)[0].stages.keys() >= {mode}


def test_words_by_other_rules_are_no_default(
    tiny_encoder: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SearchIndex.build(CORPUS, tiny_encoder, tmp_path / "i") as index:
        monkeypatch.setattr(LexicalEntry, "is_current", False)
        assert index.default_mode == "dense"
        assert index.search(QUERIES[0]) == index.search(QUERIES[0], mode="dense")


def test_an_index_without_documents_finds_nothing(tiny_encoder: Encoder, tmp_path: Path) -> None:
    with SearchIndex.build([("a", "one")], tiny_encoder, tmp_path / "i") as index:
        index.delete(["a"])
        index.compact()
        assert len(index) == 0
        for options in ({}, {"exact": True}, {"explain": True}, {"k": 1_000}):
            assert index.search("one", **options) == []  # type: ignore[arg-type]
            assert index.search_batch(["one", "two"], **options) == [[], []]  # type: ignore[arg-type]


def test_a_fusion_of_a_search_by_one_leg_is_refused(
    index: SearchIndex, bare: SearchIndex, tiny_encoder: Encoder
) -> None:
    fusion = Fusion(weight=0.5)
    for search in (
        lambda: index.search("word", mode="dense", fusion=fusion),
        lambda: index.search("word", mode="lexical", fusion=fusion),
        lambda: index.search("word", hits="passages", fusion=fusion),
        lambda: index.search(tiny_encoder.encode("word"), fusion=fusion),
        lambda: bare.search("word", fusion=fusion),
    ):
        with pytest.raises(InputError, match=r"fusion .*is of mode hybrid, and this search is"):
            search()


@pytest.mark.parametrize(
    "query", ["???", "the of and", '"', "kata:lope AND *", "x" * 100_000, "\0a"]
)
def test_any_query_has_as_many_hits_as_there_are_documents(index: SearchIndex, query: str) -> None:
    assert len(index.search(query, 1_000)) == len(index)


def test_conditions_hold_and_one_without_words_is_refused(index: SearchIndex) -> None:
    text = QUERIES[0]
    found = index.search(f'"{text}"', 1_000)
    assert {hit.id for hit in found} >= {"d0", "new"}
    assert all(text in hit.text for hit in found)
    with pytest.raises(InputError, match="query 1 only leaves out words"):
        index.search("-word")
    with pytest.raises(InputError, match="mode must be one of"):
        index.search("word", mode="both")
    with pytest.raises(InputError, match="mode must be one of"):
        SearchIndex.open(index.path, mode="both")
