"""Which columns of a corpus become text, id and metadata, in every format that has columns."""

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbertkit.data import Document, ReadOptions, ReadReport, documents_from, read_corpus
from sbertkit.errors import InputError, InputTypeError

ROWS = [
    {"docid": "a", "Title": "Espresso machine", "Body": "makes coffee", "year": "2001"},
    {"docid": "b", "Title": "Garden chair", "Body": "", "year": "2002"},
]
FORMATS = ("csv", "tsv", "jsonl", "json", "parquet", "arrow")


def write(folder: Path, form: str, rows: list[dict[str, Any]]) -> Path:
    """A corpus of a format with those rows, all of which have the same columns."""
    path = folder / f"corpus.{form}"
    if form in ("jsonl", "json"):
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    elif form == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif form == "arrow":
        table = pa.Table.from_pylist(rows)
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
    else:
        delimiter = {"csv": ",", "tsv": "\t"}[form]
        lines = [rows[0], *(row.values() for row in rows)]
        path.write_text("".join(f"{delimiter.join(map(str, line))}\n" for line in lines))
    return path


def read(path: Path, report: ReadReport | None = None, **options: Any) -> list[Document]:
    found = read_corpus(path, ReadOptions(**options), report)
    return [sourced.document for sourced in found]


def text_of(path: Path, **options: Any) -> list[str]:
    return [document.text for document in read(path, **options)]


@pytest.mark.parametrize("form", FORMATS)
def test_usual_names_are_found_in_any_case_and_reported(tmp_path: Path, form: str) -> None:
    report = ReadReport()
    assert read(write(tmp_path, form, ROWS), report) == [
        Document(
            "a", "Espresso machine makes coffee", {"Title": "Espresso machine", "year": "2001"}
        ),
        Document("b", "Garden chair", {"Title": "Garden chair", "year": "2002"}),
    ]
    assert report.columns == "text: Title + Body; id: docid; metadata: Title, year"
    assert report.warnings() == ()


@pytest.mark.parametrize("form", FORMATS)
def test_chosen_columns_are_joined_in_their_order(tmp_path: Path, form: str) -> None:
    path = write(tmp_path, form, ROWS)
    chosen: dict[str, Any] = {
        "text_columns": ["Body", "title"],
        "id_column": "YEAR",
        "metadata_columns": "docid",
    }
    assert read(path, **chosen) == [
        Document("2001", "makes coffee Espresso machine", {"docid": "a"}),
        Document("2002", "Garden chair", {"docid": "b"}),
    ]


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(
    ("option", "value"),
    [("text_columns", ["Titel"]), ("id_column", "Titel"), ("metadata_columns", ["year", "Titel"])],
)
def test_a_chosen_column_that_is_nowhere_is_refused_with_those_there(
    tmp_path: Path, form: str, option: str, value: Any
) -> None:
    with pytest.raises(InputError) as caught:
        read(write(tmp_path, form, ROWS), **{option: value})
    message = str(caught.value)
    assert "corpus." in message
    assert "docid, Title, Body, year" in message
    assert "'Titel'" in message


def test_a_mistyped_name_is_corrected(tmp_path: Path) -> None:
    path = write(tmp_path, "csv", ROWS)
    with pytest.raises(InputError, match="no column 'titel', did you mean 'Title'"):
        read(path, text_columns=["titel"])


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ("text", "text"),
        ("content", "content"),
        ("document", "document"),
        ("passage", "passage"),
        ("question", "question"),
        ("abstract title", "title abstract"),
        ("title body text", "title text"),
        ("content TEXT", "TEXT"),
        ("title", "title"),
    ],
)
def test_of_the_usual_names_the_best_counts_and_a_title_goes_before(
    tmp_path: Path, names: str, text: str
) -> None:
    path = write(tmp_path, "csv", [{"id": "1"} | {name: name for name in names.split()}])
    assert text_of(path) == [text]


@pytest.mark.parametrize("names", ["id _id", "_id docid", "docid doc_id", "doc_id other"])
def test_of_the_usual_ids_the_best_counts(tmp_path: Path, names: str) -> None:
    path = write(tmp_path, "jsonl", [{"text": "x"} | {name: name for name in names.split()}])
    assert read(path)[0].id == names.split()[0]


def test_an_exact_name_goes_before_one_in_another_case(tmp_path: Path) -> None:
    path = write(tmp_path, "jsonl", [{"Text": "other", "text": "this", "ID": 1, "id": 2}])
    assert read(path) == [Document("2", "this", {"Text": "other", "ID": 1})]
    path.write_text('{"Text": "x", "TEXT": "y"}')
    with pytest.raises(InputError, match="duplicate column name"):
        read(path)


