"""The file of a segment that filters read: for each value of each field the rows that have it.

A column is a field with a type. Its values are stored once each, in order and in blocks, and its
rows in the order of their values, so that any range of values is one range of rows.
"""

import sqlite3
import struct
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from heapq import merge
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sbertkit.retrieval.filters.field_names import ID, inner_name
from sbertkit.retrieval.filters.keys import LIST, OBJECT, SCALARS, Key, in_list, key_of

FIELDS_FILE = "fields.db"

TABLES = (
    "CREATE TABLE blocks (number INTEGER, first BLOB, keys BLOB NOT NULL, ends BLOB NOT NULL, "
    "places BLOB NOT NULL, UNIQUE (number, first))",
    "CREATE TABLE columns (number INTEGER PRIMARY KEY, field TEXT NOT NULL, type TEXT NOT NULL, "
    "entries INTEGER NOT NULL, UNIQUE (field, type))",
    "CREATE TABLE rows (number INTEGER, start INTEGER, data BLOB NOT NULL, UNIQUE (number, start))",
)
"""Blocks of the values of a column, with their places among its rows; columns; rows in chunks.

The keys of a block have a byte 255 between them; `ends` are the bytes before which they end, and
`places` the places where their rows begin, and where those of the last end.
"""

SEPARATOR = b"\xff"
END_TYPE = np.dtype("<i4")
PLACE_TYPE = np.dtype("<i8")
ROW_TYPE = np.dtype("<i4")
ROWS_PER_CHUNK = 16_384

RowMetadata = Iterable[tuple[int, Mapping[str, Any]]]
"""Row and metadata of documents, in order; those without any may be left out."""

_KEYS_PER_BLOCK = 1_024
_BYTES_PER_BLOCK = 32_768
_PENDING = "CREATE TABLE pending (field TEXT, type TEXT, key BLOB, data BLOB)"
# An unfinished file is deleted, so that it needs no journal.
_WRITING = "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE;"
_PENDING_BYTES = 32 * 2**20
_BYTES_PER_KEY = 300
_BYTES_PER_ROW = 8
"""About what a key and a row that wait in memory occupy."""


class _Value(NamedTuple):
    """A value of a field: the field's name, the type, the value's key, and rows that have it."""

    field: str
    type: str
    key: bytes
    data: bytes


def write_fields(folder: Path, documents: RowMetadata) -> None:
    """Writes the file of a segment, with memory for a few documents; none without any metadata."""
    remaining = iter(documents)
    first = next(remaining, None)
    if first is None:
        return
    pending = folder / f"{FIELDS_FILE}.pending"
    try:
        with closing(_connect(folder / FIELDS_FILE)) as target:
            _write(target, pending, chain([first], remaining))
    finally:
        pending.unlink(missing_ok=True)


def fields_in_memory(documents: RowMetadata) -> sqlite3.Connection:
    """The same tables in memory, for a segment that has no such file."""
    target = _connect(":memory:")
    _write(target, ":memory:", documents)
    return target


def entries_of(metadata: Mapping[str, Any]) -> Iterator[tuple[str, Key]]:
    """Field and key of all values in the metadata of a document, each once.

    Those of inner objects and elements of lists are among them.
    """
    stack = [(inner_name("", key), value) for key, value in metadata.items()]
    while stack:
        name, value = stack.pop()
        key = key_of(value)
        if key[0] == OBJECT:
            stack += [(inner_name(name, inner), one) for inner, one in value.items()]
        if name == ID:  # which is the document's
            continue
        yield name, key
        if key[0] == LIST:
            elements = {key_of(one) for one in value}
            yield from ((name, (in_list(of), one)) for of, one in elements if of in SCALARS)


