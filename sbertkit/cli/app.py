"""The ``sbertkit`` command: its subcommands, and how errors and warnings reach the user."""

import io
import logging
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType
from typing import NoReturn

import click

from sbertkit import __version__
from sbertkit.cli.changes import add, delete, upsert
from sbertkit.cli.data import data
from sbertkit.cli.demo import demo
from sbertkit.cli.diagnose import diagnose
from sbertkit.cli.encode import encode, similarity
from sbertkit.cli.evaluate import evaluate
from sbertkit.cli.export import export
from sbertkit.cli.index import index, info, verify
from sbertkit.cli.maintain import compact, dump, repair
from sbertkit.cli.output import without_controls
from sbertkit.cli.search import search
from sbertkit.cli.train import train_nli
from sbertkit.errors import SbertkitError

_INTERRUPTED = 130
_TERMINATED = 143


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    commands=[
        encode,
        similarity,
        index,
        search,
        add,
        upsert,
        delete,
        compact,
        info,
        verify,
        repair,
        dump,
        train_nli,
        evaluate,
        diagnose,
        export,
        data,
        demo,
    ],
)
@click.version_option(__version__, "--version", message="%(prog)s %(version)s")
def app() -> None:
    """Sentence embeddings, durable semantic search, and numbers that can be trusted.

    \b
    Example:
      sbertkit demo
      sbertkit index corpus.txt
      sbertkit search indexes/corpus "a person having a meal"
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command line and exits.

    Exit status: 0 success; 1 refused input or failed check; 2 wrong usage; 130 Ctrl-C.

    Args:
        arguments: The arguments after the program's name; ``None`` takes those of the process.
    """
    _show_warnings()
    with suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGTERM, _terminate)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        status = app.main(
            args=None if arguments is None else list(arguments),
            prog_name="sbertkit",
            standalone_mode=False,
        )
        if sys.stdout is not None:  # as it is where standard output was closed
            sys.stdout.flush()
    except SbertkitError as error:
        click.echo(f"sbertkit: error: {without_controls(str(error))}", err=True)
        status = 1
    except click.ClickException as error:
        error.show()
        status = error.exit_code
    except BrokenPipeError:  # the reader of our output has enough, as head has
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 1
    except OSError as error:
        # Of the machine and not of the program: a full disk behind standard output, for instance.
        reason = f"{error.filename or 'standard output'}: {error.strerror or error}"
        click.echo(f"sbertkit: error: {without_controls(reason)}", err=True)
        status = 1
    except (click.Abort, KeyboardInterrupt):
        click.echo("sbertkit: interrupted", err=True)
        status = _INTERRUPTED
    sys.exit(status or 0)


def _terminate(_number: int, _frame: FrameType | None) -> NoReturn:
    """Ends the process by an exception, so that what is half written is removed."""
    sys.exit(_TERMINATED)


class _WarningHandler(logging.Handler):
    """Prints each record as one line on standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        """Prints the record."""
        click.echo(f"warning: {without_controls(record.getMessage())}", err=True)


def _show_warnings() -> None:
    logger = logging.getLogger("sbertkit")
    logger.handlers = [_WarningHandler(logging.WARNING)]
    logger.propagate = False
