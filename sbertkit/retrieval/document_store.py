"""The documents of a segment in SQLite: written once while a corpus is read, then only read."""

import json
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from sbertkit.data import Document, SourcedDocument
from sbertkit.errors import DamagedIndex, InputError
from sbertkit.progress import Advance

DOCUMENTS_FILE = "documents.db"

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
    path: Path, documents: Iterable[SourcedDocument], clash: str, advance: Advance
) -> int:
    """Writes all documents with rows from 0 in order; gives their number.

    Args:
        path: The database file, which must not exist.
        documents: What to store.
        clash: The refusal of an id that stands twice, with ``{id}`` for the id; the two places
            follow it.
        advance: Told of every so many documents.

    Raises:
        InputError: An id stands twice; the message names it and both lines.
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


def _insert(
    connection: sqlite3.Connection, row: int, document: Document, line: int, clash: str
) -> None:
    metadata = json.dumps(dict(document.metadata), ensure_ascii=False)
    try:
        connection.execute(
            "INSERT INTO documents VALUES (?, ?, ?, ?, ?)",
            (row, document.id, document.text, metadata, line),
        )
    except sqlite3.IntegrityError as error:
        query = "SELECT line FROM documents WHERE id = ?"
        (first,) = connection.execute(query, (document.id,)).fetchone()
        raise InputError(
            f"{clash.replace('{id}', f'id {document.id!r}')} {first} and {line}; "
            "every document needs an id of its own"
        ) from error


class DocumentStore:
    """The documents of a published segment; safe to share between threads.

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
        try:
            (self._count,) = self._connection.execute("SELECT count(*) FROM documents").fetchone()
        except sqlite3.Error as error:
            self._connection.close()
            raise DamagedIndex(f"{path} cannot be read: {error}") from error

    def __len__(self) -> int:
        return int(self._count)

    def close(self) -> None:
        """Frees the file."""
        self._connection.close()

    def at(self, rows: Sequence[int]) -> dict[int, Document]:
        """The documents of some rows, by row."""
        found: dict[int, Document] = {}
        distinct = sorted(set(rows))
        for start in range(0, len(distinct), _ROWS_A_QUERY):
            part = distinct[start : start + _ROWS_A_QUERY]
            marks = ",".join("?" * len(part))
            # S608: only question marks are put into the statement
            query = f"SELECT row, id, text, metadata FROM documents WHERE row IN ({marks})"  # noqa: S608
            with self._lock:
                answers = self._connection.execute(query, part).fetchall()
            found.update(
                (row, Document(id_, text, json.loads(metadata)))
                for row, id_, text, metadata in answers
            )
        return found

    def get(self, document_id: str) -> Document | None:
        """The document of an id, if there is one."""
        query = "SELECT id, text, metadata FROM documents WHERE id = ?"
        with self._lock:
            answer = self._connection.execute(query, (document_id,)).fetchone()
        if answer is None:
            return None
        return Document(answer[0], answer[1], json.loads(answer[2]))

    def texts(self) -> Iterator[str]:
        """All texts in the order of rows, one at a time; for one thread alone."""
        for (text,) in self._connection.execute("SELECT text FROM documents ORDER BY row"):
            yield text
