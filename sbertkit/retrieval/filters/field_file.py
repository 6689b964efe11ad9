"""The file of a segment that filters read: for each value of each field the rows that have it.

A column is a field with a type. Its values are stored once each, in order, and its rows in the
order of their values, so that any range of values is one range of rows.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sbertkit.retrieval.filters.field_names import ID, inner_name
from sbertkit.retrieval.filters.keys import LIST, OBJECT, SCALARS, in_list, key_of

FIELDS_FILE = "fields.db"

TABLES = (
    "CREATE TABLE columns (number INTEGER PRIMARY KEY, field TEXT NOT NULL, type TEXT NOT NULL, "
    "entries INTEGER NOT NULL, UNIQUE (field, type))",
    "CREATE TABLE keys (number INTEGER, key BLOB, start INTEGER NOT NULL, stop INTEGER NOT NULL, "
    "PRIMARY KEY (number, key)) WITHOUT ROWID",
    "CREATE TABLE rows (number INTEGER, start INTEGER, data BLOB NOT NULL, UNIQUE (number, start))",
)
"""Columns; their values, with their places among the rows; and the rows, in chunks."""

ROWS_PER_CHUNK = 16_384
ROW_TYPE = np.dtype("<i4")

RowMetadata = Iterable[tuple[int, Mapping[str, Any]]]
"""Row and metadata of documents, in order; those without any may be left out."""

_PENDING = """
CREATE TABLE pending (
    field TEXT, type TEXT, key BLOB, number INTEGER, data BLOB NOT NULL,
    PRIMARY KEY (field, type, key, number)
) WITHOUT ROWID;
"""
# An unfinished file is deleted, so that it needs no journal.
_WRITING = """
PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE;
PRAGMA cache_size = -16384;
"""
_PENDING_BYTES = 16 * 2**20
_BYTES_PER_KEY = 300
_BYTES_PER_ROW = 8
"""About what a key and a row that wait in memory occupy."""


class Entry(NamedTuple):
    """A value of a field: the field's name, the type, and the value's key."""

    field: str
    type: str
    key: bytes


def write_fields(folder: Path, documents: RowMetadata) -> None:
    """Writes the file of a segment, with memory for a few documents; none without any metadata."""
    remaining = iter(documents)
    first = next(remaining, None)
    if first is None:
        return
    pending = folder / f"{FIELDS_FILE}.pending"
    try:
        with (
            closing(_connect(folder / FIELDS_FILE)) as target,
            closing(_connect(pending)) as waiting,
        ):
            _write(target, waiting, chain([first], remaining))
    finally:
        pending.unlink(missing_ok=True)


def fields_in_memory(documents: RowMetadata) -> sqlite3.Connection:
    """The same tables in memory, for a segment that has no such file."""
    target = _connect(":memory:")
    with closing(_connect(":memory:")) as waiting:
        _write(target, waiting, documents)
    return target


def entries_of(metadata: Mapping[str, Any]) -> Iterator[Entry]:
    """All values in the metadata of a document, also within lists and objects, each once."""
    stack = [(inner_name("", key), value) for key, value in metadata.items()]
    while stack:
        name, value = stack.pop()
        type_, key = key_of(value)
        if type_ == OBJECT:
            stack += [(inner_name(name, inner), one) for inner, one in value.items()]
        if name == ID:  # which is the document's
            continue
        yield Entry(name, type_, key)
        if type_ == LIST:
            elements = {key_of(one) for one in value}
            yield from (Entry(name, in_list(of), one) for of, one in elements if of in SCALARS)


def _connect(path: Path | str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.executescript(_WRITING)
    return connection


def _write(target: sqlite3.Connection, waiting: sqlite3.Connection, documents: RowMetadata) -> None:
    """Writes the tables.

    Args:
        target: Where they are written.
        waiting: Where the values wait that do not fit into memory, to be sorted.
        documents: The documents.
    """
    pending = _Pending(waiting)
    for row, metadata in documents:
        pending.add(row, entries_of(metadata))
    target.executescript(";".join(TABLES))
    target.execute("BEGIN")
    for number, ((field, type_), values) in enumerate(
        groupby(pending.in_order(), itemgetter(0, 1))
    ):
        entries = _write_column(target, number, values)
        target.execute("INSERT INTO columns VALUES (?, ?, ?, ?)", (number, field, type_, entries))
    target.execute("COMMIT")


def _write_column(
    target: sqlite3.Connection, number: int, values: Iterable[tuple[str, str, bytes, bytes]]
) -> int:
    """Writes values and rows of a column; gives the number of its rows."""
    stop = written = 0
    rows = bytearray()
    for key, parts in groupby(values, itemgetter(2)):
        start = stop
        for *_, data in parts:
            rows += data
            stop += len(data) // ROW_TYPE.itemsize
        target.execute("INSERT INTO keys VALUES (?, ?, ?, ?)", (number, key, start, stop))
        while stop - written >= ROWS_PER_CHUNK:
            _write_chunk(target, number, written, rows)
            written += ROWS_PER_CHUNK
    if rows:
        _write_chunk(target, number, written, rows)
    return stop


def _write_chunk(target: sqlite3.Connection, number: int, start: int, rows: bytearray) -> None:
    """Writes the first rows, and removes them."""
    chunk = bytes(rows[: ROWS_PER_CHUNK * ROW_TYPE.itemsize])
    target.execute("INSERT INTO rows VALUES (?, ?, ?)", (number, start, chunk))
    del rows[: len(chunk)]


class _Pending:
    """Entries that are sorted on the disk, since they need not fit into memory."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        connection.executescript(_PENDING)
        self._connection = connection
        self._rows: dict[Entry, list[int]] = {}
        self._bytes = self._flushed = 0

    def add(self, row: int, entries: Iterable[Entry]) -> None:
        """Adds the entries of a row, which is after all before."""
        for entry in entries:
            rows = self._rows.get(entry)
            if rows is None:
                rows = self._rows[entry] = []
                self._bytes += _BYTES_PER_KEY + len(entry.key)
            rows.append(row)
            self._bytes += _BYTES_PER_ROW
        if self._bytes > _PENDING_BYTES:
            self._flush()

    def in_order(self) -> sqlite3.Cursor:
        """Field, type, key and rows of all entries; several of one key have ascending rows."""
        self._flush()
        return self._connection.execute(
            "SELECT field, type, key, data FROM pending ORDER BY field, type, key, number"
        )

    def _flush(self) -> None:
        self._connection.execute("BEGIN")
        self._connection.executemany(
            "INSERT INTO pending VALUES (?, ?, ?, ?, ?)",
            (
                (*entry, self._flushed, np.array(rows, ROW_TYPE).tobytes())
                for entry, rows in sorted(self._rows.items())
            ),
        )
        self._connection.execute("COMMIT")
        self._flushed += 1
        self._rows.clear()
        self._bytes = 0
