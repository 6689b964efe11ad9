"""Progress of long work on standard error: a bar on a terminal, a line now and then elsewhere."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sbertkit.terminal import error_stream, make_console, visible_text

Advance = Callable[[int], None]
"""Called with the number of items done since the last call."""

_SECONDS_BETWEEN_LINES = 10.0
_MOMENT = 2.0
_SLOW = 9.5
"""Items per second below which a rate has two digits."""


@contextmanager
def track(
    label: str,
    total: int | None,
    *,
    done: int = 0,
    shown: bool = True,
    note: Callable[[], str] = str,
) -> Iterator[Advance]:
    """Yields a function to call with each number of items done.

    Progress that cannot be shown, since standard error is closed or full, is no error.

    Args:
        label: What is being done, e.g. ``encoding``.
        total: Number of items, or ``None`` when it is not known.
        done: Items of these that were done before.
        shown: ``False`` shows nothing.
        note: Gives what else is shown of the work as it is now, such as a loss.
    """
    if not shown:
        yield _silent
    elif error_stream().isatty() and os.environ.get("TERM") != "dumb":
        with _bar(label, total, done, note) as advance:
            yield advance
    else:
        yield _line_writer(label, total, done, note)


@contextmanager
def under_way(work: str, *, shown: bool = True) -> Iterator[None]:
    """Says what is being done in the block, if it takes longer than a moment."""
    timer = threading.Timer(_MOMENT, say, [f"{work} ..."])
    timer.daemon = True
    if shown:
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


def say(line: str, *, shown: bool = True) -> None:
    """Writes a line about long work to standard error."""
    if shown:
        error_stream().write(f"{visible_text(line)}\n")


def duration(seconds: float) -> str:
    """A time in words: ``42 s``, ``7 min``, ``2 h 5 min``."""
    minutes = round(seconds / 60)
    if seconds < 90:  # whole minutes would be too coarse
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def rate_text(rate: float) -> str:
    """Items per second in words; a slow rate has the decimals that tell it from none."""
    return f"{rate:,.0f}/s" if rate >= _SLOW else f"{rate:.2g}/s"


def _silent(done: int) -> None:
    """Shows nothing."""


@contextmanager
def _bar(label: str, total: int | None, done: int, note: Callable[[], str]) -> Iterator[Advance]:
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
            return Text(rate_text(task.finished_speed or task.speed or 0))

    class Note(ProgressColumn):
        def render(self, task: Task) -> Text:
            del task
            return Text(visible_text(note()))

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        Rate(),
        TimeRemainingColumn(),
        Note(),
    )
    console = make_console(error_stream())
    # Standard output is left alone: what is printed meanwhile is data and may go to a file.
    with Progress(*columns, console=console, transient=True, redirect_stdout=False) as progress:
        task = progress.add_task(visible_text(label), total=total, completed=done)
        yield lambda done: progress.advance(task, done)


def _line_writer(label: str, total: int | None, before: int, note: Callable[[], str]) -> Advance:
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
        known = 0 if total is None else max(0, total - finished)
        left = f", {duration(known / rate)} left" if known and rate else ""
        more = f", {note()}" if note() else ""
        say(f"{label}: {finished:,}{of_total}, {rate_text(rate)}{left}{more}")

    return advance
