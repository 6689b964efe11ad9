r"""Rows of tab-separated and comma-separated text, by the names in a header.

Python's csv module is not used: it ends records at a lone ``\r`` too, limits fields by a setting
that all threads share, and reports the last line of a damaged record, not where it is damaged.
"""

import re
from collections.abc import Iterator
from itertools import chain

from sbertkit.data.bad_rows import BadRow
from sbertkit.data.limits import too_long, utf8_bytes
from sbertkit.data.lines import Line, LongLine, TextOptions, bounded_lines
from sbertkit.data.streams import source_name
from sbertkit.data.tables.columns import Fields, Layout, Row
from sbertkit.data.text import is_blank
from sbertkit.errors import InputError

DELIMITERS = (",", ";", "\t", "|")
"""Those that are found without being named; of several that fit, the first."""
_SEP = re.compile(r'"?sep=(\S|\t)"?\1*', re.IGNORECASE)

_Record = tuple[int, int, list[str]]
"""First and last line of a record, and its cells."""


def read_tsv(path: str, columns: Fields, text: TextOptions) -> Iterator[Row | BadRow]:
    """A row for each line, cells between tabs, without quoting; blank lines are skipped.

    Raises:
        InputError: A header without a needed column.
    """
    return tab_separated(bounded_lines(path, text), columns, source_name(path), text.max_bytes)


def read_csv(path: str, columns: Fields, text: TextOptions) -> Iterator[Row | BadRow]:
    r"""A row for each record; empty lines are skipped.

    Cells are separated by the delimiter of the options, else by what a first line ``sep=;`` names,
    else by the one of ``,``, ``;``, tab and ``|`` that gives the header its columns. Quoted cells
    may hold delimiters, line ends (each becomes ``\n``) and doubled quotes. A file without header,
    where the columns allow that, is a tab-separated one in spite of its name.

    Raises:
        InputError: A header without a needed column, or a record whose end cannot be found: a quote
            that is not closed, text after one that is, or quotes after backslashes.
    """
    name = source_name(path)
    lines = bounded_lines(path, text)
    begun = list(_to_first_text(lines))  # a pipe can be read but once
    first = begun[-1].text if begun and isinstance(begun[-1], Line) else ""
    if columns.headerless is not None and first.count("\t") >= 2:
        yield from tab_separated(chain(begun, lines), columns, name, text.max_bytes)
        return
    named = _SEP.fullmatch(first)
    if named:  # Excel's own line, which is no header
        begun.clear()
        delimiter = named[1]
    else:
        delimiter = _delimiter_of(first, columns)
    parser = _Parser(chain(begun, lines), name, text.max_bytes, text.delimiter or delimiter)
    yield from _rows(parser.records(), columns, name)


def tab_separated(
    lines: Iterator[Line | LongLine], columns: Fields, name: str, limit: int
) -> Iterator[Row | BadRow]:
    """The rows in lines of which the first that is not blank is the header; see `read_tsv`."""

    def records() -> Iterator[_Record | BadRow]:
        for line in lines:
            if isinstance(line, LongLine):
                yield line.bad_row(limit)
            elif "\t" in line.text or not is_blank(line.text):
                yield line.number, line.number, line.text.split("\t")

    return _rows(records(), columns, name, headerless=True)


def _rows(
    records: Iterator[_Record | BadRow], columns: Fields, name: str, *, headerless: bool = False
) -> Iterator[Row | BadRow]:
    layout: Layout | None = None
    for record in records:
        if isinstance(record, BadRow):
            yield record
            continue
        first, last, cells = record
        if layout is None:
            if headerless and columns.headerless is not None:
                layout = columns.headerless(cells)
            if layout is None:
                header = [cell.strip() for cell in cells]
                layout = columns.of_header(header, f"{name} line {first}")
                continue
        if layout.fits(len(cells)):
            yield layout.row(first, cells)
        else:
            noun = "column" if len(cells) == 1 else "columns"
            yield BadRow(first, f"{len(cells)} {noun}, expected {layout.width}", last)


def _delimiter_of(header: str, columns: Fields) -> str:
    """The delimiter with which a header has the needed columns, and the most of them."""

    def found(delimiter: str) -> tuple[bool, int]:
        names = [name.strip().strip('"') for name in header.split(delimiter)]
        return columns.fits(names), len(names)

    return max(DELIMITERS, key=found)


