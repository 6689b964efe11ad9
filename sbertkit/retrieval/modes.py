"""The modes of a search, and the ways in which vectors and words become one."""

DENSE = "dense"
LEXICAL = "lexical"
HYBRID = "hybrid"
MODES = (DENSE, LEXICAL, HYBRID)
"""What a search compares: vectors, words, or both."""

CONVEX = "convex"
RRF = "rrf"
FUSIONS = (CONVEX, RRF)
"""A convex combination of scores, or the sum of reciprocal ranks."""

HIT_CHOICES = ("documents", "passages")
"""What a hit is."""
