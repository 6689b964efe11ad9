"""Corpora in tables: JSON Lines, CSV and Parquet, with a column ``text``."""

from collections.abc import Iterator

from sbertkit.data.bad_rows import BadRow
from sbertkit.data.formats.base import DOCUMENT, CorpusFormat
from sbertkit.data.lines import TextOptions
from sbertkit.data.metadata import BadRecordError
from sbertkit.data.streams import open_seekable, source_name
from sbertkit.data.tables import TABLES, Row
from sbertkit.data.tables.arrow import arrow_errors, parquet_rows
from sbertkit.data.tables.batches import open_parquet
from sbertkit.data.vector_parquet import document_of, has_vectors


def _table(name: str) -> CorpusFormat:
    table = TABLES[name]

    def read(path: str, text: TextOptions) -> Iterator[Row | BadRow]:
        return table.read(path, DOCUMENT, text)

    return CorpusFormat(name, read, table.suffixes, table.unit)


def _read_parquet(path: str, text: TextOptions) -> Iterator[Row | BadRow]:
    """The rows; a file with vectors that sbertkit wrote gives its documents back without them."""
    name = source_name(path)
    with open_seekable(path) as stream, arrow_errors(name):
        file = open_parquet(stream)
        without = ("vector",) if has_vectors(file) else ()
        for row in parquet_rows(file, DOCUMENT, name, text.max_bytes, without=without):
            try:
                found = document_of(row) if without and isinstance(row, Row) else row
            except BadRecordError as error:
                found = BadRow(row.number, error.reason)
            yield found


JSONL = _table("jsonl")
CSV = _table("csv")
PARQUET = CorpusFormat("parquet", _read_parquet, (".parquet",), "row")
