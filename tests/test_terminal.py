"""Text that no terminal obeys, and a standard error whose failures end no work."""

import io
import json
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import TextIO

import pytest

from sbertkit import progress, terminal
from sbertkit.terminal import ErrorStream, error_stream, visible_json, visible_text

OBEYED = [
    *map(chr, range(0x20)),
    *map(chr, range(0x7F, 0xA0)),
    *"\u061c\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u206f",
    "\ud800",
    "\udce9",
]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a plain text", "a plain text"),
        ("[/red] [bold]x[/bold] :smile: $x$", "[/red] [bold]x[/bold] :smile: $x$"),
        ("\x1b[31mred\x1b[0m\x07", r"\x1b[31mred\x1b[0m\x07"),
        ("two\r\nlines\tand a tab", "two lines and a tab"),
        ("\u202egnp.exe\u2069", r"\u202egnp.exe\u2069"),
        ("caf\udce9", r"caf\udce9"),
        (
            "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 👩\u200d🔬 \u3000e\u0301",
            "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 👩\u200d🔬 \u3000e\u0301",
        ),
    ],
)
def test_what_a_terminal_obeys_is_shown_and_all_else_is_as_it_was(text: str, shown: str) -> None:
    assert visible_text(text) == shown


@pytest.mark.parametrize("character", OBEYED)
def test_no_character_that_a_terminal_obeys_stays(character: str) -> None:
    assert character not in visible_text(f"a{character}b")
    content = {f"k{character}": [character], "n": 1}
    for indent in (None, 2):
        text = visible_json(content, indent=indent)
        assert character not in text.replace("\n", "" if indent else "\n")
        assert json.loads(text) == content


class _Failing(io.StringIO):
    """A stream that cannot be written, such as that of a full disk."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    def write(self, _text: str) -> int:
        raise self.error

    def isatty(self) -> bool:
        return True


def _closed() -> TextIO:
    stream = io.StringIO()
    stream.close()
    return stream


STREAMS: dict[str, Callable[[], TextIO | None]] = {
    "closed by the shell": lambda: None,
    "closed by the program": _closed,
    "full": lambda: _Failing(OSError(28, "No space left on device")),
    "without its terminal": lambda: _Failing(OSError(5, "Input/output error")),
    "without a reader": lambda: _Failing(BrokenPipeError(32, "Broken pipe")),
}


@pytest.mark.parametrize("name", STREAMS)
def test_progress_that_cannot_be_shown_ends_no_work(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", STREAMS[name]())
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_LINES", 0.0)
    done = []
    progress.say("a line")
    for total in (None, 3):
        with progress.track("encoding", total) as advance:
            for row in range(3):
                advance(1)
                done.append(row)
    assert done == [0, 1, 2, 0, 1, 2]


def test_what_can_be_written_is_written_and_a_stream_is_wrapped_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    inner = io.StringIO()
    monkeypatch.setattr(sys, "stderr", inner)
    stream = error_stream()
    assert stream.write("a line\n") == len("a line\n")
    assert inner.getvalue() == "a line\n"
    assert stream.getvalue() == "a line\n"  # type: ignore[attr-defined]  # of the stream inside
    monkeypatch.setattr(sys, "stderr", stream)
    assert error_stream() is stream
    assert ErrorStream(None).encoding == "utf-8"


@pytest.mark.parametrize(
    ("rate", "shown"),
    [
        (0, "0/s"),
        (0.037, "0.037/s"),
        (0.5, "0.5/s"),
        (3.26, "3.3/s"),
        (9.7, "10/s"),
        (12.4, "12/s"),
        (45_678.9, "45,679/s"),
    ],
)
def test_a_slow_rate_is_not_none(rate: float, shown: str) -> None:
    assert progress.rate_text(rate) == shown


def test_lines_of_progress_tell_rate_and_rest(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = iter([0.0, 20.0, 40.0, 60.0, 80.0])
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    with progress.track("training\x1b[2J", 4) as advance:
        advance(0)
        advance(1)
        advance(3)
        advance(1)
    assert capsys.readouterr().err.splitlines() == [
        r"training\x1b[2J: 0 of 4, 0/s",
        r"training\x1b[2J: 1 of 4, 0.025/s, 2 min left",
        r"training\x1b[2J: 4 of 4, 0.067/s",
        r"training\x1b[2J: 5 of 4, 0.062/s",
    ]


def test_a_console_takes_nothing_for_markup() -> None:
    file = io.StringIO()
    terminal.make_console(file, 200).print("[/red] [bold]x[/bold] :smile: 127.0.0.1")
    assert file.getvalue() == "[/red] [bold]x[/bold] :smile: 127.0.0.1\n"
