"""Vectors that come from elsewhere, and indexes that go elsewhere."""

import json
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from index_cases import KINDS, assert_alike, contents, documents

from sbertkit import BuildOptions, Document, Encoder, SearchIndex, encode_corpus
from sbertkit.encoder import encoding
from sbertkit.errors import InputError, InputTypeError, ModelMismatch
from sbertkit.retrieval import build, merge_policy

CORPUS = [
    Document(one, text, {"number": number} if number % 2 else {})
    for number, (one, text) in enumerate(documents(90))
]
TEXTS = [one.text for one in CORPUS]


@pytest.fixture
def vectors(tiny_encoder: Encoder) -> Any:
    return tiny_encoder.encode(TEXTS)


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The texts that go through the encoder."""
    texts: list[object] = []
    clean = encoding.EncodingRun._clean

    def noting(self: encoding.EncodingRun, text: object, row: int, account: object) -> str:
        texts.append(text)
        return clean(self, text, row, account)  # type: ignore[arg-type]

    monkeypatch.setattr(encoding.EncodingRun, "_clean", noting)
    monkeypatch.setattr(build, "fill_cache", lambda _: None)  # it encodes texts of its own
    return texts


@pytest.mark.parametrize("kind", KINDS)
def test_given_vectors_are_not_made_again(
    tiny_encoder: Encoder,
    tmp_path: Path,
    vectors: Any,
    kind: str,
    encoded: list[object],
) -> None:
    np.save(tmp_path / "v.npy", vectors)
    for number, source in enumerate((vectors, tmp_path / "v.npy", vectors.astype(np.float64) * 3)):
        path = tmp_path / str(number)
        more: Any = {"kind": kind, "with_encoder": False}  # whose export is tried with texts, too
        del encoded[:]
        with SearchIndex.build(
            CORPUS, tiny_encoder, path, options=BuildOptions(vectors=source), **more
        ) as index:
            known = {document.text for document in CORPUS}
            assert len([text for text in encoded if text in known]) == 32  # to compare
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
        backwards,
        tiny_encoder,
        tmp_path / "x",
        options=BuildOptions(vectors=tmp_path / "v.parquet"),
    ) as index:
        assert index.search(vectors[60], 1)[0].id == CORPUS[60].id
        assert len(index) == 50
    missing = tmp_path / "missing.jsonl"
    missing.write_text(corpus.read_text() + '\n{"id": "nobody", "text": "has no vector"}')
    with pytest.raises(InputError, match="no vector for 1 of 91 documents, the first of them 'nob"):
        SearchIndex.build(
            missing,
            tiny_encoder,
            tmp_path / "y",
            options=BuildOptions(vectors=tmp_path / "v.parquet"),
        )
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
        SearchIndex.build(
            CORPUS, tiny_encoder, tmp_path / "x", options=BuildOptions(vectors=spoil(vectors))
        )
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
        SearchIndex.build(
            CORPUS,
            tiny_encoder,
            tmp_path / "x",
            options=BuildOptions(vectors=tmp_path / "v.parquet"),
        )
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
        SearchIndex.build(
            CORPUS, tiny_encoder, tmp_path / "x", options=BuildOptions(vectors=tmp_path / "v.npy")
        )


def test_files_that_are_no_vectors_are_refused(tiny_encoder: Encoder, tmp_path: Path) -> None:
    for name, content in (("a.npy", b"no"), ("b.parquet", b"no"), ("c.txt", b"no")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=name) as caught:
            SearchIndex.build(
                CORPUS, tiny_encoder, tmp_path / "x", options=BuildOptions(vectors=tmp_path / name)
            )
        assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match="gone"):
        SearchIndex.build(
            CORPUS,
            tiny_encoder,
            tmp_path / "x",
            options=BuildOptions(vectors=tmp_path / "gone.npy"),
        )
    with pytest.raises(InputError, match="leave resume out"):
        SearchIndex.build(
            CORPUS,
            tiny_encoder,
            tmp_path / "x",
            options=BuildOptions(vectors=tmp_path / "a.npy"),
            resume=True,
        )
    assert not (tmp_path / "x").exists()


# --- out of an index


@pytest.fixture
def index(
    tiny_encoder: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Path, list[Document]]:
    """An index of several segments with deleted rows, and what it holds."""
    monkeypatch.setattr(merge_policy, "CHEAP", 0)
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
    assert SearchIndex.dump_at(path, file) == (file,)
    with (
        SearchIndex.build(
            file, tiny_encoder, tmp_path / "again", options=BuildOptions(vectors=file)
        ) as again,
        SearchIndex.open(path, tiny_encoder) as first,
    ):
        assert list(again.documents()) == held
        queries = [text for _, text in documents(20, "q")]
        assert_alike(again.search_batch(queries, 30), first.search_batch(queries, 30))


FIELDS: list[Any] = [
    {"vector": "Pfeil", "unit": "mm"},
    {"metadata": '{"a": 1}'},
    {"metadata": {"metadata": "m", "vector": [0.5, 1.5]}},
    {"id": 7, "text": "other", "_id": "x", "sbertkit": None},
    {},
]
OWN = [Document(f"o{number}", f"own text {number}", of) for number, of in enumerate(FIELDS)]


@pytest.fixture
def own(tiny_encoder: Encoder, tmp_path: Path) -> Path:
    """The index of documents whose fields have the names of the columns of a dump."""
    SearchIndex.build(OWN, tiny_encoder, tmp_path / "own", with_encoder=False).close()
    return tmp_path / "own"


def as_held(index: SearchIndex) -> list[Document]:
    return [Document(one.id, one.text, dict(one.metadata)) for one in index.documents()]


def test_the_fields_of_documents_stay_whatever_their_names_and_vectors_are(
    tiny_encoder: Encoder, tmp_path: Path
) -> None:
    vectors = tiny_encoder.encode([one.text for one in OWN])
    np.save(tmp_path / "v.npy", vectors)
    lines = [
        json.dumps({"id": one.id, "text": one.text, **of})
        for one, of in zip(OWN, FIELDS, strict=True)
    ]
    (tmp_path / "c.jsonl").write_text("\n".join(lines[:3]))
    for number, given in enumerate((None, vectors, tmp_path / "v.npy")):
        path = tmp_path / str(number)
        with SearchIndex.build(
            OWN, tiny_encoder, path, options=BuildOptions(vectors=given)
        ) as built:
            assert as_held(built) == OWN
    file = tmp_path / "c.jsonl"
    with SearchIndex.build(
        file, tiny_encoder, tmp_path / "file", options=BuildOptions(vectors=vectors[:3])
    ) as built:
        assert as_held(built) == OWN[:3]


@pytest.mark.parametrize("mode", ["add", "upsert", "update", "build"])
def test_a_dump_is_taken_in_as_what_it_was_dumped_from(
    own: Path, tiny_encoder: Encoder, tmp_path: Path, mode: str, encoded: list[object]
) -> None:
    file = tmp_path / "dump.parquet"
    SearchIndex.dump_at(own, file)
    with SearchIndex.open(own, tiny_encoder) as first:
        stored = first.sample(9)[1]
        if mode in ("upsert", "update"):
            changes = getattr(first, mode)(file)
            assert (changes.unchanged, bool(changes)) == (5, False)
            assert as_held(first) == OWN
    del encoded[:]
    other = tmp_path / "other"
    if mode == "build":
        with SearchIndex.build(file, tiny_encoder, other, with_encoder=False) as again:
            assert len(encoded) == 5  # to compare
            assert as_held(again) == OWN
            np.testing.assert_allclose(again.sample(9)[1], stored, atol=1e-6)
        return
    before = OWN[0][1] if mode == "update" else "before"  # an unrelated corpus would be refused
    with SearchIndex.build([("a", before)], tiny_encoder, other, with_encoder=False) as again:
        del encoded[:]
        changes = getattr(again, mode)(file)
        assert (changes.added, changes.encoded, encoded) == (5, 0, [])
        assert as_held(again)[-5:] == OWN
        np.testing.assert_allclose(again.sample(9)[1][-5:], stored, atol=1e-6)
        assert again.verify() == ()
        assert again.search("own text 3", 1)[0].id == "o3"


def test_what_was_encoded_to_parquet_is_taken_in_without_its_vectors_as_fields(
    tiny_encoder: Encoder, tmp_path: Path, encoded: list[object], caplog: Any
) -> None:
    (tmp_path / "c.txt").write_text("one\n\ntwo\nthree\n")
    encode_corpus(tiny_encoder, tmp_path / "c.txt", tmp_path / "v.parquet")
    del encoded[:]
    with SearchIndex.build(
        tmp_path / "v.parquet", tiny_encoder, tmp_path / "x", with_encoder=False
    ) as index:
        assert as_held(index) == [
            Document("1", "one", {}), Document("3", "two", {}), Document("4", "three", {})
        ]  # fmt: skip
        assert len(encoded) == 3  # to compare
        assert "v.parquet: its vectors are this encoder's, and are used" in caplog.text


def test_the_vectors_of_another_encoder_are_left(
    own: Path, tiny_bert: Path, tmp_path: Path, encoded: list[object], caplog: Any
) -> None:
    SearchIndex.dump_at(own, tmp_path / "dump.parquet")
    other = Encoder.load(tiny_bert, pooling="max", device="cpu")
    del encoded[:]
    with SearchIndex.build(
        tmp_path / "dump.parquet", other, tmp_path / "x", with_encoder=False
    ) as index:
        assert as_held(index) == OWN
        assert len(encoded) == 5
        np.testing.assert_allclose(
            index.sample(9)[1], other.encode([one.text for one in OWN]), atol=1e-5
        )
    assert "its vectors are of another encoder or precision, or long texts were" in caplog.text


@pytest.mark.parametrize("column", ["text", "vector", "id"])
def test_the_vectors_of_rows_that_somebody_changed_are_not_used(
    own: Path, tiny_encoder: Encoder, tmp_path: Path, column: str
) -> None:
    file = tmp_path / "dump.parquet"
    SearchIndex.dump_at(own, file)
    table = pa.parquet.read_table(file)
    values = table[column].to_pylist()
    values[1], values[2] = ("changed", values[2]) if column != "vector" else (values[2], values[1])
    place = table.schema.get_field_index(column)
    changed = pa.array(values, table.schema.field(column).type)
    pa.parquet.write_table(table.set_column(place, table.schema.field(column), changed), file)
    with SearchIndex.build(file, tiny_encoder, tmp_path / "x") as index:
        held = as_held(index)
        assert [one.metadata for one in held] == FIELDS
        texts = [one.text for one in held]
        np.testing.assert_allclose(index.sample(9)[1], tiny_encoder.encode(texts), atol=1e-5)
    with SearchIndex.open(own, tiny_encoder) as index:
        changes = index.upsert(file)
        assert (changes.added, changes.changed, changes.encoded) == {
            "text": (0, 1, 1), "vector": (0, 0, 0), "id": (1, 0, 1)
        }[column]  # fmt: skip


def test_columns_that_somebody_adds_to_a_dump_are_further_fields(
    own: Path, tiny_encoder: Encoder, tmp_path: Path
) -> None:
    file = tmp_path / "dump.parquet"
    SearchIndex.dump_at(own, file)
    table = pa.parquet.read_table(file)
    pa.parquet.write_table(table.append_column("lang", pa.array(["de"] * 5)), file)
    with SearchIndex.build(file, tiny_encoder, tmp_path / "x") as index:
        assert [one.metadata for one in as_held(index)] == [{**of, "lang": "de"} for of in FIELDS]


def test_the_vector_column_of_another_programs_file_is_no_field_where_vectors_are_taken_from_it(
    tiny_encoder: Encoder, tmp_path: Path
) -> None:
    vectors = tiny_encoder.encode(["one", "two"]).tolist()
    content = {"id": ["a", "b"], "text": ["one", "two"], "vector": vectors, "n": [1, 2]}
    pa.parquet.write_table(pa.table(content), tmp_path / "v.parquet")
    file = tmp_path / "v.parquet"
    with SearchIndex.build(
        file, tiny_encoder, tmp_path / "x", options=BuildOptions(vectors=file)
    ) as index:
        assert [one.metadata for one in as_held(index)] == [{"n": 1}, {"n": 2}]


def test_rows_of_blank_documents_may_be_among_the_vectors_or_not(
    tiny_encoder: Encoder, tmp_path: Path
) -> None:
    file = tmp_path / "c.txt"
    file.write_text("\none\n \ntwo\nthree\n\n")
    encode_corpus(tiny_encoder, file, tmp_path / "v.npy")
    every = np.load(tmp_path / "v.npy")
    assert len(every) == 6
    for number, given in enumerate((tmp_path / "v.npy", every, every[[1, 3, 4]])):
        path = tmp_path / str(number)
        with SearchIndex.build(
            file, tiny_encoder, path, options=BuildOptions(vectors=given)
        ) as index:
            assert [hit.id for hit in index.search(every[4], 1)] == ["5"]
            np.testing.assert_allclose(index.sample(9)[1], every[[1, 3, 4]], atol=1e-5)
    with pytest.raises(InputError, match=r"expected 3 \(or, with 3 blank ones, 6\) vectors"):
        SearchIndex.build(
            file, tiny_encoder, tmp_path / "y", options=BuildOptions(vectors=every[:5])
        )


def test_masked_numbers_are_refused_and_not_taken(
    tiny_encoder: Encoder, tmp_path: Path, vectors: Any
) -> None:
    masked = np.ma.masked_array(vectors, mask=np.tile(np.arange(90) == 3, (32, 1)).T)
    with pytest.raises(InputError, match="found masked ones"):
        SearchIndex.build(
            CORPUS, tiny_encoder, tmp_path / "x", options=BuildOptions(vectors=masked)
        )
    whole = np.ma.masked_array(vectors)
    with SearchIndex.build(
        CORPUS, tiny_encoder, tmp_path / "x", options=BuildOptions(vectors=whole)
    ) as index:
        assert index.search(whole[3], 1)[0].id == CORPUS[3].id
        for queries in (masked[2:5], list(masked[2:5])):
            with pytest.raises(InputError, match="masked numbers"):
                index.search_batch(queries)


@pytest.mark.parametrize("name", ["v.npy", "v.parquet"])
def test_a_pipe_of_vectors_is_read_once_or_refused(
    tiny_encoder: Encoder, tmp_path: Path, name: str
) -> None:
    corpus = tmp_path / "c.txt"
    corpus.write_text("one\ntwo\n")
    encode_corpus(tiny_encoder, corpus, tmp_path / f"file-{name}")
    content = (tmp_path / f"file-{name}").read_bytes()
    os.mkfifo(tmp_path / name)
    if name == "v.npy":
        with pytest.raises(InputError, match="is a folder, a pipe or a device"):
            SearchIndex.build(
                corpus, tiny_encoder, tmp_path / "x", options=BuildOptions(vectors=tmp_path / name)
            )
        return
    threading.Thread(target=(tmp_path / name).write_bytes, args=[content], daemon=True).start()
    with SearchIndex.build(
        corpus, tiny_encoder, tmp_path / "x", options=BuildOptions(vectors=tmp_path / name)
    ) as index:
        assert len(index) == 2


@pytest.mark.parametrize("twice", ["id", "vector"])
def test_a_duplicate_column_of_a_vector_file_is_refused(
    tiny_encoder: Encoder, tmp_path: Path, twice: str
) -> None:
    columns = {"id": pa.array(["d0"]), "vector": pa.array([[0.1] * 32])}
    names = [*columns, twice]
    table = pa.Table.from_arrays([columns[name] for name in names], names=names)
    pa.parquet.write_table(table, tmp_path / "v.parquet")
    with pytest.raises(InputError, match=r"expected one column 'id' and one column 'vector'"):
        SearchIndex.build(
            CORPUS[:1],
            tiny_encoder,
            tmp_path / "x",
            options=BuildOptions(vectors=tmp_path / "v.parquet"),
        )


def test_a_flat_faiss_file_is_never_beside_the_ids_of_another(
    tiny_encoder: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import faiss

    path = tmp_path / "index"
    file = tmp_path / "plain.faiss"
    with SearchIndex.build(documents(5), tiny_encoder, path) as index:
        SearchIndex.dump_at(path, file)
        index.delete(["d0"])
    replace = Path.replace

    def failing_after(moves: int) -> Callable[[Path, Path], Path]:
        left = [True, *[False] * moves]

        def fail(old: Path, new: Path) -> Path:
            if left.pop():
                raise KeyboardInterrupt
            return replace(old, new)

        return fail

    for moves in range(3):
        with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
            patch.setattr(Path, "replace", failing_after(moves))
            SearchIndex.dump_at(path, file)
        ids = json.loads(file.with_suffix(".ids.json").read_bytes())
        assert not file.exists() or faiss.read_index(str(file)).ntotal == len(ids)
        assert len(list(tmp_path.iterdir())) <= 3
    assert file.exists()


def test_a_plain_faiss_file_finds_what_the_index_finds(
    index: tuple[Path, list[Document]], tiny_encoder: Encoder, tmp_path: Path
) -> None:
    import faiss

    path, held = index
    file, beside = SearchIndex.dump_at(path, tmp_path / "plain.faiss")
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
        SearchIndex.dump_at(index[0], tmp_path / "dump.csv")
    for inside in ("x.parquet", "segments/x.faiss"):
        with pytest.raises(InputError, match="is inside the index folder"):
            SearchIndex.dump_at(index[0], index[0] / inside)
    with pytest.raises(InputError, match="there is no index"):
        SearchIndex.dump_at(tmp_path / "nowhere", tmp_path / "dump.parquet")
    assert contents(tmp_path) == before
