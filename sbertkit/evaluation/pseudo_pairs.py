"""Pairs of texts that belong together, made from unlabelled texts."""

import re
from collections.abc import Iterable
from typing import NamedTuple

_LEAST_WORDS = 4
_LEAST_CHARS = 8
"""Below so many, half of a text says too little to be found by the other."""
_LEAST_SENTENCES = 3
"""A text of two is halved as well between them."""
_WORD = re.compile(r"\S+")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])\s*")


class PseudoPair(NamedTuple):
    """Two parts of a text, which are about the same."""

    first: str
    second: str


def halves(text: str) -> PseudoPair | None:
    """The text split at the gap between words nearest to its middle; None for a short text.

    A text without gaps, as in Chinese, is split between characters.
    """
    text = text.strip()
    words = list(_WORD.finditer(text))
    middle = len(text) / 2
    if len(words) >= _LEAST_WORDS:
        cut = min((word.start() for word in words[1:]), key=lambda start: abs(start - middle))
        return PseudoPair(text[:cut].rstrip(), text[cut:])
    if len(words) == 1 and len(text) >= _LEAST_CHARS and not text.isascii():
        cut = len(text) // 2
        return PseudoPair(text[:cut], text[cut:])
    return None


def neighbours(text: str) -> PseudoPair | None:
    """Two sentences in the middle of a text, one after the other; None for fewer than three.

    Sentences too short to say much do not count.
    """
    sentences = [part for part in _SENTENCE_END.split(text.strip()) if _says_enough(part)]
    if len(sentences) < _LEAST_SENTENCES:
        return None
    middle = (len(sentences) - 1) // 2
    return PseudoPair(sentences[middle], sentences[middle + 1])


def pseudo_pair(text: str) -> PseudoPair | None:
    """Neighbouring sentences of a text that has some, the halves of a shorter one."""
    return neighbours(text) or halves(text)


def _says_enough(sentence: str) -> bool:
    words = len(_WORD.findall(sentence))
    return words >= _LEAST_WORDS or (not sentence.isascii() and len(sentence) >= _LEAST_CHARS)


def all_halves(texts: Iterable[str]) -> list[PseudoPair]:
    """The halves of each text that is long enough."""
    return [pair for pair in map(halves, texts) if pair is not None]
