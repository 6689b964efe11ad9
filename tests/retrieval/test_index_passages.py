"""Documents longer than the encoder's limit: passages, truncated texts and means."""

import copy
import hashlib
import json
import pickle
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from index_cases import KINDS, documents, mixed_documents, write_manifest

from sbertkit import BuildOptions, Encoder, Hit, ModelMismatch, Passage, SearchIndex
from sbertkit.encoder.divided_texts import DividedText, divide
from sbertkit.encoder.encoding import EncodingRun
from sbertkit.encoder.long_options import LongOptions
from sbertkit.encoder.passages import PassageSplitter
from sbertkit.errors import DamagedIndex, InputError, InputTypeError, OlderFormat
from sbertkit.retrieval import upgrade_index

PAIRS = mixed_documents(45)
WORDS = [text for _, text in documents(400, "w")]
NOTE = "\n\n".join(f"{text}. {text[::-1]}." for text in WORDS)
"""A text of many paragraphs."""


def divided(encoder: Encoder, texts: list[str], overlap: int = 0) -> list[DividedText]:
    return list(divide(PassageSplitter.of(encoder.spec, overlap), texts))


@pytest.fixture(scope="module", params=KINDS)
def index(
    request: pytest.FixtureRequest, tiny_encoder: Encoder, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SearchIndex]:
    path = tmp_path_factory.mktemp("passages") / "index"
    with SearchIndex.build(PAIRS, tiny_encoder, path, kind=request.param) as built:
        yield built


def passages_in(index: SearchIndex) -> set[tuple[str, Passage]]:
    return {(hit.id, hit.passage) for hit in index.search("any", 10**6, hits="passages")}


def expected_hits(encoder: Encoder, query: str) -> list[tuple[float, str, str]]:
    """Score, id and best passage of every document, best first."""
    vector = encoder.encode(query)
    found = []
    for (one, _), text in zip(PAIRS, divided(encoder, [text for _, text in PAIRS]), strict=True):
        parts = list(text.parts())
        scores = encoder.encode(parts) @ vector
        found.append((float(scores.max()), one, parts[int(scores.argmax())]))
    return sorted(found, reverse=True)


def test_a_document_counts_by_its_best_passage(index: SearchIndex, tiny_encoder: Encoder) -> None:
    for query in WORDS[:2]:
        for k in (1, 7, 45, 1_000):
            hits = index.search(query, k, mode="dense")
            expected = expected_hits(tiny_encoder, query)[:k]
            assert [hit.score for hit in hits] == pytest.approx(
                [score for score, _, _ in expected], abs=1e-5
            )
            assert [hit.id for hit in hits] == [one for _, one, _ in expected]
            assert [hit.passage.text for hit in hits] == [part for _, _, part in expected]
            for hit in hits:
                assert hit.text == dict(PAIRS)[hit.id]
                assert hit.text[hit.passage.start : hit.passage.end] == hit.passage.text


def test_hits_may_be_passages(index: SearchIndex) -> None:
    vectors = index.info().vectors
    assert vectors > len(index) == len(PAIRS)
    hits = index.search(WORDS[0], 10**6, hits="passages")
    assert len(hits) == vectors
    assert len({(hit.id, hit.passage) for hit in hits}) == vectors
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert len(index.search(WORDS[0], 5, hits="passages")) == 5
    with pytest.raises(InputError, match="hits must be documents or passages, not 'words'"):
        index.search("any", hits="words")


def test_many_passages_of_one_document_hide_no_others(
    tiny_encoder: Encoder, tmp_path: Path
) -> None:
    pairs = [("long", NOTE), *((f"s{number}", "x" * (number + 1)) for number in range(5))]
    with SearchIndex.build(pairs, tiny_encoder, tmp_path / "x", with_encoder=False) as index:
        for query in (WORDS[3], WORDS[77], "x"):
            assert {hit.id for hit in index.search(query, 6)} == {one for one, _ in pairs}
        index.delete(["s1"])
        assert len(index.search(WORDS[3], 6)) == 5
        index.delete(["long"])
        assert {hit.id for hit in index.search(WORDS[3], 6)} == {"s0", "s2", "s3", "s4"}


