"""Locks on open files and folders, which end with the handle or its process."""

import os
from contextlib import suppress
from pathlib import Path


def try_lock(handle: int) -> bool:
    """Whether this handle has acquired the lock of its file or folder.

    Raises:
        OSError: The file system has no locks.
    """
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        try:
            # A byte far behind the content, which must stay readable for others.
            os.lseek(handle, 2**30, os.SEEK_SET)
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        except OSError:
            return False
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_at(handle: int, path: Path) -> bool:
    """Whether a path names the file that a handle has open, not through a link."""
    with suppress(FileNotFoundError, NotADirectoryError):
        return os.path.samestat(os.fstat(handle), path.lstat())
    return False


def release_handle(handle: int) -> None:
    """Closes a handle and releases its lock, also if a forked process has it open."""
    with suppress(OSError, ImportError):
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_UN)
    with suppress(OSError):
        os.close(handle)
