"""Filters match the documents that a second, plain evaluation says."""

import random
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from filter_cases import Tree, fields_in, is_known, matches, metadata, numbers, trees, written
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from sbertkit import Document, Encoder, SearchIndex
from sbertkit.data import SourcedDocument
from sbertkit.errors import BadFilter
from sbertkit.retrieval import merge_policy
from sbertkit.retrieval.document_store import DocumentStore, stage_documents
from sbertkit.retrieval.filters import field_file, parse_filter
from sbertkit.retrieval.filters.field_file import write_fields
from sbertkit.retrieval.filters.keys import key_of
from sbertkit.retrieval.filters.known_fields import check_fields
from sbertkit.retrieval.filters.segment_fields import SegmentFields

Metadata = Sequence[Mapping[str, Any]]

drawn = st.tuples(
    st.lists(metadata, min_size=1, max_size=12), trees(), st.randoms(use_true_random=False)
)
without_limits = settings(deadline=None, suppress_health_check=list(HealthCheck))


@contextmanager
def segment(documents: Metadata) -> Iterator[SegmentFields]:
    """The fields of a segment with some documents, whose ids are their numbers."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        sourced = (
            SourcedDocument(Document(str(row), "x", fields), row)
            for row, fields in enumerate(documents)
        )
        stage_documents(path / "documents.db", sourced, lambda *_: pytest.fail("duplicate"))
        with closing(DocumentStore(path / "documents.db")) as store:
            write_fields(path, store.metadata())
            file = path / "fields.db"
            with closing(SegmentFields(store, file if file.exists() else None)) as fields:
                yield fields


def found(fields: SegmentFields, text: str) -> list[int]:
    """The rows that a filter matches."""
    expression = parse_filter(text)
    check_fields(expression, text, [fields])
    mask = fields.matching(expression)
    assert mask.shape == (fields.count,)
    return [int(row) for row in np.flatnonzero(mask)]


def assert_as_expected(documents: Metadata, tree: Tree, draw: random.Random) -> None:
    text = written(tree, draw)
    with segment(documents) as fields:
        if not all(is_known(path, documents) for path in fields_in(tree)):
            with pytest.raises(BadFilter, match="no document has the field"):
                found(fields, text)
            return
        expected = [row for row, one in enumerate(documents) if matches(tree, str(row), one)]
        assert found(fields, text) == expected


@given(drawn)
@settings(without_limits, max_examples=300)
def test_filters_match_what_a_plain_evaluation_says(given_: tuple[Any, ...]) -> None:
    assert_as_expected(*given_)


@pytest.mark.slow
@given(drawn)
@settings(without_limits, max_examples=10_000)
def test_ten_thousand_filters_match_what_a_plain_evaluation_says(given_: tuple[Any, ...]) -> None:
    assert_as_expected(*given_)


@given(drawn)
@settings(without_limits, max_examples=50)
def test_values_that_do_not_fit_into_memory_are_sorted_on_the_disk(given_: tuple[Any, ...]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(field_file, "_PENDING_BYTES", 1_000)
        patch.setattr(field_file, "ROWS_PER_CHUNK", 2)
        patch.setattr(field_file, "_KEYS_PER_BLOCK", 2)
        patch.setattr("sbertkit.retrieval.filters.field_store.ROWS_PER_CHUNK", 2)
        assert_as_expected(*given_)


@given(st.lists(numbers, min_size=2, max_size=2))
@example([float("inf"), 1e308])
@example([float("-inf"), -1e308])
@example([5e-324, 0])
@example([1 + 2**-52, 1])
@example([-0.5, -0.5000000000000001])
@example([2**4000, 1e308])
def test_keys_of_numbers_sort_as_the_numbers(pair: list[float]) -> None:
    one, other = pair
    first, second = key_of(one)[1], key_of(other)[1]
    assert (first < second, first == second) == (one < other, one == other)


# --- an index of several segments, with deleted documents


@pytest.fixture(scope="module")
def index(
    tiny_encoder: Encoder, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[SearchIndex, dict[str, dict[str, Any]]]]:
    """Three segments, a fifth of their documents deleted; and the metadata of the others by id."""
    draw = random.Random(5)

    def fields() -> dict[str, Any]:
        choices: dict[str, list[Any]] = {
            "lang": ["en", "de", "zh", None, 5],
            "year": [1999, 2004, 2020, 2020.5, "2020", 2**53 + 1, float(2**53)],
            "tags": [[], ["a"], ["a", "b"], ["ab", 1], "ab", [True, None, ["a"]]],
            "author": [{"name": "Ann"}, {"name": "Bo", "age": 30}, {}, "Ann", [{"name": "Ann"}]],
            "date": ["2020-01-01", "2020-11-30T10:00", "1999"],
            "open": [True, False, 1, "true"],
        }
        return {name: draw.choice(of) for name, of in choices.items() if draw.random() < 0.8}

    corpus = [Document(f"d{row}", f"document {row}", fields()) for row in range(90)]
    path = tmp_path_factory.mktemp("filtered") / "index"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merge_policy, "CHEAP", 0)
        opened = SearchIndex.build(corpus[:50], tiny_encoder, path, kind="flat")
        opened.add(corpus[50:75])
        opened.add(corpus[75:])
        deleted = {document.id for document in corpus[::5]}
        opened.delete(deleted)
    assert opened.info().segments == 3
    with opened:
        yield opened, {one.id: dict(one.metadata) for one in corpus if one.id not in deleted}


usual = st.sampled_from(
    [
        ("lang",),
        ("year",),
        ("tags",),
        ("author",),
        ("author", "name"),
        ("date",),
        ("open",),
        ("id",),
    ]
)


@given(trees(usual), st.randoms(use_true_random=False))
@settings(without_limits, max_examples=200)
def test_every_way_to_use_a_filter_gives_the_same_documents(
    index: tuple[SearchIndex, dict[str, dict[str, Any]]], tree: Tree, draw: random.Random
) -> None:
    opened, known = index
    text = written(tree, draw)
    expected = {one for one, fields in known.items() if matches(tree, one, fields)}
    assert {document.id for document in opened.documents(filter=text)} == expected
    assert opened.count(text) == len(expected)
    every = opened.search("document 7", k=1_000, mode="dense")
    assert [hit for hit in every if hit.id in expected] == opened.search(
        "document 7", k=1_000, mode="dense", filter=text
    )
    few = opened.search_batch(["document 7", "document 8"], k=3, filter=text)
    assert [len(hits) for hits in few] == 2 * [min(3, len(expected))]