def test_hits_of_two_passages_differ_and_keep_theirs() -> None:
    first = Hit("a", 0.5, "one text", {}, Passage("one", 0, 3))
    other = first._replace(passage=Passage("text", 4, 8))
    assert first != other
    assert first == copy.deepcopy(first) == pickle.loads(pickle.dumps(first))
    assert first._replace(score=0.7).passage == first.passage
    assert Hit._make(first).passage == Passage("one text", 0, 8)
    assert len({id(hit) for hit in (first, other)}) == 2


def test_a_hit_is_a_tuple_of_four_that_knows_its_passage() -> None:
    hit = Hit("a", 0.5, "one text", {})
    assert tuple(hit) == ("a", 0.5, "one text", {})
    assert hit.passage == Passage("one text", 0, 8)
    assert Hit("a", 0.5, "one text", {}, Passage("text", 4, 8)).passage.start == 4


def test_only_what_an_edit_touches_is_encoded(tiny_encoder: Encoder, tmp_path: Path) -> None:
    paragraphs = NOTE.split("\n\n")
    with SearchIndex.build([("note", NOTE)], tiny_encoder, tmp_path / "x") as index:
        assert index.info().vectors > 50
        for place in range(5, len(paragraphs), 97):
            edited = list(paragraphs)
            edited[place] += " A further sentence."
            changes = index.upsert([("note", "\n\n".join(edited))])
            assert (changes.changed, changes.documents) == (1, 1)
            assert 1 <= changes.encoded <= 6  # this edit, and the one before it that is taken back
        again = SearchIndex.build([("note", "\n\n".join(edited))], tiny_encoder, tmp_path / "y")
        with again:
            assert again.info().vectors == index.info().vectors
            assert passages_in(index) == passages_in(again)


def test_a_moved_or_described_document_is_not_encoded(
    tiny_encoder: Encoder, tmp_path: Path
) -> None:
    with SearchIndex.build(PAIRS, tiny_encoder, tmp_path / "x") as index:
        before = index.info().vectors
        described = [{"id": one, "text": text, "field": 1} for one, text in PAIRS]
        assert index.upsert(described).encoded == 0
        moved = [(f"new{one}", text) for one, text in PAIRS]
        changes = index.update(moved)
        assert (changes.added, changes.deleted, changes.encoded) == (len(PAIRS), len(PAIRS), 0)
        assert index.info().vectors == before
        assert index.verify() == ()


def test_compact_keeps_passages(tiny_encoder: Encoder, tmp_path: Path) -> None:
    with SearchIndex.build(PAIRS[:20], tiny_encoder, tmp_path / "x") as index:
        index.add(PAIRS[20:])
        index.delete([one for one, _ in PAIRS[::4]])
        left = [pair for number, pair in enumerate(PAIRS) if number % 4]
        expected = index.search(WORDS[0], 100)
        index.compact()
        assert index.search(WORDS[0], 100) == expected
        assert [(one.id, one.text) for one in index.documents()] == left
        count = sum(len(text.passages) for text in divided(tiny_encoder, [t for _, t in left]))
        assert index.info().vectors == count


