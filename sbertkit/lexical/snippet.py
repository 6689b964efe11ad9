"""The part of a long text that says most about a query."""

import unicodedata
from collections import Counter
from collections.abc import Sequence

from sbertkit.lexical.analysis.words import Span
from sbertkit.lexical.matcher import Match


def best_window(text: str, matches: Sequence[Match], size: int) -> Span:
    """The characters of a text around the most different words found, then around the most of them.

    It begins and ends between words, where there are spaces; without matches it is the beginning.

    Args:
        text: The text.
        matches: What was found in it, in order.
        size: Characters at most.
    """
    if len(text) <= size:
        return Span(0, len(text))
    first, last = _best_matches(matches, size)
    around = (size - (last - first)) // 2
    start = min(max(0, first - around), len(text) - size)
    end = start + size
    return Span(_begin(text, start, first), _end(text, end, last))


def _best_matches(matches: Sequence[Match], size: int) -> Span:
    """From the first to the last of the best matches that are within so many characters."""
    best, most = Span(0, 0), (0, 0)
    terms: Counter[str] = Counter()
    begin = 0
    for number, match in enumerate(matches):
        terms.update(match.terms)
        while begin < number and match.end - matches[begin].start > size:
            for term in matches[begin].terms:
                terms[term] -= 1
                if not terms[term]:
                    del terms[term]
            begin += 1
        score = (len(terms), number - begin + 1)
        if score > most:
            end = min(match.end, matches[begin].start + size)
            best, most = Span(matches[begin].start, end), score
    return best


def _begin(text: str, start: int, first: int) -> int:
    """The first character of a window that may begin at `start`, and not after `first`."""
    if not start or text[start - 1].isspace():
        return start
    spaces = (place for place in range(start, first) if text[place].isspace())
    start = next((space + 1 for space in spaces), start)
    while start < first and unicodedata.combining(text[start]):
        start += 1
    return start


def _end(text: str, end: int, last: int) -> int:
    """The end of a window that may end before `end`, and not before `last`."""
    if end == len(text) or text[end].isspace():
        return end
    spaces = (place for place in range(end - 1, last - 1, -1) if text[place].isspace())
    end = next(spaces, end)
    while end > last and unicodedata.combining(text[end]):
        end -= 1
    return end
