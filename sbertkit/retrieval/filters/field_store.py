"""Reading the file of a segment that filters use."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from sbertkit.errors import DamagedIndex
from sbertkit.retrieval.filters.field_file import ROW_TYPE, ROWS_PER_CHUNK, TABLES

RowNumbers = npt.NDArray[np.int32]

_EVERYTHING = 2**31 - 1
_KEYS_PER_QUERY = 500
_TABLES = (
    "SELECT sql FROM sqlite_master WHERE lower(name) IN ('columns', 'keys', 'rows') "
    "OR type IN ('view', 'trigger') ORDER BY name"
)
_FIRST = "SELECT start FROM keys WHERE number = ? AND key >= ? ORDER BY key LIMIT 1"
_CONTAINING = "SELECT start, stop FROM keys WHERE number = ? AND instr(key, ?) > 0"
_ROWS = "SELECT data FROM rows WHERE number = ? AND start >= ? AND start < ? ORDER BY start"


class Database(Protocol):
    """A file or memory with the tables."""

    path: Path

    def fetch(self, query: str, values: Sequence[Any], limit: int) -> list[tuple[Any, ...]]:
        """The results of a query, at most `limit`."""
        ...

    def close(self) -> None:
        """Frees it."""
        ...


class ColumnSize(NamedTuple):
    """A field, a type, and how many documents, or elements of lists, have such a value."""

    field: str
    type: str
    entries: int


class FieldStore:
    """The values of all fields of a segment, and which rows have them.

    Args:
        database: The tables, whose hash has been checked if they are a file.
        count: Number of the segment's documents.

    Raises:
        DamagedIndex: It has other tables.
    """

    def __init__(self, database: Database, count: int) -> None:
        self._database = database
        self._count = count
        if database.fetch(_TABLES, (), len(TABLES) + 1) != [(table,) for table in TABLES]:
            raise DamagedIndex(f"{database.path}: expected the tables that sbertkit makes")

    def sizes(self) -> Iterator[ColumnSize]:
        """All columns."""
        query = "SELECT field, type, entries FROM columns"
        for column in map(ColumnSize._make, self._database.fetch(query, (), _EVERYTHING)):
            if tuple(map(type, column)) != (str, str, int):
                raise DamagedIndex(f"{self._database.path} cannot be read: {column!r:.200}")
            yield column

    def has(self, field: str) -> bool:
        """Whether any document has the field, be it null."""
        return bool(self._database.fetch("SELECT 1 FROM columns WHERE field = ?", (field,), 1))

    def column(self, field: str, type_: str) -> "Column | None":
        """The values of one type of a field, if there are any."""
        query = "SELECT number, entries FROM columns WHERE field = ? AND type = ?"
        for number, entries in self._database.fetch(query, (field, type_), 1):
            return Column(self._database, self._count, number, entries)
        return None

    def close(self) -> None:
        """Closes the file; later calls are refused."""
        self._database.close()


class Column:
    """The values of one type of a field, as keys, and the rows that have them.

    Args:
        database: The tables.
        count: Number of the segment's documents.
        number: The number of the column.
        entries: Number of its rows; of those of lists, of all elements.
    """

    def __init__(self, database: Database, count: int, number: int, entries: int) -> None:
        self._database = database
        self._count = count
        self._number = number
        self._entries = entries

    def between(self, low: bytes, high: bytes | None) -> RowNumbers:
        """The rows with a key from `low` on and below `high`; ``None`` for no bound."""
        with self._readable():
            start = self._place(low) if low else 0
            return self._rows(start, self._entries if high is None else self._place(high))

    def one_of(self, keys: Sequence[bytes]) -> RowNumbers:
        """The rows with one of some keys."""
        slices = []
        for start in range(0, len(keys), _KEYS_PER_QUERY):
            chunk = keys[start : start + _KEYS_PER_QUERY]
            query = (
                "SELECT start, stop FROM keys WHERE number = ? AND key IN "  # noqa: S608  # marks
                f"({','.join('?' * len(chunk))})"
            )
            slices += self._database.fetch(query, (self._number, *chunk), len(chunk))
        with self._readable():
            return self._at(slices)

    def containing(self, part: bytes) -> RowNumbers:
        """The rows with a key that has some bytes in it."""
        with self._readable():
            return self._at(self._database.fetch(_CONTAINING, (self._number, part), self._entries))

    def _place(self, key: bytes) -> int:
        """The first place of rows with this key or a greater one."""
        for (start,) in self._database.fetch(_FIRST, (self._number, key), 1):
            return int(start)
        return self._entries

    def _at(self, slices: Sequence[tuple[int, int]]) -> RowNumbers:
        """The rows in several ranges of places, which do not overlap."""
        if not slices:
            return np.empty(0, ROW_TYPE)
        starts, stops = np.array(slices, np.int64).T
        first = int(starts.min())
        rows = self._rows(first, int(stops.max()))
        if len(slices) == 1:
            return rows
        changes = np.zeros(len(rows) + 1, np.int8)
        changes[starts - first] += 1
        changes[stops - first] -= 1
        return rows[np.cumsum(changes[:-1], dtype=np.int8) > 0]

    def _rows(self, start: int, stop: int) -> RowNumbers:
        """The rows in a range of places."""
        if start >= stop:
            return np.empty(0, ROW_TYPE)
        first = start - start % ROWS_PER_CHUNK
        limit = -(-(stop - first) // ROWS_PER_CHUNK)
        chunks = self._database.fetch(_ROWS, (self._number, first, stop), limit)
        data = b"".join(data for (data,) in chunks)
        rows = np.frombuffer(data, ROW_TYPE)[start - first : stop - first]
        if len(rows) < stop - start or rows.min() < 0 or rows.max() >= self._count:
            raise ValueError(f"expected rows from 0 to {self._count - 1}")
        return rows

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """Reports what does not fit as damage: of a file that was prepared, its hash made right."""
        try:
            yield
        except (TypeError, ValueError, OverflowError, IndexError) as error:
            raise DamagedIndex(
                f"{self._database.path} cannot be read: {error}; write it again with: sbertkit "
                "repair"
            ) from error
