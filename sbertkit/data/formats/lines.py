"""Corpora of lines: one document a line, with or without an id before a tab."""

from collections.abc import Callable, Iterator

from sbertkit.data.documents import ReadOptions, ReadReport
from sbertkit.data.limits import too_long
from sbertkit.data.lines import Line, LongLine, bounded_lines
from sbertkit.data.metadata import BadRecordError
from sbertkit.data.records import BadLine, Record


def report_lines(path: str, options: ReadOptions, report: ReadReport) -> Iterator[Line | LongLine]:
    """The lines of a file; those with replaced bytes are counted in the report."""

    def count(_number: int) -> None:
        report.replaced += 1

    return bounded_lines(
        path,
        options.encoding,
        errors=options.errors,
        on_replaced=count,
        max_bytes=options.max_text_bytes,
    )


def line_records(
    path: str, options: ReadOptions, report: ReadReport, parse: Callable[[Line], Record | None]
) -> Iterator[Record | BadLine]:
    """A record a line.

    Args:
        path: The file.
        options: How it is read.
        report: Where replaced bytes are counted.
        parse: The record in a line, None for a line to pass over; raises `BadRecordError`.
    """
    for line in report_lines(path, options, report):
        if isinstance(line, LongLine):
            yield BadLine(line.number, too_long(line.bytes, options.max_text_bytes))
            continue
        try:
            record = parse(line)
        except BadRecordError as error:
            yield BadLine(line.number, error.reason)
            continue
        if record is not None:
            yield record


def read_txt(path: str, options: ReadOptions, report: ReadReport) -> Iterator[Record | BadLine]:
    """A record a line, whose id is the line's number."""
    return line_records(path, options, report, _from_line)


def read_tsv(path: str, options: ReadOptions, report: ReadReport) -> Iterator[Record | BadLine]:
    """A record a line: the id, a tab, and all the rest as text; no header, no quoting.

    An empty line is passed over, as in JSONL.
    """
    return line_records(path, options, report, _from_tabs)


def _from_line(line: Line) -> Record:
    return Record(line.number, str(line.number), line.text, {})


def _from_tabs(line: Line) -> Record | None:
    identifier, tab, text = line.text.partition("\t")
    if tab:
        return Record(line.number, identifier, text, {})
    if line.text:
        raise BadRecordError("expected an id, a tab and the text, found no tab")
    return None
