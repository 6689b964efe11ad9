"""How corpora are read, and what reading one found."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sbertkit.arguments import refuses_unknown, whole_number
from sbertkit.data.document import Document
from sbertkit.data.document_columns import ColumnChoice
from sbertkit.data.formats import FORMATS
from sbertkit.data.limits import LARGEST_TEXT_BYTES, MAX_TEXT_BYTES
from sbertkit.data.metadata import BadRecordError, Cleaner, id_text
from sbertkit.data.tables import Row
from sbertkit.data.text import check_errors, codec_name, is_blank, printable
from sbertkit.errors import InputError, InputTypeError

_EXAMPLES = 20


@refuses_unknown
@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How a corpus is read.

    Attributes:
        format: A name in `sbertkit.data.formats.FORMATS`, such as ``jsonl``; ``None`` decides by
            the name. ``file`` takes a text file as one document.
        encoding: Name of the text encoding; a byte order mark is dropped.
        errors: ``strict`` refuses undecodable bytes, ``replace`` puts U+FFFD and counts them.
        skip_bad_lines: List lines that cannot be read instead of refusing the file.
        max_text_bytes: Largest line, row or text file; a larger one is a bad line.
        text_columns: Names of the columns of a table that are the text, joined by spaces in this
            order; without any, ``title`` and one of ``text``, ``body``, ``content``, ``document``,
            ``passage``, ``question`` and ``abstract`` are taken, as far as they are there. Dots
            lead into nested fields: ``author.name``.
        id_column: Name of the column with the ids; ``None`` takes ``id``, ``_id``, ``docid`` or
            ``doc_id``, and without such a column the numbers of the lines.
        metadata_columns: Names of the columns that are kept as metadata; ``None`` keeps all but
            the id and the text; the first of several text columns is kept.
        delimiter: Between the cells of CSV, one character; ``None`` finds it by the header.

    Raises:
        InputError: A value that is not one of these.
        InputTypeError: A value of the wrong type.
    """

    format: str | None = None
    encoding: str = "utf-8"
    errors: str = "strict"
    skip_bad_lines: bool = False
    max_text_bytes: int = MAX_TEXT_BYTES
    text_columns: Sequence[str] = ()
    id_column: str | None = None
    metadata_columns: Sequence[str] | None = None
    delimiter: str | None = None

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
        for name in ("text_columns", "metadata_columns"):
            object.__setattr__(self, name, _names(name, getattr(self, name)))
        identifier: object = self.id_column
        if identifier is not None and not isinstance(identifier, str):
            raise InputTypeError(f"id_column must be a str, found {type(identifier).__name__}")
        if self.delimiter is not None:
            object.__setattr__(self, "delimiter", _delimiter(self.delimiter))

    @property
    def columns(self) -> ColumnChoice:
        """The columns that were chosen."""
        metadata = None if self.metadata_columns is None else tuple(self.metadata_columns)
        return ColumnChoice(tuple(self.text_columns), self.id_column, metadata)

    def with_columns(self, columns: ColumnChoice) -> "ReadOptions":
        """The same with other columns."""
        return replace(
            self,
            text_columns=columns.text,
            id_column=columns.id,
            metadata_columns=columns.metadata,
        )


def _names(argument: str, value: object) -> tuple[str, ...] | None:
    """Names of columns, of which none is empty or given twice; a str is one name."""
    if value is None and argument == "metadata_columns":
        return None
    names: Any = (value,) if isinstance(value, str) else value
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise InputTypeError(f"{argument} must be a list of names, found {value!r:.50}")
    if not all(names) or len(set(names)) < len(names):
        raise InputError(f"{argument} must be distinct names, found {value!r:.200}")
    return tuple(names)


def _delimiter(value: object) -> str:
    if not isinstance(value, str):
        raise InputTypeError(f"delimiter must be a str, found {type(value).__name__}")
    character = {"tab": "\t", "\\t": "\t"}.get(value, value)
    if len(character) != 1 or character in '"\r\n':
        raise InputError(f"delimiter must be one character such as ; or tab, found {value!r:.20}")
    return character


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
        numbered: Documents without an id, whose number became it.
        columns: What was taken for text, id and metadata of a table, in a line.
    """

    documents: int = 0
    blank: IssueCount = field(default_factory=IssueCount)
    blank_rows: "array[int]" = field(default_factory=lambda: array("q"))
    bad_lines: IssueCount = field(default_factory=IssueCount)
    first_bad: str | None = None
    repaired: IssueCount = field(default_factory=IssueCount)
    replaced: IssueCount = field(default_factory=IssueCount)
    numbered: int = 0
    columns: str | None = None

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
        if self.replaced.count:
            label = "with undecodable bytes, which became U+FFFD"
            lines.append(self.replaced.describe(f"line {label}", f"lines {label}"))
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
    numbered = "id" not in row.values
    identifier = cleaner.text(id_text(str(row.number) if numbered else row.values["id"]))
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
    report.numbered += numbered
    return document
