"""One writer at a time: a lock beside a folder, freed by the system if its holder dies."""

import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from sbertkit.errors import StorageError
from sbertkit.storage import storage_errors

_HOLDER_ATTEMPTS = 20
_HOLDER_PAUSE = 0.01
"""Seconds between two looks at an empty lock file."""


def lock_path(folder: Path) -> Path:
    """Where the lock of a folder lies."""
    return folder.with_name(f"{folder.name}.lock")


@contextmanager
def writer_lock(folder: Path) -> Iterator[None]:
    """Holds the right to write the folder for the block.

    The operating system drops the lock when the process ends in any way, so that a file left by a
    killed process holds up nobody.

    Raises:
        StorageError: Another process holds it (the message has its process id), or no lock file can
            be written.
    """
    path = lock_path(folder)
    with storage_errors(path):
        file = _acquire(path, folder)
    try:
        with storage_errors(path):
            json.dump({"pid": os.getpid(), "host": socket.gethostname()}, file)
            file.flush()
        yield
    finally:
        _release(file, path)


def _acquire(path: Path, folder: Path) -> IO[str]:
    """The emptied lock file, locked."""
    while True:
        file = path.open("a+", encoding="utf-8")
        try:
            if not _try_lock(file):
                holder = _wait_for_holder(file)
                raise StorageError(
                    f"another process is writing {folder}: {holder}; wait until it has finished"
                )
            if _same_file(file, path):
                _check_ours(file, path, folder)
                file.seek(0)
                file.truncate()
                return file
        except BaseException:
            file.close()
            raise
        file.close()  # its last holder removed it between our opening and locking


def _check_ours(file: IO[str], path: Path, folder: Path) -> None:
    """Refuses a file of somebody else's that has the lock's name, such as ``poetry.lock``."""
    file.seek(0)
    try:
        content = file.read()
        ours = not content or {"pid", "host"} == json.loads(content).keys()
    except (ValueError, AttributeError):
        ours = False
    if not ours:
        raise StorageError(
            f"{path} is a file of another program, and the lock of {folder} would take its place; "
            "move it away, or give the folder another name"
        )


def _release(file: IO[str], path: Path) -> None:
    # Removed before it is freed: whoever waits finds the name gone and makes a new file. Windows
    # removes no open file; there a file that somebody else has opened meanwhile simply stays.
    try:
        if os.name != "nt":
            _remove(path)
    finally:
        with suppress(OSError):  # what is left to write is of no use any more
            file.close()
    if os.name == "nt":
        _remove(path)


def _remove(path: Path) -> None:
    with suppress(OSError):  # a lock file without a holder holds up nobody
        path.unlink(missing_ok=True)


def _same_file(file: IO[str], path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def _wait_for_holder(file: IO[str]) -> str:
    """Who holds the lock; the file is empty for the moment between locking and writing."""
    for _ in range(_HOLDER_ATTEMPTS):
        with suppress(OSError, ValueError, KeyError, TypeError):
            file.seek(0)
            holder = json.load(file)
            return f"pid {holder['pid']} on {holder['host']}"
        time.sleep(_HOLDER_PAUSE)
    return "pid not known"


def _try_lock(file: IO[str]) -> bool:
    """Whether the file is now locked by this process."""
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        try:
            # A byte far behind the content, which must stay readable for others.
            file.seek(2**30)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        except OSError:
            return False
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
