"""Rows of Parquet and Arrow files, whose schema may name the classes behind numbers."""

import json
import logging
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from sbertkit.data.formats.batches import checked_rows, open_parquet, parquet_batches
from sbertkit.data.formats.parquet import arrow_errors
from sbertkit.data.nli.rows import Places, Row, find_columns
from sbertkit.data.records import BadLine
from sbertkit.data.streams import open_seekable, source_name
from sbertkit.data.text import printable
from sbertkit.errors import InputError

logger = logging.getLogger(__name__)

_FILE_MAGIC = b"ARROW1"
_STREAM_END = b"\xff\xff\xff\xff\0\0\0\0"


def read_parquet_rows(path: str, named: bool) -> Iterator[Row | BadLine]:
    """The rows of a Parquet file.

    Args:
        path: The file.
        named: Give names for numbers where the schema has them.

    Raises:
        InputError: Not Parquet, damaged, or without a needed column.
        MissingDependency: pyarrow is not installed.
    """
    name = source_name(path)
    with open_seekable(path) as stream, arrow_errors(name):
        file = open_parquet(stream)
        table = _table(file.schema_arrow, name, named)
        yield from table.rows(parquet_batches(file, table.columns))


def read_arrow_rows(path: str, named: bool) -> Iterator[Row | BadLine]:
    """The rows of an Arrow file, as ``save_to_disk`` of Hugging Face's datasets writes them.

    Arguments and errors are those of `read_parquet_rows`.
    """
    name = source_name(path)
    with open_seekable(path) as stream, arrow_errors(name, "Arrow"):
        schema, batches = _open_arrow(stream)
        yield from _table(schema, name, named).rows(batches)


def _open_arrow(stream: BinaryIO) -> tuple[Any, Iterable[Any]]:
    """The schema and the batches of an IPC file or stream."""
    import pyarrow as pa

    magic = stream.read(len(_FILE_MAGIC))
    if magic != _FILE_MAGIC:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(max(0, size - len(_STREAM_END)))
        if stream.read() != _STREAM_END:
            # a stream that is cut between two batches would be read as a whole one
            raise pa.ArrowInvalid("the mark at its end is missing")
        stream.seek(0)
        reader = pa.ipc.open_stream(stream)
        return reader.schema, map(_checked, reader)
    stream.seek(0)
    reader = pa.ipc.open_file(stream)
    return reader.schema, (_checked(reader.get_batch(i)) for i in range(reader.num_record_batches))


def _checked(batch: Any) -> Any:
    # Arrow believes the offsets of texts in a file, and wrong ones end the process.
    batch.validate(full=True)
    return batch


@dataclass(frozen=True, slots=True)
class _Table:
    """Which columns are read, in which order, and what the numbers of labels mean."""

    name: str
    columns: tuple[str, ...]
    places: Places
    classes: tuple[str, ...] | None

    def rows(self, batches: Iterable[Any]) -> Iterator[Row | BadLine]:
        needed = (batch.select(self.columns) for batch in batches)
        for first, batch in checked_rows(needed, self.name):
            columns = [self._values(batch, name, first - 1) for name in self.columns]
            for number, cells in enumerate(zip(*columns, strict=True), first):
                yield self._row(self.places.row(number, cells))

    def _values(self, batch: Any, column: str, before: int) -> list[Any]:
        values = batch.column(batch.schema.get_field_index(column))
        try:
            cells: list[Any] = values.to_pylist()
        except (ValueError, OverflowError) as error:  # bytes that are not UTF-8, year 10000
            number = before + _first_unreadable(values)
            raise InputError(
                f"{self.name} row {number}: '{printable(column)}' cannot be read"
                f" ({printable(str(error))}); mend the file"
            ) from error
        return cells

    def _row(self, row: Row) -> Row | BadLine:
        label = row.label
        if self.classes is None or not isinstance(label, int) or label == -1:
            return row
        if not 0 <= label < len(self.classes):
            classes = printable(", ".join(self.classes), 100)
            return BadLine(row.number, f"label {label} is not one of the file's classes {classes}")
        return row._replace(label=self.classes[label])


def _first_unreadable(values: Any) -> int:
    for number, value in enumerate(values, 1):
        try:
            value.as_py()
        except (ValueError, OverflowError):
            return number
    return len(values)


def _table(schema: Any, name: str, named: bool) -> _Table:
    names: list[str] = schema.names
    places = find_columns(names, name)
    columns = tuple(names[place] for place in places.columns)
    read = Places(0, 1, 2, None if places.split is None else 3)
    classes = _classes(schema, columns[0])
    if classes is not None and not named:
        logger.warning(
            "%s: the numbers have the names that were given, not the file's own (%s)",
            name,
            printable(", ".join(classes), 100),
        )
    return _Table(name, columns, read, classes if named else None)


def _classes(schema: Any, column: str) -> tuple[str, ...] | None:
    """The names of a ClassLabel column by number, from what the schema says to Hugging Face."""
    try:
        content = json.loads((schema.metadata or {})[b"huggingface"])
        feature = content["info"]["features"][column]
        names = feature["names"] if feature["_type"] == "ClassLabel" else None
    except (KeyError, TypeError, ValueError, RecursionError):  # not there, or not understood
        return None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return None
    return tuple(names)
