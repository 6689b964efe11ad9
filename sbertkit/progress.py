"""Progress of long work on standard error: a bar on a terminal, a line now and then elsewhere."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Advance = Callable[[int], None]
"""Called with the number of items done since the last call."""

_SECONDS_BETWEEN_LINES = 10.0


@contextmanager
def track(label: str, total: int | None, *, done: int = 0, shown: bool = True) -> Iterator[Advance]:
    """Yields a function to call with each number of items done.

    Args:
        label: What is being done, e.g. ``encoding``.
        total: Number of items, or ``None`` when it is not known.
        done: Items of these that were done before.
        shown: ``False`` shows nothing.
    """
    if not shown:
        yield _silent
    elif sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
        with _bar(label, total, done) as advance:
            yield advance
    else:
        yield _line_writer(label, total, done)


def say(line: str, *, shown: bool = True) -> None:
    """Writes a line about long work to standard error."""
    if shown:
        sys.stderr.write(f"{line}\n")


def _silent(done: int) -> None:
    """Shows nothing."""


@contextmanager
def _bar(label: str, total: int | None, done: int) -> Iterator[Advance]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(f"{task.finished_speed or task.speed or 0:,.0f}/s")

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        Rate(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(label, total=total, completed=done)
        yield lambda done: progress.advance(task, done)


def _line_writer(label: str, total: int | None, before: int) -> Advance:
    started = last = time.monotonic()
    finished = before

    def advance(done: int) -> None:
        nonlocal last, finished
        finished += done
        now = time.monotonic()
        if now - last < _SECONDS_BETWEEN_LINES:
            return
        last = now
        rate = (finished - before) / (now - started)
        of_total = "" if total is None else f" of {total:,}"
        left = "" if total is None else f", {(total - finished) / rate:,.0f} s left"
        sys.stderr.write(f"{label}: {finished:,}{of_total}, {rate:,.0f}/s{left}\n")

    return advance
