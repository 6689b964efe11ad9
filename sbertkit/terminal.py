"""What terminals get: text that none obeys, and a standard error whose failures end no work."""

import json
import re
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TextIO, cast

if TYPE_CHECKING:
    from rich.console import Console

# DEL and C1 controls, marks and overrides of direction, line separators, unpaired surrogates
_OBEYED = r"\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ud800-\udfff"
_IN_TEXT = re.compile(rf"[\x00-\x1f{_OBEYED}]")
_IN_JSON = re.compile(rf"[{_OBEYED}]")
_BREAKS = re.compile(r"[\t\n\r]+")


def visible_text(text: str) -> str:
    r"""The text on one line, with escapes such as ``\x1b`` for what a terminal would obey."""
    if text.isprintable():
        return text
    return _IN_TEXT.sub(_escape, _BREAKS.sub(" ", text))


def visible_json(content: Mapping[str, Any], *, indent: int | None = None) -> str:
    """Strict JSON in which what a terminal would obey is escaped, so that it is the same JSON."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, indent=indent)
    return _IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def make_console(file: TextIO, width: int | None = None) -> "Console":
    """A console on which text is just text: no markup, no codes of emoji, no highlighting.

    Args:
        file: Where it writes.
        width: In characters; None for the terminal's.
    """
    from rich.console import Console

    return Console(file=file, width=width, markup=False, emoji=False, highlight=False)


class ErrorStream:
    """A text stream that loses what cannot be written, be it closed, full or without its terminal.

    Args:
        stream: What it writes to; None loses all.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self.encoding = getattr(stream, "encoding", None) or "utf-8"
        self.errors = getattr(stream, "errors", None) or "backslashreplace"

    def write(self, text: str) -> int:
        """Writes the text if that can be done."""
        if self._stream is not None:
            try:
                self._stream.write(text)
                self._stream.flush()
            except (OSError, ValueError):  # ValueError: it was closed
                pass
        return len(text)

    def flush(self) -> None:
        """Does nothing: nothing is kept back."""

    def isatty(self) -> bool:
        """Whether a terminal reads it."""
        try:
            return self._stream is not None and self._stream.isatty()
        except ValueError:
            return False

    def __getattr__(self, name: str) -> Any:
        """What else the stream has."""
        return getattr(self._stream, name)


def error_stream() -> TextIO:
    """Standard error as it is at present, as an `ErrorStream`."""
    now = sys.stderr
    return cast(TextIO, now if isinstance(now, ErrorStream) else ErrorStream(now))


def _escape(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode("ascii")
