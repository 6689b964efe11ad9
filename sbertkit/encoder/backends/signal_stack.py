"""The stack that signals are handled on, kept from a library that puts its own in its place."""

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager


class _Stack(ctypes.Structure):
    """``stack_t`` of Linux."""

    _fields_ = (("start", ctypes.c_void_p), ("flags", ctypes.c_int), ("size", ctypes.c_size_t))


@contextmanager
def kept_signal_stack() -> Iterator[None]:
    """Gives the thread its signal stack back after the block.

    OpenVINO sets one when it loads its CPU plugin and unmaps it when the plugin goes; with two of
    them, or another thread that frees, the thread is left with memory that is not there any more,
    and the next signal, such as that of Ctrl-C, ends the process.
    """
    if sys.platform != "linux":
        yield
        return
    library = ctypes.CDLL(None)
    stack = _Stack()
    known = library.sigaltstack(None, ctypes.byref(stack)) == 0
    try:
        yield
    finally:
        if known:
            library.sigaltstack(ctypes.byref(stack), None)
