"""One writer at a time: a lock file in a shared folder, released when its holder dies."""

import errno
import json
import logging
import math
import os
import socket
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from pathlib import Path

from sbertkit.errors import InputError, InputTypeError, StorageError
from sbertkit.storage import is_at, owned_folder, release_handle, storage_errors, try_lock

logger = logging.getLogger(__name__)

LOCK_FILE = ".lock"
_POLL = 0.02
"""Seconds between two attempts to acquire a lock that another process has."""
_timeout: ContextVar[float] = ContextVar("_timeout", default=0.0)
_queues: dict[str, "_Queue"] = {}
_registry = threading.Lock()
_START = b'{"pid": '
_LIMIT = 4_096
"""Bytes; what we write has less than 200."""
_OWNER_ATTEMPTS = 20
_OWNER_PAUSE = 0.01
"""Seconds between two reads of an empty lock file."""


@contextmanager
def waiting(seconds: float | None) -> Iterator[None]:
    """Locks that are acquired in the block are waited for so long, if other processes have them.

    ``None`` leaves it as it is.

    Raises:
        InputError: A number below 0.
        InputTypeError: No number.
    """
    if seconds is None:
        yield
        return
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise InputTypeError(f"timeout must be a number of seconds, not {seconds!r}")
    if not 0 <= seconds < math.inf:
        raise InputError(f"timeout must be at least 0 seconds, not {seconds}")
    token = _timeout.set(seconds)
    try:
        yield
    finally:
        _timeout.reset(token)


@contextmanager
def writer_lock(target: Path, place: Callable[[], Path], *, queued: bool = False) -> Iterator[None]:
    """Locks a file or folder for writing for the block.

    The operating system releases the lock when the process ends in any way, so that a killed
    process blocks nobody. The lock file is in a folder, so that it works through all names and
    mounts of that folder and moves with it; it stays there, empty, unless the folder has nothing
    else.

    Args:
        target: What is written.
        place: Gives the folder of the lock file: the target itself if it is a folder already, else
            one for unfinished work, which is made. It is called again once the lock is acquired,
            since the previous writer may have finished the target.
        queued: Whether threads of this process wait for each other, however long.

    Raises:
        StorageError: Another process has the lock (the message has its process id), also after the
            seconds of `waiting`; this thread has it; or no lock file can be written.
    """
    with _turn(target) if queued else nullcontext():
        with storage_errors(target):
            handle, folder = _acquire(target, place)
        try:
            with suppress(OSError):  # it serves messages alone
                owner = {"pid": os.getpid(), "host": socket.gethostname()}
                os.ftruncate(handle, 0)
                os.pwrite(handle, json.dumps(owner).encode(), 0)
            yield
        finally:
            _release(handle, target, folder)


class _Queue:
    """The threads of this process that write one target, or wait to."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.threads = 0
        self.writer: int | None = None


def _turn(target: Path) -> AbstractContextManager[None]:
    """Waits for the threads of this process that write a target.

    Raises:
        StorageError: This thread is writing it, and would wait for itself.
    """
    return _in_queue(os.path.realpath(target), threading.get_ident())


@contextmanager
def _in_queue(target: str, thread: int) -> Iterator[None]:
    with _registry:
        queue = _queues.setdefault(target, _Queue())
        if queue.writer == thread:
            raise StorageError(
                f"this thread is writing {target} already; finish that before it is written again"
            )
        queue.threads += 1
    try:
        with queue.lock:
            queue.writer = thread
            try:
                yield
            finally:
                queue.writer = None
    finally:
        with _registry:
            queue.threads -= 1
            if not queue.threads:
                _queues.pop(target, None)


def _forget_threads() -> None:
    """Forgets the threads of the parent process, which a fork does not copy."""
    global _registry
    _registry = threading.Lock()
    _queues.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)


def _acquire(target: Path, place: Callable[[], Path]) -> tuple[int, Path]:
    """The open lock file, locked, and its folder."""
    patience = _Patience(target)
    while True:
        folder = place()
        if folder != target:
            owned_folder(folder)
        path = folder / LOCK_FILE
        try:
            handle = _open(path)
        except FileNotFoundError:
            if folder == target and place() == target and not target.exists():
                raise StorageError(f"{target} does not exist; make the folder first") from None
            continue  # its last owner removed or moved the folder
        except BaseException:
            if folder != target:
                with suppress(OSError):  # it is not empty
                    folder.rmdir()
            raise
        try:
            locked = try_lock(handle)
            if not locked:
                patience.check(handle)
            elif is_at(handle, path) and place() == folder:
                _check_ours(handle, path)
                return handle, folder
        except BaseException:
            release_handle(handle)
            raise
        release_handle(handle)
        time.sleep(0 if locked else _POLL)


class _Patience:
    """How long another writer of a target is waited for."""

    def __init__(self, target: Path) -> None:
        self._target = target
        self._seconds = _timeout.get()
        self._end = time.monotonic() + self._seconds
        self._said = False

    def check(self, handle: int) -> None:
        """Says once that another process has the open lock file.

        Raises:
            StorageError: It was waited for long enough.
        """
        if time.monotonic() >= self._end:
            waited = f" after {self._seconds:g} seconds" if self._seconds else ""
            raise StorageError(
                f"another process is writing {self._target}{waited}: {_wait_for_owner(handle)}; "
                "wait until it has finished"
            )
        if not self._said:
            logger.warning("waiting for %s to write %s", _wait_for_owner(handle), self._target)
            self._said = True


def _open(path: Path) -> int:
    flags = os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        return os.open(path, os.O_RDWR | flags, 0o666)
    except PermissionError:  # the file of another user who writes here, too
        return os.open(path, os.O_RDONLY | flags & ~os.O_CREAT)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EISDIR):
            raise _not_a_lock(path) from error
        raise


def _check_ours(handle: int, path: Path) -> None:
    """Refuses a file of others with the name of the lock; one truncated by a crash is ours."""
    found = os.fstat(handle)
    if not stat.S_ISREG(found.st_mode) or found.st_size > _LIMIT:
        raise _not_a_lock(path)
    content = os.pread(handle, _LIMIT, 0).strip(b"\0 \r\n")
    if not (content.startswith(_START) or _START.startswith(content)):
        raise _not_a_lock(path)


def _not_a_lock(path: Path) -> StorageError:
    return StorageError(
        f"{path} is a link, a folder or a file of another program, and no lock file; move it away"
    )


def _release(handle: int, target: Path, folder: Path) -> None:
    try:
        with suppress(OSError):
            os.ftruncate(handle, 0)
        # Removed before it is released: whoever waits finds the name gone and starts again.
        if is_at(handle, folder / LOCK_FILE) and os.name != "nt":
            _remove_alone(target, folder)
    finally:
        release_handle(handle)
    if os.name == "nt":  # where an open file cannot be removed
        _remove_alone(target, folder)


def _remove_alone(target: Path, folder: Path) -> None:
    """Removes the lock file if the folder has nothing else, and a folder made for it."""
    with suppress(OSError):
        if [place.name for place in folder.iterdir()] == [LOCK_FILE]:
            (folder / LOCK_FILE).unlink()
        if folder != target:
            folder.rmdir()


def _wait_for_owner(handle: int) -> str:
    """Who has the lock; the file is empty for a moment between locking and writing."""
    for _ in range(_OWNER_ATTEMPTS):
        with suppress(OSError, ValueError, KeyError, TypeError):
            owner = json.loads(os.pread(handle, _LIMIT, 0))
            return f"pid {owner['pid']} on {owner['host']}"
        time.sleep(_OWNER_PAUSE)
    return "unknown pid"
