"""What all corpora have in common: choice of the format, blanks, surrogates, bad lines, gzip."""

import gzip
import io
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sbertkit.data
from sbertkit.data import Document, ReadOptions, ReadReport, SourcedDocument, read_corpus
from sbertkit.errors import InputError, InputTypeError, MissingFile, StorageError

BODIES = {
    "corpus.txt": "one\n\ntwo\n",
    "corpus.jsonl": '{"id": "1", "text": "one"}\n\n{"id": 3, "text": "two"}\n',
    "corpus.ndjson": '{"text": "one"}\r\n\r\n{"text": "two"}',
    "corpus.tsv": "1\tone\n2\t \n3\ttwo\n",
    "corpus.csv": "id,text\n1,one\n2,\n3,two\n",
}


def write(tmp_path: Path, text: str | bytes, name: str) -> Path:
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def read(source: Any, **options: Any) -> list[tuple[str, str]]:
    return [(d.document.id, d.document.text) for d in read_corpus(source, ReadOptions(**options))]


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("packed", [False, True])
def test_the_name_decides_on_format_and_gzip(tmp_path: Path, name: str, packed: bool) -> None:
    data = BODIES[name].encode()
    path = write(tmp_path, gzip.compress(data), f"{name}.gz") if packed else tmp_path / name
    if not packed:
        path.write_bytes(data)
    assert read(path) == [("1", "one"), ("3", "two")]
    assert read(str(path)) == [("1", "one"), ("3", "two")]


@pytest.mark.parametrize("name", BODIES)
def test_a_stated_format_overrules_the_name(tmp_path: Path, name: str) -> None:
    form = Path(name).suffix[1:].replace("ndjson", "jsonl")
    assert read(write(tmp_path, BODIES[name], "data.log"), format=form) == [
        ("1", "one"),
        ("3", "two"),
    ]


@pytest.mark.parametrize("name", BODIES)
def test_standard_input_has_the_stated_format(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    form = Path(name).suffix[1:].replace("ndjson", "jsonl")
    stdin = io.TextIOWrapper(io.BytesIO(BODIES[name].encode()))
    monkeypatch.setattr(sys, "stdin", stdin)
    assert read("-", format=form) == [("1", "one"), ("3", "two")]


def test_standard_input_is_plain_text_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xef\xbb\xbfone\r\ntwo")))
    assert read("-") == [("1", "one"), ("2", "two")]


def test_errors_in_standard_input_name_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"[]\n")))
    with pytest.raises(InputError, match="standard input line 1: expected a JSON object"):
        read("-", format="jsonl")


@pytest.mark.parametrize(
    "name", ["corpus", "corpus.xml", "corpus.gz", "a.txt.zip", ".txt", "x.rst"]
)
def test_an_unknown_extension_is_refused_with_the_formats(tmp_path: Path, name: str) -> None:
    path = write(tmp_path, "one", name)
    with pytest.raises(InputError) as caught:
        read_corpus(path)
    message = str(caught.value)
    for part in (
        name,
        "txt (.txt)",
        "jsonl (.jsonl, .ndjson",
        "parquet",
        "pass format with",
    ):
        assert part in message


def test_extensions_in_capitals_are_known(tmp_path: Path) -> None:
    assert read(write(tmp_path, gzip.compress(b"one"), "CORPUS.TXT.GZ")) == [("1", "one")]


@pytest.mark.parametrize("name", ["nothing.txt", "nothing", "nothing.parquet"])
@pytest.mark.parametrize("form", [None, "csv", "beir", "folder"])
def test_a_missing_source_is_refused_before_reading(
    tmp_path: Path, name: str, form: str | None
) -> None:
    with pytest.raises(MissingFile, match=name):
        read_corpus(tmp_path / name, ReadOptions(format=form))


@pytest.mark.parametrize("form", ["txt", "jsonl", "tsv", "csv", "parquet"])
def test_a_folder_is_refused_by_a_format_of_files(tmp_path: Path, form: str) -> None:
    with pytest.raises(InputError, match=f"the format {form} needs a file, found a folder"):
        read_corpus(tmp_path, ReadOptions(format=form))


def test_a_file_is_refused_by_the_format_of_folders(tmp_path: Path) -> None:
    path = write(tmp_path, "one", "a.txt")
    with pytest.raises(InputError, match="needs a folder, found a file"):
        read_corpus(path, ReadOptions(format="folder"))
    with pytest.raises(InputError, match="needs a folder, found standard input"):
        read_corpus("-", ReadOptions(format="folder"))


