"""What commands print: tables for people, JSON for programs, nothing that a terminal would obey."""

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click

_SHOWN_CHARS = 300
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_C1_CONTROLS = re.compile(r"[\x7f-\x9f]")
_BREAKS = re.compile(r"[\t\n\r\u2028\u2029]+")


def without_controls(text: str) -> str:
    """The text on one line with control codes as U+FFFD, so that no terminal acts on them."""
    return _CONTROLS.sub("\ufffd", _BREAKS.sub(" ", text))


def json_line(content: Mapping[str, Any]) -> str:
    """Strict JSON on one line; no control code of the data is in it as such."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:  # a terminal that knows few characters
        text = json.dumps(content, allow_nan=False)
    return _C1_CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def shortened(text: str) -> str:
    """The beginning of a long text, for a table."""
    return text if len(text) <= _SHOWN_CHARS else f"{text[: _SHOWN_CHARS - 3]}..."


def print_line(text: str) -> None:
    """Prints a line of data, as it is."""
    click.echo(text, color=True)  # or else click drops what it takes for colours


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], title: str = "") -> None:
    """Prints a table; columns whose name ends in ``>`` are set flush right."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=without_controls(title) if title else None, title_justify="left")
    for column in columns:
        right = column.endswith(">")
        table.add_column(
            column.removesuffix(">"),
            justify="right" if right else "left",
            no_wrap=right,
            overflow="fold",
        )
    for row in rows:
        # Text, not str: nothing in the data is taken for markup.
        table.add_row(*(Text(without_controls(str(cell))) for cell in row))
    Console().print(table)


def print_facts(facts: Iterable[tuple[str, object]]) -> None:
    """Prints names and values, one pair a line."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in facts:
        grid.add_row(Text(name, style="bold"), Text(without_controls(str(value))))
    Console().print(grid)
