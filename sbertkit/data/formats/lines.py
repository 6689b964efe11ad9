"""Corpora of lines: one document per line, with or without an id before a tab."""

from collections.abc import Iterator
from itertools import chain

from sbertkit.data.bad_rows import BadRow
from sbertkit.data.document_columns import DocumentColumns
from sbertkit.data.formats.base import CorpusFormat
from sbertkit.data.lines import LongLine, TextOptions, bounded_lines
from sbertkit.data.streams import source_name
from sbertkit.data.tables import Row
from sbertkit.data.tables.csv import tab_separated


def read_txt(path: str, text: TextOptions, _: DocumentColumns) -> Iterator[Row | BadRow]:
    """A row for each line, whose text it is."""
    for line in bounded_lines(path, text):
        if isinstance(line, LongLine):
            yield line.bad_row(text.max_bytes)
        else:
            yield Row(line.number, {"text": line.text})


def read_tsv(path: str, text: TextOptions, columns: DocumentColumns) -> Iterator[Row | BadRow]:
    """A row for each line: the id, a tab, and all the rest as text; no quoting.

    If columns were chosen, or the first line has the usual names of columns, it is a header, and
    the cells of the other lines are between tabs. An empty line is skipped, as in JSONL.
    """
    lines = bounded_lines(path, text)
    for first in lines:
        lines = chain([first], lines)
        if isinstance(first, LongLine) or first.text:
            break
    else:
        return
    named = not isinstance(first, LongLine) and columns.has_usual_names(first.text.split("\t"))
    if columns.chosen or named:
        rows = tab_separated(lines, columns, source_name(path), text.max_bytes)
        yield from map(columns.document, rows)
        return
    for line in lines:
        if isinstance(line, LongLine):
            yield line.bad_row(text.max_bytes)
            continue
        identifier, tab, rest = line.text.partition("\t")
        if tab:
            yield Row(line.number, {"id": identifier, "text": rest})
        elif line.text:
            yield BadRow(line.number, "expected an id, a tab and the text, found no tab")


TXT = CorpusFormat("txt", read_txt, (".txt",), is_lines=True)
TSV = CorpusFormat("tsv", read_tsv, (".tsv",), has_columns=True)
