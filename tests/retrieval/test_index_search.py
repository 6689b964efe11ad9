"""What a search gives: exact scores, the right number of hits, and the stored documents."""

import random
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from index_cases import KINDS, documents, ids_in

from sbertkit import Document, Encoder, Hit, SearchIndex
from sbertkit.errors import InputError, InputTypeError, UnknownId

CORPUS = documents(1_000)


@pytest.fixture(scope="module")
def indexes(
    tiny_encoder: Encoder, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, SearchIndex]:
    """The same corpus in each kind."""
    root = tmp_path_factory.mktemp("indexes")
    return {kind: SearchIndex.build(CORPUS, tiny_encoder, root / kind, kind=kind) for kind in KINDS}


@pytest.fixture(scope="module")
def flat(indexes: dict[str, SearchIndex]) -> SearchIndex:
    return indexes["flat"]


@pytest.fixture(scope="module")
def unit_rows(tiny_encoder: Encoder) -> np.ndarray:
    vectors = tiny_encoder.encode([text for _, text in CORPUS]).astype(np.float64)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.mark.parametrize("kind", KINDS)
def test_the_text_of_each_of_200_random_documents_finds_it_first(
    indexes: dict[str, SearchIndex], kind: str
) -> None:
    for identifier, text in random.Random(7).sample(CORPUS, 200):
        first = indexes[kind].search(text, k=3, mode="dense")[0]
        assert (first.id, first.text) == (identifier, text)
        assert first.score >= 0.9999


@pytest.mark.parametrize("kind", KINDS)
def test_every_document_is_in_the_index(indexes: dict[str, SearchIndex], kind: str) -> None:
    assert ids_in(indexes[kind]) == {identifier for identifier, _ in CORPUS}
    assert len(indexes[kind]) == 1_000


@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_exact_cosines_best_first(
    indexes: dict[str, SearchIndex], unit_rows: np.ndarray, tiny_encoder: Encoder, kind: str
) -> None:
    query = "some words about nothing"
    vector = tiny_encoder.encode(query).astype(np.float64)
    exact = unit_rows @ (vector / np.linalg.norm(vector))
    for k in (1, 10, 500, 1_000):
        hits = indexes[kind].search(query, k=k, mode="dense")
        assert len(hits) == k
        scores = [hit.score for hit in hits]
        assert scores == sorted(scores, reverse=True)
        for hit in hits:
            assert isinstance(hit.score, float)
            assert -1 <= hit.score <= 1
            assert hit.score == pytest.approx(exact[int(hit.id[1:])], abs=2e-6)


def test_a_document_has_the_same_score_in_every_kind(indexes: dict[str, SearchIndex]) -> None:
    whole = {hit.id: hit.score for hit in indexes["flat"].search("a query", k=1_000, mode="dense")}
    for index in indexes.values():
        for k in (1, 10, 100, 1_000):
            for hit in index.search("a query", k=k, mode="dense"):
                assert hit.score == whole[hit.id]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("k", "expected"), [(1, 1), (999, 999), (1_000, 1_000), (1_001, 1_000), (10**30, 1_000)]
)
def test_k_hits_come_or_as_many_as_there_are(
    indexes: dict[str, SearchIndex], kind: str, k: int, expected: int
) -> None:
    hits = indexes[kind].search("word", k=k)
    assert len({hit.id for hit in hits}) == len(hits) == expected


def test_three_documents_give_three_hits_for_ten(tiny_encoder: Encoder, tmp_path: Path) -> None:
    corpus = documents(3)
    for kind in KINDS:
        with SearchIndex.build(corpus, tiny_encoder, tmp_path / kind, kind=kind) as index:
            assert [len(index.search("word", k)) for k in (10, 3, 2, 1)] == [3, 3, 2, 1]


@pytest.mark.parametrize("k", [0, -1, -(10**20)])
def test_k_below_one_is_refused(flat: SearchIndex, k: int) -> None:
    for search in (flat.search, lambda query, k: flat.search_batch([query], k)):
        with pytest.raises(InputError, match=f"k must be at least 1, not {k}"):
            search("word", k)


