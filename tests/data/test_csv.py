"""CSV corpora."""

import csv
import io
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sbertkit.data import Document, ReadOptions, ReadReport, read_corpus
from sbertkit.errors import InputError


def read(tmp_path: Path, body: str, **options: Any) -> list[Document]:
    path = tmp_path / "corpus.csv"
    path.write_bytes(body.encode())
    return [d.document for d in read_corpus(path, ReadOptions(**options))]


def test_columns_are_found_by_the_header(tmp_path: Path) -> None:
    assert read(tmp_path, "year,text,id\n1999,one,a\n2000,two,b\n") == [
        Document("a", "one", {"year": "1999"}),
        Document("b", "two", {"year": "2000"}),
    ]


def test_without_an_id_the_line_where_a_record_begins_is_the_id(tmp_path: Path) -> None:
    body = 'text\none\n\n"two\nlines"\r\nfour\n'
    assert read(tmp_path, body) == [
        Document("2", "one", {}),
        Document("4", "two\nlines", {}),
        Document("6", "four", {}),
    ]


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ('"a, b"', "a, b"),
        ('"say ""hi"""', 'say "hi"'),
        ('""""', '"'),
        ('"a\n\nb"', "a\n\nb"),
        ('"a\r\nb"', "a\nb"),
        ('5" pipe', '5" pipe'),
        (' "x"', ' "x"'),
        ("a\rb", "a\rb"),
        ("a\u2028b\x85c\x0cd", "a\u2028b\x85c\x0cd"),
        ("it's; \\fine", "it's; \\fine"),
    ],
)
def test_fields_are_unquoted_and_nothing_else(tmp_path: Path, field: str, text: str) -> None:
    expected = [Document("1", text, {"more": "x"}), Document("2", "after", {"more": "y"})]
    assert read(tmp_path, f"id,text,more\n1,{field},x\r\n2,after,y") == expected
    assert read(tmp_path, f"id,more,text\n1,x,{field}\n2,y,after") == expected


@pytest.mark.parametrize(
    ("rows", "place", "reason"),
    [
        ("1,one,more", "line 2:", "3 columns, expected 2"),
        ("just one", "line 2:", "1 column, expected 2"),
        ('1,"one\ntwo",x', "line 2-3:", "3 columns, expected 2"),
        (",one", "line 2:", "id is empty"),
    ],
)
def test_a_bad_record_is_refused_or_skipped(
    tmp_path: Path, rows: str, place: str, reason: str
) -> None:
    body = f"id,text\n{rows}\nz,last\n"
    with pytest.raises(InputError) as caught:
        read(tmp_path, body)
    assert f"corpus.csv {place} {reason}" in str(caught.value)
    assert read(tmp_path, body, skip_bad_lines=True) == [Document("z", "last", {})]


def test_a_quote_never_closed_is_refused_even_when_bad_lines_are_skipped(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"line 3: the quote opened here is never closed"):
        read(tmp_path, 'id,text\n1,one\n2,"two\n3,three\n', skip_bad_lines=True)


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        (
            "id,name",
            "expected a column 'text', or title, body, content, document, passage, question, "
            "abstract, found id, name; name the text's columns by text_columns",
        ),
        ("text,text", "duplicate column name"),
        ('id,"text"x', "text after the closing quote"),
    ],
)
def test_a_bad_header_is_refused_even_when_bad_lines_are_skipped(
    tmp_path: Path, header: str, reason: str
) -> None:
    with pytest.raises(InputError, match=r"corpus\.csv line 1: ") as caught:
        read(tmp_path, f"{header}\n1,one\n", skip_bad_lines=True)
    assert reason in str(caught.value)


def test_the_header_may_have_a_byte_order_mark_and_spaces(tmp_path: Path) -> None:
    assert read(tmp_path, '\ufeffid , "text"\n1,one'.replace(' "text"', " text")) == [
        Document("1", "one", {})
    ]
    assert read(tmp_path, '\ufeff"id","text"\n1,one') == [Document("1", "one", {})]


def test_empty_fields_are_blank_texts(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('id,text\n1,\n2,""\n3,x\n')
    report = ReadReport()
    assert [d.document.id for d in read_corpus(path, report=report)] == ["3"]
    assert report.blank.examples == ["1", "2"]


def test_a_field_beyond_the_csv_modules_limit_is_read(tmp_path: Path) -> None:
    limit = csv.field_size_limit()
    long = "x" * (limit * 3)
    assert read(tmp_path, f'id,text\n1,"{long}"\n2,{long}\n') == [
        Document("1", long, {}),
        Document("2", long, {}),
    ]
    assert csv.field_size_limit() == limit


ODD = st.sampled_from("ab\",\n \r\té中\u2028\x0c;'")
FIELDS = st.text(ODD | st.characters(codec="utf-8", exclude_characters="\0"))


@given(st.lists(st.tuples(FIELDS, FIELDS), max_size=5), st.sampled_from(["\n", "\r\n"]))
def test_what_the_csv_module_writes_comes_back(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]], end: str
) -> None:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator=end)
    writer.writerow(["more", "id", "text"])
    for number, (more, text) in enumerate(rows):
        writer.writerow([more, number, text + "."])
    found = read(tmp_path_factory.mktemp("csv"), out.getvalue())
    assert found == [
        Document(str(n), _plain(text + "."), {"more": _plain(more)})
        for n, (more, text) in enumerate(rows)
    ]


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n")


@pytest.mark.parametrize(
    ("rows", "line", "field"),
    [
        ('1,"one" two', 2, 2),
        ('"1" ,one', 2, 1),
        ('1,"one\n2,"two', 3, 2),
        ('1,"hello"x,"multi\nline",3', 2, 2),
        ('1,"a"b "multi\nfragment of a, broken record', 2, 2),
    ],
)
def test_a_record_without_a_clear_end_is_refused_also_when_bad_lines_are_skipped(
    tmp_path: Path, rows: str, line: int, field: int
) -> None:
    body = f"id,text\n{rows}\nz,last\n"
    for skip in (False, True):
        with pytest.raises(InputError) as caught:
            read(tmp_path, body, skip_bad_lines=skip)
        expected = f"corpus.csv line {line}: text after the closing quote of field {field};"
        assert expected in str(caught.value)


@pytest.mark.parametrize("row", ['1,"a \\", b"', 'x,"a \\", b",c\\""', '"\\",y",2'])
def test_quotes_after_backslashes_are_refused_where_fields_would_be_split(
    tmp_path: Path, row: str
) -> None:
    header = ",".join(["id", "text", "other", "more"][: row.count(",") + 1])
    with pytest.raises(InputError, match=r"line 2: a quote after a backslash; fix it, and double"):
        read(tmp_path, f"{header}\n{row}\n", skip_bad_lines=True)


def test_fields_may_end_in_a_backslash(tmp_path: Path) -> None:
    (found,) = read(tmp_path, 'id,text,place\n1,"C:\\",home\n')
    assert (found.text, found.metadata) == ("C:\\", {"place": "home"})
