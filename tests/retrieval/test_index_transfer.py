"""Vectors that come from elsewhere, and indexes that go elsewhere."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from index_cases import KINDS, assert_alike, contents, documents

from sbertkit import Document, Encoder, SearchIndex, dump_index, encode_corpus
from sbertkit.encoder import encoding
from sbertkit.errors import InputError, InputTypeError, ModelMismatch
from sbertkit.retrieval import merging

CORPUS = [
    Document(one, text, {"number": number} if number % 2 else {})
    for number, (one, text) in enumerate(documents(90))
]
TEXTS = [one.text for one in CORPUS]


@pytest.fixture
def vectors(tiny_encoder: Encoder) -> Any:
    return tiny_encoder.encode(TEXTS)


@pytest.mark.parametrize("kind", KINDS)
def test_given_vectors_are_not_made_again(
    tiny_encoder: Encoder,
    tmp_path: Path,
    vectors: Any,
    kind: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    np.save(tmp_path / "v.npy", vectors)
    asked: list[object] = []
    clean = encoding.EncodingRun._clean

    def noting(self: encoding.EncodingRun, text: object, row: int, account: object) -> str:
        asked.append(text)
        return clean(self, text, row, account)  # type: ignore[arg-type]

    monkeypatch.setattr(encoding.EncodingRun, "_clean", noting)
    for number, source in enumerate((vectors, tmp_path / "v.npy", vectors.astype(np.float64) * 3)):
        path = tmp_path / str(number)
        del asked[:]
        with SearchIndex.build(CORPUS, tiny_encoder, path, kind=kind, vectors=source) as index:
            assert len(asked) == 32  # to compare
            for row in (0, 17, 89):
                hit = index.search(vectors[row], 1)[0]
                assert (hit.id, hit.text) == CORPUS[row][:2]
                assert hit.metadata == dict(CORPUS[row].metadata)
            assert index.add([("more", "one more")]).encoded == 1


def test_a_parquet_file_is_matched_by_id(
    tiny_encoder: Encoder, tmp_path: Path, vectors: Any
) -> None:
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text("\n".join(json.dumps({"id": d.id, "text": d.text}) for d in CORPUS))
    encode_corpus(tiny_encoder, corpus, tmp_path / "v.parquet")
    backwards = tmp_path / "backwards.jsonl"
    lines = corpus.read_text().splitlines()
    backwards.write_text("\n".join(lines[::-1][:50]))
    with SearchIndex.build(
        backwards, tiny_encoder, tmp_path / "x", vectors=tmp_path / "v.parquet"
    ) as index:
        assert index.search(vectors[60], 1)[0].id == CORPUS[60].id
        assert len(index) == 50
    missing = tmp_path / "missing.jsonl"
    missing.write_text(corpus.read_text() + '\n{"id": "nobody", "text": "has no vector"}')
    with pytest.raises(InputError, match="no vector for 1 of 91 documents, the first of them 'nob"):
        SearchIndex.build(missing, tiny_encoder, tmp_path / "y", vectors=tmp_path / "v.parquet")
    assert not (tmp_path / "y").exists()


@pytest.mark.parametrize(
    ("spoil", "error", "match"),
    [
        (lambda v: v[:-1], InputError, r"expected 90 vectors of size 32, [^\n]*\(89, 32\)"),
        (lambda v: v[:, :-1], InputError, r"expected 90 vectors of size 32"),
        (lambda v: v[0], InputTypeError, r"expected an array \(n, dim\) of floats"),
        (lambda v: v.astype(int), InputTypeError, "type int64"),
        (lambda v: v.tolist(), InputTypeError, "found list"),
        (lambda v: v[::-1], ModelMismatch, "in the order of the documents"),
        (lambda v: np.roll(v, 1, axis=1), ModelMismatch, r"is not the one of [^\n]*cosine"),
        (
            lambda v: np.where(np.arange(90)[:, None] == 3, 0, v),
            InputError,
            "document 'd3' is zero",
        ),
        (lambda v: np.where(np.arange(90)[:, None] == 3, np.nan, v), InputError, "document 'd3'"),
    ],
)
def test_vectors_that_do_not_belong_are_refused(
    tiny_encoder: Encoder,
    tmp_path: Path,
    vectors: Any,
    spoil: Callable[[Any], Any],
    error: type[Exception],
    match: str,
) -> None:
    with pytest.raises(error, match=match):
        SearchIndex.build(CORPUS, tiny_encoder, tmp_path / "x", vectors=spoil(vectors))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("column", "match"),
    [
        (pa.array([0.5] * 90), "must hold lists of floats, found double"),
        (pa.array(["a"] * 90), "must hold lists of floats, found string"),
        (pa.array([["a"]] * 90), "must hold lists of floats, found list<"),
        (pa.array([{"a": 1.0}] * 90), "must hold lists of floats, found struct"),
        (pa.nulls(90), "must hold lists of floats, found null"),
        (
            pa.array([[0.1] * (32 + (i == 4) - (i == 5)) for i in range(90)]),
            "33 numbers for [^\\n]*'d4'",
        ),
        (
            pa.array([None if i == 7 else [0.1] * 32 for i in range(90)]),
            "found 0 numbers for [^\\n]*'d7'",
        ),
        (pa.array([[0.0 if i == 2 else 0.1] * 32 for i in range(90)]), "document 'd2' is zero"),
        (pa.array([[1e300 if i == 2 else 0.1] * 32 for i in range(90)]), "is not the one of"),
    ],
)
def test_a_parquet_column_that_does_not_fit_is_refused(
    tiny_encoder: Encoder, tmp_path: Path, column: Any, match: str
) -> None:
    ids = pa.array([one.id for one in CORPUS])
    pa.parquet.write_table(pa.table({"id": ids, "vector": column}), tmp_path / "v.parquet")
    with pytest.raises(InputError, match=match) as caught:
        SearchIndex.build(CORPUS, tiny_encoder, tmp_path / "x", vectors=tmp_path / "v.parquet")
    assert "\n" not in str(caught.value)
    assert [left.name for left in tmp_path.iterdir()] == ["v.parquet"]


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<f4', 'fortran_order': False, 'shape': (((((((",
        "{'descr': [('a','<f4',(3,)], 'fortran_order': False, 'shape': (3,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (40, 10**21)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 32)}",
        "{'descr': '|O', 'fortran_order': False, 'shape': (90, 32)}",
    ],
)
def test_a_header_that_is_none_is_refused(
    tiny_encoder: Encoder, tmp_path: Path, header: str
) -> None:
    content = header.encode().ljust(118) + b"\n"
    (tmp_path / "v.npy").write_bytes(b"\x93NUMPY\x01\x00\x76\x00" + content[:118] + b"\0" * 64)
    with pytest.raises(InputError, match=r"v\.npy"):
        SearchIndex.build(CORPUS, tiny_encoder, tmp_path / "x", vectors=tmp_path / "v.npy")


def test_files_that_are_no_vectors_are_refused(tiny_encoder: Encoder, tmp_path: Path) -> None:
    for name, content in (("a.npy", b"no"), ("b.parquet", b"no"), ("c.txt", b"no")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=name) as caught:
            SearchIndex.build(CORPUS, tiny_encoder, tmp_path / "x", vectors=tmp_path / name)
        assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match="gone"):
        SearchIndex.build(CORPUS, tiny_encoder, tmp_path / "x", vectors=tmp_path / "gone.npy")
    with pytest.raises(InputError, match="leave resume out"):
        SearchIndex.build(
            CORPUS, tiny_encoder, tmp_path / "x", vectors=tmp_path / "a.npy", resume=True
        )
    assert not (tmp_path / "x").exists()


# --- out of an index


@pytest.fixture
def index(
    tiny_encoder: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Path, list[Document]]:
    """An index of several segments with deleted rows, and what it holds."""
    monkeypatch.setattr(merging, "CHEAP", 0)
    path = tmp_path / "index"
    with SearchIndex.build(CORPUS[:50], tiny_encoder, path) as built:
        built.add(CORPUS[50:])
        built.delete([CORPUS[3].id, CORPUS[70].id])
        return path, list(built.documents())


def test_a_dump_comes_back_as_the_same_index(
    index: tuple[Path, list[Document]], tiny_encoder: Encoder, tmp_path: Path
) -> None:
    path, held = index
    file = tmp_path / "dump.parquet"
    assert dump_index(path, file) == (file,)
    with (
        SearchIndex.build(file, tiny_encoder, tmp_path / "again", vectors=file) as again,
        SearchIndex.open(path, tiny_encoder) as first,
    ):
        assert list(again.documents()) == held
        queries = [text for _, text in documents(20, "q")]
        assert_alike(again.search_batch(queries, 30), first.search_batch(queries, 30))


def test_a_plain_faiss_file_finds_what_the_index_finds(
    index: tuple[Path, list[Document]], tiny_encoder: Encoder, tmp_path: Path
) -> None:
    import faiss

    path, held = index
    file, beside = dump_index(path, tmp_path / "plain.faiss")
    ids = json.loads(beside.read_text())
    assert ids == [one.id for one in held]
    plain = faiss.read_index(str(file))
    query = tiny_encoder.encode(["some words"])
    scores, rows = plain.search(query, 10)
    with SearchIndex.open(path, tiny_encoder) as opened:
        hits = opened.search(query[0], 10)
    assert [ids[row] for row in rows[0]] == [hit.id for hit in hits]
    np.testing.assert_allclose(scores[0], [hit.score for hit in hits], atol=1e-6)


def test_a_dump_to_another_kind_of_file_is_refused(
    index: tuple[Path, list[Document]], tmp_path: Path
) -> None:
    before = contents(tmp_path)
    with pytest.raises(InputError, match=r"ends in \.parquet or \.faiss"):
        dump_index(index[0], tmp_path / "dump.csv")
    for inside in ("x.parquet", "segments/x.faiss"):
        with pytest.raises(InputError, match="lies in the index itself"):
            dump_index(index[0], index[0] / inside)
    with pytest.raises(InputError, match="there is no index"):
        dump_index(tmp_path / "nowhere", tmp_path / "dump.parquet")
    assert contents(tmp_path) == before
