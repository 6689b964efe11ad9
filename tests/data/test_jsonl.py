"""JSONL corpora and BEIR folders."""

import gzip
import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sbertkit.data import Document, ReadOptions, ReadReport, read_corpus
from sbertkit.errors import InputError, MissingFile


def read(tmp_path: Path, *lines: str, **options: Any) -> list[Document]:
    path = tmp_path / "corpus.jsonl"
    path.write_bytes("\n".join(lines).encode())
    return [d.document for d in read_corpus(path, ReadOptions(**options))]


def test_all_other_fields_are_metadata(tmp_path: Path) -> None:
    line = '{"year": 1999, "text": "x", "id": "a", "tags": ["p", {"q": null}], "ok": true}'
    metadata = {"year": 1999, "tags": ["p", {"q": None}], "ok": True}
    assert read(tmp_path, line) == [Document("a", "x", metadata)]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('{"id": 12, "text": "x"}', Document("12", "x", {})),
        ('{"_id": "b", "text": "x"}', Document("b", "x", {})),
        ('{"_id": 7, "text": "x"}', Document("7", "x", {})),
        ('{"_id": "b", "id": "a", "text": "x"}', Document("a", "x", {"_id": "b"})),
        ('{"text": "x"}', Document("3", "x", {})),
        ('  {"text": "x"}\t\r', Document("3", "x", {})),
    ],
)
def test_the_id_is_a_field_or_else_the_line_number(
    tmp_path: Path, line: str, expected: Document
) -> None:
    assert read(tmp_path, "", " \t\r", line) == [expected]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "not valid JSON (Expecting property name enclosed in double quotes at column 2)"),
        ('{"id": "a", "text": "x"', "not valid JSON (Expecting ',' delimiter at column 24)"),
        ('{"id": "a", "text": "x', "not valid JSON (Unterminated string at column 21)"),
        ('{"text": "x"} {}', "not valid JSON (Extra data at column 15)"),
        ('{"text": "a\tb"}', "not valid JSON (Invalid control character at column 12)"),
        ("plain words", "not valid JSON"),
        ("{'text': 'x'}", "not valid JSON"),
        ('{"text": "x", "n": NaN}', "not valid JSON (the constant NaN)"),
        ('{"text": "x", "n": [-Infinity]}', "not valid JSON (the constant -Infinity)"),
        ('{"text": "x", "n": 1e999}', "infinite"),
        ('{"text": "x", "n": ' + "1" * 5000 + "}", "not readable JSON"),
        ('{"text": "x", "text": "y"}', "duplicate key 'text'"),
        ('{"text": "x", "m": {"a": 1, "a": 1}}', "duplicate key 'a'"),
        ('{"text": "x", "m": ' + "[" * 100_000 + "}", "nested too deep"),
        ('{"text": "x", "m": ' + "[" * 200 + "]" * 200 + "}", "nested more than 100 deep"),
        ("[]", "expected a JSON object, found an array; write one object per line"),
        ("[", "an array of JSON over several lines; write one object per line"),
        ('"text"', "expected a JSON object, found str"),
        ("3", "expected a JSON object, found int"),
        ("null", "expected a JSON object, found NoneType"),
        ("{}", "no field 'text'"),
        ('{"id": "a"}', "no field 'text'"),
        ('{"id": "a", "text": null}', "text must be a str, found NoneType"),
        ('{"id": "a", "text": ["x"]}', "text must be a str, found list"),
        ('{"id": "a", "text": 3}', "text must be a str, found int"),
        ('{"id": null, "text": "x"}', "id must be a str or int, found NoneType"),
        ('{"id": 1.0, "text": "x"}', "id must be a str or int, found float"),
        ('{"id": true, "text": "x"}', "id must be a str or int, found bool"),
        ('{"id": ["a"], "text": "x"}', "id must be a str or int, found list"),
        ('{"id": "", "text": "x"}', "id is empty"),
        ('{"id": "a\\nb", "text": "x"}', "holds a tab, line end or NUL"),
        ('{"id": "a\\u0000", "text": "x"}', "holds a tab, line end or NUL"),
    ],
)
def test_a_bad_line_is_refused_with_its_reason_or_skipped(
    tmp_path: Path, line: str, reason: str
) -> None:
    good = '{"id": "good", "text": "words"}'
    with pytest.raises(InputError, match=r"corpus\.jsonl line 2: ") as caught:
        read(tmp_path, good, line)
    message = str(caught.value)
    assert reason in message
    assert message.isprintable()
    assert len(message) < 500
    assert read(tmp_path, good, line, skip_bad_lines=True) == [Document("good", "words", {})]


def test_a_bad_line_is_refused_even_when_its_text_is_blank(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="id is empty"):
        read(tmp_path, '{"id": "", "text": " "}')


def test_separators_and_escapes_stay_in_the_text(tmp_path: Path) -> None:
    text = "a\u2028b\x85c"
    line = json.dumps({"id": "1", "text": text}, ensure_ascii=False)
    escaped = json.dumps({"id": "2", "text": text + "\n\t\0\x0b"})
    assert [d.text for d in read(tmp_path, line, escaped)] == [text, text + "\n\t\0\x0b"]