def test_truncated_and_mean_have_one_vector_for_a_document(
    tiny_encoder: Encoder, tmp_path: Path
) -> None:
    texts = [text for _, text in PAIRS]
    for long in ("truncate", "mean"):
        with SearchIndex.build(PAIRS, tiny_encoder, tmp_path / long, long=long) as index:
            assert index.info().vectors == len(index)
            assert (index.info().long, index.info().overlap) == (long, 0)
            assert not list((tmp_path / long).rglob("passages.npy"))
            ids, stored = index.sample(len(PAIRS))
        vectors = dict(zip(ids, stored, strict=True))
        for (one, _), text in zip(PAIRS, divided(tiny_encoder, texts), strict=True):
            if long == "truncate":
                expected = tiny_encoder.encode(text.text)
            else:
                weights = [max(1, span.tokens) for span in text.passages]
                expected = np.average(tiny_encoder.encode(list(text.parts())), 0, weights)
            expected = expected / np.linalg.norm(expected)
            assert vectors[one] == pytest.approx(expected, abs=1e-5)


def test_the_mean_is_that_of_any_chunks(tiny_encoder: Encoder, tmp_path: Path) -> None:
    with SearchIndex.build(
        [("note", NOTE), ("short", "a"), ("other", NOTE[::-1])],
        tiny_encoder,
        tmp_path / "x",
        long="mean",
    ) as index:
        assert index.update([("note", NOTE + ".")]).encoded == 1
        assert index.info().vectors == 1


def test_overlapping_passages_are_stored(tiny_encoder: Encoder, tmp_path: Path) -> None:
    options = BuildOptions(overlap=16)
    with SearchIndex.build(PAIRS, tiny_encoder, tmp_path / "x", options=options) as index:
        assert index.info().overlap == 16
        expected = divided(tiny_encoder, [text for _, text in PAIRS], 16)
        parts = [text.parts() for text in expected]
        assert {(one, passage.text) for one, passage in passages_in(index)} == {
            (one, part) for (one, _), of in zip(PAIRS, parts, strict=True) for part in of
        }
    with pytest.raises(InputError, match="overlap must be below half of the 62 tokens"):
        SearchIndex.build(PAIRS, tiny_encoder, tmp_path / "y", options=BuildOptions(overlap=31))
    assert not (tmp_path / "y").exists()


@pytest.mark.parametrize(
    ("long", "overlap", "error", "message"),
    [
        ("passage", 0, InputError, "long must be one of .*, did you mean 'passages'"),
        (None, 0, InputTypeError, "long must be a str, not None"),
        ("truncate", 8, InputError, "leave overlap out"),
        ("passages", -1, InputError, "overlap must be at least 0"),
        ("passages", 1.5, InputTypeError, "overlap must be a whole number"),
    ],
)
def test_other_choices_are_refused(
    tiny_encoder: Encoder,
    tmp_path: Path,
    long: str,
    overlap: int,
    error: type[Exception],
    message: str,
) -> None:
    options = BuildOptions(overlap=overlap)
    with pytest.raises(error, match=message):
        SearchIndex.build(PAIRS, tiny_encoder, tmp_path / "x", long=long, options=options)
    assert not (tmp_path / "x").exists()


def test_without_long_documents_there_is_no_file_of_passages(
    tiny_encoder: Encoder, tmp_path: Path
) -> None:
    with SearchIndex.build(documents(30), tiny_encoder, tmp_path / "x") as index:
        assert not list((tmp_path / "x").rglob("passages.npy"))
        index.add([("long", NOTE)])
        assert len(list((tmp_path / "x").rglob("passages.npy"))) == 1
        assert index.search(documents(30)[3][1], 1)[0].passage.start == 0
        index.delete(["long"])
        index.compact()
        assert not list((tmp_path / "x").rglob("passages.npy"))


@pytest.mark.parametrize(
    "bad", [["passages.npy"], ["vectors.npy"], ["passages.npy", "vectors.npy"]]
)
def test_damaged_passages_are_made_from_the_texts(
    tiny_encoder: Encoder, tmp_path: Path, bad: list[str]
) -> None:
    with SearchIndex.build(PAIRS, tiny_encoder, tmp_path / "x") as index:
        expected = index.search(WORDS[0], 100)
        index.delete([PAIRS[0][0]])
    for name in bad:
        (path,) = (tmp_path / "x").rglob(name)
        path.write_bytes(path.read_bytes()[:-3] + b"abc")
    with pytest.raises(DamagedIndex):
        SearchIndex.open(tmp_path / "x", tiny_encoder)
    done = SearchIndex.repair_at(tmp_path / "x")
    assert {Path(one.file).name for one in done.repaired} == set(bad)
    with SearchIndex.open(tmp_path / "x", tiny_encoder) as index:
        assert index.verify() == ()
        found = index.search(WORDS[0], 100)
        assert [hit.id for hit in found] == [one.id for one in expected if one.id != PAIRS[0][0]]