@pytest.mark.parametrize("source", [b"a.txt", 3, None])
def test_a_source_of_another_type_is_refused(source: Any) -> None:
    with pytest.raises(InputTypeError):
        read_corpus(source)


def test_a_file_without_permission_is_a_storage_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, "one", "a.txt")

    def fail(*_args: Any, **_more: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", fail)
    with pytest.raises(StorageError, match=r"a\.txt: cannot be read \(Permission denied\)"):
        read(path)


@pytest.mark.parametrize("name", [*BODIES, "corpus.txt.gz"])
def test_an_empty_corpus_has_no_documents(tmp_path: Path, name: str) -> None:
    assert read(write(tmp_path, gzip.compress(b"") if name.endswith("gz") else b"", name)) == []


@pytest.mark.parametrize("name", BODIES)
def test_a_broken_gzip_stream_is_refused_even_when_bad_lines_are_skipped(
    tmp_path: Path, name: str
) -> None:
    path = write(tmp_path, gzip.compress(BODIES[name].encode())[:-9], f"{name}.gz")
    with pytest.raises(InputError, match=r"\.gz: broken gzip stream"):
        read(path, skip_bad_lines=True)


@pytest.mark.parametrize("name", BODIES)
def test_undecodable_bytes_are_refused_even_when_bad_lines_are_skipped(
    tmp_path: Path, name: str
) -> None:
    path = write(tmp_path, BODIES[name].encode() + b"\xff\n", name)
    with pytest.raises(InputError, match="not valid utf-8"):
        read(path, skip_bad_lines=True)


@pytest.mark.parametrize("name", BODIES)
def test_other_encodings_are_read(tmp_path: Path, name: str) -> None:
    body = BODIES[name].replace("two", "deuxième €")
    for encoding in ("utf-16", "cp1252"):
        path = write(tmp_path, body.encode(encoding), name)
        assert read(path, encoding=encoding) == [("1", "one"), ("3", "deuxième €")]


def test_replaced_bytes_are_counted_by_lines(tmp_path: Path) -> None:
    report = ReadReport()
    path = write(tmp_path, b"a\xff\xff\nb\n\xffc", "a.txt")
    found = list(read_corpus(path, ReadOptions(errors="replace"), report))
    assert [d.document.text for d in found] == ["a\ufffd\ufffd", "b", "\ufffdc"]
    assert (report.replaced.count, report.replaced.examples) == (2, ["1", "3"])


def test_line_numbers_count_blank_lines_which_are_reported(tmp_path: Path) -> None:
    report = ReadReport()
    path = write(tmp_path, "\none\n \t\n\u200b\ntwo\n", "a.txt")
    assert list(read_corpus(path, report=report)) == [
        SourcedDocument(Document("2", "one", {}), 2),
        SourcedDocument(Document("5", "two", {}), 5),
    ]
    assert report.blank.describe("blank") == "3 blank (1, 3, 4)"
    assert report.documents == 2


def test_blank_texts_are_reported_by_id(tmp_path: Path) -> None:
    report = ReadReport()
    body = "".join(
        f'{{"id": "w{i}", "text": "{text}"}}\n'
        for i, text in enumerate(["", "  ", "\\t\\n", "\u3000\xa0", "seen"], 1)
    )
    found = list(read_corpus(write(tmp_path, body, "a.jsonl"), report=report))
    assert [d.document.id for d in found] == ["w5"]
    assert report.blank.describe("blank") == "4 blank (w1, w2, w3, w4)"


def test_the_report_fills_while_documents_are_drawn(tmp_path: Path) -> None:
    report = ReadReport()
    stream = read_corpus(write(tmp_path, "a\n\nb\nc\n", "a.txt"), report=report)
    assert report.documents == 0
    next(stream)
    next(stream)
    assert (report.documents, report.blank.count) == (2, 1)
    stream.close()  # type: ignore[attr-defined]


BAD = '{"id": "a", "text": "one"}\n\n{"id": "b", "te\n{"id": "c"}\n{"id": "d", "text": "x"}\n[1]\n'


def test_a_bad_line_is_refused_with_place_reason_and_remedy(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read(write(tmp_path, BAD, "corpus.jsonl"))
    message = str(caught.value)
    assert "corpus.jsonl line 3: not valid JSON (Unterminated string at column 13)" in message
    assert message.endswith("; fix the line or pass skip_bad_lines")
    assert "\n" not in message


def test_bad_lines_are_skipped_and_listed_when_that_is_asked_for(tmp_path: Path) -> None:
    report = ReadReport()
    path = write(tmp_path, BAD, "corpus.jsonl")
    found = list(read_corpus(path, ReadOptions(skip_bad_lines=True), report))
    assert [(d.document.id, d.line) for d in found] == [("a", 1), ("d", 5)]
    assert report.bad_lines.describe("bad line skipped", "bad lines skipped") == (
        "3 bad lines skipped (3, 4, 6)"
    )
    assert report.first_bad is not None
    assert "line 3: not valid JSON" in report.first_bad


def test_a_line_of_ten_megabytes_is_read(tmp_path: Path) -> None:
    long = "word " * 2_000_000
    for body, name in [
        (long, "a.txt"),
        (f'{{"id": "1", "text": "{long}"}}', "a.jsonl"),
        (f"1\t{long}", "a.tsv"),
        (f'id,text\n1,"{long}"', "a.csv"),
    ]:
        (found,) = read(write(tmp_path, body, name))
        assert found == ("1", long)


def test_memory_is_constant_with_many_blank_and_bad_lines(tmp_path: Path) -> None:
    path = write(tmp_path, "good\twords\nno tab here\nid\t \n" * 10_000, "a.tsv")
    report = ReadReport()
    options = ReadOptions(skip_bad_lines=True)
    tracemalloc.start()
    try:
        count = sum(1 for _ in read_corpus(path, options, report))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (count, report.bad_lines.count, report.blank.count) == (10_000, 10_000, 10_000)
    assert peak < 250_000


WORDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\n\r\ufeff"))


@given(st.lists(WORDS))
def test_plain_text_comes_back_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str]
) -> None:
    path = write(tmp_path_factory.mktemp("txt"), "".join(f"{line}\r\n" for line in lines), "a.txt")
    expected = [
        (str(n), line) for n, line in enumerate(lines, 1) if not sbertkit.data.is_blank(line)
    ]
    assert read(path) == expected