def test_escaped_surrogates_are_joined_or_repaired_and_reported(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(
        '{"id": "s1", "text": "left \\ud83d"}\n'
        '{"id": "s2", "text": "both \\ud83d\\udc4d"}\n'
        '{"id": "s3", "text": "\\udc4d right"}\n'
        '{"id": "s4", "text": "x", "note": {"deep": ["\\udc4d"]}}\n'
        '{"id": "s5\\ud83d", "text": "x"}\n'
    )
    report = ReadReport()
    found = [d.document for d in read_corpus(path, report=report)]
    assert found == [
        Document("s1", "left \ufffd", {}),
        Document("s2", "both 👍", {}),
        Document("s3", "\ufffd right", {}),
        Document("s4", "x", {"note": {"deep": ["\ufffd"]}}),
        Document("s5\ufffd", "x", {}),
    ]
    assert report.repaired.examples == ["s1", "s3", "s4", "s5\ufffd"]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
    max_leaves=5,
)  # fmt: skip


@given(st.text(st.characters(codec="utf-8")), st.dictionaries(st.just("k") | st.just("é"), VALUES))
def test_objects_come_back_as_they_were_written(
    tmp_path_factory: pytest.TempPathFactory, text: str, metadata: dict[str, Any]
) -> None:
    fields = {"id": "a", "text": text + ".", **metadata}
    lines = [json.dumps(fields, ensure_ascii=True), json.dumps(fields, ensure_ascii=False)]
    found = read(tmp_path_factory.mktemp("jsonl"), *lines)
    assert found == [Document("a", text + ".", metadata)] * 2


# --- BEIR ---------------------------------------------------------------------------------------

BEIR = (
    '{"_id": "d1", "title": "A Title", "text": "and words", "metadata": {"url": "u"}}\n'
    '{"_id": "d2", "title": "", "text": " no title "}\n'
    '{"_id": "d3", "text": "none at all"}\n'
    '{"_id": "d4", "title": null, "text": "null"}\n'
    '{"_id": "d5", "title": "Only a title", "text": ""}\n'
    '{"_id": "d6", "title": "", "text": ""}\n'
)
EXPECTED = [
    Document("d1", "A Title and words", {"title": "A Title", "metadata": {"url": "u"}}),
    Document("d2", " no title ", {"title": ""}),
    Document("d3", "none at all", {}),
    Document("d4", "null", {"title": None}),
    Document("d5", "Only a title", {"title": "Only a title"}),
]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("form", [None, "beir"])
def test_a_folder_with_a_corpus_file_is_beir(
    tmp_path: Path, packed: bool, form: str | None
) -> None:
    name, data = "corpus.jsonl", BEIR.encode()
    (tmp_path / "readme.txt").write_text("not a document")
    (tmp_path / (name + ".gz" if packed else name)).write_bytes(
        gzip.compress(data) if packed else data
    )
    report = ReadReport()
    found = read_corpus(tmp_path, ReadOptions(format=form), report)
    assert [d.document for d in found] == EXPECTED
    assert report.blank.examples == ["d6"]


def test_the_corpus_file_may_be_named_itself(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text(BEIR)
    found = read_corpus(tmp_path / "corpus.jsonl", ReadOptions(format="beir"))
    assert [d.document for d in found] == EXPECTED


def test_a_folder_without_the_corpus_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MissingFile, match=r"no corpus\.jsonl in this folder"):
        read_corpus(tmp_path, ReadOptions(format="beir"))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"title": "t", "text": "x"}', "no field 'id'"),
        ('{"_id": "a", "name": "t"}', "no field 'text', found _id, name"),
        ('{"_id": "a", "title": 3, "text": "x"}', "title must be a str, found int"),
        ('{"_id": "a", "text": null}', "text must be a str, found NoneType"),
    ],
)
def test_a_bad_line_of_a_beir_corpus_names_the_file_in_the_folder(
    tmp_path: Path, line: str, reason: str
) -> None:
    (tmp_path / "corpus.jsonl").write_text(line)
    with pytest.raises(InputError, match=r"corpus\.jsonl line 1: ") as caught:
        list(read_corpus(tmp_path))
    assert reason in str(caught.value)


def test_fields_that_get_one_name_by_repair_are_a_bad_line(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"id": "1", "text": "t", "k\\ud800": 1, "k\\udc01": 2}\n')
    with pytest.raises(InputError, match="line 1: two fields have one name"):
        list(read_corpus(path))


def test_a_key_twice_among_many_is_found_in_the_time_of_reading(tmp_path: Path) -> None:
    keys = ", ".join(f'"k{number}": 0' for number in range(200_000))
    started = time.monotonic()
    with pytest.raises(InputError, match="duplicate key 'k199999'"):
        read(tmp_path, f'{{"text": "a", {keys}, "k199999": 1}}')
    assert time.monotonic() - started < 20