def _to_first_text(lines: Iterator[Line | LongLine]) -> Iterator[Line | LongLine]:
    """The lines up to the first that is not blank."""
    for line in lines:
        yield line
        if isinstance(line, LongLine) or not is_blank(line.text):
            return


class _Parser:
    """Splits lines into the cells of records.

    Args:
        lines: The lines of a file.
        name: What messages call it.
        limit: Largest record, in bytes.
        delimiter: What separates cells, one character.
    """

    def __init__(
        self, lines: Iterator[Line | LongLine], name: str, limit: int, delimiter: str
    ) -> None:
        self._lines = lines
        self._name = name
        self._limit = limit
        self._delimiter = delimiter
        self._line = Line(0, "")
        self._position = 0
        self._long: list[BadRow] = []

    def records(self) -> Iterator[_Record | BadRow]:
        """The records, and those of which a line or the whole is too long as bad rows.

        Raises:
            InputError: Where a record ends cannot be found: not a bad row to be skipped, since
                pieces of it would be taken for records.
        """
        while self._advance():
            if not self._line.text:
                continue
            self._position = 0
            first = self._line.number
            cells = self._cells()
            last = self._line.number
            inside = [bad for bad in self._long if bad.number >= first]
            yield from self._long[: len(self._long) - len(inside)]
            self._long.clear()
            size = sum(map(len, cells))
            if 4 * size > self._limit:  # the most bytes that so many characters have
                size = sum(map(utf8_bytes, cells))
            if size > self._limit:
                yield BadRow(first, too_long(size, self._limit), last)
            elif inside:
                yield BadRow(first, f"line {inside[0].number} has {inside[0].reason}", last)
            else:
                yield first, last, cells
        yield from self._long

    def _advance(self) -> bool:
        """Whether there is another line; one that is too long is empty, and noted."""
        line = next(self._lines, None)
        if line is None:
            return False
        if isinstance(line, LongLine):
            bad = line.bad_row(self._limit)
            if line.quoted:
                raise InputError(
                    f"{self._name} line {line.number}: {bad.reason}, and a quote is open at its"
                    " start or end, so that it cannot be skipped"
                )
            self._long.append(bad)
            line = Line(line.number, "")
        self._line = line
        return True

    def _cells(self) -> list[str]:
        """The cells of the record that begins with this line, to the end of its last line."""
        cells: list[str] = []
        backslash = False
        while True:
            quoted = self._line.text.startswith('"', self._position)
            cells.append(self._quoted() if quoted else self._bare())
            if backslash and not quoted and '"' in cells[-1]:
                # as Spark writes quotes; the cells before are not what was meant
                raise self._damaged(self._line.number, "a quote after a backslash")
            backslash |= quoted and cells[-1].endswith("\\")
            if self._position == len(self._line.text):
                return cells
            if self._line.text[self._position] != self._delimiter:
                reason = f"text after the closing quote of field {len(cells)}"
                raise self._damaged(self._line.number, reason)
            self._position += 1

    def _bare(self) -> str:
        start = self._position
        end = self._line.text.find(self._delimiter, start)
        self._position = len(self._line.text) if end < 0 else end
        return self._line.text[start : self._position]

    def _quoted(self) -> str:
        opened = self._line.number
        pieces = []
        size = 0
        self._position += 1
        while True:
            text, start = self._line.text, self._position
            end = text.find('"', start)
            if end < 0:
                pieces.append(text[start:] + "\n")
                size += len(pieces[-1])
                if size > self._limit:
                    reason = f"the quote opened here is not closed within {self._limit:,} bytes"
                    raise self._damaged(opened, reason)
                if not self._advance():
                    raise self._damaged(opened, "the quote opened here is never closed")
                self._position = 0
            elif text.startswith('""', end):
                pieces.append(text[start : end + 1])
                self._position = end + 2
            else:
                pieces.append(text[start:end])
                self._position = end + 1
                return "".join(pieces)

    def _damaged(self, line: int, reason: str) -> InputError:
        return InputError(
            f"{self._name} line {line}: {reason}; fix it, and double each quote that is part of a"
            " text"
        )
