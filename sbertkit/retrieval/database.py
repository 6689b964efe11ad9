"""SQLite files of a published segment: only read, by threads and forks."""

import os
import sqlite3
import weakref
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from sbertkit.errors import DamagedIndex, InputError
from sbertkit.forks import fork_safe_lock
from sbertkit.opened_file import OpenedFile

# Of a file that others may have prepared, only tables and their rows are used.
_UNTRUSTED = "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;"


class PublishedDatabase:
    """A database file that is never written again; safe to share between threads and with forks.

    The file is closed with the object, or before by `close`.

    Args:
        path: The file, whose hash has been checked.

    Raises:
        DamagedIndex: It cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = fork_safe_lock()
        self._closed = False
        with self._lock:
            self._connect()

    def fetch(self, query: str, values: Sequence[Any], limit: int) -> list[tuple[Any, ...]]:
        """The results of a query, at most `limit`.

        Raises:
            DamagedIndex: The file cannot be read, or was overwritten.
            InputError: It was closed.
        """
        with self._lock:
            if self._closed:
                raise InputError(f"{self.path} was closed; open the index again")
            if self._process != os.getpid():
                self._reconnect()
            self._file.check()
            try:
                with closing(self._connection.execute(query, values)) as cursor:
                    return cursor.fetchmany(limit)
            except (sqlite3.Error, MemoryError) as error:
                reason = str(error) or type(error).__name__
                raise DamagedIndex(f"{self.path} cannot be read: {reason}") from error

    def close(self) -> None:
        """Closes the file; later calls are refused."""
        with self._lock:
            self._closed = True
            self._free()

    def _connect(self) -> None:
        # Immutable: nothing is locked or written, so that a read-only folder can be searched and an
        # open file survives its removal.
        uri = f"{self.path.resolve().as_uri()}?mode=ro&immutable=1"
        try:
            self._file = OpenedFile(self.path, self.path.stat())
            self._connection = sqlite3.connect(uri, uri=True, check_same_thread=False)
            self._connection.executescript(_UNTRUSTED)
        except (OSError, sqlite3.Error) as error:
            raise DamagedIndex(f"{self.path} cannot be read: {error}") from error
        self._process = os.getpid()
        self._free = weakref.finalize(self, self._connection.close)
        # At the end of the process daemon threads may still be inside a query.
        self._free.atexit = False

    def _reconnect(self) -> None:
        """Opens the file for a forked process; the parent's connection shares a file position."""
        if not self._file.is_in_place():
            raise InputError(
                f"{self.path} was removed since this process was forked; open the index again"
            )
        self._free()
        self._connect()


class MemoryDatabase:
    """A database in memory that is not written any more; safe to share between threads.

    Args:
        path: The file in whose place it stands, for messages.
        connection: The database, which other threads may use.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        self._lock = fork_safe_lock()

    def fetch(self, query: str, values: Sequence[Any], limit: int) -> list[tuple[Any, ...]]:
        """The results of a query, at most `limit`."""
        with self._lock, closing(self._connection.execute(query, values)) as cursor:
            return cursor.fetchmany(limit)

    def close(self) -> None:
        """Frees its memory."""
        with self._lock:
            self._connection.close()
