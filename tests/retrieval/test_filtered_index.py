"""Indexes and filters: searches, counts, deletes and dumps, and the files behind them."""

import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from index_cases import contents, mixed_documents, write_manifest

from sbertkit import DamagedIndex, Document, Encoder, InputError, InputTypeError, SearchIndex
from sbertkit.errors import BadFilter
from sbertkit.retrieval import merge_policy
from sbertkit.retrieval.filters.evaluation import Mask
from sbertkit.retrieval.filters.expression import Expression
from sbertkit.retrieval.filters.segment_fields import SegmentFields

LANGS = ("en", "de", "zh")


def corpus(first: int, count: int) -> list[Document]:
    """Documents whose language goes by their number modulo 3, the year by modulo 10."""
    return [
        Document(
            f"d{row}",
            f"document {row}",
            {"lang": LANGS[row % 3], "year": 2000 + row % 10, "tags": [f"t{row % 4}", row % 2]},
        )
        for row in range(first, first + count)
    ]


@pytest.fixture
def path(tiny_encoder: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An index of three segments of 30, 20 and 10 documents."""
    monkeypatch.setattr(merge_policy, "CHEAP", 0)
    with SearchIndex.build(corpus(0, 30), tiny_encoder, tmp_path / "index", kind="flat") as index:
        index.add(corpus(30, 20))
        index.add(corpus(50, 10))
        assert index.info().segments == 3
    return tmp_path / "index"


@pytest.fixture
def index(path: Path, tiny_encoder: Encoder):
    with SearchIndex.open(path, tiny_encoder) as opened:
        yield opened


def field_files(path: Path) -> list[Path]:
    return sorted(path.rglob("fields.db"))


def numbers(index: SearchIndex, condition: str) -> list[int]:
    """The numbers of the documents that match."""
    return sorted(int(one.id.removeprefix("d")) for one in index.documents(condition))


# --- use


def test_hits_match_the_filter_wherever_k_of_them_exist(index: SearchIndex) -> None:
    for condition, rows in {
        'lang = "en"': range(0, 60, 3),
        'lang = "en" and year = 2003': (3, 33),
        "year >= 2008": [row for row in range(60) if row % 10 >= 8],
        'tags contains "t1" and tags contains 1': range(1, 60, 4),
        "id in ('d7', 'd59', 'nobody')": (7, 59),
        'id starts with "d1"': (1, *range(10, 20)),
        "year > 3000": (),
    }.items():
        assert numbers(index, condition) == list(rows)
        assert index.count(condition) == len(rows)
        every = index.search("document 7", k=100, mode="dense")
        expected = [hit for hit in every if int(hit.id[1:]) in rows]
        for k in (1, 10, 100):
            for exact in (False, True):
                found = index.search("document 7", k=k, mode="dense", filter=condition, exact=exact)
                assert found == expected[:k]
            both = index.search("document 7", k=k, filter=condition)
            assert {hit.id for hit in both} <= {hit.id for hit in expected}
            assert len(both) == min(k, len(expected))
    assert index.count() == len(index) == 60
    assert index.search_batch([], filter='lang = "en"') == []


@pytest.mark.parametrize("hits", ["documents", "passages"])
def test_passages_of_long_documents_match_with_their_document(
    tiny_encoder: Encoder, tmp_path: Path, hits: str
) -> None:
    documents = [
        Document(one, text, {"even": row % 2 == 0})
        for row, (one, text) in enumerate(mixed_documents(40))
    ]
    with SearchIndex.build(documents, tiny_encoder, tmp_path / "index", kind="flat") as index:
        assert index.info().vectors > 40
        every = index.search(documents[3].text, k=10**6, mode="dense", hits=hits)
        found = index.search(
            documents[3].text, k=10**6, mode="dense", hits=hits, filter="even = true"
        )
        assert found == [hit for hit in every if hit.metadata["even"]]
        assert len({hit.id for hit in found}) == 20


def test_fields_are_listed_with_their_types_and_shares(
    tiny_encoder: Encoder, tmp_path: Path
) -> None:
    rows: list[dict[str, Any]] = [
        {"year": 1, "a.b": None, "x": {"y": [1, {"z": 2}]}},
        {"year": "1", "last name": True, "x": None},
        {"year": 2, "id": 7},
        {},
    ]
    documents = [Document(str(row), f"text {row}", fields) for row, fields in enumerate(rows)]
    with SearchIndex.build(documents, tiny_encoder, tmp_path / "index") as index:
        known = index.fields()
        assert SearchIndex.fields_at(tmp_path / "index") == known
    assert next(iter(known)) == "id"
    assert {name: (dict(field.types), field.share) for name, field in known.items()} == {
        "id": ({"string": 4}, 1.0),
        "year": ({"number": 2, "string": 1}, 0.75),
        "x": ({"null": 1, "object": 1}, 0.25),
        "x.y": ({"list": 1}, 0.25),
        "`last name`": ({"boolean": 1}, 0.25),
        "`a.b`": ({"null": 1}, 0.0),
    }
    assert str(known["year"]) == "number or string, 75 %"


def test_an_unknown_field_is_refused_with_those_that_there_are(index: SearchIndex) -> None:
    before = contents(index.path)
    calls: list[Callable[[], object]] = [
        lambda: index.search("x", filter='lang = "en" and yaer = 2000'),
        lambda: index.search_batch(["x"], filter='lang = "en" and yaer = 2000'),
        lambda: index.count('lang = "en" and yaer = 2000'),
        lambda: list(index.documents('lang = "en" and yaer = 2000')),
        lambda: index.delete(filter='lang = "en" and yaer = 2000'),
    ]
    for call in calls:
        with pytest.raises(BadFilter) as caught:
            call()
        assert str(caught.value).split("\n") == [
            "filter: no document has the field yaer; found year (number, 100 %), "
            "id (string, 100 %), lang (string, 100 %), tags (list, 100 %)",
            '  lang = "en" and yaer = 2000',
            "                  ^",
        ]
    assert contents(index.path) == before


def test_of_many_fields_the_near_ones_are_named_first(
    tiny_encoder: Encoder, tmp_path: Path
) -> None:
    fields = {f"field {number}": number for number in range(100)}
    documents = [Document("1", "a text", {**fields, "publisher": "x"})]
    with (
        SearchIndex.build(documents, tiny_encoder, tmp_path / "index") as index,
        pytest.raises(BadFilter, match=r"found publisher \(string, 100 %\), id .*and 90 more"),
    ):
        index.count("publsher = 1")


def test_a_field_that_is_null_everywhere_is_known(tiny_encoder: Encoder, tmp_path: Path) -> None:
    documents = [Document("1", "a text", {"x": None, "e": []})]
    with SearchIndex.build(documents, tiny_encoder, tmp_path / "index") as index:
        assert [index.count(one) for one in ("x is null", "x = 1", "e is null")] == [1, 0, 0]


def test_a_filter_is_evaluated_once_for_many_searches(
    index: SearchIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluated = []
    matching = SegmentFields.matching

    def counted(self: SegmentFields, expression: Expression) -> Mask:
        evaluated.append(expression)
        return matching(self, expression)

    monkeypatch.setattr(SegmentFields, "matching", counted)
    for query in ("one", "two", "three"):
        index.search(query, filter='lang = "en"')
    assert index.count('lang = "en"') == 20
    assert len(evaluated) == 3  # once for each segment
    for number in range(30):  # as many as are remembered, and more
        index.count(f"year = {number}")
    assert index.count('lang = "en"') == 20
    index.add(corpus(60, 3))
    assert index.count('lang = "en"') == 21


def test_threads_may_use_filters_at_the_same_time(index: SearchIndex) -> None:
    def count(number: int) -> int:
        return len(index.search("x", k=100, filter=f"year = {2000 + number % 10} and id > 'd'"))

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(count, range(200))) == [6] * 200


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_process_may_use_filters(index: SearchIndex) -> None:
    assert index.count('lang = "en"') == 20
    child = os.fork()
    if child == 0:
        os._exit(index.count('lang = "de" and year = 2001'))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2


def test_neither_torch_nor_pyarrow_is_needed(path: Path) -> None:
    code = (
        "import sys; from sbertkit import SearchIndex\n"
        f"print(len(SearchIndex.open({str(path)!r}).search('x', 100, filter='year = 2001')))\n"
        "print(sorted({'torch', 'transformers', 'pyarrow', 'pandas', 'scipy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["6", "[]"]


# --- changes


def test_documents_are_deleted_by_a_filter_all_at_once(index: SearchIndex) -> None:
    generation = index.info().generation
    changes = index.delete(filter="lang = 'en' and year < 2005")
    gone = [row for row in range(60) if row % 3 == 0 and row % 10 < 5]
    assert (changes.deleted, changes.documents) == (len(gone), 60 - len(gone))
    assert numbers(index, "id is not null") == [row for row in range(60) if row not in gone]
    assert index.info().generation == generation + 1
    assert not index.delete(filter="lang = 'en' and year < 2005")  # there are none any more
    assert index.info().generation == generation + 1
    assert index.verify() == ()


def test_after_all_are_deleted_a_filter_finds_nothing(index: SearchIndex) -> None:
    assert index.delete(filter="id is not null").deleted == 60
    assert len(index) == 0
    assert index.search("x", filter="anything = 1") == []
    assert index.count("lang = 'en'") == 0
    assert index.fields() == {}
    assert not index.delete(filter="lang = 'en'")
    with pytest.raises(BadFilter):
        index.search("x", filter="anything")
    index.add(corpus(0, 3))
    assert index.count("lang = 'en'") == 1


def test_what_is_deleted_is_named_by_ids_or_by_a_filter(index: SearchIndex) -> None:
    calls: list[Callable[[], object]] = [
        lambda: index.delete(),
        lambda: index.delete(["d1"], filter="lang = 'en'"),
    ]
    for call in calls:
        with pytest.raises(InputTypeError, match="delete expects ids or a filter, one of them"):
            call()
    for wrong in (3, ["lang"], True):
        with pytest.raises(InputTypeError, match="a filter must be a str"):
            index.delete(filter=wrong)  # type: ignore[arg-type]
        with pytest.raises(InputTypeError, match="a filter must be a str"):
            index.search("x", filter=wrong)  # type: ignore[arg-type]
    assert len(index) == 60


def test_merged_and_changed_segments_are_filtered_as_before(index: SearchIndex) -> None:
    index.upsert([Document("d3", "another text", {"lang": "fr"})])
    index.delete(["d6"])
    expected = [row for row in range(0, 60, 3) if row not in (3, 6)]
    assert numbers(index, 'lang = "en"') == expected
    index.compact()
    assert index.info().segments == len(field_files(index.path)) == 1
    assert numbers(index, 'lang = "en"') == expected
    assert numbers(index, 'lang = "fr"') == [3]
    assert index.fields()["lang"].types == {"string": 59}


def test_a_reader_keeps_its_filters_while_others_rewrite_the_index(
    path: Path, tiny_encoder: Encoder
) -> None:
    with SearchIndex.open(path, tiny_encoder) as reader:
        with SearchIndex.open(path, tiny_encoder) as writer:
            writer.delete(filter='lang = "en"')
            writer.compact()
        assert len(field_files(path)) == 1
        assert reader.count('lang = "en"') == 20
        assert reader.refresh()
        assert reader.count('lang = "en"') == 0


def test_a_dump_has_the_documents_that_match(
    path: Path, tiny_encoder: Encoder, tmp_path: Path
) -> None:
    for condition, count in (("year = 2004", 6), ("year = 1", 0)):
        files = SearchIndex.dump_at(path, tmp_path / "d.parquet", filter=condition)
        assert files == (tmp_path / "d.parquet",)
        if count:
            with SearchIndex.build(files[0], tiny_encoder, tmp_path / "again") as again:
                assert numbers(again, "year = 2004") == list(range(4, 60, 10))
                assert len(again) == count


# --- files


def test_an_index_without_metadata_has_no_file_for_filters(
    tiny_encoder: Encoder, tmp_path: Path
) -> None:
    pairs = [("a1", "one text"), ("a2", "another"), ("b1", "a third")]
    with SearchIndex.build(pairs, tiny_encoder, tmp_path / "index") as index:
        assert field_files(tmp_path / "index") == []
        assert index.count('id starts with "a"') == 2
        with pytest.raises(BadFilter, match=r"no document has the field lang; found id \(string"):
            index.count('lang = "en"')


def without_file(path: Path) -> None:
    """Makes an index one that was written before there were such files."""
    content = json.loads((path / "manifest.json").read_text())
    for segment in content["segments"]:
        segment["files"] = [one for one in segment["files"] if "fields.db" not in one["path"]]
    for file in field_files(path):
        file.unlink()
    write_manifest(path, content)


def test_an_index_without_the_file_is_filtered_by_its_documents(
    path: Path, tiny_encoder: Encoder
) -> None:
    with SearchIndex.open(path, tiny_encoder) as index:
        fields = index.fields()
    without_file(path)
    assert SearchIndex.verify_at(path) == ()
    with SearchIndex.open(path, tiny_encoder) as index:
        assert index.fields() == fields
        assert numbers(index, 'lang = "en" and tags contains "t0"') == [0, 12, 24, 36, 48]
        index.delete(filter="year = 2000")
        index.compact()
        assert len(field_files(path)) == 1
        assert numbers(index, 'lang = "en" and tags contains "t0"') == [12, 24, 36, 48]


@pytest.mark.parametrize(
    "damage",
    [
        lambda file: file.unlink(),
        lambda file: file.write_bytes(file.read_bytes()[:-1]),
        lambda file: file.write_bytes(file.read_bytes()[:-7] + b"\xff" + file.read_bytes()[-6:]),
    ],
)
def test_a_damaged_file_is_found_and_written_again_from_the_documents(
    path: Path, tiny_encoder: Encoder, damage: Callable[[Path], object]
) -> None:
    (name,) = (one for one in field_files(path)[1:2])
    damage(name)
    problems = SearchIndex.verify_at(path)
    assert [Path(problem.file).name for problem in problems] == ["fields.db"]
    with pytest.raises(DamagedIndex, match=r"fields\.db"):
        SearchIndex.open(path, tiny_encoder)
    with pytest.raises(DamagedIndex, match=r"fields\.db"):
        SearchIndex.fields_at(path)
    done = SearchIndex.repair_at(path)
    assert [(Path(one.file).name, one.reason) for one in done.repaired] == [
        ("fields.db", "rebuilt from the stored metadata")
    ]
    assert done.lost == ()
    assert SearchIndex.verify_at(path) == ()
    with SearchIndex.open(path, tiny_encoder) as index:
        assert numbers(index, 'lang = "en"') == list(range(0, 60, 3))


def test_writing_leaves_nothing_behind(path: Path) -> None:
    names = {file.name for file in (path / "segments").rglob("*") if file.is_file()}
    assert names == {"vectors.npy", "documents.db", "build.json", "fields.db", "words.bin"}


def changed(path: Path, *statements: str) -> None:
    """Changes the first file for filters, and makes the manifest name it as it is then."""
    file = field_files(path)[0]
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = OFF")
        for statement in statements:
            connection.execute(statement)
    content = json.loads((path / "manifest.json").read_text())
    for segment in content["segments"]:
        for entry in segment["files"]:
            if path / entry["path"] == file:
                raw = file.read_bytes()
                entry.update(bytes=len(raw), sha256=hashlib.sha256(raw).hexdigest())
    write_manifest(path, content)


PREPARED: dict[str, tuple[str, ...]] = {
    "another table": ("DROP TABLE rows", "CREATE TABLE rows (number, start, data)"),
    "a view": ("CREATE VIEW more AS SELECT 1",),
    "a trigger": ("CREATE TRIGGER t AFTER INSERT ON rows BEGIN DELETE FROM blocks; END",),
    "no rows": ("DELETE FROM rows",),
    "few rows": ("UPDATE rows SET data = substr(data, 1, 4)",),
    "half a row": ("UPDATE rows SET data = substr(data, 1, length(data) - 1)",),
    "rows as text": ("UPDATE rows SET data = 'x'",),
    "rows beyond": ("UPDATE rows SET data = replace(hex(data), '0', 'F')",),
    "great rows": ("UPDATE rows SET data = CAST(replace(data, x'00', x'7f') AS BLOB)",),
    "negative rows": ("UPDATE rows SET data = CAST(replace(data, x'00', x'ff') AS BLOB)",),
    "places beyond": ("UPDATE blocks SET places = CAST(replace(places, x'00', x'01') AS BLOB)",),
    "negative places": ("UPDATE blocks SET places = CAST(replace(places, x'00', x'ff') AS BLOB)",),
    "places as text": ("UPDATE blocks SET places = 'x'",),
    "few places": ("UPDATE blocks SET places = substr(places, 9)",),
    "other places": ("UPDATE blocks SET places = CAST(substr(places, 9) || x'00' AS BLOB)",),
    "ends beyond": ("UPDATE blocks SET ends = CAST(replace(ends, x'00', x'01') AS BLOB)",),
    "negative ends": ("UPDATE blocks SET ends = CAST(replace(ends, x'00', x'ff') AS BLOB)",),
    "no ends": ("UPDATE blocks SET ends = x''",),
    "ends as numbers": ("UPDATE blocks SET ends = 7",),
    "other keys": ("UPDATE blocks SET keys = ifnull(substr(keys, 2), x'61')",),
    "keys as text": ("UPDATE blocks SET keys = CAST(keys AS TEXT)",),
    "first as text": ("UPDATE blocks SET first = CAST(first AS TEXT)",),
    "first as numbers": ("UPDATE blocks SET first = rowid",),
    "no blocks": ("DELETE FROM blocks",),
    "entries beyond": ("UPDATE columns SET entries = 1000000000000",),
    "entries as text": ("UPDATE columns SET entries = 'x'",),
    "no columns": ("DELETE FROM columns",),
    "numbers as text": ("UPDATE columns SET number = number + 100",),
    "names": ("UPDATE columns SET field = CAST(field || number AS BLOB)",),
    "types": ("UPDATE columns SET type = type || number",),
}
FILTERS = (
    *('lang = "en"', 'lang != "en"', 'lang > "a"', 'lang in ("en", "de")', 'lang contains "e"'),
    *(
        "lang is null",
        "year = 2003",
        "year > 2003",
        'tags contains "t1"',
        "year not in (2003, 2004)",
    ),
)


@pytest.mark.parametrize("name", PREPARED)
def test_a_file_that_was_prepared_is_refused_or_does_no_harm(
    path: Path, tiny_encoder: Encoder, name: str
) -> None:
    changed(path, *PREPARED[name])
    for condition in FILTERS:
        try:
            with SearchIndex.open(path, tiny_encoder) as index:
                index.fields()
                assert 0 <= index.count(condition) <= 60
                index.search("x", filter=condition)
        except InputError as error:
            assert len(str(error)) < 1_000  # noqa: PT017  # refused, with any reason


def test_metadata_that_json_should_not_have_are_read(path: Path, tiny_encoder: Encoder) -> None:
    (document,) = path.glob("segments/000001-*/documents.db")
    with closing(sqlite3.connect(document, isolation_level=None)) as connection:
        metadata = '{"x": NaN, "y": Infinity, "z": -1e999, "lang": 1}'
        connection.execute("UPDATE documents SET metadata = ? WHERE row = 0", (metadata,))
    content = json.loads((path / "manifest.json").read_text())
    for entry in (one for segment in content["segments"] for one in segment["files"]):
        raw = (path / entry["path"]).read_bytes()
        entry.update(bytes=len(raw), sha256=hashlib.sha256(raw).hexdigest())
    write_manifest(path, content)
    without_file(path)
    with SearchIndex.open(path, tiny_encoder) as index:
        assert index.count("x is null") == 60
        assert numbers(index, "y > 1e308") == numbers(index, "z < -1e308") == [0]


def test_a_copied_index_is_filtered_too(path: Path, tiny_encoder: Encoder, tmp_path: Path) -> None:
    shutil.copytree(path, tmp_path / "copy")
    with SearchIndex.open(tmp_path / "copy", tiny_encoder) as index:
        assert index.count('lang = "en"') == 20
