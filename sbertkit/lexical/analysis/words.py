"""What the rule of a script makes of a run of its characters."""

from typing import NamedTuple

MAX_TERM = 128
"""Characters of a term; a longer word is found by so many of its first."""


class Span(NamedTuple):
    """Characters of a text: the first, and the one after the last."""

    start: int
    end: int


class Token(NamedTuple):
    """A term at a place.

    Attributes:
        term: What is compared.
        offset: Its place in the run, counted in words, or in characters of an unspaced script.
        sure: Whether the term is there whatever surrounds the word in a text, so that a phrase may
            count on it.
        width: Number of places that it takes.
    """

    term: str
    offset: int
    sure: bool = True
    width: int = 1


class Words(NamedTuple):
    """The words of a run.

    Attributes:
        tokens: They, by their offsets.
        width: Number of places that the run takes.
    """

    tokens: tuple[Token, ...]
    width: int
