"""Ctrl-C and SIGTERM: an exception in the main thread, but never amid what cannot bear one."""

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

TERMINATED = 143
"""Exit status after SIGTERM, as shells tell it."""

_PAUSE = 0.02
"""Seconds until a signal that came at a bad moment is looked at again."""

_GLANCE = 0.2
"""Seconds between two glances at signals while C code waits."""

_Handler = Callable[[int, FrameType | None], None]

_IMPORTER = "<frozen importlib._bootstrap"
_CALLING_BACK = "torch"
"""A package whose import calls Python from C++, which ends the process at an exception."""


@contextmanager
def handled_signals() -> Iterator[None]:
    """Turns SIGINT into `KeyboardInterrupt` and SIGTERM into `SystemExit` within the block.

    What is half written is removed on their way out. They wait while an extension module is being
    imported, which would end the process on the spot, and while a destructor runs, which would
    swallow them. Python runs handlers in the main thread whatever thread the system
    gave the signal to, so that other threads change nothing.
    """
    raisers = {signal.SIGINT: _interrupt, signal.SIGTERM: _terminate}
    waiting: list[signal.Signals] = []

    def handle(number: int, frame: FrameType | None) -> None:
        caught = signal.Signals(number)
        if hasattr(signal, "setitimer") and _is_bad_moment(frame):
            waiting[:] = [caught]
            signal.setitimer(signal.ITIMER_REAL, _PAUSE)
        else:
            raisers[caught]()

    def look_again(_: int, frame: FrameType | None) -> None:
        if waiting:
            handle(waiting.pop(), frame)

    handlers: dict[signal.Signals, _Handler] = dict.fromkeys(raisers, handle)
    if hasattr(signal, "setitimer"):
        handlers[signal.SIGALRM] = look_again
    if threading.current_thread() is not threading.main_thread():
        handlers.clear()  # only there may they be set
    before = {
        number: signal.signal(number, new)
        for number, new in handlers.items()
        if signal.getsignal(number) is not signal.SIG_IGN  # as behind nohup
    }
    try:
        yield
    finally:
        if hasattr(signal, "setitimer") and before:
            signal.setitimer(signal.ITIMER_REAL, 0)  # the answer of before might end the process
        for number, old in before.items():
            signal.signal(number, old)


@contextmanager
def seen_while_blocked() -> Iterator[None]:
    """Lets signals be seen within a moment while C code waits in the main thread, as readline does.

    Python runs handlers only once that code returns; it does so at a signal, but not at one that
    came right before it began to wait. So another one comes again and again.
    """
    if hasattr(signal, "setitimer") and callable(signal.getsignal(signal.SIGALRM)):
        signal.setitimer(signal.ITIMER_REAL, _GLANCE, _GLANCE)
    try:
        yield
    finally:
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0)


def _is_bad_moment(frame: FrameType | None) -> bool:
    """Whether an exception in a frame would end the process or be swallowed."""
    # The machinery of imports has callbacks, whose exceptions are only printed.
    bad = frame is not None and frame.f_code.co_filename.startswith(_IMPORTER)
    while frame is not None and not bad:
        code = frame.f_code
        bad = (
            code.co_name == "__del__"
            or code.co_qualname.startswith("ExtensionFileLoader.")
            or (code.co_name == "<module>" and frame.f_globals.get("__name__") == _CALLING_BACK)
        )
        frame = frame.f_back
    return bad


def _interrupt() -> NoReturn:
    raise KeyboardInterrupt


def _terminate() -> NoReturn:
    sys.exit(TERMINATED)