@pytest.mark.parametrize("form", ["jsonl", "parquet", "arrow"])
def test_dots_lead_into_fields_of_fields(tmp_path: Path, form: str) -> None:
    rows = [
        {"meta": {"key": 7, "author": {"name": "Ada"}}, "page": {"body": "one"}, "a.b": "x"},
        {"meta": {"key": 8, "author": None}, "page": {"body": "two"}, "a.b": "y"},
    ]
    path = write(tmp_path, form, rows)
    options: dict[str, Any] = {"text_columns": ["page.body", "a.b"], "id_column": "meta.key"}
    report = ReadReport()
    found = read(path, report, metadata_columns=["meta.author.name"], **options)
    assert [(document.id, document.text) for document in found] == [("7", "one x"), ("8", "two y")]
    assert found[0].metadata == {"meta.author.name": "Ada"}
    assert found[1].metadata.get("meta.author.name") is None
    assert report.columns == ("text: page.body + a.b; id: meta.key; metadata: meta.author.name")
    with pytest.raises(InputError, match=r"no column 'meta\.author\.age'"):
        read(path, metadata_columns=["meta.author.age"], **options)


def test_objects_may_lack_columns_as_long_as_one_has_them(tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_text('{"body": "one"}\n{"title": "two", "body": null}\n{"title": null, "body": "3"}')
    report = ReadReport()
    assert text_of(path) == ["one", "two", "3"]
    assert read(path, report, text_columns=["title", "body"])[1].text == "two"
    assert report.columns == ("text: body or title + body; id: the line number; metadata: title")


@pytest.mark.parametrize("value", [3, ["x"], {"a": "b"}])
def test_a_part_that_is_no_text_makes_a_bad_row(tmp_path: Path, value: Any) -> None:
    path = write(tmp_path, "jsonl", [{"title": value, "text": "x"}, {"title": "t", "text": "y"}])
    with pytest.raises(InputError, match="line 1: title must be a str, found"):
        read(path)
    assert text_of(path, skip_bad_lines=True) == ["t y"]


# --- dialects of CSV


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("named", ["", "sep", "quoted"])
def test_the_delimiter_is_found(tmp_path: Path, delimiter: str, named: str) -> None:
    path = tmp_path / "corpus.csv"
    lines = ["id,title,text", '1,A,"x, y; z | ""q"""', "2,B,plain"]
    text = "\r\n".join(lines).replace(",", delimiter).replace(f"x{delimiter} y", "x, y")
    head = {"": "", "sep": f"sep={delimiter}\r\n", "quoted": f'"sep={delimiter}"\r\n'}[named]
    path.write_bytes(f"\ufeff{head}{text}\r\n".encode())
    assert text_of(path) == ['A x, y; z | "q"', "B plain"]
    assert read(path)[0].id == "1"


def test_a_given_delimiter_counts_under_any_name(tmp_path: Path) -> None:
    path = tmp_path / "corpus.dat"
    path.write_text("id~text\n1~one\n")
    assert read(path, delimiter="~") == [Document("1", "one", {})]
    path.write_text('id\ttext\n1\t"one\ttwo"\n')
    assert (
        read(path, delimiter="tab")
        == read(path, delimiter="\\t")
        == [Document("1", "one\ttwo", {})]
    )


def test_commas_in_other_dialects_do_not_mislead(tmp_path: Path) -> None:
    path = tmp_path / "corpus.csv"
    path.write_text("price, net;text;size, cm\n1,5;one, two;3,4\n")
    assert read(path) == [Document("2", "one, two", {"price, net": "1,5", "size, cm": "3,4"})]
    path.write_text("text\none; two | three, four\n", "utf-8")
    with pytest.raises(InputError, match="2 columns, expected 1"):
        read(path)


@pytest.mark.parametrize("value", ["", ";;", '"', "\n", "semicolon"])
def test_a_delimiter_that_is_none_is_refused(value: str) -> None:
    with pytest.raises(InputError, match="delimiter must be one character"):
        ReadOptions(delimiter=value)


def test_cells_without_a_name_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "corpus.csv"
    path.write_text(";id;text;;\n0;a;one;;\n")
    assert read(path) == [Document("a", "one", {})]


# --- tab-separated text


def test_a_header_of_tab_separated_text_is_known_by_its_names(tmp_path: Path) -> None:
    path = tmp_path / "corpus.tsv.gz"
    path.write_bytes(gzip.compress(b"text\tlabel\nfirst one\t0\nsecond\t1\n"))
    assert read(path) == [
        Document("2", "first one", {"label": "0"}),
        Document("3", "second", {"label": "1"}),
    ]


def test_tab_separated_text_without_header_stays_id_and_text(tmp_path: Path) -> None:
    path = tmp_path / "corpus.tsv"
    path.write_text("text\tmy first words\nb\tx\ty\n")
    assert read(path) == [Document("text", "my first words", {}), Document("b", "x\ty", {})]
    with pytest.raises(InputError, match="line 1: no column 'body'"):
        read(path, text_columns=["body"])


# --- options


@pytest.mark.parametrize(
    ("lines", "ids"),
    [
        (["w1\tabstract", "w2\tabsurd"], ["w1", "w2"]),
        (["id\ttext", "a\tx"], ["a"]),
        (["title\tinfo", "a\tx"], ["2"]),
        (["key\ttitle\ttext", "a\tx\ty"], ["2"]),
    ],
)
def test_a_first_line_is_a_header_or_a_document(
    tmp_path: Path, lines: list[str], ids: list[str]
) -> None:
    path = tmp_path / "corpus.tsv"
    path.write_text("\n".join(lines))
    assert [document.id for document in read(path)] == ids


def test_a_header_without_a_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "corpus.tsv"
    path.write_text("id\tname\na\tx\n")
    with pytest.raises(InputError, match="found id, name; name the text's columns"):
        read(path)


def test_formats_without_columns_refuse_a_choice(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x\n")
    for source in (tmp_path / "a.txt", tmp_path):
        with pytest.raises(InputError, match="has no columns to choose from"):
            read(source, text_columns=["text"])
    with pytest.raises(InputError, match="only csv has a delimiter"):
        read(tmp_path, delimiter=";")


@pytest.mark.parametrize("names", [["a", "a"], [""], ["a", ""]])
@pytest.mark.parametrize("option", ["text_columns", "metadata_columns"])
def test_names_must_be_distinct(option: str, names: list[str]) -> None:
    with pytest.raises(InputError, match="distinct names"):
        ReadOptions(**{option: names})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("option", "value"),
    [("text_columns", 3), ("metadata_columns", [1]), ("id_column", 2), ("delimiter", 5)],
)
def test_names_of_other_types_are_refused(option: str, value: Any) -> None:
    with pytest.raises(InputTypeError, match=option):
        ReadOptions(**{option: value})


def test_no_metadata_can_be_chosen(tmp_path: Path) -> None:
    assert read(write(tmp_path, "csv", ROWS), metadata_columns=())[0].metadata == {}


# --- whole files, and folders of tables


def test_a_markdown_file_is_one_document_and_others_on_demand(tmp_path: Path) -> None:
    (tmp_path / "note.md").write_text("# One\n\ntwo\n")
    (tmp_path / "note.txt").write_text("one\ntwo\n")
    assert read(tmp_path / "note.md") == [Document("note.md", "# One\n\ntwo\n", {})]
    assert read(tmp_path / "note.txt", format="file") == [Document("note.txt", "one\ntwo\n", {})]
    assert text_of(tmp_path / "note.txt") == ["one", "two"]


def test_an_undecodable_file_of_a_folder_is_a_bad_one(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("good")
    (tmp_path / "b.md").write_bytes(b"Z\xfcrich\nBern\n")
    with pytest.raises(InputError, match=r"file 2: .*b\.md line 1: not valid utf-8"):
        read(tmp_path)
    report = ReadReport()
    assert read(tmp_path, report, skip_bad_lines=True) == [Document("a.md", "good", {})]
    assert "b.md" in report.warnings()[0]
    report = ReadReport()
    assert len(read(tmp_path, report, errors="replace")) == 2
    assert report.warnings() == (
        "1 line with undecodable bytes, which became U+FFFD (b.md line 1)",
    )


def test_a_folder_of_tables_is_read_in_order_and_numbered_through(tmp_path: Path) -> None:
    for number, form in enumerate(["arrow", "parquet"]):
        path = write(tmp_path, form, [{"text": f"{form} {row}"} for row in range(2)])
        path.rename(tmp_path / f"data-{number}.{form}")
    (tmp_path / "state.json").write_text("{}")  # not that of a saved data set
    assert read(tmp_path) == [
        Document("1", "arrow 0", {}),
        Document("2", "arrow 1", {}),
        Document("3", "parquet 0", {}),
        Document("4", "parquet 1", {}),
    ]


def test_of_a_saved_data_set_the_listed_files_are_read(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    datasets.Dataset.from_dict({"text": ["red", "blue"]}).save_to_disk(tmp_path / "set")
    loaded = datasets.load_from_disk(str(tmp_path / "set"))
    loaded.map(lambda row: {"text": row["text"].upper()})  # leaves a cache there
    assert len(list((tmp_path / "set").glob("*.arrow"))) == 2
    assert text_of(tmp_path / "set") == ["red", "blue"]
    loaded.shuffle(seed=1).save_to_disk(tmp_path / "flat")
    assert sorted(text_of(tmp_path / "flat")) == ["blue", "red"]


# --- records from memory


@pytest.mark.parametrize("make", ["pandas", "pyarrow"])
def test_a_table_from_memory_is_refused(make: str) -> None:
    table = pytest.importorskip(make)
    rows = {"id": ["a"], "text": ["x"]}
    frame = table.DataFrame(rows) if make == "pandas" else table.table(rows)
    with pytest.raises(InputTypeError, match="pass its rows as mappings"):
        documents_from(frame)


def test_named_tuples_are_taken_by_their_names() -> None:
    frame = pytest.importorskip("pandas").DataFrame({"text": ["some text"], "id": ["a"]})
    found = documents_from(frame.itertuples(index=False))
    assert [sourced.document for sourced in found] == [Document("a", "some text", {})]


def test_records_from_memory_are_taken_as_files_are() -> None:
    records: list[Any] = [{"title": "A", "body": "b"}, "plain", {"docid": 7, "text": "c"}]
    assert [sourced.document for sourced in documents_from(records)] == [
        Document("0", "A b", {"title": "A"}),
        Document("1", "plain", {}),
        Document("7", "c", {}),
    ]
