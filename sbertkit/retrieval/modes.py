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

HIT_CHOICES = ("documents", "passages")
"""What a hit is."""


def checked_mode(mode: str) -> str:
    """A mode.

    Raises:
        InputError: There is no such mode.
    """
    if mode not in MODES:
        raise InputError(f"mode must be one of {', '.join(MODES)}, not {mode!r}")
    return mode
