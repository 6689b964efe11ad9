r"""CSV corpora.

Python's csv module is not used: it ends records at a lone ``\r`` too, limits fields by a setting
that all threads share, and reads on past damaged quotes without a word.
"""

from collections.abc import Iterator
from typing import NamedTuple

from sbertkit.data.documents import ReadOptions, ReadReport
from sbertkit.data.formats.lines import report_lines
from sbertkit.data.limits import MAX_TEXT_BYTES, too_long, utf8_bytes
from sbertkit.data.lines import Line, LongLine
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
    limit = options.max_text_bytes
    long: list[BadLine] = []
    lines = _without_long(report_lines(path, options, report), name, limit, long)
    for first, last, fields in read_fields(lines, name, limit):
        inside = [line for line in long if line.line >= first]
        yield from long[: len(long) - len(inside)]
        long.clear()
        try:
            size = sum(map(utf8_bytes, fields))
            if size > limit:
                raise BadRecordError(too_long(size, limit))
            if inside:
                raise BadRecordError(f"line {inside[0].line} has {inside[0].reason}")
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
    yield from long


def _without_long(
    lines: Iterator[Line | LongLine], name: str, limit: int, long: list[BadLine]
) -> Iterator[Line]:
    """The lines with an empty one in the place of each that is too long, which is noted.

    Raises:
        InputError: Such a line opens or closes a quoted field.
    """
    for line in lines:
        if isinstance(line, Line):
            yield line
            continue
        reason = too_long(line.bytes, limit)
        if line.quoted:
            raise InputError(
                f"{name} line {line.number}: {reason}, and a quote is open at its begin or end, so"
                " that it cannot be left out"
            )
        long.append(BadLine(line.number, reason))
        yield Line(line.number, "")


class Fields(NamedTuple):
    """The fields of a record of CSV, which may go over several lines."""

    first: int
    last: int
    values: list[str]


def read_fields(lines: Iterator[Line], name: str, limit: int = MAX_TEXT_BYTES) -> Iterator[Fields]:
    """The records in lines of CSV; empty lines between them are passed over.

    Args:
        lines: Lines without their ends.
        name: What messages call the file.
        limit: Largest field, in characters.

    Raises:
        InputError: A quote that is not closed within that many characters, text after one that is,
            or quotes after backslashes.
    """
    parser = _Parser(lines, limit)
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

    def __init__(self, lines: Iterator[Line], limit: int) -> None:
        self._lines = lines
        self._limit = limit
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
        fields: list[str] = []
        backslash = False
        while True:
            quoted = self.line.text.startswith('"', self._position)
            fields.append(self._quoted() if quoted else self._bare())
            if backslash and not quoted and '"' in fields[-1]:
                # as Spark writes quotes; the fields before are not what was meant
                raise _LostRecordError(self.line.number, "a quote after a backslash")
            backslash |= quoted and fields[-1].endswith("\\")
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
        size = 0
        self._position += 1
        while True:
            text, start = self.line.text, self._position
            end = text.find('"', start)
            if end < 0:
                pieces.append(text[start:] + "\n")
                size += len(pieces[-1])
                if size > self._limit:
                    reason = f"the quote opened here is not closed within {self._limit:,} bytes"
                    raise _LostRecordError(opened, reason)
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
