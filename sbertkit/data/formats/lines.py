"""Corpora of lines: one document a line, with or without an id before a tab."""

from collections.abc import Iterator

from sbertkit.data.bad_rows import BadRow
from sbertkit.data.formats.base import CorpusFormat
from sbertkit.data.lines import LongLine, TextOptions, bounded_lines
from sbertkit.data.tables import Row


def read_txt(path: str, text: TextOptions) -> Iterator[Row | BadRow]:
    """A row for each line, whose text it is."""
    for line in bounded_lines(path, text):
        if isinstance(line, LongLine):
            yield line.bad_row(text.max_bytes)
        else:
            yield Row(line.number, {"text": line.text})


def read_tsv(path: str, text: TextOptions) -> Iterator[Row | BadRow]:
    """A row for each line: the id, a tab, and all the rest as text; no header, no quoting.

    An empty line is skipped, as in JSONL.
    """
    for line in bounded_lines(path, text):
        if isinstance(line, LongLine):
            yield line.bad_row(text.max_bytes)
            continue
        identifier, tab, rest = line.text.partition("\t")
        if tab:
            yield Row(line.number, {"id": identifier, "text": rest})
        elif line.text:
            yield BadRow(line.number, "expected an id, a tab and the text, found no tab")


TXT = CorpusFormat("txt", read_txt, (".txt",))
TSV = CorpusFormat("tsv", read_tsv, (".tsv",))