def test_a_dump_brings_back_documents_and_passages(
    tiny_encoder: Encoder, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with SearchIndex.build(PAIRS, tiny_encoder, tmp_path / "x") as index:
        index.delete([PAIRS[0][0], PAIRS[4][0]])
        left = [(one.id, one.text) for one in index.documents()]
        expected = passages_in(index)
        scores = [hit.score for hit in index.search(WORDS[0], 100, mode="dense")]
    (dump,) = SearchIndex.dump_at(tmp_path / "x", tmp_path / "d.parquet")
    with SearchIndex.build(dump, tiny_encoder, tmp_path / "y") as again:
        assert "are used" in caplog.text
        assert [(one.id, one.text) for one in again.documents()] == left
        assert passages_in(again) == expected
        assert [hit.score for hit in again.search(WORDS[0], 100, mode="dense")] == pytest.approx(
            scores
        )
        assert not again.update(dump)
        again.delete([PAIRS[3][0], PAIRS[6][0]])
        changes = again.update(dump)
        assert (changes.added, changes.encoded) == (2, 0)
        assert passages_in(again) == expected
    options = BuildOptions(vectors=dump)
    with SearchIndex.build(left, tiny_encoder, tmp_path / "z", options=options) as given:
        assert passages_in(given) == expected
    with pytest.raises(InputError, match="has no vector for document 'd0'"):
        SearchIndex.build(PAIRS, tiny_encoder, tmp_path / "w", options=options)
    files = SearchIndex.dump_at(tmp_path / "x", tmp_path / "d.faiss")
    ids = json.loads(files[1].read_text())
    assert len(ids) == len(expected)
    assert list(dict.fromkeys(ids)) == [one for one, _ in left]


def test_given_vectors_are_of_long_texts_as_the_index_says(
    tiny_encoder: Encoder, tmp_path: Path
) -> None:
    one_each = tiny_encoder.encode([text for _, text in PAIRS])
    path = tmp_path / "x"
    with pytest.raises(InputError, match="15 documents of 45 have more than 64 tokens"):
        SearchIndex.build(PAIRS, tiny_encoder, path, options=BuildOptions(vectors=one_each))
    assert not path.exists()
    for long in ("truncate", "mean"):
        options = BuildOptions(vectors=one_each)
        with SearchIndex.build(PAIRS, tiny_encoder, path, long=long, options=options) as index:
            assert (index.info().long, index.info().vectors) == (long, len(PAIRS))
    short = [pair for number, pair in enumerate(PAIRS) if number % 3]
    vectors = tiny_encoder.encode([text for _, text in short])
    SearchIndex.build(short, tiny_encoder, path, options=BuildOptions(vectors=vectors)).close()
    options = BuildOptions(overlap=8)
    SearchIndex.build(PAIRS, tiny_encoder, tmp_path / "y", options=options).close()
    (dump,) = SearchIndex.dump_at(tmp_path / "y", tmp_path / "d.parquet")
    for long, options in (
        ("mean", BuildOptions(vectors=dump)),
        ("passages", BuildOptions(vectors=dump)),
        ("passages", BuildOptions(vectors=dump, overlap=9)),
    ):
        with pytest.raises(InputError, match="choose long passages and overlap 8"):
            SearchIndex.build(PAIRS, tiny_encoder, path, long=long, options=options)
    options = BuildOptions(vectors=dump, overlap=8)
    SearchIndex.build(PAIRS, tiny_encoder, path, options=options).close()


@pytest.mark.parametrize(
    "change",
    [
        lambda row: row | {"start": [None, *row["start"][1:]]},
        lambda row: row | {"start": row["start"][1:]},
        lambda row: row | {"start": None},
        lambda row: row | {"vector": None},
        lambda row: row | {"start": [], "end": [], "vector": []},
        lambda row: row | {"end": [end + 10**6 for end in row["end"]]},
        lambda row: row | {"start": row["start"][::-1]},
    ],
)
def test_a_dump_that_was_changed_is_refused_in_one_line(
    tiny_encoder: Encoder, tmp_path: Path, change: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    SearchIndex.build(PAIRS[:9], tiny_encoder, tmp_path / "x").close()
    (dump,) = SearchIndex.dump_at(tmp_path / "x", tmp_path / "d.parquet")
    stored = pyarrow.parquet.read_table(dump)
    rows = stored.to_pylist()
    rows[3] = change(rows[3])
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows, stored.schema), dump)
    options = BuildOptions(vectors=dump)
    with pytest.raises(InputError) as caught:
        SearchIndex.build(PAIRS[:9], tiny_encoder, tmp_path / "y", options=options)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "y").exists()
    with SearchIndex.build(dump, tiny_encoder, tmp_path / "z") as index:  # encoded again
        assert [(one.id, one.text) for one in index.documents()] == PAIRS[:9]


