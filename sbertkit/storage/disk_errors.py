"""Write errors of the system and of libraries as one-line messages."""

import errno
import os
import re
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from sbertkit.errors import SbertkitError, StorageError

Item = TypeVar("Item")

_REASONS = {
    errno.ENOSPC: "no space left, the disk is full; free some space or choose another place",
    errno.EDQUOT: "no space left in the disk quota; free some space or choose another place",
    errno.EFBIG: "the file would be larger than allowed; raise the limit or choose another place",
    errno.EACCES: "permission denied; choose a place that you may write to",
    errno.EPERM: "permission denied; choose a place that you may write to",
    errno.EROFS: "the file system is read-only; choose another place",
    errno.ENOTDIR: "a part of the path is a file, not a folder; choose another place",
    errno.EEXIST: "a part of the path is a file, not a folder; choose another place",
    errno.ENOTEMPTY: "something else has been put there meanwhile; move it away, then continue",
    errno.ENAMETOOLONG: "the name is too long; choose a shorter one",
}
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_IN_MESSAGE = re.compile(r"(?:os error |errno )(\d+)", re.IGNORECASE)
"""The error number in the messages of Rust, Arrow and `shutil`."""
_PROBE_BYTES = 2**20
_CALLERS = "_sbertkit_callers"


@contextmanager
def storage_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turns write errors of the system and of SQLite in the block into one-line `StorageError`s.

    Args:
        path: What is being written, for the message.

    Raises:
        StorageError: The disk is full, a permission is missing, or the like.
    """
    try:
        yield
    except SbertkitError:
        raise
    except (OSError, sqlite3.OperationalError) as error:
        if getattr(error, _CALLERS, False):
            raise
        raise StorageError(f"cannot write {os.fspath(path)}: {_reason(error)}") from error


@contextmanager
def writer_errors(folder: Path, *kinds: type[Exception]) -> Iterator[None]:
    """Turns errors of a library that writes into `OSError`s, for a `storage_errors` around.

    Args:
        folder: The folder it writes to. If the error gives no reason, a test write shows whether
            the disk is full, before the partial output is removed.
        kinds: Exact types of its errors; subclasses do not count.

    Raises:
        OSError: The library could not write.
    """
    try:
        yield
    except Exception as error:
        if type(error) not in kinds:
            raise
        number = _number(error) or _number_of_probe(folder)
        words = " ".join(str(error).split())[:200]
        raise (OSError(words) if number is None else OSError(number, words)) from error


def _reason(error: OSError | sqlite3.OperationalError) -> str:
    return _REASONS.get(_number(error) or 0) or _one_line(error)


def _one_line(error: Exception) -> str:
    words = " ".join(str(getattr(error, "strerror", None) or error).split())[:200]
    return f"{words}; check the free space and the permissions, or choose another place"


def _number(error: BaseException) -> int | None:
    """The errno of an error, or of the lack of space that caused it."""
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno
    if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
        return errno.ENOSPC
    found = _IN_MESSAGE.search(str(error))
    if found is not None and int(found[1]) in _NO_SPACE:
        return int(found[1])
    cause = error.__cause__ or error.__context__
    number = None if cause is None else _number(cause)
    return number if number in _NO_SPACE else None


def _number_of_probe(folder: Path) -> int | None:
    """The errno of a small test write to the folder; ``None`` if it succeeds."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(_PROBE_BYTES))
    except OSError as error:
        return error.errno
    return None


@contextmanager
def caller_errors() -> Iterator[None]:
    """Marks system errors of the caller's own code, which `storage_errors` then lets pass."""
    try:
        yield
    except (OSError, sqlite3.OperationalError) as error:
        setattr(error, _CALLERS, True)
        raise


def caller_items(items: Iterable[Item]) -> Iterator[Item]:
    """The items of the caller's iterable; its own errors pass unchanged, see `caller_errors`."""
    with caller_errors():
        yield from items
