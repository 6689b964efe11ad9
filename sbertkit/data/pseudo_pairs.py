"""Pairs of related texts, made from unlabeled texts."""

import re
from collections.abc import Iterable
from typing import NamedTuple

_MIN_WORDS = 4
_MIN_CHARS = 8
"""Halves of shorter texts say too little to find each other."""
_MIN_SENTENCES = 3
"""A text of two sentences is halved instead."""
_WORD = re.compile(r"\S+")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])\s*")


class PseudoPair(NamedTuple):
    """Two parts of a text."""

    first: str
    second: str


def halves(text: str) -> PseudoPair | None:
    """The text split at the gap between words nearest to its middle; None for a short text.

    A text without gaps, as in Chinese, is split between characters.
    """
    text = text.strip()
    words = list(_WORD.finditer(text))
    middle = len(text) / 2
    if len(words) >= _MIN_WORDS:
        split = min((word.start() for word in words[1:]), key=lambda start: abs(start - middle))
        return PseudoPair(text[:split].rstrip(), text[split:])
    if len(words) == 1 and len(text) >= _MIN_CHARS and not text.isascii():
        split = len(text) // 2
        return PseudoPair(text[:split], text[split:])
    return None


def neighbors(text: str) -> PseudoPair | None:
    """Two consecutive sentences in the middle of a text; None for fewer than three.

    Very short sentences do not count.
    """
    sentences = [part for part in _SENTENCE_END.split(text.strip()) if _is_long_enough(part)]
    if len(sentences) < _MIN_SENTENCES:
        return None
    middle = (len(sentences) - 1) // 2
    return PseudoPair(sentences[middle], sentences[middle + 1])


def pseudo_pair(text: str) -> PseudoPair | None:
    """Neighboring sentences of a text, or the halves of a shorter one."""
    return neighbors(text) or halves(text)


def _is_long_enough(sentence: str) -> bool:
    words = len(_WORD.findall(sentence))
    return words >= _MIN_WORDS or (not sentence.isascii() and len(sentence) >= _MIN_CHARS)


def all_halves(texts: Iterable[str]) -> list[PseudoPair]:
    """The halves of each text that is long enough."""
    return [pair for pair in map(halves, texts) if pair is not None]