@pytest.mark.parametrize("k", [2.5, 2.0, "3", None, True, [3], np.float64(3)])
def test_k_that_is_no_whole_number_is_a_wrong_type(flat: SearchIndex, k: Any) -> None:
    with pytest.raises(InputTypeError, match="k must be a whole number"):
        flat.search("word", k)


def test_k_may_be_a_numpy_integer(flat: SearchIndex) -> None:
    assert len(flat.search("word", np.int64(3))) == 3  # type: ignore[arg-type]


@pytest.mark.parametrize("query", ["", " ", "\t\n", "\u00a0\u3000", "\u200b"])
def test_a_blank_query_is_refused_by_its_number(flat: SearchIndex, query: str) -> None:
    with pytest.raises(InputError, match="query 1 is blank"):
        flat.search(query)
    with pytest.raises(InputError, match="query 3 is blank"):
        flat.search_batch(["a", "b", query])


@pytest.mark.parametrize(
    "query", [None, 3, 2.5, b"text", ["a", "b"], ["1", "2"], {"a": 1}, object(), [[1.0, 2.0]]]
)
def test_a_query_that_is_neither_text_nor_vector_is_a_wrong_type(
    flat: SearchIndex, query: Any
) -> None:
    with pytest.raises(InputTypeError, match=r"texts? or (a )?vectors?|expected one query"):
        flat.search(query)


@pytest.mark.parametrize("queries", ["one text", b"x", {"q1": "text"}, None, 5])
def test_a_batch_that_is_no_list_is_a_wrong_type(flat: SearchIndex, queries: Any) -> None:
    with pytest.raises(InputTypeError, match="expected a list of queries"):
        flat.search_batch(queries)


@pytest.mark.parametrize("queries", [[None], ["a", None], ["a", [1.0]], [1.0, 2.0], np.ones(32)])
def test_a_batch_of_other_things_is_a_wrong_type(flat: SearchIndex, queries: Any) -> None:
    with pytest.raises(InputTypeError, match=r"texts? or (a )?vectors?"):
        flat.search_batch(queries)


@pytest.mark.parametrize("kind", KINDS)
def test_a_vector_finds_what_its_text_finds(
    indexes: dict[str, SearchIndex], tiny_encoder: Encoder, kind: str
) -> None:
    text = CORPUS[77][1]
    vector = tiny_encoder.encode(text)
    expected = indexes[kind].search(text, k=5, mode="dense")
    for form in (
        vector,
        vector.tolist(),
        tuple(vector),
        vector * 1e-30,
        vector.astype("f8") * 1e200,
    ):
        hits = indexes[kind].search(form, k=5)
        assert [hit.id for hit in hits] == [hit.id for hit in expected]
        assert [hit.score for hit in hits] == pytest.approx(
            [hit.score for hit in expected], abs=1e-6
        )
    assert indexes[kind].search_batch([vector, vector], 5) == [indexes[kind].search(vector, 5)] * 2


def test_whole_numbers_are_a_vector(flat: SearchIndex) -> None:
    ones: Any = np.ones(flat.encoder.dim, dtype=np.int8)
    assert flat.search(ones, 4) == flat.search(ones.astype(np.float32) * 3, 4)


@pytest.mark.parametrize("size", [1, 31, 33, 384])
def test_a_vector_of_another_size_is_refused_with_both(flat: SearchIndex, size: int) -> None:
    with pytest.raises(InputError, match=f"vectors of size 32, the query has size {size}"):
        flat.search(np.ones(size))


@pytest.mark.parametrize("value", [0.0, np.nan, np.inf, -np.inf])
def test_a_vector_without_direction_is_refused(flat: SearchIndex, value: float) -> None:
    vector = np.ones(32)
    vector[3:] = value
    if value == 0:
        vector[:] = 0
    with pytest.raises(InputError, match="no direction"):
        flat.search(vector)