def _connect(path: Path | str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.executescript(_WRITING)
    return connection


def _write(target: sqlite3.Connection, pending_path: Path | str, documents: RowMetadata) -> None:
    """Writes the tables.

    Args:
        target: Where they are written.
        pending_path: Where values wait that do not fit into memory.
        documents: The documents.
    """
    with closing(_Pending(pending_path)) as pending:
        for row, metadata in documents:
            pending.add(row, metadata)
        target.executescript(";".join(TABLES))
        target.execute("BEGIN")
        columns = groupby(pending.in_order(), itemgetter(0, 1))
        for number, ((field, type_), values) in enumerate(columns):
            column = _ColumnWriter(target, number)
            for key, parts in groupby(values, itemgetter(2)):
                column.append(key, (data for *_, data in parts))
            entries = column.finish()
            target.execute(
                "INSERT INTO columns VALUES (?, ?, ?, ?)", (number, field, type_, entries)
            )
        target.execute("COMMIT")


class _ColumnWriter:
    """Writes keys and rows of a column, in the order of the keys."""

    def __init__(self, target: sqlite3.Connection, number: int) -> None:
        self._target = target
        self._number = number
        self._keys: list[bytes] = []
        self._places = [0]
        self._bytes = 0
        self._rows = bytearray()
        self._written = 0

    def append(self, key: bytes, rows: Iterable[bytes]) -> None:
        """Writes a key and its rows, ascending, as bytes of `ROW_TYPE`."""
        place = self._places[-1]
        for data in rows:
            self._rows += data
            place += len(data) // ROW_TYPE.itemsize
        self._keys.append(key)
        self._places.append(place)
        self._bytes += len(key)
        if len(self._keys) >= _KEYS_PER_BLOCK or self._bytes >= _BYTES_PER_BLOCK:
            self._write_block()
        while place - self._written >= ROWS_PER_CHUNK:
            self._write_chunk()

    def finish(self) -> int:
        """Writes the last; gives the number of rows."""
        if self._keys:
            self._write_block()
        if self._rows:
            self._write_chunk()
        return self._places[-1]

    def _write_block(self) -> None:
        ends = np.cumsum([len(key) + 1 for key in self._keys]) - 1
        block = (
            self._keys[0],
            SEPARATOR.join(self._keys),
            ends.astype(END_TYPE).tobytes(),
            np.array(self._places, PLACE_TYPE).tobytes(),
        )
        self._target.execute("INSERT INTO blocks VALUES (?, ?, ?, ?, ?)", (self._number, *block))
        self._keys.clear()
        self._bytes = 0
        del self._places[:-1]

    def _write_chunk(self) -> None:
        chunk = bytes(self._rows[: ROWS_PER_CHUNK * ROW_TYPE.itemsize])
        self._target.execute(
            "INSERT INTO rows VALUES (?, ?, ?)", (self._number, self._written, chunk)
        )
        self._written += ROWS_PER_CHUNK
        del self._rows[: len(chunk)]


class _Pending:
    """Values that wait until all are known, sorted in runs, of which only the last is in memory.

    Args:
        path: The file of the other runs, which is made when there is one.
    """

    def __init__(self, path: Path | str) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._run: dict[tuple[str, str], dict[bytes, list[int]]] = {}
        self._bytes = 0
        self._ends = [0]

    def add(self, row: int, metadata: Mapping[str, Any]) -> None:
        """Adds the values of a row, which is after all before."""
        for field, (type_, key) in entries_of(metadata):
            column = self._run.get((field, type_))
            if column is None:
                column = self._run[field, type_] = {}
            rows = column.get(key)
            if rows is None:
                column[key] = [row]
                self._bytes += _BYTES_PER_KEY + len(key)
            else:
                rows.append(row)
                self._bytes += _BYTES_PER_ROW
        if self._bytes > _PENDING_BYTES:
            self._flush()

    def in_order(self) -> Iterator[_Value]:
        """All values in the order of field, type and key; of equal ones, the rows ascend."""
        runs = [self._stored(*run) for run in zip(self._ends, self._ends[1:], strict=False)]
        return merge(*runs, self._sorted_run(), key=itemgetter(0, 1, 2))

    def close(self) -> None:
        """Closes the file."""
        if self._connection is not None:
            self._connection.close()

    def _sorted_run(self) -> Iterator[_Value]:
        for (field, type_), column in sorted(self._run.items(), key=itemgetter(0)):
            for key in sorted(column):
                rows = column[key]
                yield _Value(field, type_, key, struct.pack(f"<{len(rows)}i", *rows))

    def _stored(self, start: int, end: int) -> Iterator[_Value]:
        query = "SELECT * FROM pending WHERE rowid > ? AND rowid <= ? ORDER BY rowid"
        found = self._connection.execute(query, (start, end)) if self._connection else ()
        return map(_Value._make, found)

    def _flush(self) -> None:
        if self._connection is None:
            self._connection = _connect(self._path)
            self._connection.execute(_PENDING)
        self._connection.execute("BEGIN")
        self._connection.executemany("INSERT INTO pending VALUES (?, ?, ?, ?)", self._sorted_run())
        self._connection.execute("COMMIT")
        (end,) = self._connection.execute("SELECT max(rowid) FROM pending").fetchone()
        self._ends.append(end)
        self._run.clear()
        self._bytes = 0
