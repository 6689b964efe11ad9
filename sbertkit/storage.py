"""Durable writing: files that replace old ones in one step, and plain words for disk errors."""

import errno
import hashlib
import os
import shutil
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from sbertkit.errors import SbertkitError, StorageError

Item = TypeVar("Item")

_REASONS = {
    errno.ENOSPC: "the disk is full; free some space or choose another place",
    errno.EDQUOT: "the disk quota is used up; free some space or choose another place",
    errno.EFBIG: "the file would be larger than allowed; raise the limit or choose another place",
    errno.EACCES: "permission denied; choose a place that you may write to",
    errno.EPERM: "permission denied; choose a place that you may write to",
    errno.EROFS: "the file system is read-only; choose another place",
    errno.ENOTDIR: "a part of the path is a file, not a folder; choose another place",
    errno.EEXIST: "a part of the path is a file, not a folder; choose another place",
    errno.ENOTEMPTY: "something else has been put there meanwhile; move that away, then go on",
    errno.ENAMETOOLONG: "the name is too long; choose a shorter one",
}
_NO_FOLDER_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS)
_FOREIGN = "_sbertkit_foreign"


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
        if getattr(error, _FOREIGN, False):
            raise
        raise StorageError(f"cannot write {os.fspath(path)}: {_reason(error)}") from error


def _reason(error: OSError | sqlite3.OperationalError) -> str:
    if isinstance(error, OSError) and error.errno in _REASONS:
        return _REASONS[error.errno]
    reason = getattr(error, "strerror", None) or str(error)
    one_line = " ".join(str(reason).split())
    return f"{one_line}; check the free space and the permissions, or choose another place"


@contextmanager
def foreign_errors() -> Iterator[None]:
    """Lets system errors of the caller's own code pass `storage_errors` around it as they are."""
    try:
        yield
    except (OSError, sqlite3.OperationalError) as error:
        setattr(error, _FOREIGN, True)
        raise


def foreign_items(items: Iterable[Item]) -> Iterator[Item]:
    """The items of the caller's iterable, whose own errors stay what they are."""
    with foreign_errors():
        yield from items


@contextmanager
def made_parents(path: Path) -> Iterator[None]:
    """Makes the folders above `path`; those it made go again when the block fails.

    Raises:
        StorageError: They cannot be made.
    """
    with storage_errors(path):
        missing = [parent for parent in path.parents if not parent.exists()]
    try:
        with storage_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        yield
        with storage_errors(path):
            for parent in missing:
                sync_folder(parent.parent)
    except BaseException:
        for parent in missing:
            with suppress(OSError):  # somebody else has put something there
                parent.rmdir()
        raise


def sync_file(path: Path) -> None:
    """Puts a written file's bytes on the disk itself."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def sync_folder(path: Path) -> None:
    """Puts a folder's list of names on the disk itself, where the system has such a call."""
    if os.name == "nt":
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        # Some network file systems have no such call, and nothing better to offer.
        if error.errno not in _NO_FOLDER_SYNC:
            raise
    finally:
        os.close(handle)


def replace_file(path: Path, content: bytes) -> None:
    """Writes a file so that readers and crashes meet the old bytes or the new, never a mix."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        _discard(temporary)
        raise
    sync_folder(path.parent)


@contextmanager
def staged_file(path: Path) -> Iterator[Path]:
    """Yields a temporary path beside `path`, which becomes `path` if the block ends well.

    The folders above are made; those it made go again when the block fails.
    """
    # The suffix stays last, since some writers choose or add it themselves.
    temporary = path.with_name(f".{path.stem}.{os.getpid()}.tmp{path.suffix}")
    with made_parents(path):
        try:
            yield temporary
            sync_file(temporary)
            temporary.replace(path)
        except BaseException:
            _discard(temporary)
            raise
        sync_folder(path.parent)


@contextmanager
def staged_folder(path: Path, *, replace: bool = True) -> Iterator[Path]:
    """Yields a temporary folder beside `path`, which takes the place of `path` at the end.

    An error inside the block removes the temporary folder and leaves `path` as it was.

    Args:
        path: The folder to make.
        replace: Whether it may take the place of a folder that is not empty.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with made_parents(path):
        shutil.rmtree(temporary, ignore_errors=True)
        try:
            temporary.mkdir()
            yield temporary
            sync_tree(temporary)
            (swap_folder if replace else _place_folder)(temporary, path)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise


def swap_folder(new: Path, path: Path) -> None:
    """Moves the folder `new` to `path`, in place of a folder that may stand there."""
    old = path.with_name(f".{path.name}.{os.getpid()}.old")
    try:
        if path.exists():
            path.replace(old)
        new.replace(path)
    except BaseException:
        if old.exists() and not path.exists():
            old.replace(path)
        raise
    sync_folder(path.parent)
    shutil.rmtree(old, ignore_errors=True)


def _place_folder(new: Path, path: Path) -> None:
    """Moves the folder `new` to `path`, where nothing stands, or an empty folder."""
    if os.name == "nt" and path.is_dir():
        path.rmdir()  # POSIX renames over an empty folder, and over no other
    new.rename(path)
    sync_folder(path.parent)


def sha256_file(path: Path) -> str:
    """The SHA-256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sync_tree(folder: Path) -> None:
    """Puts a folder with all that is in it on the disk itself."""
    for place in (*folder.rglob("*"), folder):
        if place.is_dir():
            sync_folder(place)
        else:
            sync_file(place)


def _discard(temporary: Path) -> None:
    """Removes a temporary file; what led here is the error to tell, not that this failed too."""
    with suppress(OSError):
        temporary.unlink(missing_ok=True)
