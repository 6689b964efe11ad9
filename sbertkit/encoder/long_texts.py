"""Token ids of texts that are far longer than any limit, from bounded pieces of them.

What a token is depends on its word and little more, so a window that sees some text on either side
has the same tokens inside as the whole text.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

LONG_CHARS = 200_000
"""A text longer than this is tokenized window by window."""
WINDOW_CHARS = 50_000
CONTEXT_CHARS = 2_000
"""What a window sees of the text on either side."""
COUNTED_CHARS = 500_000
"""Characters in which tokens are counted; in what follows they are estimated."""


class LongTokens(NamedTuple):
    """Token ids of a text without special tokens.

    Attributes:
        ids: Of its beginning, or of its end; all that there is room for, and some more.
        total: Tokens of the whole text.
        exact: Whether they were counted to the end, or estimated beyond `COUNTED_CHARS`.
    """

    ids: list[int]
    total: int
    exact: bool


Located = tuple[Sequence[int], Sequence[int]]
"""Ids of a text's tokens, and the character that each begins at."""


def tokenize_windows(
    text: str,
    room: int | None,
    encode: Callable[[str], Located],
    *,
    from_end: bool,
) -> LongTokens:
    """The tokens of a long text, window by window.

    Args:
        text: The text.
        room: Tokens wanted; ``None`` for all.
        encode: Gives the tokens of a text.
        from_end: Whether the last tokens are wanted, not the first.
    """
    starts = range(0, len(text), WINDOW_CHARS)
    kept: list[list[int]] = []
    count = chars = 0
    for start in reversed(starts) if from_end else starts:
        end = min(start + WINDOW_CHARS, len(text))
        ids, _ = _between(text, start, end, encode)
        if room is None or count < room:
            kept.append(ids)
        count += len(ids)
        chars += end - start
        if room is not None and count > room and chars >= COUNTED_CHARS:
            break
    if from_end:
        kept.reverse()
    return _tokens([token for ids in kept for token in ids], count, chars, len(text))


def tokenize_growing(
    text: str, room: int | None, encode: Callable[[str], list[int]], *, from_end: bool
) -> LongTokens:
    """The tokens of a long text by a tokenizer that does not say where in the text they are.

    Args:
        text: The text.
        room: Tokens wanted; ``None`` for all.
        encode: Gives ids of a text.
        from_end: Whether the last tokens are wanted, not the first.
    """
    chars = len(text) if room is None else COUNTED_CHARS
    while True:
        piece = text[-chars:] if from_end else text[:chars]
        ids = encode(piece)
        # What truncation has changed lies beyond the second half.
        if len(piece) == len(text) or (room is not None and len(ids) > 2 * room):
            return _tokens(ids, len(ids), len(piece), len(text))
        chars *= 2


def locate_windows(text: str, encode: Callable[[str], Located]) -> Iterator[Located]:
    """All tokens of a long text, one window at a time.

    Args:
        text: The text.
        encode: Gives the tokens of a text.
    """
    for start in range(0, len(text), WINDOW_CHARS):
        yield _between(text, start, min(start + WINDOW_CHARS, len(text)), encode)


def _between(
    text: str, start: int, end: int, encode: Callable[[str], Located]
) -> tuple[list[int], list[int]]:
    """The tokens that begin at characters from `start` to before `end`."""
    low = max(0, start - CONTEXT_CHARS)
    ids, places = encode(text[low : end + CONTEXT_CHARS])
    first, last = start - low, end - low
    if end == len(text):
        last += 1  # a token of no character may follow the last one
    found = [
        (token, low + place)
        for token, place in zip(ids, places, strict=True)
        if first <= place < last
    ]
    return [token for token, _ in found], [place for _, place in found]


def _tokens(ids: list[int], count: int, chars: int, length: int) -> LongTokens:
    if chars == length:
        return LongTokens(ids, count, exact=True)
    return LongTokens(ids, round(count * length / chars), exact=False)
