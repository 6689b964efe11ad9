"""Documents, how corpora of them are read, and what reading one found."""

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

from sbertkit.arguments import whole_number
from sbertkit.data.formats import FORMATS
from sbertkit.data.limits import LARGEST_TEXT_BYTES, MAX_TEXT_BYTES
from sbertkit.data.metadata import BadRecordError, Cleaner, id_text
from sbertkit.data.tables import Row
from sbertkit.data.text import check_errors, codec_name, is_blank, printable
from sbertkit.errors import InputError, InputTypeError

_EMPTY: Mapping[str, Any] = MappingProxyType({})
_EXAMPLES = 20


class Document(NamedTuple):
    """A document: its id, its text and further fields that JSON can hold."""

    id: str
    text: str
    metadata: Mapping[str, Any] = _EMPTY


class SourcedDocument(NamedTuple):
    """A document with the place it was read from, for messages about it."""

    document: Document
    line: int
    """Line of a text file, row of a Parquet file, file of a folder (each from 1); row of an
    iterable (from 0)."""


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How a corpus is read.

    Attributes:
        format: A name in `sbertkit.data.formats.FORMATS`, such as ``jsonl``; ``None`` decides by
            the name.
        encoding: Name of the text encoding; a byte order mark is dropped.
        errors: ``strict`` refuses undecodable bytes, ``replace`` puts U+FFFD and counts them.
        skip_bad_lines: List lines that cannot be read instead of refusing the file.
        max_text_bytes: Largest line, row or text file; a larger one is a bad line.

    Raises:
        InputError: A value that is not one of these.
        InputTypeError: A value of the wrong type.
    """

    format: str | None = None
    encoding: str = "utf-8"
    errors: str = "strict"
    skip_bad_lines: bool = False
    max_text_bytes: int = MAX_TEXT_BYTES

    def __post_init__(self) -> None:
        if self.format is not None and self.format not in FORMATS:
            raise InputError(f"format must be one of {', '.join(FORMATS)}, not {self.format!r}")
        check_errors(self.errors)
        skip: object = self.skip_bad_lines
        if not isinstance(skip, bool):
            found = type(skip).__name__
            raise InputTypeError(f"skip_bad_lines must be True or False, found {found}")
        codec_name(self.encoding)
        limit = whole_number("max_text_bytes", self.max_text_bytes)
        if limit > LARGEST_TEXT_BYTES:
            raise InputError(f"max_text_bytes must be at most {LARGEST_TEXT_BYTES:,}, not {limit}")
        object.__setattr__(self, "max_text_bytes", limit)


@dataclass(slots=True)
class IssueCount:
    """How often something was met, with the first cases by name; its size is bounded.

    Attributes:
        count: How often.
        examples: The first 20 of them, each an id or a line number.
    """

    count: int = 0
    examples: list[str] = field(default_factory=list)

    def add(self, example: str) -> None:
        """Count one more."""
        self.count += 1
        if len(self.examples) < _EXAMPLES:
            self.examples.append(example)

    def describe(self, singular: str, plural: str | None = None) -> str:
        """One line with count and examples: ``3 bad lines skipped (3, 4, 6)``.

        Args:
            singular: What one of them is called, after the number.
            plural: What several are called; by default the same.
        """
        label = singular if plural is None or self.count == 1 else plural
        shown = ", ".join(printable(example, 40) for example in self.examples)
        more = self.count - len(self.examples)
        if more:
            shown += f", and {more:,} more"
        return f"{self.count:,} {label} ({shown})" if shown else f"{self.count:,} {label}"


@dataclass(slots=True)
class ReadReport:
    """What reading a corpus met; filled while the documents are drawn.

    Attributes:
        documents: Documents given out.
        blank: Ids of documents with blank text, which are left out.
        bad_lines: Numbers of the lines left out by ``skip_bad_lines``.
        first_bad: Place and reason of the first of them.
        repaired: Ids of documents whose unpaired surrogates became U+FFFD.
        blank_rows: Places of those documents among all that were read, from 0; 8 bytes each.
        replaced: Lines with bytes that were replaced by U+FFFD under ``errors="replace"``.
    """

    documents: int = 0
    blank: IssueCount = field(default_factory=IssueCount)
    blank_rows: "array[int]" = field(default_factory=lambda: array("q"))
    bad_lines: IssueCount = field(default_factory=IssueCount)
    first_bad: str | None = None
    repaired: IssueCount = field(default_factory=IssueCount)
    replaced: int = 0

    def warnings(self) -> tuple[str, ...]:
        """One line for each kind of trouble that was met, for the user; empty when all is well."""
        lines = []
        if self.blank.count:
            lines.append(f"{self.blank.describe('blank')}: left out")
        if self.bad_lines.count:
            skipped = self.bad_lines.describe("bad line skipped", "bad lines skipped")
            lines.append(f"{skipped}; the first: {self.first_bad}" if self.first_bad else skipped)
        if self.repaired.count:
            label = "with unpaired surrogates, which became U+FFFD"
            lines.append(self.repaired.describe(f"document {label}", f"documents {label}"))
        if self.replaced:
            noun = "line" if self.replaced == 1 else "lines"
            lines.append(f"{self.replaced:,} {noun} with undecodable bytes, which became U+FFFD")
        return tuple(lines)


def admit(row: Row, report: ReadReport, *, keep_blank: bool = False) -> Document | None:
    """The document in a row, or None for one with blank text; noted in the report.

    Args:
        row: Fields ``id``, by default the row's number, and ``text``.
        report: Where it is noted.
        keep_blank: Give blank documents too.

    Raises:
        BadRecordError: An id, text or further field that is not accepted.
    """
    cleaner = Cleaner()
    identifier = cleaner.text(id_text(row.values.get("id", str(row.number))))
    text = row.values["text"]
    if not isinstance(text, str):
        found = type(text).__name__
        raise BadRecordError(f"text must be a str, found {found}", wrong_type=True)
    text = cleaner.text(str(text))
    if is_blank(text) and not keep_blank:
        report.blank_rows.append(report.documents + report.blank.count)
        report.blank.add(identifier)
        return None
    document = Document(identifier, text, cleaner.metadata(row.others))
    if cleaner.repaired:
        report.repaired.add(identifier)
    report.documents += 1
    return document
