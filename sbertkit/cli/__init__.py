"""The command line; nothing heavy is imported before a command needs it."""

import sys
from collections.abc import Sequence
from typing import NoReturn

from sbertkit.cli.signals import handled_signals

_INTERRUPTED = 130


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

            status = run(arguments)
    except KeyboardInterrupt:
        from sbertkit.progress import say

        say("sbertkit: interrupted")
        status = _INTERRUPTED
        # Python ends by the signal itself if the exception has passed an executed string, as when
        # it comes while a dataclass is made. The next one that is executed resets that.
        exec("")  # noqa: S102
    sys.exit(status)