@pytest.mark.parametrize(
    ("column", "value"), [(2, 10**9), (2, 2**62), (1, 10**9), (1, -1), (2, 0), (2, -1), (2, -2)]
)
def test_places_that_are_none_in_the_text_are_damage(
    tiny_encoder: Encoder, tmp_path: Path, column: int, value: int
) -> None:
    path = tmp_path / "x"
    SearchIndex.build(PAIRS[:9], tiny_encoder, path).close()
    (file,) = path.rglob("passages.npy")
    rows = np.load(file)
    rows[1, column] = value
    np.save(file, rows)
    content = json.loads((path / "manifest.json").read_text())
    for entry in content["segments"][0]["files"]:
        if entry["path"].endswith("passages.npy"):
            entry["sha256"] = hashlib.sha256(file.read_bytes()).hexdigest()
    write_manifest(path, content)
    with pytest.raises(DamagedIndex), SearchIndex.open(path, tiny_encoder) as index:
        index.search("any", 100, hits="passages")


def made_older(path: Path) -> None:
    """Turns an index with truncated texts into one of the format before."""
    content = json.loads((path / "manifest.json").read_text())
    del content["long"]
    for segment in content["segments"]:
        del segment["passages"]
    write_manifest(path, {**content, "format": 1})


def test_an_older_index_is_refused_and_upgraded(tiny_encoder: Encoder, tmp_path: Path) -> None:
    path = tmp_path / "x"
    with SearchIndex.build(PAIRS[:30], tiny_encoder, path, long="truncate") as index:
        index.add(PAIRS[30:])
        index.delete([PAIRS[1][0]])
    made_older(path)
    left = [pair for pair in PAIRS if pair != PAIRS[1]]
    for use in (SearchIndex.open, SearchIndex.verify_at, SearchIndex.info_at):
        with pytest.raises(OlderFormat, match=f"format 1.*sbertkit upgrade {path}"):
            use(path)
    with pytest.raises(OlderFormat):
        SearchIndex.dump_at(path, tmp_path / "x.parquet")
    shutil.copytree(path, tmp_path / "y")
    assert upgrade_index(path, LongOptions("truncate")).encoded == 0
    with SearchIndex.open(path, tiny_encoder) as index:
        assert (index.info().long, index.info().vectors) == ("truncate", 45)
    for place in (path, tmp_path / "y"):
        changes = upgrade_index(place)
        texts = divided(tiny_encoder, [text for _, text in left])
        long = [text for text in texts if len(text.passages) > 1]
        assert changes.encoded == sum(len(text.passages) for text in long)
        with SearchIndex.open(place, tiny_encoder) as index:
            assert index.verify() == ()
            assert [(one.id, one.text) for one in index.documents()] == left
            assert index.info().long == "passages"
            assert index.info().vectors == len(left) - len(long) + changes.encoded
            generation = index.info().generation
        assert not upgrade_index(place)
        assert not upgrade_index(place, LongOptions())
        assert SearchIndex.info_at(place).generation == generation
    with pytest.raises(InputError, match="build the index again with long truncate"):
        upgrade_index(path, LongOptions("truncate"))


