"""What an open handle holds, until it is closed or its process ends in any way."""

import os
from contextlib import suppress
from pathlib import Path


def try_hold(handle: int) -> bool:
    """Whether the open file or folder is now held by this handle and no other.

    Raises:
        OSError: The file system has no such call.
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
    """Whether what a handle has open is what the path names, and no link to it."""
    with suppress(FileNotFoundError, NotADirectoryError):
        return os.path.samestat(os.fstat(handle), path.lstat())
    return False


def let_go(handle: int) -> None:
    """Closes a handle, and frees what it holds, which a forked process may have open, too."""
    with suppress(OSError, ImportError):
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_UN)
    with suppress(OSError):
        os.close(handle)
