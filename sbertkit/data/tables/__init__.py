"""Tables: rows with named columns from JSON Lines, text, Parquet and Arrow files."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from sbertkit.data.bad_rows import BadRow
from sbertkit.data.lines import TextOptions
from sbertkit.data.streams import source_name
from sbertkit.data.tables.arrow import read_arrow, read_parquet
from sbertkit.data.tables.columns import Columns, Fields, Layout, ObjectReader, Row
from sbertkit.data.tables.csv import read_csv, read_tsv
from sbertkit.data.tables.jsonl import parse_object, read_jsonl
from sbertkit.errors import InputError

__all__ = [
    "TABLES",
    "Columns",
    "Fields",
    "Layout",
    "ObjectReader",
    "Row",
    "Table",
    "has_suffix",
    "parse_object",
    "table_of",
]

TableReader = Callable[[str, Fields, TextOptions], Iterator[Row | BadRow]]


@dataclass(frozen=True, slots=True)
class Table:
    """A format of tables.

    Attributes:
        read: Reads the rows of the file of that path, with those columns.
        suffixes: Of names of files, in lower case and without ``.gz``.
        unit: What messages count in it.
    """

    read: TableReader
    suffixes: tuple[str, ...]
    unit: str = "line"


TABLES = {
    "jsonl": Table(read_jsonl, (".jsonl", ".ndjson", ".json")),
    "tsv": Table(read_tsv, (".tsv", ".txt")),
    "csv": Table(read_csv, (".csv",)),
    "parquet": Table(read_parquet, (".parquet",), "row"),
    "arrow": Table(read_arrow, (".arrow",), "row"),
}
"""The formats by name."""


def table_of(path: str) -> Table:
    """The format of a file, by the suffix of its name before ``.gz``.

    Raises:
        InputError: It has none of the known suffixes.
    """
    for table in TABLES.values():
        if has_suffix(path, table.suffixes):
            return table
    known = ", ".join(suffix for table in TABLES.values() for suffix in table.suffixes)
    raise InputError(
        f"{source_name(path)}: unknown format; expected a name that ends in {known} (and .gz);"
        " rename the file"
    )


def has_suffix(path: str, suffixes: tuple[str, ...]) -> bool:
    """Whether a name, in any case and without ``.gz``, has one of some suffixes."""
    return Path(path.lower().removesuffix(".gz")).suffix in suffixes