@given(st.lists(WORDS.map(lambda text: text + ".")))
def test_text_after_the_first_tab_comes_back_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str]
) -> None:
    body = "".join(f"t{n}\t{text}\n" for n, text in enumerate(texts))
    path = write(tmp_path_factory.mktemp("tsv"), body, "a.tsv")
    assert read(path) == [(f"t{n}", text) for n, text in enumerate(texts)]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("no tab", "found no tab"),
        ("\ttext", "id is empty"),
        (" \ttext", "id is empty"),
        ("a\rb\ttext", "holds a tab, line end or NUL"),
        ("a\0b\ttext and more", "holds a tab, line end or NUL"),
    ],
)
def test_a_bad_line_of_a_tsv_file_is_refused(tmp_path: Path, line: str, reason: str) -> None:
    path = write(tmp_path, f"1\tone\n{line}\n", "a.tsv")
    with pytest.raises(InputError, match=r"a\.tsv line 2: ") as caught:
        read(path)
    assert reason in str(caught.value)
    assert read(path, skip_bad_lines=True) == [("1", "one")]


def test_an_empty_line_of_a_tsv_file_is_passed_over_and_still_counted(tmp_path: Path) -> None:
    path = write(tmp_path, "1\tone\n\n3\tthree\n\n\n", "a.tsv")
    assert read(path) == [("1", "one"), ("3", "three")]
    found = list(sbertkit.data.read_corpus(path))
    assert [document.line for document in found] == [1, 3]


def test_blank_documents_are_given_out_on_demand_for_what_counts_rows(tmp_path: Path) -> None:
    path = write(tmp_path, "one\n\n \u3000\nfour\n", "a.txt")
    report = sbertkit.data.ReadReport()
    found = sbertkit.data.read_corpus(path, report=report, keep_blank=True)
    assert [document.document.text for document in found] == ["one", "", " \u3000", "four"]
    assert (report.blank.count, report.documents) == (0, 4)


def test_quotes_and_further_tabs_stay_in_a_tsv_text(tmp_path: Path) -> None:
    path = write(tmp_path, 'a\tone\ttwo\t"three\nb\t\tfour\n', "a.tsv")
    assert read(path) == [("a", 'one\ttwo\t"three'), ("b", "\tfour")]


def test_public_names_are_stated() -> None:
    for name in dir(sbertkit.data):
        assert hasattr(sbertkit.data, name)


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = (
        "import sys, sbertkit.data\n"
        "heavy = {'pyarrow', 'numpy', 'scipy', 'pandas', 'torch', 'click', 'faiss'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    root = Path(sbertkit.data.__file__).parents[2]
    env = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=env, check=True
    )
    assert done.stdout.strip() == "[]"
