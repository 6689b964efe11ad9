"""The command line; nothing heavy is imported before a command needs it."""

import sys
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import NoReturn

from sbertkit.cli.signals import handled_signals

_Run = Callable[[Sequence[str] | None], int]

_INTERRUPTED = 130
_ROOM = 2**14
"""Words of the stack for all frames below `run`: many times what they need."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs the command line and exits.

    Exit status: 0 success; 1 refused input or failed check; 2 wrong usage; 130 Ctrl-C; 143 SIGTERM;
    141 the reader of standard output has gone.

    Args:
        arguments: The arguments after the program's name; ``None`` takes those of the process.
    """
    try:
        with handled_signals():
            from sbertkit.cli.app import run  # a signal may come while it is imported

            status = _with_room(run)(arguments)
    except KeyboardInterrupt:
        from sbertkit.progress import say

        say("sbertkit: interrupted")
        status = _INTERRUPTED
        # Python ends by the signal itself if the exception has passed an executed string, as when
        # it comes while a dataclass is made. The next one that is executed resets that.
        exec("")  # noqa: S102
    sys.exit(status)


def _with_room(work: _Run) -> _Run:
    """The function with a frame so large that Python allocates a large chunk of its stack for it.

    Before 3.13, CPython maps a chunk of 16 KiB whenever a call crosses into the next one and unmaps
    it when that call returns. What runs right before the end of a chunk takes up to 30 times as
    long as elsewhere, and it is a matter of luck what does. Source: python/cpython#142183.
    """
    return FunctionType(work.__code__.replace(co_stacksize=_ROOM), work.__globals__)
