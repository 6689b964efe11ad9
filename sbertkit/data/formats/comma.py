r"""CSV corpora.

Python's csv module is not used: it ends records at a lone ``\r`` too, limits fields by a setting
that all threads share, and reads on past damaged quotes without a word.
"""

from collections.abc import Iterator
from typing import NamedTuple

from sbertkit.data.documents import ReadOptions, ReadReport
from sbertkit.data.formats.plain import report_lines
from sbertkit.data.lines import Line
from sbertkit.data.metadata import BadRecordError
from sbertkit.data.records import BadLine, Record, record_from
from sbertkit.data.streams import source_name
from sbertkit.data.text import printable
from sbertkit.errors import InputError


def read_csv(path: str, options: ReadOptions, report: ReadReport) -> Iterator[Record | BadLine]:
    r"""A record a row, by the names in the header; without an ``id`` the line's number is the id.

    Quoted fields may hold commas, line ends (each becomes ``\n``) and doubled quotes.

    Raises:
        InputError: A header without ``text`` or with a name twice, or a quote never closed.
    """
    name = source_name(path)
    header: list[str] | None = None
    for first, last, fields in read_fields(report_lines(path, options, report), name):
        try:
            if header is None:
                header = _checked_header(fields, name, first)
            elif len(fields) != len(header):
                found = "1 field" if len(fields) == 1 else f"{len(fields)} fields"
                raise BadRecordError(f"{found} where the header has {len(header)}")
            else:
                yield record_from(
                    dict(zip(header, fields, strict=True)), first, default_id=str(first)
                )
        except BadRecordError as error:
            yield BadLine(first, error.reason, last)


class Fields(NamedTuple):
    """The fields of a record of CSV, which may go over several lines."""

    first: int
    last: int
    values: list[str]


def read_fields(lines: Iterator[Line], name: str) -> Iterator[Fields]:
    """The records in lines of CSV; empty lines between them are passed over.

    Args:
        lines: Lines without their ends.
        name: What messages call the file.

    Raises:
        InputError: A quote never closed, or text after one that is.
    """
    parser = _Parser(lines)
    while parser.advance():
        first = parser.line.number
        try:
            values = parser.fields()
        except _LostRecordError as error:
            # not a bad line to be skipped: pieces of it would be taken for records
            raise InputError(
                f"{name} line {error.line}: {error}; mend it, and double each quote that is part"
                " of a text"
            ) from error
        yield Fields(first, parser.line.number, values)


def _checked_header(fields: list[str], name: str, line: int) -> list[str]:
    header = [field.strip() for field in fields]
    found = printable(", ".join(header), 200)
    if "text" not in header:
        raise InputError(
            f"{name} line {line}: expected a header with a column 'text', found {found};"
            " add the header, or pass --format for another format"
        )
    if len(set(header)) < len(header):
        raise InputError(f"{name} line {line}: a column name is there twice ({found}); rename it")
    return header


class _LostRecordError(Exception):
    """Where a record ends can no longer be told."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line = line


class _Parser:
    """Splits lines into the fields of records; `line` is where it stands."""

    def __init__(self, lines: Iterator[Line]) -> None:
        self._lines = lines
        self.line = Line(0, "")
        self._position = 0

    def advance(self) -> bool:
        """Whether there is another record; goes to its first line, past empty ones."""
        for line in self._lines:
            if line.text:
                self.line = line
                self._position = 0
                return True
        return False

    def fields(self) -> list[str]:
        """The fields of the record that begins with this line, to the end of its last line."""
        fields = []
        while True:
            quoted = self.line.text.startswith('"', self._position)
            fields.append(self._quoted() if quoted else self._bare())
            if self._position == len(self.line.text):
                return fields
            if self.line.text[self._position] != ",":
                raise _LostRecordError(
                    self.line.number,
                    f"text after the closing quote of field {len(fields)}",
                )
            self._position += 1

    def _bare(self) -> str:
        start = self._position
        end = self.line.text.find(",", start)
        self._position = len(self.line.text) if end < 0 else end
        return self.line.text[start : self._position]

    def _quoted(self) -> str:
        opened = self.line.number
        pieces = []
        self._position += 1
        while True:
            text, start = self.line.text, self._position
            end = text.find('"', start)
            if end < 0:
                pieces.append(text[start:] + "\n")
                self.line = next(self._lines, None) or self._fail(opened)
                self._position = 0
            elif text.startswith('""', end):
                pieces.append(text[start : end + 1])
                self._position = end + 2
            else:
                pieces.append(text[start:end])
                self._position = end + 1
                return "".join(pieces)

    def _fail(self, opened: int) -> Line:
        raise _LostRecordError(opened, "the quote opened here is never closed")
