"""The first use of a native library: by one thread alone.

Python bindings set themselves up at their first call, and some of them wait for the interpreter's
lock amid that. Two threads that make the first call together then wait for each other for ever,
and such a process takes no signal. So whatever loads a library, compiles a model or runs its first
batch holds one lock, which all libraries of the process share; a fork waits for it, too, since the
child of a half-made library could never use it.
"""

import os
import threading
from collections.abc import Callable

from sbertkit.forks import fork_safe_lock

_lock = fork_safe_lock()


def alone() -> threading.RLock:
    """The lock of first uses, to be acquired by ``with``."""
    return _lock


class FirstUse:
    """Whether a model has been run in this process yet."""

    def __init__(self) -> None:
        self._process = 0

    def run(self, work: Callable[[], None]) -> bool:
        """Does the work while no other first use runs, unless there was a first one already.

        Returns:
            Whether it did.
        """
        if self._process == os.getpid():
            return False
        with _lock:
            if self._process == os.getpid():
                return False
            work()
            self._process = os.getpid()
            return True
