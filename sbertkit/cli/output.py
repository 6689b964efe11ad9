"""What commands print: tables for people, JSON for programs, nothing that a terminal would obey."""

import errno
import io
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from sbertkit.errors import BadFilter, SbertkitError, StorageError
from sbertkit.progress import say
from sbertkit.terminal import error_stream, make_console, visible_json, visible_text

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

_SHOWN_CHARS = 300
_MARK = "bold underline"
_UNLIMITED = 1_000_000
"""Width of a table that no terminal shows, in characters: whoever reads it wants whole values."""


class Marked(NamedTuple):
    """A text for a table, of which a terminal shows some characters in bold and underlined.

    Attributes:
        text: The text.
        spans: Where they begin and end, in order.
    """

    text: str
    spans: Sequence[tuple[int, int]]


def shortened(text: str) -> str:
    """The beginning of a long text, for a table."""
    return text if len(text) <= _SHOWN_CHARS else f"{text[: _SHOWN_CHARS - 3]}..."


def print_text(text: str) -> None:
    """Writes a text of several lines to standard output, as it is.

    Raises:
        StorageError: It cannot be written, since standard output is closed or full.
        BrokenPipeError: Its reader has gone.
    """
    try:
        stream = _standard_output()
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        raise
    except (OSError, ValueError) as error:  # ValueError: it was closed
        reason = getattr(error, "strerror", None) or error
        raise StorageError(f"standard output cannot be written: {reason}") from error


def print_line(*cells: str) -> None:
    """Prints a line of data; cells have a tab between them."""
    print_text("\t".join(map(visible_text, cells)) + "\n")


def say_error(error: SbertkitError, before: str) -> None:
    """Writes a message to standard error: one line, and those that show the place in a filter."""
    text = f"{before}: {error.in_shell}"
    for line in text.split("\n") if isinstance(error, BadFilter) else [text]:
        say(line)


def print_json(content: Mapping[str, Any], *, indent: int | None = None) -> None:
    """Prints strict JSON, on one line unless it is indented."""
    text = visible_json(content, indent=indent)
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:  # a terminal that knows few characters
        text = json.dumps(content, allow_nan=False, indent=indent)
    print_text(f"{text}\n")


def print_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    title: str = "",
    width: int | None = None,
) -> None:
    """Prints a table; columns whose name ends in ``>`` are set flush right.

    Args:
        columns: Their names.
        rows: The cells of each row; those that are `Marked` have marks on a terminal.
        title: A line before it.
        width: In characters; ``None`` for the terminal's.
    """
    from rich.table import Table
    from rich.text import Text

    table = Table()
    for column in columns:
        right = column.endswith(">")
        table.add_column(
            Text(visible_text(column.removesuffix(">"))),
            justify="right" if right else "left",
            no_wrap=right,
            overflow="fold",
        )
    for row in rows:
        table.add_row(*map(_rich_cell, row))
    # The title is a line of its own, since a table would break it at its own width.
    _print_rich(*([Text(visible_text(title), style="italic")] if title else ()), table, width=width)


def print_facts(facts: Iterable[tuple[str, object]]) -> None:
    """Prints names and values, one pair a line."""
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in facts:
        grid.add_row(Text(visible_text(name), style="bold"), Text(visible_text(str(value))))
    _print_rich(grid)


def prepare_streams() -> None:
    """Makes standard error lose what it cannot write, and closed streams no trap for files.

    The system gives the number of a closed stream to the next file that is opened, into which a
    library that writes to standard output or error by its number would write.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    sys.stderr = error_stream()


def settle_output() -> None:
    """Leaves standard output with nothing that Python would fail to write at its end."""
    if sys.stdout is None:
        return
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        return
    with suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)


def _standard_output() -> TextIO:
    if sys.stdout is None:  # as it is where the shell closed it
        raise OSError(errno.EBADF, "it is closed")
    return sys.stdout


def table_width(width: int | None) -> int | None:
    """The width that a table is to keep, in characters; ``None`` if nothing limits it."""
    if width is None and sys.stdout is not None and sys.stdout.isatty():
        return make_console(sys.stdout).width
    return width


def _rich_cell(cell: object) -> "Text":
    from rich.text import Text

    if not isinstance(cell, Marked):
        return Text(visible_text(str(cell)))
    text, end = Text(), 0
    for span in cell.spans:
        text.append(visible_text(cell.text[end : span[0]]))
        text.append(visible_text(cell.text[slice(*span)]), style=_MARK)
        end = span[1]
    return text.append(visible_text(cell.text[end:]))


def _print_rich(*parts: "RenderableType", width: int | None = None) -> None:
    console = make_console(sys.stdout, table_width(width) or _UNLIMITED)
    with console.capture() as captured:
        for part in parts:
            console.print(part)
    print_text("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))
