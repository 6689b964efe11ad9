"""Bad lines of a file, told in one message."""

from collections.abc import Sequence
from typing import NamedTuple

from sbertkit.errors import InputError

_MOST_LISTED = 10


def is_comment(text: str) -> bool:
    """Whether a line that cannot be read is a comment, as trec_eval 10 has them."""
    return text.startswith("#")


class BadRow(NamedTuple):
    """A line that is refused."""

    number: int
    reason: str


def refuse(name: str, bad: Sequence[BadRow], unit: str = "line") -> None:
    """Nothing when there are no bad lines.

    Raises:
        InputError: There are some; the first ten are listed.
    """
    if not bad:
        return
    listed = [f"{row.number} ({row.reason})" for row in bad[:_MOST_LISTED]]
    if len(bad) > _MOST_LISTED:
        listed.append(f"and {len(bad) - _MOST_LISTED:,} more")
    noun, them = (f"bad {unit}", "it") if len(bad) == 1 else (f"bad {unit}s", "them")
    raise InputError(f"{name}: {len(bad):,} {noun}: {', '.join(listed)}; correct or remove {them}")
