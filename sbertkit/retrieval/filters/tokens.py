"""The words, values and signs of a filter, and errors that show the place in it."""

import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

from sbertkit.data.text import printable
from sbertkit.errors import BadFilter
from sbertkit.retrieval.filters.field_names import BARE_NAME
from sbertkit.terminal import visible_text

NAME, QUOTED_NAME, STRING, NUMBER, SIGN, END = "name", "quoted name", "string", "number", "sign", ""

_TOKEN = re.compile(
    rf"""\s*+(?:
      (?P<name>{BARE_NAME})
    | (?P<number>-?[0-9][\w.+-]*)
    | (?P<string>"(?:[^"]++|"")*+"|'(?:[^']++|'')*+')
    | (?P<quoted>`(?:[^`]++|``)*+`)
    | (?P<sign><=|>=|!=|[=<>(),.])
    )""",
    re.VERBOSE,
)
_SPACE = re.compile(r"\s*")
_KINDS = {"name": NAME, "number": NUMBER, "string": STRING, "quoted": QUOTED_NAME, "sign": SIGN}
_REMEDIES = {
    "==": "write =",
    "<>": "write !=",
    "!": "write not",
    "&": "write and",
    "|": "write or",
    "%": "there are no wildcards: write contains or starts with",
    "“": "write a straight quote",
    "”": "write a straight quote",
    "‘": "write a straight quote",
    "’": "write a straight quote",
}
_UNCLOSED = {'"': "string", "'": "string", "`": "name of a field"}
_SHOWN = 34
"""Characters of a filter that are shown on each side of a place."""


class Token(NamedTuple):
    """A part of a filter: what it is, its text, and the character that it begins at."""

    kind: str
    text: str
    at: int

    @property
    def shown(self) -> str:
        """The token as messages name it."""
        return "the end" if self.kind == END else printable(self.text, 40)


def tokens_of(text: str) -> Iterator[Token]:
    """The tokens of a filter, and one for its end.

    Raises:
        BadFilter: Characters that begin no token.
    """
    at = 0
    while found := _TOKEN.match(text, at):
        kind = found.lastgroup or ""
        if kind == "sign" and text[found.start(kind) : found.start(kind) + 2] in _REMEDIES:
            break
        yield Token(_KINDS[kind], found[kind], found.start(kind))
        at = found.end()
    at = _SPACE.match(text, at).end()  # type: ignore[union-attr]  # it matches nothing, too
    if at < len(text):
        raise bad_filter(text, at, _unexpected(text, at))
    yield Token(END, "", len(text))


def _unexpected(text: str, at: int) -> str:
    char = text[at]
    if char in _UNCLOSED:
        return f"expected a {char} that ends this {_UNCLOSED[char]}; one within it is doubled"
    sign = next((sign for sign in _REMEDIES if text.startswith(sign, at)), char)
    remedy = f"; {_REMEDIES[sign]}" if sign in _REMEDIES else ""
    return f"unexpected {visible_text(sign)}{remedy}"


def bad_filter(text: str, at: int, reason: str) -> BadFilter:
    """The error for a place in a filter, which it shows on the lines below.

    Args:
        text: The filter.
        at: The character.
        reason: What is wrong, on one line.
    """
    start, end = max(0, at - _SHOWN), at + _SHOWN
    before = ("..." if start else "") + visible_text(text[start:at])
    after = visible_text(text[at:end]) + ("..." if end < len(text) else "")
    return BadFilter(f"filter: {reason}\n  {before}{after}\n  {' ' * _width(before)}^")


def _width(text: str) -> int:
    """The columns of a text on a terminal."""
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return len(text) + wide - sum(unicodedata.combining(char) > 0 for char in text)
