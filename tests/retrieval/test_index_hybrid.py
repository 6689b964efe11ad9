"""Search by vectors and words together, against both legs fused by hand."""

import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from sbertkit import Encoder, Fusion, Hit, SearchIndex
from sbertkit.errors import InputError, InputTypeError

WORDS = [f"{a}{b}" for a in ("ka", "lo", "mi", "nu") for b in ("ta", "pe", "vi", "du", "so")]
QUERIES = ["kata", "lope mivi", "nuso kadu lota mita", "kata nowhere", "nowhere at all"]
COUNT = 1_500


def documents(count: int, seed: int = 0) -> Iterator[dict[str, object]]:
    drawn = random.Random(seed)
    for number in range(count):
        words = drawn.choices(WORDS, weights=range(1, len(WORDS) + 1), k=drawn.randint(3, 20))
        yield {"id": f"d{number}", "text": " ".join(words), "even": number % 2 == 0}


@pytest.fixture(scope="module")
def index(tiny_encoder: Encoder, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SearchIndex]:
    path = tmp_path_factory.mktemp("hybrid") / "index"
    with SearchIndex.build(documents(COUNT), tiny_encoder, path) as built:
        built.add([{"id": f"e{number}", "text": "kata lope"} for number in range(5)])
        built.delete(["d3", "d7"])
        yield built


def legs(index: SearchIndex, query: str, condition: str | None = None) -> list[dict[str, float]]:
    """The scores of all documents by each leg, in the order of the index."""
    order = [document.id for document in index.documents(filter=condition)]
    found = [
        {
            hit.id: hit.score
            for hit in index.search(query, COUNT + 5, mode=mode, filter=condition, exact=True)
        }
        for mode in ("dense", "lexical")
    ]
    return [{one: scores.get(one, 0.0) for one in order} for scores in found]


def convex(index: SearchIndex, query: str, weight: float, k: int = 10) -> list[tuple[str, float]]:
    dense, lexical = legs(index, query)
    most = max(lexical.values()) or 1.0
    fused = {
        one: weight * (dense[one] + 1) / (max(dense.values()) + 1)
        + (1 - weight) * lexical[one] / most
        for one in dense
    }
    return sorted(fused.items(), key=lambda item: -item[1])[:k]


def scored(hits: list[Hit]) -> list[tuple[str, float]]:
    return [(hit.id, hit.score) for hit in hits]


@pytest.mark.parametrize("weight", [0.0, 0.3, 0.5, 1.0])
@pytest.mark.parametrize("query", QUERIES)
def test_the_best_of_all_documents_are_found(index: SearchIndex, query: str, weight: float) -> None:
    found = scored(index.search(query, 10, mode="hybrid", fusion=Fusion(weight=weight)))
    expected = convex(index, query, weight)
    np.testing.assert_allclose([score for _, score in found], [one for _, one in expected], 1e-6)
    # Of scores that differ by less than float32 tells apart, either may come first.
    known = dict(convex(index, query, weight, COUNT))
    assert all(known[one] == pytest.approx(score, abs=1e-6) for one, score in found)
    assert len({one for one, _ in found}) == 10


@pytest.mark.parametrize("query", QUERIES)
def test_reciprocal_ranks_count_the_first_hundred_of_each(index: SearchIndex, query: str) -> None:
    fused: dict[str, float] = {}
    for mode in ("dense", "lexical"):
        for rank, hit in enumerate(index.search(query, 100, mode=mode), 1):
            fused[hit.id] = fused.get(hit.id, 0.0) + 1 / (60 + rank)
    best = sorted(fused.values(), reverse=True)[:10]
    found = index.search(query, 10, mode="hybrid", fusion=Fusion("rrf"))
    np.testing.assert_allclose([hit.score for hit in found], best, rtol=1e-9)
    assert all(fused[hit.id] == pytest.approx(hit.score) for hit in found)


def test_phrases_and_minus_signs_are_conditions_of_every_hit(index: SearchIndex) -> None:
    texts = {document.id: document.text for document in index.documents()}
    without = index.search("kata -lope", 2_000, mode="hybrid")
    assert {hit.id for hit in without} == {one for one, text in texts.items() if "lope" not in text}
    having = index.search('"kata lope"', 2_000, mode="hybrid")
    assert {hit.id for hit in having} == {one for one, text in texts.items() if "kata lope" in text}
    assert index.search('"kata nowhere"', mode="hybrid") == []


