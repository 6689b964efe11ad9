"""Where in a text the characters of its normal form come from."""

import unicodedata
from collections.abc import Callable, Iterator

from sbertkit.lexical.analysis.words import Span


def compatible(text: str) -> str:
    """A text in compatibility form."""
    return unicodedata.normalize("NFKC", text)


def lower_case(text: str) -> str:
    """A text in compatibility form and lower case."""
    return text.lower() if text.isascii() else compatible(text).casefold()


def origins_of(text: str, form: Callable[[str], str]) -> list[Span]:
    """For each character of a form of a text, the characters that it comes from.

    Args:
        text: The text.
        form: `compatible` or `lower_case`.
    """
    if text.isascii():
        return [Span(place, place + 1) for place in range(len(text))]
    return [span for span in _clusters(text) for _ in form(text[span.start : span.end])]


def _clusters(text: str) -> Iterator[Span]:
    """The smallest parts of a text whose forms, one after the other, are the form of it."""
    start = 0
    for place in range(1, len(text)):
        if not _joins(text[start:place], text[place]):
            yield Span(start, place)
            start = place
    yield Span(start, len(text))


def _joins(before: str, character: str) -> bool:
    """Whether a character is a mark on those before it, or becomes one with them."""
    own = compatible(character)
    if unicodedata.combining(own[0]):
        return True
    return compatible(before + character) != compatible(before) + own
