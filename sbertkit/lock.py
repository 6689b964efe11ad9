"""One writer at a time: a lock in a folder that all writers reach, freed if its holder dies."""

import errno
import json
import os
import socket
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sbertkit.errors import StorageError
from sbertkit.storage import is_at, let_go, owned_folder, storage_errors, try_hold

LOCK_FILE = ".lock"
_START = b'{"pid": '
_LIMIT = 4_096
"""Bytes; what we write has less than 200."""
_HOLDER_ATTEMPTS = 20
_HOLDER_PAUSE = 0.01
"""Seconds between two looks at an empty lock file."""


@contextmanager
def writer_lock(target: Path, place: Callable[[], Path]) -> Iterator[None]:
    """Holds the right to write a file or folder for the block.

    The operating system drops the lock when the process ends in any way, so that a file left by a
    killed process holds up nobody. It lies in a folder, by whatever names and mounts that is
    reached, and moves with it; it stays there, empty, unless the folder has nothing else.

    Args:
        target: What is written.
        place: Gives the folder of the lock: the target itself where that is a folder already, or
            one for unfinished work, which is made. It is asked again once the lock is held, since
            the one who held it before may have finished what was to be written.

    Raises:
        StorageError: Another process holds it (the message has its process id), or no lock file can
            be written.
    """
    with storage_errors(target):
        handle, folder = _acquire(target, place)
    try:
        with suppress(OSError):  # it is only told to those who ask
            holder = {"pid": os.getpid(), "host": socket.gethostname()}
            os.ftruncate(handle, 0)
            os.pwrite(handle, json.dumps(holder).encode(), 0)
        yield
    finally:
        _release(handle, target, folder)


def _acquire(target: Path, place: Callable[[], Path]) -> tuple[int, Path]:
    """The open lock file, held, and its folder."""
    while True:
        folder = place()
        if folder != target:
            owned_folder(folder)
        path = folder / LOCK_FILE
        try:
            handle = _open(path)
        except FileNotFoundError:
            continue  # its last holder removed the folder, or moved it to its place
        except BaseException:
            if folder != target:
                with suppress(OSError):  # it is not empty
                    folder.rmdir()
            raise
        try:
            if not try_hold(handle):
                raise StorageError(
                    f"another process is writing {target}: {_wait_for_holder(handle)}; wait until "
                    "it has finished"
                )
            if is_at(handle, path) and place() == folder:
                _check_ours(handle, path)
                return handle, folder
            let_go(handle)
        except BaseException:
            let_go(handle)
            raise


def _open(path: Path) -> int:
    flags = os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        return os.open(path, os.O_RDWR | flags, 0o666)
    except PermissionError:  # it is another user's, who writes here, too
        return os.open(path, os.O_RDONLY | flags & ~os.O_CREAT)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EISDIR):
            raise _foreign(path) from error
        raise


def _check_ours(handle: int, path: Path) -> None:
    """Refuses what somebody else has given the lock's name; one torn by a crash is ours."""
    found = os.fstat(handle)
    if not stat.S_ISREG(found.st_mode) or found.st_size > _LIMIT:
        raise _foreign(path)
    content = os.pread(handle, _LIMIT, 0).strip(b"\0 \r\n")
    if not (content.startswith(_START) or _START.startswith(content)):
        raise _foreign(path)


def _foreign(path: Path) -> StorageError:
    return StorageError(
        f"{path} is a link, a folder or a file of another program, and no lock file; move it away"
    )


def _release(handle: int, target: Path, folder: Path) -> None:
    try:
        with suppress(OSError):
            os.ftruncate(handle, 0)
        # Removed before it is freed: whoever waits finds the name gone and begins again.
        if is_at(handle, folder / LOCK_FILE) and os.name != "nt":
            _remove_alone(target, folder)
    finally:
        let_go(handle)
    if os.name == "nt":  # which removes no open file
        _remove_alone(target, folder)


def _remove_alone(target: Path, folder: Path) -> None:
    """Removes the lock file where the folder has nothing else, and a folder made for it."""
    with suppress(OSError):
        if [place.name for place in folder.iterdir()] == [LOCK_FILE]:
            (folder / LOCK_FILE).unlink()
        if folder != target:
            folder.rmdir()


def _wait_for_holder(handle: int) -> str:
    """Who holds the lock; the file is empty for the moment between locking and writing."""
    for _ in range(_HOLDER_ATTEMPTS):
        with suppress(OSError, ValueError, KeyError, TypeError):
            holder = json.loads(os.pread(handle, _LIMIT, 0))
            return f"pid {holder['pid']} on {holder['host']}"
        time.sleep(_HOLDER_PAUSE)
    return "pid not known"
