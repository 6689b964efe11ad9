"""The modes of a search, and the ways in which vectors and words become one."""

from sbertkit.errors import InputError

DENSE = "dense"
LEXICAL = "lexical"
HYBRID = "hybrid"
MODES = (DENSE, LEXICAL, HYBRID)
"""What a search compares: vectors, words, or both."""

CONVEX = "convex"
RRF = "rrf"
FUSIONS = (CONVEX, RRF)
"""A convex combination of scores, or the sum of reciprocal ranks."""

DEFAULT_WEIGHT = 0.5
"""Of vectors in a convex combination, where none was measured or given."""

PASSAGES = "passages"
HIT_CHOICES = ("documents", PASSAGES)
"""What a hit is."""


def checked_mode(mode: str) -> str:
    """A mode.

    Raises:
        InputError: There is no such mode.
    """
    if mode not in MODES:
        raise InputError(f"mode must be one of {', '.join(MODES)}, not {mode!r}")
    return mode


def mode_taken(mode: str | None, hits: str, default: str) -> str:
    """The mode of a search for texts: the one that is named, dense for passages, or the index's."""
    if mode is not None:
        return mode
    return DENSE if hits == PASSAGES else default
