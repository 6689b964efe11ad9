"""Signals that arrive at a bad moment."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def held_signals() -> Iterator[None]:
    """Keeps SIGINT and SIGTERM back until the end of the block, where the system can.

    What they raise must not come out of an extension module that is being made: it would end the
    process on the spot, and leave what is half written.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
