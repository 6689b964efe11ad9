"""Freed memory goes back to the system, where the C library would keep it for later."""

import ctypes
import sys


def give_back() -> None:
    """Gives freed memory back, with glibc; does nothing elsewhere.

    After many small objects glibc keeps what they took, so that the next large array adds to it.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)
