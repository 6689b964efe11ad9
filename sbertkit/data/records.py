"""What the readers of the formats give out, and how it becomes documents."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from sbertkit.data.documents import Document, ReadOptions, ReadReport
from sbertkit.data.metadata import BadRecordError, Cleaner, id_text
from sbertkit.data.text import is_blank


class Record(NamedTuple):
    """A record as it was read: nothing is known yet about the types of its values."""

    line: int
    id: object
    text: object
    metadata: Mapping[Any, object]


class BadLine(NamedTuple):
    """A line, or the lines up to `last`, that cannot be read as a record."""

    line: int
    reason: str
    last: int | None = None

    @property
    def place(self) -> str:
        """The number of the line, or the first and the last: ``2-4``."""
        return f"{self.line}-{self.last}" if (self.last or 0) > self.line else f"{self.line}"


Reader = Callable[[str, ReadOptions, ReadReport], Iterator[Record | BadLine]]
"""Reads the file or folder of that path; notes replaced bytes in the report."""


def record_from(
    fields: Mapping[Any, object], line: int, *, default_id: str | None = None
) -> Record:
    """The record in a mapping: ``text``, ``id`` or else ``_id``, and all others as metadata.

    Args:
        fields: Names to values.
        line: Where it was read.
        default_id: The id when there is neither ``id`` nor ``_id``; ``None`` wants one.

    Raises:
        BadRecordError: No text, or no id where one is wanted.
    """
    metadata = dict(fields)
    if "text" not in metadata:
        raise BadRecordError("no field 'text'")
    text = metadata.pop("text")
    name = "id" if "id" in metadata else "_id"
    if name in metadata:
        return Record(line, metadata.pop(name), text, metadata)
    if default_id is None:
        raise BadRecordError("no field 'id'")
    return Record(line, default_id, text, metadata)


def admit(record: Record, report: ReadReport, *, keep_blank: bool = False) -> Document | None:
    """The document of a record, or None for one with blank text; noted in the report.

    Args:
        record: What was read.
        report: Where it is noted.
        keep_blank: Give blank documents too.

    Raises:
        BadRecordError: An id, text or field that is not accepted.
    """
    cleaner = Cleaner()
    identifier = cleaner.text(id_text(record.id))
    if not isinstance(record.text, str):
        found = type(record.text).__name__
        raise BadRecordError(f"text must be a str, found {found}", wrong_type=True)
    text = cleaner.text(str(record.text))
    if is_blank(text) and not keep_blank:
        report.blank_rows.append(report.documents + report.blank.count)
        report.blank.add(identifier)
        return None
    document = Document(identifier, text, cleaner.metadata(record.metadata))
    if cleaner.repaired:
        report.repaired.add(identifier)
    report.documents += 1
    return document
