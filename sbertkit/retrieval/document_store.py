"""The documents of a segment in SQLite: written once while a corpus is read, then only read."""

import json
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sbertkit.data import Document, SourcedDocument
from sbertkit.errors import DamagedIndex, InputError
from sbertkit.progress import Advance
from sbertkit.retrieval.database import PublishedDatabase

DOCUMENTS_FILE = "documents.db"

DuplicateError = Callable[[str, int, int], InputError]
"""Gives the error for a duplicate id, from it and its two lines."""

_TABLE = """\
CREATE TABLE documents (
    row INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    text TEXT NOT NULL,
    metadata TEXT NOT NULL,
    line INTEGER NOT NULL
)"""
_TABLES = (
    "SELECT sql FROM sqlite_master WHERE lower(name) = 'documents' OR type IN ('view', 'trigger')"
)
# Not count(*): in a prepared file the pages can form an endless loop.
_BOUNDS = "SELECT (SELECT min(row) FROM documents), (SELECT max(row) FROM documents)"
# An unfinished staged file is deleted, so that it needs no journal.
_STAGING = "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE;"
_ROWS_OF_IDS = "SELECT row FROM documents WHERE"
_ROWS_PER_QUERY = 500
_ROWS_PER_CHUNK = 100
_ROWS_PER_ADVANCE = 1_000


def stage_documents(
    path: Path,
    documents: Iterable[SourcedDocument],
    duplicate_error: DuplicateError,
    advance: Advance = lambda _: None,
) -> int:
    """Writes all documents to a new database, with rows from 0 in order; gives their number.

    Args:
        path: The database file, which must not exist.
        documents: The documents.
        duplicate_error: Gives the error for a duplicate id.
        advance: Called with the number of documents after each chunk of them.

    Raises:
        InputError: A duplicate id.
    """
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.executescript(_STAGING + _TABLE)
        connection.execute("BEGIN")
        row = 0
        for row, (document, line) in enumerate(documents, 1):
            _insert(connection, row - 1, document, line, duplicate_error)
            if row % _ROWS_PER_ADVANCE == 0:
                advance(_ROWS_PER_ADVANCE)
        connection.execute("COMMIT")
        advance(row % _ROWS_PER_ADVANCE)
        return row
    finally:
        connection.close()


def rendered(document: Document) -> str:
    """The metadata of a document as it is stored."""
    return json.dumps(dict(document.metadata), ensure_ascii=False)


def _insert(
    connection: sqlite3.Connection,
    row: int,
    document: Document,
    line: int,
    duplicate_error: DuplicateError,
) -> None:
    metadata = rendered(document)
    try:
        connection.execute(
            "INSERT INTO documents VALUES (?, ?, ?, ?, ?)",
            (row, document.id, document.text, metadata, line),
        )
    except sqlite3.IntegrityError as error:
        query = "SELECT line FROM documents WHERE id = ?"
        (first,) = connection.execute(query, (document.id,)).fetchone()
        raise duplicate_error(document.id, first, line) from error


class StoredRow(NamedTuple):
    """A document where it is stored.

    Attributes:
        row: Its row.
        text: Its text.
        metadata: Its metadata as JSON.
    """

    row: int
    text: str
    metadata: str


