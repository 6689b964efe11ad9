"""Corpora of lines: one document a line, with or without an id before a tab."""

from collections.abc import Iterator

from sbertkit.data.documents import ReadOptions, ReadReport
from sbertkit.data.lines import Line, read_lines
from sbertkit.data.records import BadLine, Record


def report_lines(path: str, options: ReadOptions, report: ReadReport) -> Iterator[Line]:
    """The lines of a file; those with replaced bytes are counted in the report."""

    def count(_number: int) -> None:
        report.replaced += 1

    return read_lines(path, options.encoding, errors=options.errors, on_replaced=count)


def read_txt(path: str, options: ReadOptions, report: ReadReport) -> Iterator[Record | BadLine]:
    """A record a line, whose id is the line's number."""
    for number, text in report_lines(path, options, report):
        yield Record(number, str(number), text, {})


def read_tsv(path: str, options: ReadOptions, report: ReadReport) -> Iterator[Record | BadLine]:
    """A record a line: the id, a tab, and all the rest as text; no header, no quoting.

    An empty line is passed over, as in JSONL.
    """
    for number, line in report_lines(path, options, report):
        identifier, tab, text = line.partition("\t")
        if tab:
            yield Record(number, identifier, text, {})
        elif line:
            yield BadLine(number, "expected an id, a tab and the text, found no tab")
