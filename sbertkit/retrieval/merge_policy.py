"""Which segments are merged: few segments to search, little work per change."""

from collections.abc import Sequence

CHEAP = 20_000
"""Documents up to which segments are merged within a change."""

DEAD_SHARE = 0.2
"""Share of deleted rows above which a segment is rewritten."""

_SMALL = 1_000
"""Documents up to which a segment is always merged with newer ones."""


def tail_to_merge(live: Sequence[int], new: int) -> int:
    """The number of the first segment that is merged with the new documents, as all after it are.

    A segment is merged with those after it when they have grown as large. So each segment has at
    most half the documents of the one before, and a document is rewritten about as often as there
    are segments, which is the logarithm of the number of documents.

    Args:
        live: Live documents of each segment, the oldest first.
        new: Number of new documents.

    Returns:
        An index into `live`; its length if none is merged.
    """
    start, total = len(live), new
    while start and live[start - 1] <= max(total, _SMALL) and live[start - 1] + total <= CHEAP:
        start -= 1
        total += live[start]
    return start


def is_wasteful(rows: int, live: int) -> bool:
    """Whether a segment has many deleted rows and is small enough to be rewritten at once."""
    return live <= CHEAP and rows - live > DEAD_SHARE * rows
