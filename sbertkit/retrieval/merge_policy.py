"""Which segments are worth writing anew as one: few segments to search, little work a change."""

from collections.abc import Sequence

CHEAP = 20_000
"""Documents up to which segments are merged within the change that makes it worth while."""

DEAD_SHARE = 0.2
"""Share of deleted rows above which a segment is written anew."""

_SMALL = 1_000
"""Documents up to which a segment is never left beside a newer one."""


def tail_to_merge(live: Sequence[int], new: int) -> int:
    """From which segment on all are merged with the new documents.

    A segment is merged with what comes after it when that has grown as large. Sizes so fall at
    least by half from one to the next, and a document is written anew about as often as the
    number of segments, which is the logarithm of their documents.

    Args:
        live: Live documents of each segment, the oldest first.
        new: Number of new documents.

    Returns:
        An index into `live`; its length where none is to be merged.
    """
    start, total = len(live), new
    while start and live[start - 1] <= max(total, _SMALL) and live[start - 1] + total <= CHEAP:
        start -= 1
        total += live[start]
    return start


def is_wasteful(rows: int, live: int) -> bool:
    """Whether a segment has many deleted rows and is small enough to be written anew at once."""
    return live <= CHEAP and rows - live > DEAD_SHARE * rows
