"""Runs of a text: the longest parts that the rule of one script makes words of."""

import re
from functools import cache

from sbertkit.lexical.analysis.words import Span

_EAST = (
    "\u3005\u3007\u3041-\u3096\u3099-\u309f\u30a1-\u30fa\u30fc-\u312f\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
"""Han characters, kana and Bopomofo."""
_KANA = re.compile("[\u3041-\u30ff\uff66-\uff9f]")
_HANGUL = "\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff\uffa0-\uffdc"
_SOUTH = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u0edc-\u0edf\u0f40-\u0fbc\u1000-\u1049\u1050-\u109f"
    "\u1780-\u17d3\u17dd\u1950-\u19df\u1a20-\u1a5e\uaa60-\uaadf"
)
"""Scripts of South-East Asia and Tibetan, which write no space between words."""
_UNSPACED = _EAST + _HANGUL + _SOUTH
_MARKS = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a"
    "\u0640\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed\u0711\u0730-\u074a"
    "\u07a6-\u07b0\u0900-\u0963\u0966-\u0df3\u1ab0-\u1aff\u1dc0-\u1dff\u200c\u200d\u20d0-\u20f0"
)
"""What belongs to a word and is no letter for `re`: combining marks, and all of Indic scripts."""

_JOINERS = "\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u200c\u200d\u20d0-\u20f0"
"""Marks that no word begins with: what is left of emoji and of letters that are no words."""

_IS_EAST = re.compile(f"[{_EAST}]")
_IS_UNSPACED = re.compile(f"[{_UNSPACED}]")

_CONNECTED = r"(?:[-._+/:@&]{word}+)*(?:\+\+?|#)?"
_ASCII_RUN = re.compile("[A-Za-z0-9]+" + _CONNECTED.format(word="[A-Za-z0-9]"))
_LETTER = rf"(?:[^\W_{_UNSPACED}]|[{_MARKS}])"
_SPACED_RUN = f"(?![{_JOINERS}]){_LETTER}+{_CONNECTED.format(word=_LETTER)}"


@cache
def _run() -> re.Pattern[str]:
    """A run of any script; made when it is first needed, which takes as long as a short search."""
    return re.compile(rf"[{_EAST}]+|[{_HANGUL}]+|[{_SOUTH}]+|{_SPACED_RUN}")


def _pattern(text: str) -> re.Pattern[str]:
    return _ASCII_RUN if text.isascii() else _run()


@cache
def _word() -> re.Pattern[str]:
    return re.compile(f"{_LETTER}+")


def runs_of(text: str) -> list[str]:
    """The runs of a text in order; what is between them is no part of any word.

    A run of a spaced script is a word, or several that are connected as in ``foo_bar`` or ``3.11``.
    """
    return _pattern(text).findall(text)


def run_spans(text: str) -> list[Span]:
    """Where the runs of a text are."""
    return [Span(*found.span()) for found in _pattern(text).finditer(text)]


def words_of(run: str) -> list[str]:
    """The words that a run of a spaced script connects."""
    return _word().findall(run)


def word_spans(run: str) -> list[Span]:
    """Where those words are."""
    return [Span(*found.span()) for found in _word().finditer(run)]


def is_unspaced(run: str) -> bool:
    """Whether a run is of a script that writes no space between words, or of Korean."""
    return not run.isascii() and _IS_UNSPACED.match(run) is not None


def is_han(run: str) -> bool:
    """Whether a run is of Han characters without any kana."""
    return _IS_EAST.match(run) is not None and not has_kana(run)


def has_kana(text: str) -> bool:
    """Whether a text has any Japanese kana."""
    return _KANA.search(text) is not None
