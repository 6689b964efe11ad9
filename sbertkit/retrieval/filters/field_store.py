"""Reading the file of a segment that filters use."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from sbertkit.errors import DamagedIndex
from sbertkit.retrieval.filters.field_file import (
    END_TYPE,
    PLACE_TYPE,
    ROW_TYPE,
    ROWS_PER_CHUNK,
    SEPARATOR,
    TABLES,
)

RowNumbers = npt.NDArray[np.int32]
Places = npt.NDArray[np.int64]

_EVERYTHING = 2**31 - 1
_BLOCKS_PER_QUERY = 64
_TABLES = (
    "SELECT sql FROM sqlite_master WHERE lower(name) IN ('blocks', 'columns', 'rows') "
    "OR type IN ('view', 'trigger') ORDER BY name"
)
_BLOCKS = "SELECT first, keys, ends, places FROM blocks WHERE number = ?"
_BLOCK_OF = f"{_BLOCKS} AND first <= ? ORDER BY first DESC LIMIT 1"
_BLOCKS_FROM = f"{_BLOCKS} AND first >= ? ORDER BY first LIMIT {_BLOCKS_PER_QUERY}"
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


class _Block:
    """Some values of a column, in order.

    Args:
        keys: Their keys, see `TABLES`.
        ends: Where each ends.
        places: Where the rows of each begin, and those of the last end.

    Attributes:
        places: See above, (n + 1,).

    Raises:
        ValueError: They do not fit together.
    """

    def __init__(self, keys: bytes, ends: bytes, places: bytes) -> None:
        self.places = np.frombuffer(places, PLACE_TYPE)
        self._keys = keys
        self._ends = np.frombuffer(ends, END_TYPE)
        ascending = self._ends[0] >= 0 and (np.diff(self._ends) > 0).all()
        if not ascending or self._ends[-1] != len(keys) or len(self.places) != len(self._ends) + 1:
            raise ValueError("expected keys in order")

    @property
    def last(self) -> bytes:
        """The last key."""
        return self._key(len(self._ends) - 1)

    def index(self, key: bytes) -> int:
        """The number of the first key that is not below another."""
        return bisect_left(range(len(self._ends)), key, key=self._key)

    def has(self, index: int, key: bytes) -> bool:
        """Whether this is the key with a number, which may be one beyond the last."""
        return index < len(self._ends) and self._key(index) == key

    def containing(self, part: bytes) -> list[int]:
        """The numbers of the keys that have some bytes of UTF-8 in them."""
        found = []
        at = self._keys.find(part)
        while at >= 0:
            found.append(at)
            end = self._keys.find(SEPARATOR, at)
            at = self._keys.find(part, end + 1) if end >= 0 else -1
        numbers: list[int] = np.searchsorted(self._ends, found).tolist()
        return numbers

    def _key(self, index: int) -> bytes:
        start = int(self._ends[index - 1]) + 1 if index else 0
        return self._keys[start : int(self._ends[index])]


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
        """The rows with one of some keys, which are in order."""
        starts, stops = [], []
        block = None
        with self._readable():
            for key in keys:
                if block is None or key > block.last:
                    block = self._block(key)
                index = block.index(key) if block else 0
                if block and block.has(index, key):
                    starts.append(block.places[index])
                    stops.append(block.places[index + 1])
            return self._at(np.array(starts, PLACE_TYPE), np.array(stops, PLACE_TYPE))

    def containing(self, part: bytes) -> RowNumbers:
        """The rows with a key, a string's, that has some bytes in it."""
        starts, stops = [np.empty(0, PLACE_TYPE)], [np.empty(0, PLACE_TYPE)]
        with self._readable():
            for block in self._all_blocks():
                found = block.containing(part)
                if found:
                    starts.append(block.places[:-1][found])
                    stops.append(block.places[1:][found])
            return self._at(np.concatenate(starts), np.concatenate(stops))

    def _place(self, key: bytes) -> int:
        """The first place of rows with this key or a greater one."""
        block = self._block(key)
        return 0 if block is None else int(block.places[block.index(key)])

    def _block(self, key: bytes) -> _Block | None:
        """The block with a key, if it is there; ``None`` if all keys are greater."""
        for _, *block in self._database.fetch(_BLOCK_OF, (self._number, key), 1):
            return _Block(*block)
        return None

    def _all_blocks(self) -> Iterator[_Block]:
        start = b""
        while found := self._database.fetch(_BLOCKS_FROM, (self._number, start), _BLOCKS_PER_QUERY):
            yield from (_Block(*block) for _, *block in found)
            start = found[-1][0] + b"\0"

    def _at(self, starts: Places, stops: Places) -> RowNumbers:
        """The rows in several ranges of places, which do not overlap."""
        if not len(starts):
            return np.empty(0, ROW_TYPE)
        first = int(starts.min())
        rows = self._rows(first, int(stops.max()))
        if len(starts) == 1:
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
