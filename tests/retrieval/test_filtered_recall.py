"""Searches with a filter over indexes of every kind: as many hits as match, and the nearest."""

from collections.abc import Iterator

import numpy as np
import pytest
from index_cases import KINDS

from sbertkit import Document, Encoder, SearchIndex

WORDS = [f"{a}{b}" for a in ("ka", "lo", "mi", "nu", "re") for b in ("ta", "pe", "vi", "du")]
COUNT = 2_400


def documents() -> Iterator[Document]:
    drawn = np.random.default_rng(0)
    for row, words in enumerate(drawn.choice(WORDS, (COUNT, 10)).tolist()):
        metadata = {"n": row % 1_000, "even": row % 2 == 0, "first": words[0]}
        yield Document(f"d{row}", f"{' '.join(words)} {row}", metadata)


@pytest.fixture(scope="module", params=KINDS)
def index(
    request: pytest.FixtureRequest,
    tiny_encoder: Encoder,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[SearchIndex]:
    """An index in two segments with deleted documents, its searches not exhaustive."""
    path = tmp_path_factory.mktemp(request.param) / "i"
    every = list(documents())
    with (
        pytest.MonkeyPatch.context() as patch,
        SearchIndex.build(every[:1_800], tiny_encoder, path, kind=request.param) as built,
    ):
        patch.setattr("sbertkit.index.vector_search.FEW_ROWS", 40)
        built.add(every[1_800:])
        built.delete([f"d{row}" for row in range(7, COUNT, 31)])
        yield built


@pytest.mark.parametrize(
    "condition",
    [
        "n < 500",
        "n < 200",
        "n < 50 and even = true",
        "n < 5",
        "n = 3 and even = true",
        'first = "kata"',
        'not first = "kata"',
        "n < 400 and even = true",
        'n >= 10 and (first = "lope" or first starts with "m")',
    ],
)
def test_the_nearest_of_those_that_match_are_found(index: SearchIndex, condition: str) -> None:
    matching = {document.id for document in index.documents(filter=condition)}
    assert index.count(condition) == len(matching)
    queries = ["kata lope mivi", "nudu reta kape", "kata kata kata", "lodu", "vi re ta"]
    found = index.search_batch(queries, 10, mode="dense", filter=condition)
    exact = index.search_batch(queries, 10, mode="dense", filter=condition, exact=True)
    shares = []
    for hits, best in zip(found, exact, strict=True):
        assert len(hits) == len(best) == min(10, len(matching))
        assert {hit.id for hit in hits} <= matching
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
        shares += [hit.score >= best[-1].score - 1e-6 for hit in hits]
    assert not shares or np.mean(shares) >= 0.85


def test_no_match_is_an_empty_list(index: SearchIndex) -> None:
    assert index.search("kata", filter="n > 5000") == []
    assert index.search("kata", filter="n > 5000", explain=True) == []


def test_the_plan_says_how_many_are_compared(index: SearchIndex) -> None:
    (hit, *_) = index.search("kata", mode="dense", filter="n < 4", explain=True)
    assert str(hit.plan).startswith(f"compared with all {index.count('n < 4')} vectors of ")