def test_a_batch_answers_in_the_order_of_its_queries(flat: SearchIndex) -> None:
    queries = [text for _, text in CORPUS[:300]]
    random.Random(3).shuffle(queries)
    answers = flat.search_batch(queries, k=2)
    assert [hits[0].text for hits in answers] == queries
    assert [[hit.id for hit in hits] for hits in answers] == [
        [hit.id for hit in flat.search(query, k=2)] for query in queries
    ]
    assert flat.search_batch((query for query in queries), k=2) == answers  # type: ignore[arg-type]
    assert flat.search_batch(np.array(queries), k=2) == answers


def test_equal_queries_in_a_batch_have_equal_answers(flat: SearchIndex) -> None:
    first, other, again = flat.search_batch(["same", "other", "same"], k=4)
    assert first == again
    assert first != other


def test_no_queries_have_no_answers(flat: SearchIndex) -> None:
    none: list[Any] = [[], (), np.empty((0, 32), np.float32)]
    for queries in none:
        assert flat.search_batch(queries) == []
    with pytest.raises(InputError, match="k must"):
        flat.search_batch([], k=0)


@pytest.mark.parametrize("kind", KINDS)
def test_equal_texts_are_all_found_in_the_order_of_the_corpus(
    tiny_encoder: Encoder, tmp_path: Path, kind: str
) -> None:
    corpus = documents(300)
    same = range(5, 300, 2)
    for row in same:
        corpus[row] = (corpus[row][0], "the same text")
    with SearchIndex.build(corpus, tiny_encoder, tmp_path / "x", kind=kind) as index:
        for k in (1, 10, len(same)):
            hits = index.search("the same text", k=k, mode="dense")
            assert [hit.id for hit in hits] == [f"d{row}" for row in same][:k]
            assert all(hit.score == hits[0].score >= 0.9999 for hit in hits)
        other = index.search("the same text", k=len(same) + 1, mode="dense")[-1]
        assert other.score < 0.9999