def test_vectors_are_of_the_words_that_are_asked_for(index: SearchIndex) -> None:
    for query, plain in [("kata -nuso mita", "kata mita"), ('"kata" mita', "kata mita")]:
        (hit,) = index.search(query, 1, mode="hybrid", explain=True)
        cosines = {one.id: one.score for one in index.search(plain, COUNT, mode="dense")}
        assert hit.stages["dense"].score == pytest.approx(cosines[hit.id], abs=1e-6)


def test_many_queries_have_the_hits_that_each_has_alone(index: SearchIndex) -> None:
    queries = [*QUERIES, "kata -lope", '"kata lope"', *(f"{a} {b}" for a in WORDS for b in WORDS)]
    together = index.search_batch(queries, 3, mode="hybrid")
    for query, found in list(zip(queries, together, strict=True))[::29]:
        alone = index.search(query, 3, mode="hybrid")
        assert [hit.score for hit in found] == pytest.approx([hit.score for hit in alone])
    assert index.search_batch([], 3, mode="hybrid") == []


def test_a_filter_and_deletions_hold(index: SearchIndex) -> None:
    hits = index.search("lope mivi", 50, mode="hybrid", filter="even = true")
    assert len(hits) == 50
    assert all(hit.metadata["even"] for hit in hits)
    every = index.search("lope mivi", 5_000, mode="hybrid")
    assert len(every) == len(index) == COUNT + 3
    assert not {"d3", "d7"} & {hit.id for hit in every}


def test_hits_explain_what_each_leg_says_of_them(index: SearchIndex) -> None:
    hits = index.search("lope mivi", 5, mode="hybrid", explain=True)
    dense, lexical = legs(index, "lope mivi")
    for rank, hit in enumerate(hits, 1):
        assert list(hit.stages) == ["dense", "lexical", "hybrid"]
        assert hit.stages["dense"].score == pytest.approx(dense[hit.id], abs=1e-6)
        assert hit.stages["lexical"].score == pytest.approx(lexical[hit.id])
        assert hit.stages["hybrid"] == (hit.score, rank)
        assert "of vectors and" in str(hit.plan)
        assert "BM25" in str(hit.plan)


def test_a_divided_document_counts_by_its_best_passage(
    tiny_encoder: Encoder, tmp_path: Path
) -> None:
    long = [" ".join(WORDS[place % 20] for place in range(start, start + 300)) for start in (0, 7)]
    texts = [*long, "kata lope", "mivi"]
    with SearchIndex.build(
        list(zip("abcd", texts, strict=True)), tiny_encoder, tmp_path / "i"
    ) as index:
        assert index.info().vectors > 4
        for query in ("kata lope", "mivi kata"):
            found = scored(index.search(query, 4, mode="hybrid"))
            assert found == [
                (one, pytest.approx(score)) for one, score in convex(index, query, 0.5)
            ]
            dense = {hit.id: hit.passage for hit in index.search(query, 4, mode="dense")}
            assert {hit.id: hit.passage for hit in index.search(query, 4, mode="hybrid")} == dense


def test_what_cannot_be_fused_is_refused(
    index: SearchIndex, tiny_encoder: Encoder, tmp_path: Path
) -> None:
    with pytest.raises(InputTypeError, match="no text"):
        index.search(np.ones(tiny_encoder.dim), mode="hybrid")
    with pytest.raises(InputError, match="query 2 only leaves out words"):
        index.search_batch(["kata", "-kata"], mode="hybrid")
    with pytest.raises(InputError, match="leave hits"):
        index.search("kata", mode="hybrid", hits="passages")
    with pytest.raises(InputError, match=r"from 0 \(words\) to 1"):
        Fusion(weight=1.5)
    with pytest.raises(InputTypeError, match="weight must be a number"):
        Fusion(weight="0.5")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="convex or rrf"):
        Fusion("sum")
    with (
        SearchIndex.build([("a", "kata")], tiny_encoder, tmp_path / "i", lexical=False) as bare,
        pytest.raises(InputError, match="no lexical index"),
    ):
        bare.search("kata", mode="hybrid")