class DocumentStore:
    """The documents of a published segment; safe to share between threads and with forks.

    The file is closed with the object, or before by `close`.

    Attributes:
        path: The database file, whose hash has been checked.

    Raises:
        DamagedIndex: It is no such database.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._database = PublishedDatabase(path)
        try:
            self._count = self._last_row() + 1
        except BaseException:
            self.close()
            raise

    def __len__(self) -> int:
        return self._count

    def at(self, rows: Sequence[int]) -> dict[int, Document]:
        """The documents of some rows, by row."""
        wanted = sorted(set(rows))
        columns = "SELECT row, id, text, metadata FROM documents WHERE row"
        documents = {
            row: self._document(row, id_, text, metadata)
            for row, id_, text, metadata in self._among(columns, wanted)
        }
        if len(documents) < len(wanted):
            missing = next(row for row in wanted if row not in documents)
            raise DamagedIndex(f"{self.path} lacks row {missing}")
        return documents

    def find(self, ids: Sequence[str]) -> dict[str, StoredRow]:
        """Where documents are stored, by id; unknown ids are left out."""
        columns = "SELECT id, row, text, metadata FROM documents WHERE id"
        found = {}
        for id_, row, text, metadata in self._among(columns, ids):
            if not 0 <= row < self._count:
                raise self._damaged(row, f"expected rows from 0 to {self._count - 1}")
            found[id_] = StoredRow(row, self._text(row, text), self._text(row, metadata))
        return found

    def texts(self, rows: Collection[int] | None = None) -> Iterator[str]:
        """The texts of all rows, or of some, in order, one at a time."""
        for row, text in self._in_order("text"):
            if rows is None or row in rows:
                yield self._text(row, text)

    def texts_at(self, rows: Sequence[int]) -> Iterator[tuple[int, str]]:
        """Rows, and the text of each."""
        for row, text in self._among("SELECT row, text FROM documents WHERE row", rows):
            yield row, self._text(row, text)

    def documents(self, live: npt.NDArray[np.bool_] | None = None) -> Iterator[SourcedDocument]:
        """The documents in the order of rows, one at a time.

        Args:
            live: Whether each row is wanted, (n,); ``None`` for all.
        """
        for row, id_, text, metadata, line in self._in_order("id, text, metadata, line"):
            if live is None or live[row]:
                if type(line) is not int:
                    raise self._damaged(row, f"expected the number of a line, found {line!r:.50}")
                yield SourcedDocument(self._document(row, id_, text, metadata), line)

    def metadata(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Row and metadata of the documents that have any, in order, one at a time."""
        query = "SELECT row, metadata FROM documents WHERE row >= ? AND metadata <> '{}' LIMIT ?"
        start = 0
        while rows := self._database.fetch(query, (start, _ROWS_PER_CHUNK), _ROWS_PER_CHUNK):
            for row, metadata in rows:
                if not start <= row < self._count:
                    raise self._damaged(row, f"expected rows from {start} to {self._count - 1}")
                start = row + 1
                yield row, self._fields(row, metadata)

    def ids_between(self, low: bytes, high: bytes | None) -> list[int]:
        """The rows of ids from `low` on and below `high`, in UTF-8; ``None`` for no bound."""
        query, values = f"{_ROWS_OF_IDS} id >= CAST(? AS TEXT)", [low]
        if high is not None:
            query, values = f"{query} AND id < CAST(? AS TEXT)", [low, high]
        return self._rows(self._fetch(query, values, self._count))

    def ids_among(self, ids: Sequence[str]) -> list[int]:
        """The rows of some ids, those that are known."""
        return self._rows(self._among(f"{_ROWS_OF_IDS} id", ids))

    def ids_containing(self, part: bytes) -> list[int]:
        """The rows of ids that have some UTF-8 in them."""
        query = f"{_ROWS_OF_IDS} instr(CAST(id AS BLOB), ?) > 0"
        return self._rows(self._fetch(query, [part], self._count))

    def close(self) -> None:
        """Closes the file; later calls are refused."""
        self._database.close()

    def _last_row(self) -> int:
        """The last row, -1 if there is none; a table that is not ours is refused."""
        if [sql for (sql,) in self._fetch(_TABLES, (), 1)] != [_TABLE]:
            raise DamagedIndex(f"{self.path}: expected a table `documents` as sbertkit makes it")
        ((first, last),) = self._fetch(_BOUNDS, (), 1)
        if last is None:
            return -1
        if first != 0:
            raise DamagedIndex(f"{self.path}: expected rows from 0, found row {first}")
        return int(last)

    def _rows(self, found: Iterable[tuple[int]]) -> list[int]:
        rows = [row for (row,) in found]
        if rows and not 0 <= min(rows) <= max(rows) < self._count:
            raise self._damaged(max(rows), f"expected rows from 0 to {self._count - 1}")
        return rows

    def _document(self, row: int, id_: object, text: object, metadata: object) -> Document:
        """A stored document, its types checked."""
        fields = {} if metadata == "{}" else self._fields(row, metadata)
        return Document(self._text(row, id_), self._text(row, text), fields)

    def _fields(self, row: int, metadata: object) -> dict[str, Any]:
        try:
            fields = json.loads(self._text(row, metadata))
        except (ValueError, RecursionError) as error:
            raise self._damaged(row, f"its metadata is no JSON: {error}") from error
        if type(fields) is not dict:
            raise self._damaged(row, "its metadata is no JSON object")
        return fields

    def _text(self, row: int, value: object) -> str:
        if type(value) is not str:
            raise self._damaged(row, f"expected text, found {value!r:.50}")
        return value

    def _damaged(self, row: int, reason: str) -> DamagedIndex:
        return DamagedIndex(f"{self.path}, row {row}: {reason}")

    def _among(self, query: str, values: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
        """The results of a query that ends in a column, for rows with one of the values."""
        for start in range(0, len(values), _ROWS_PER_QUERY):
            chunk = values[start : start + _ROWS_PER_QUERY]
            yield from self._fetch(f"{query} IN ({','.join('?' * len(chunk))})", chunk, len(chunk))

    def _in_order(self, columns: str) -> Iterator[tuple[Any, ...]]:
        """Number and columns of every row, in order."""
        query = f"SELECT row, {columns} FROM documents WHERE row >= ? ORDER BY row LIMIT ?"  # noqa: S608  # columns are ours
        for start in range(0, self._count, _ROWS_PER_CHUNK):
            wanted = range(start, min(start + _ROWS_PER_CHUNK, self._count))
            rows = self._fetch(query, (start, len(wanted)), len(wanted))
            if [row for row, *_ in rows] != list(wanted):
                raise DamagedIndex(f"{self.path} lacks some of the rows from {start}")
            yield from rows

    def _fetch(self, query: str, values: Sequence[Any], limit: int) -> list[tuple[Any, ...]]:
        """The results of a query, at most `limit`."""
        results = self._database.fetch(query, values, limit + 1)
        if len(results) > limit:
            raise DamagedIndex(f"{self.path} has a duplicate row")
        return results
