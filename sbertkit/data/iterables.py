"""Corpora from memory: documents, mappings and pairs that Python code hands over."""

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sbertkit.data.bad_rows import BadRow
from sbertkit.data.document import Document, SourcedDocument
from sbertkit.data.document_columns import DocumentColumns
from sbertkit.data.documents import ReadReport, admit
from sbertkit.data.metadata import BadRecordError
from sbertkit.data.tables import ObjectReader, Row
from sbertkit.errors import InputError, InputTypeError

_EXPECTED = "expected a text, a Document, a mapping with 'text' and 'id', or a tuple (id, text)"


def documents_from(
    records: Iterable[str | Document | Mapping[str, Any] | tuple[str, str]],
    report: ReadReport | None = None,
) -> Iterator[SourcedDocument]:
    """The documents of an iterable, one at a time, each with its row from 0.

    Blank texts and unpaired surrogates are treated as in `read_corpus`; there is no option to
    skip bad records.

    Args:
        records: Texts; documents; mappings and named tuples, whose keys are taken as the columns
            of a table are; or pairs (id, text). A text or mapping without id gets its row as id.
        report: Filled while documents are drawn.

    Raises:
        InputError: A record without text, or with values that are not accepted.
        InputTypeError: Not an iterable of records, or a value of the wrong type.
    """
    found = type(records).__name__
    if hasattr(records, "columns"):  # its rows would be the names of its columns
        raise InputTypeError(
            f"expected an iterable of documents, found one {found}; pass its rows as mappings, such"
            " as frame.to_dict('records') of pandas"
        )
    if isinstance(records, str | bytes | os.PathLike | Mapping) or not isinstance(
        records, Iterable
    ):
        raise InputTypeError(
            f"expected an iterable of documents, found one {found}; put a single record into a"
            " list, read a file by its path with read_corpus"
        )
    return _documents(records, ReadReport() if report is None else report)


def _documents(records: Iterable[object], report: ReadReport) -> Iterator[SourcedDocument]:
    columns = DocumentColumns()
    reader = ObjectReader(columns)
    for number, value in enumerate(records):
        try:
            row = _row(value, number, reader, columns)
            if isinstance(row, BadRow):
                raise BadRecordError(row.reason, wrong_type=True)
            document = admit(row, report)
        except BadRecordError as error:
            kind = InputTypeError if error.wrong_type else InputError
            raise kind(
                f"row {number} ({type(value).__name__}): {error.reason}; {_EXPECTED}"
            ) from error
        if document is not None:
            yield SourcedDocument(document, number)


def _row(
    value: object, number: int, reader: ObjectReader, columns: DocumentColumns
) -> Row | BadRow:
    if isinstance(value, str):
        return Row(number, {"text": value})
    if isinstance(value, Document):
        metadata: object = value.metadata
        if not isinstance(metadata, Mapping):
            found = type(metadata).__name__
            raise BadRecordError(f"metadata must be a mapping, found {found}", wrong_type=True)
        return Row(number, {"id": value.id, "text": value.text}, metadata)
    if hasattr(value, "_asdict"):  # a named tuple, such as a row of a pandas table
        value = value._asdict()
    if isinstance(value, Mapping):
        return columns.document(reader.row(number, value))
    if isinstance(value, tuple):
        if len(value) != 2:
            raise BadRecordError(f"a tuple of {len(value)}")
        return Row(number, {"id": value[0], "text": value[1]})
    raise BadRecordError("not a record", wrong_type=True)