@pytest.mark.parametrize("kind", KINDS)
def test_opening_again_changes_no_answer(
    indexes: dict[str, SearchIndex], tiny_encoder: Encoder, kind: str
) -> None:
    queries = [text for _, text in CORPUS[:40]]
    expected = indexes[kind].search_batch(queries, k=20)
    with SearchIndex.open(indexes[kind].path, tiny_encoder) as again:
        found = again.search_batch(queries, k=20)
    for hits, before in zip(found, expected, strict=True):
        assert [hit.id for hit in hits] == [hit.id for hit in before]
        # The same query's vector may have been made in another batch.
        assert [hit.score for hit in hits] == pytest.approx([h.score for h in before], abs=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_threads_may_search_one_index_at_once(indexes: dict[str, SearchIndex], kind: str) -> None:
    index = indexes[kind]
    queries = [text for _, text in CORPUS[:8]]
    expected = {k: [[hit.id for hit in index.search(q, k)] for q in queries] for k in (1, 7, 120)}
    wrong: list[object] = []

    def work(number: int) -> None:
        try:
            for turn in range(6):
                k = (1, 7, 120)[(number + turn) % 3]
                for query, ids in zip(queries, expected[k], strict=True):
                    if [hit.id for hit in index.search(query, k)] != ids:
                        wrong.append((k, query))
                if index.get("d5").text != CORPUS[5][1]:
                    wrong.append("get")
        except Exception as error:  # a thread's own errors would pass unseen
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_metadata_comes_back_as_it_was_given(tiny_encoder: Encoder, tmp_path: Path) -> None:
    metadata = {
        "title": 'Ünïcode \U0001f600 \u2028 " \\ \0 \x1b',
        "": "empty name",
        "number": 3,
        "big": 2**80,
        "real": 0.1,
        "yes": True,
        "nothing": None,
        "list": [1, "two", [3.5, None]],
        "object": {"inner": {"deep": []}},
        "id": "another id",
        "text": "another text",
    }
    corpus = [Document("a", "one text", metadata), Document("b", "two text")]
    with SearchIndex.build(corpus, tiny_encoder, tmp_path / "x") as index:
        assert index.get("a").metadata == metadata
        assert index.get("b").metadata == {}
        hits = {hit.id: hit for hit in index.search("text")}
        assert hits["a"].metadata == metadata
        assert hits["b"] == Hit("b", hits["b"].score, "two text", {})


def test_changing_the_metadata_of_a_hit_changes_no_other(
    tiny_encoder: Encoder, tmp_path: Path
) -> None:
    corpus = [Document("a", "one text", {"list": [1]})]
    with SearchIndex.build(corpus, tiny_encoder, tmp_path / "x") as index:
        index.search("text")[0].metadata["list"].append(2)
        assert index.search("text")[0].metadata == {"list": [1]}


def test_ids_stay_text(tiny_encoder: Encoder, tmp_path: Path) -> None:
    ids = ["007", "7", "7.0", "1e3", "0x10", "true", "null", " lead", "trail ", "two words", "ключ"]
    ids += ["猫", "e\u0301", "\u00e9", "\U0001f600", "a/b\\c", "'; DROP TABLE documents; --", "%_"]
    ids += ["NaN", "A", "a", "x" * 5_000, "-1", "{}", '"']
    corpus = [Document(identifier, f"text number {row}") for row, identifier in enumerate(ids)]
    with SearchIndex.build(corpus, tiny_encoder, tmp_path / "x") as index:
        assert [index.get(identifier).text for identifier in ids] == [text for _, text, _ in corpus]
        assert ids_in(index) == set(ids)
        for identifier, text, _ in corpus:
            assert index.search(text, k=1)[0].id == identifier


@pytest.mark.parametrize("identifier", ["", "d1000", "D1", "d1 ", "d01", "d1\0", "*"])
def test_an_unknown_id_is_reported(flat: SearchIndex, identifier: str) -> None:
    with pytest.raises(UnknownId, match="no document with the id"):
        flat.get(identifier)


@pytest.mark.parametrize("identifier", [1.5, None, b"d1", ["d1"]])
def test_an_id_that_is_no_str_is_a_wrong_type(flat: SearchIndex, identifier: Any) -> None:
    with pytest.raises(InputTypeError, match="an id must be a str"):
        flat.get(identifier)


def test_a_closed_index_says_so_instead_of_finding_nothing(
    tiny_encoder: Encoder, tmp_path: Path
) -> None:
    with SearchIndex.build(documents(3), tiny_encoder, tmp_path / "x") as index:
        pass
    for use in (
        lambda: index.search("word"),
        lambda: index.search_batch(["word"]),
        lambda: index.get("d1"),
    ):
        with pytest.raises(InputError, match="was closed; open it again"):
            use()
    index.close()
    assert len(index) == 3
    assert index.verify() == ()


def test_the_index_is_described(indexes: dict[str, SearchIndex], tiny_encoder: Encoder) -> None:
    for kind, index in indexes.items():
        info = index.info()
        assert (info.documents, info.dim, info.kind) == (1_000, 32, kind)
        assert (info.model, info.fingerprint) == (
            tiny_encoder.options.model,
            tiny_encoder.fingerprint,
        )
        assert (info.generation, info.recall) == (1, 0.95)
        files = [path for path in index.path.rglob("*") if path.is_file()]
        total = sum(path.stat().st_size for path in files if path.name != "manifest.json")
        assert info.bytes == total


def test_a_table_of_queries_is_refused(flat: SearchIndex) -> None:
    pandas = pytest.importorskip("pandas")
    with pytest.raises(InputTypeError, match="one column"):
        flat.search_batch(pandas.DataFrame({"a": ["x"]}))


def test_an_id_is_found_as_it_was_written_before_its_repair(
    tiny_encoder: Encoder, tmp_path: Path
) -> None:
    with SearchIndex.build([("x\ud800", "one")], tiny_encoder, tmp_path / "i") as index:
        assert index.get("x\ud800") == index.get("x\ufffd")
        with pytest.raises(UnknownId):
            index.get("\ud800")


def test_verify_and_search_do_not_depend_on_the_current_folder(
    tiny_encoder: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with SearchIndex.build([("1", "one")], tiny_encoder, "i") as index:
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        assert index.verify() == ()
        assert index.search("one")[0].id == "1"
