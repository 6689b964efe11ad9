"""Options of reading, and the report of what it met."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from sbertkit.data import Document, IssueCount, ReadOptions, ReadReport, read_corpus
from sbertkit.data.document_columns import DocumentColumns
from sbertkit.data.formats import FORMATS, CorpusFormat
from sbertkit.data.lines import TextOptions
from sbertkit.data.tables import Row
from sbertkit.errors import InputError, InputTypeError


def test_every_format_can_be_chosen_by_its_name() -> None:
    for name, form in FORMATS.items():
        assert ReadOptions(format=name).format == form.name == name


def test_an_entry_of_the_formats_is_read_by_its_suffix_and_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(path: str, _text: TextOptions, _columns: DocumentColumns) -> Iterator[Row]:
        for number, line in enumerate(Path(path).read_text().split("%"), 1):
            yield Row(number, {"text": line})

    monkeypatch.setitem(FORMATS, "percent", CorpusFormat("percent", read, (".pct",), "piece"))
    (tmp_path / "corpus.pct").write_text("one%two")
    (tmp_path / "corpus").write_text("one%%two")
    expected = [Document("1", "one", {}), Document("2", "two", {})]
    assert [one.document for one in read_corpus(tmp_path / "corpus.pct")] == expected
    found = list(read_corpus(tmp_path / "corpus", ReadOptions(format="percent")))
    assert [one.document.id for one in found] == ["1", "3"]
    with pytest.raises(InputError, match=r"percent \(\.pct\)"):
        read_corpus(tmp_path / "corpus")


def test_a_document_without_metadata_has_an_empty_mapping() -> None:
    assert dict(Document("a", "b").metadata) == {}


@pytest.mark.parametrize("name", ["xml", "", "JSONL", 3])
def test_an_unknown_format_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="format must be one of txt, jsonl, tsv, csv, parquet"):
        ReadOptions(format=name)


def test_other_options_are_checked_as_well() -> None:
    with pytest.raises(InputError, match="encoding"):
        ReadOptions(encoding="klingon")
    with pytest.raises(InputError, match="errors must be"):
        ReadOptions(errors="ignore")
    with pytest.raises(InputTypeError, match="skip_bad_lines must be True or False, found str"):
        ReadOptions(skip_bad_lines="no")  # type: ignore[arg-type]


def test_a_count_shows_count_and_examples() -> None:
    count = IssueCount()
    for number in ("3", "4", "6"):
        count.add(number)
    assert count.describe("bad line skipped", "bad lines skipped") == (
        "3 bad lines skipped (3, 4, 6)"
    )


def test_a_count_of_one_is_singular() -> None:
    count = IssueCount()
    count.add("7")
    assert count.describe("bad line skipped", "bad lines skipped") == "1 bad line skipped (7)"
    assert count.describe("blank") == "1 blank (7)"


def test_a_count_keeps_the_first_twenty() -> None:
    count = IssueCount()
    for number in range(1000):
        count.add(str(number))
    assert len(count.examples) == 20
    assert count.describe("blank").startswith("1,000 blank (0, 1, 2, ")
    assert count.describe("blank").endswith("18, 19, and 980 more)")


def test_examples_are_shown_short_and_printable() -> None:
    count = IssueCount()
    count.add("x" * 1_000_000)
    count.add("\x1b[31m\u2028")
    assert count.describe("blank").isprintable()
    assert len(count.describe("blank")) < 100


def test_a_clean_report_has_no_warnings() -> None:
    assert ReadReport(documents=3).warnings() == ()


def test_a_report_has_one_line_for_each_kind_of_trouble() -> None:
    report = ReadReport(first_bad="c.jsonl line 4: no field 'text'")
    for name in ("w1", "w2"):
        report.blank.add(name)
    report.bad_lines.add("4")
    report.repaired.add("s1")
    report.replaced.add("2")
    report.replaced.add("b.md line 7")
    assert report.warnings() == (
        "2 blank (w1, w2): left out",
        "1 bad line skipped (4); the first: c.jsonl line 4: no field 'text'",
        "1 document with unpaired surrogates, which became U+FFFD (s1)",
        "2 lines with undecodable bytes, which became U+FFFD (2, b.md line 7)",
    )
