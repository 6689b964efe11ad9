"""Corpora in tables: JSON Lines, CSV and Parquet."""

from collections.abc import Iterator

from sbertkit.data.bad_rows import BadRow
from sbertkit.data.document_columns import ColumnChoice, DocumentColumns
from sbertkit.data.formats.base import CorpusFormat
from sbertkit.data.lines import TextOptions
from sbertkit.data.metadata import BadRecordError
from sbertkit.data.streams import open_seekable, source_name
from sbertkit.data.tables import TABLES, Row
from sbertkit.data.tables.arrow import arrow_errors, parquet_rows
from sbertkit.data.tables.batches import open_parquet
from sbertkit.data.vector_parquet import document_of, has_vectors, refuse_passage_rows

_VECTORS = ("vector", "start", "end")
_WRITTEN = ColumnChoice(("text",), "id")
"""The columns of files that sbertkit writes."""


def _table(name: str) -> CorpusFormat:
    table = TABLES[name]

    def read(path: str, text: TextOptions, columns: DocumentColumns) -> Iterator[Row | BadRow]:
        return map(columns.document, table.read(path, columns, text))

    return CorpusFormat(name, read, table.suffixes, table.unit, has_columns=True)


def _read_parquet(path: str, text: TextOptions, columns: DocumentColumns) -> Iterator[Row | BadRow]:
    """The rows; a file with vectors that sbertkit wrote gives its documents back without them."""
    name = source_name(path)
    with open_seekable(path) as stream, arrow_errors(name):
        file = open_parquet(stream)
        if not has_vectors(file):
            rows = parquet_rows(file, columns, name, text.max_bytes)
            yield from map(columns.document, rows)
            return
        refuse_passage_rows(file, name)
        if not columns.chosen:
            columns = DocumentColumns(_WRITTEN)  # whatever else somebody has added
        for row in parquet_rows(file, columns, name, text.max_bytes, without=_VECTORS):
            try:
                found = document_of(row) if isinstance(row, Row) else row
            except BadRecordError as error:
                found = BadRow(row.number, error.reason)
            yield columns.document(found)


JSONL = _table("jsonl")
CSV = _table("csv")
ARROW = _table("arrow")
PARQUET = CorpusFormat("parquet", _read_parquet, (".parquet",), "row", has_columns=True)
