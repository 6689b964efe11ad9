"""Any sequence of changes to an index, beside a dict that is changed alike."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from index_cases import KINDS, assert_alike, documents, mixed_documents

from sbertkit import Encoder, SearchIndex
from sbertkit.encoder.passages import PassageSplitter
from sbertkit.errors import InputError, UnknownId
from sbertkit.retrieval import merge_policy

IDS = [f"d{number}" for number in range(30)]
TEXTS = [text for _, text in mixed_documents(40)]

ids = st.sampled_from(IDS)
corpora = st.dictionaries(ids, st.sampled_from(TEXTS), min_size=1, max_size=8)


@pytest.fixture(autouse=True)
def many_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merge_policy, "_SMALL", 1)
    monkeypatch.setattr(merge_policy, "CHEAP", 12)


class Life(RuleBasedStateMachine):
    """An index and a dict."""

    encoder: Encoder
    kind: str
    vectors: dict[str, npt.NDArray[np.float32]]  # of the passages of each text, (n, dim)

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.path = self.folder / "index"
        self.expected = {"d0": TEXTS[0], "d1": TEXTS[1]}
        self.index = SearchIndex.build(
            self.expected.items(), self.encoder, self.path, kind=self.kind, with_encoder=False
        )
        self.generation = 1

    def teardown(self) -> None:
        self.index.close()
        shutil.rmtree(self.folder)

    @rule(corpus=corpora)
    def add(self, corpus: dict[str, str]) -> None:
        there = corpus.keys() & self.expected.keys()
        if there:
            with pytest.raises(InputError, match="in the index already"):
                self.index.add(corpus.items())
            return
        changes = self.index.add(corpus.items())
        assert changes.added == len(corpus)
        assert changes.encoded == sum(len(self.vectors[text]) for text in corpus.values())
        self.expected |= corpus
        self.generation += 1

    @rule(corpus=corpora)
    def upsert(self, corpus: dict[str, str]) -> None:
        changes = self.index.upsert(corpus.items())
        same = sum(self.expected.get(one) == text for one, text in corpus.items())
        new = len(corpus.keys() - self.expected.keys())
        assert (changes.added, changes.unchanged) == (new, same)
        assert changes.changed == len(corpus) - new - same
        self.expected |= corpus
        self.generation += bool(changes)

    @rule(corpus=corpora)
    def update(self, corpus: dict[str, str]) -> None:
        changes = self.index.update(corpus.items())
        assert changes.deleted == len(self.expected.keys() - corpus.keys())
        assert changes.added == len(corpus.keys() - self.expected.keys())
        self.expected = dict(corpus)
        self.generation += bool(changes)

    @rule(chosen=st.sets(ids, min_size=1, max_size=6), missing_ok=st.booleans())
    def delete(self, chosen: set[str], missing_ok: bool) -> None:
        unknown = chosen - self.expected.keys()
        if unknown and not missing_ok:
            with pytest.raises(UnknownId, match="nothing was deleted"):
                self.index.delete(sorted(chosen))
            return
        changes = self.index.delete(chosen, missing_ok=missing_ok)
        assert changes.deleted == len(chosen) - len(unknown)
        for one in chosen - unknown:
            del self.expected[one]
        self.generation += bool(changes)

    @rule()
    def compact(self) -> None:
        was = self.index.info()
        self.index.compact()
        info = self.index.info()
        assert (info.segments, info.deleted) == (min(1, len(self.expected)), 0)
        self.generation += was.segments > 1 or was.deleted > 0

    @rule()
    def reopen(self) -> None:
        self.index.close()
        self.index = SearchIndex.open(self.path, self.encoder)

    @precondition(lambda self: self.expected)
    @rule(text=st.sampled_from(TEXTS), k=st.integers(1, 40))
    def search(self, text: str, k: int) -> None:
        query = self.vectors[text][0]
        hits = self.index.search(query, k)
        scores = {one: max(self.vectors[has] @ query) for one, has in self.expected.items()}
        best = sorted(scores.values(), reverse=True)[:k]
        assert [hit.score for hit in hits] == pytest.approx(best, abs=1e-5)
        for hit in hits:
            assert hit.text == self.expected[hit.id]
            assert hit.score == pytest.approx(scores[hit.id], abs=1e-5)
            assert hit.passage.text == hit.text[hit.passage.start : hit.passage.end]
            assert hit.score == pytest.approx(
                query @ self.encoder.encode(hit.passage.text), abs=1e-5
            )

    @invariant()
    def it_holds_what_it_should(self) -> None:
        found = {one.id: one.text for one in self.index.documents()}
        assert found == self.expected
        assert len(self.index) == len(self.expected)
        assert self.index.info().generation == self.generation
        for one in IDS[:6]:
            if one in self.expected:
                assert self.index.get(one).text == self.expected[one]
            else:
                with pytest.raises(UnknownId):
                    self.index.get(one)

    @invariant()
    def its_folder_is_whole_and_has_no_leftovers(self) -> None:
        assert self.index.verify() == ()
        segments = self.path / "segments"
        left = list(segments.iterdir()) if segments.exists() else []
        assert len(left) == self.index.info().segments
        tombstones = list(self.path.glob("tombstones/*"))
        assert len(tombstones) == bool(self.index.info().deleted)


@pytest.mark.parametrize("index_kind", KINDS)
def test_any_sequence_of_changes_is_that_of_a_dict(tiny_encoder: Encoder, index_kind: str) -> None:
    Life.encoder = tiny_encoder
    Life.kind = index_kind
    splitter = PassageSplitter.of(tiny_encoder.spec)
    Life.vectors = {
        text: tiny_encoder.encode([text[start:end] for start, end, _ in splitter.split([text])[0]])
        for text in TEXTS
    }
    assert max(len(vectors) for vectors in Life.vectors.values()) > 3
    run_state_machine_as_test(
        Life,
        settings=settings(
            max_examples=8,
            stateful_step_count=15,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


# --- searches among rows some of which are deleted


@pytest.fixture(scope="module", params=KINDS)
def thinned(
    request: pytest.FixtureRequest, tiny_encoder: Encoder, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[SearchIndex, set[str]]]:
    """An index of 1,500 documents, 15 % of them deleted, and the ids that are left."""
    pairs = documents(1_500)
    path = tmp_path_factory.mktemp("thinned") / "index"
    with SearchIndex.build(pairs, tiny_encoder, path, kind=request.param) as index:
        gone = [one for number, (one, _) in enumerate(pairs) if number % 20 in (3, 4, 11)]
        index.delete(gone)
        assert index.info().segments == 1
        assert index.info().deleted == len(gone)
        yield index, {one for one, _ in pairs} - set(gone)


def test_deleted_rows_are_never_found(thinned: tuple[SearchIndex, set[str]]) -> None:
    index, left = thinned
    for text in [text for _, text in documents(1_500)[:60]]:
        for k in (1, 10, 100):
            found = [hit.id for hit in index.search(text, k)]
            assert len(found) == k
            assert set(found) <= left
    assert {hit.id for hit in index.search("anything", 10**6)} == left


def test_a_document_that_is_left_finds_itself(thinned: tuple[SearchIndex, set[str]]) -> None:
    index, left = thinned
    kept = [(one, text) for one, text in documents(1_500) if one in left][:200]
    hits = index.search_batch([text for _, text in kept], 1)
    assert [found[0].id for found in hits] == [one for one, _ in kept]


def test_a_query_among_deleted_neighbors_finds_the_nearest_of_the_others(
    tiny_encoder: Encoder, tmp_path: Path
) -> None:
    source = np.random.default_rng(0)
    pairs = documents(400)
    with SearchIndex.build(pairs, tiny_encoder, tmp_path / "x") as index:
        query = source.normal(size=tiny_encoder.dim).astype(np.float32)
        before = [hit.id for hit in index.search(query, 400)]
        index.delete(before[:70])
        assert [hit.id for hit in index.search(query, 20)] == before[70:90]
        assert [hit.id for hit in index.search_batch([query] * 50, 20)[49]] == before[70:90]


@pytest.mark.parametrize("kind", KINDS)
def test_many_segments_give_what_a_fresh_index_gives(
    tiny_encoder: Encoder, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merge_policy, "CHEAP", 0)
    pairs = documents(480)
    queries = [text for _, text in documents(30, "q")]
    with SearchIndex.build(pairs[:30], tiny_encoder, tmp_path / "x", kind=kind) as index:
        for start in range(30, 480, 30):
            index.add(pairs[start : start + 30])
        gone = [one for number, (one, _) in enumerate(pairs) if number % 10 == 7]
        index.delete(gone)
        assert index.info().segments == 16
        left = [pair for pair in pairs if pair[0] not in set(gone)]
        with SearchIndex.build(left, tiny_encoder, tmp_path / "y", kind=kind) as fresh:
            expected = fresh.search_batch(queries, 25, mode="dense", exact=True)
            found = index.search_batch(queries, 25, mode="dense")  # of few rows all are looked at
            assert_alike(found, expected)
            assert index.search_batch(queries, 25, mode="dense", exact=True) == found
            both = fresh.search_batch(queries, 25)
            assert_alike(index.search_batch(queries, 25, exact=True), both)
            index.compact()
            assert index.info().segments == 1
            assert_alike(index.search_batch(queries, 25, mode="dense", exact=True), expected)
            assert_alike(index.search_batch(queries, 25, exact=True), both)
            if kind == "flat":
                assert_alike(index.search_batch(queries, 25, mode="dense"), expected)
            (ours,), (theirs,) = (
                list((tmp_path / name).glob("segments/*/vectors.npy")) for name in ("x", "y")
            )
            assert np.allclose(np.load(ours), np.load(theirs), atol=1e-6)