def test_an_older_index_can_be_built_anew(tiny_encoder: Encoder, tmp_path: Path) -> None:
    path = tmp_path / "x"
    SearchIndex.build(PAIRS[:30], tiny_encoder, path, long="truncate").close()
    made_older(path)
    with SearchIndex.build(PAIRS, tiny_encoder, path) as index:
        assert index.verify() == ()
        assert len(list((path / "segments").iterdir())) == 1


def test_a_damaged_older_index_is_repaired(tiny_encoder: Encoder, tmp_path: Path) -> None:
    path = tmp_path / "x"
    with SearchIndex.build(PAIRS, tiny_encoder, path, long="truncate") as index:
        expected = index.search(WORDS[0], 100)
    made_older(path)
    (vectors,) = path.rglob("vectors.npy")
    vectors.write_bytes(vectors.read_bytes()[:-1])
    with pytest.raises(DamagedIndex, match="sbertkit repair"):
        upgrade_index(path)
    assert [Path(one.file).name for one in SearchIndex.repair_at(path).repaired] == ["vectors.npy"]
    with SearchIndex.open(path, tiny_encoder) as index:
        assert (index.info().long, index.verify()) == ("truncate", ())
        assert [hit.id for hit in index.search(WORDS[0], 100, mode="dense")] == [
            hit.id for hit in expected
        ]


def test_another_encoder_upgrades_nothing(
    tiny_encoder: Encoder, bundled_encoder: Encoder, tmp_path: Path
) -> None:
    path = tmp_path / "x"
    SearchIndex.build(PAIRS, tiny_encoder, path, long="truncate", with_encoder=False).close()
    made_older(path)
    before = (path / "manifest.json").read_bytes()
    with pytest.raises(ModelMismatch):
        upgrade_index(path, model=bundled_encoder.options.model)
    assert (path / "manifest.json").read_bytes() == before


def test_an_interrupted_build_of_passages_is_resumed(
    tiny_encoder: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x"
    monkeypatch.setattr("sbertkit.encoder.encoding._CHUNK_TEXTS", 40)

    class Stop(Exception):
        pass

    def corpus() -> Iterator[tuple[str, str]]:
        yield from PAIRS

    embed = EncodingRun._embed
    calls = []

    def failing(self: EncodingRun, *arguments: object) -> object:
        calls.append(1)
        if len(calls) == 4:
            raise Stop
        return embed(self, *arguments)  # type: ignore[arg-type]

    for long in ("passages", "mean"):
        calls.clear()
        monkeypatch.setattr(EncodingRun, "_embed", failing)
        with pytest.raises(Stop):
            SearchIndex.build(corpus(), tiny_encoder, path, long=long, resume=True)
        with pytest.raises(InputError, match="has mode"):
            SearchIndex.build(corpus(), tiny_encoder, path, long="truncate", resume=True)
        with (
            SearchIndex.build(corpus(), tiny_encoder, path, long=long, resume=True) as index,
            SearchIndex.build(PAIRS, tiny_encoder, tmp_path / long, long=long) as whole,
        ):
            assert index.info().vectors == whole.info().vectors
            assert passages_in(index) == passages_in(whole)
        shutil.rmtree(path)
