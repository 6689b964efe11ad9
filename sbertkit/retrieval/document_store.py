"""The documents of a segment in SQLite: written once while a corpus is read, then only read."""

import json
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sbertkit.data import Document, SourcedDocument
from sbertkit.errors import DamagedIndex, InputError
from sbertkit.progress import Advance

DOCUMENTS_FILE = "documents.db"

Clash = Callable[[str, int, int], InputError]

_SCHEMA = """
CREATE TABLE documents (
    row INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    text TEXT NOT NULL,
    metadata TEXT NOT NULL,
    line INTEGER NOT NULL
);
CREATE VIRTUAL TABLE words USING fts5(
    text, content='documents', content_rowid='row', tokenize='unicode61 remove_diacritics 2'
);
"""
# A staged file that is not finished is thrown away whole, so that it needs no journal.
_STAGING = "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE;"
_ROWS_A_QUERY = 500
_ROWS_A_STEP = 1_000


def stage_documents(
    path: Path, documents: Iterable[SourcedDocument], clash: Clash, advance: Advance
) -> int:
    """Writes all documents with rows from 0 in order; gives their number.

    Args:
        path: The database file, which must not exist.
        documents: What to store.
        clash: Gives the refusal of an id that stands twice, from it and the two places.
        advance: Told of every so many documents.

    Raises:
        InputError: An id stands twice.
    """
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.executescript(_STAGING + _SCHEMA)
        connection.execute("BEGIN")
        row = 0
        for row, (document, line) in enumerate(documents, 1):
            _insert(connection, row - 1, document, line, clash)
            if row % _ROWS_A_STEP == 0:
                advance(_ROWS_A_STEP)
        connection.execute("INSERT INTO words(words) VALUES ('rebuild')")
        connection.execute("COMMIT")
        advance(row % _ROWS_A_STEP)
        return row
    finally:
        connection.close()


def rendered(document: Document) -> str:
    """The further fields of a document as they are stored."""
    return json.dumps(dict(document.metadata), ensure_ascii=False)


def _insert(
    connection: sqlite3.Connection, row: int, document: Document, line: int, clash: Clash
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
        raise clash(document.id, first, line) from error


class StoredRow(NamedTuple):
    """A document where it is stored.

    Attributes:
        row: Its row.
        text: Its text.
        metadata: Its further fields as JSON.
    """

    row: int
    text: str
    metadata: str


class DocumentStore:
    """The documents of a published segment; safe to share between threads.

    The file is freed with the object, or before by `close`.

    Args:
        path: The database file, whose hash has been checked.

    Raises:
        DamagedIndex: It is no such database.
    """

    def __init__(self, path: Path) -> None:
        # Immutable: nothing is locked or written, so that a read-only folder can be searched, and
        # an open store outlives the removal of its file.
        uri = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
        self._lock = threading.Lock()
        try:
            self._connection = sqlite3.connect(uri, uri=True, check_same_thread=False)
        except sqlite3.Error as error:
            raise DamagedIndex(f"{path} cannot be read: {error}") from error
        self.close = weakref.finalize(self, self._connection.close)
        try:
            (self._count,) = self._connection.execute("SELECT count(*) FROM documents").fetchone()
        except sqlite3.Error as error:
            self.close()
            raise DamagedIndex(f"{path} cannot be read: {error}") from error

    def __len__(self) -> int:
        return int(self._count)

    def at(self, rows: Sequence[int]) -> dict[int, Document]:
        """The documents of some rows, by row."""
        columns = "SELECT row, id, text, metadata FROM documents WHERE row"
        return {
            row: Document(id_, text, json.loads(metadata))
            for row, id_, text, metadata in self._among(columns, sorted(set(rows)))
        }

    def find(self, ids: Sequence[str]) -> dict[str, StoredRow]:
        """Where those of some ids that are there are stored, by id."""
        columns = "SELECT id, row, text, metadata FROM documents WHERE id"
        return {id_: StoredRow(*others) for id_, *others in self._among(columns, ids)}

    def texts(self) -> Iterator[str]:
        """All texts in the order of rows, one at a time; for one thread alone."""
        for (text,) in self._connection.execute("SELECT text FROM documents ORDER BY row"):
            yield text

    def texts_at(self, rows: Sequence[int]) -> Iterator[tuple[int, str]]:
        """Rows, and the text of each."""
        yield from self._among("SELECT row, text FROM documents WHERE row", rows)

    def documents(self, live: npt.NDArray[np.bool_] | None = None) -> Iterator[SourcedDocument]:
        """The documents in the order of rows, one at a time; for one thread alone.

        Args:
            live: Whether each row is wanted, (n,); ``None`` for all.
        """
        query = "SELECT row, id, text, metadata, line FROM documents ORDER BY row"
        for row, id_, text, metadata, line in self._connection.execute(query):
            if live is None or live[row]:
                yield SourcedDocument(Document(id_, text, json.loads(metadata)), line)

    def _among(self, query: str, values: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
        """The answers to a query that ends in a column, for those rows with one of the values."""
        for start in range(0, len(values), _ROWS_A_QUERY):
            part = values[start : start + _ROWS_A_QUERY]
            with self._lock:
                answers = self._connection.execute(
                    f"{query} IN ({','.join('?' * len(part))})", part
                ).fetchall()
            yield from answers
