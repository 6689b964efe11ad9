"""The kinds of vector index, one module each; `table` has them by name."""

NAMES = ("flat", "hnsw", "ivf", "ivfpq", "factory")
"""Of all kinds; here, so that a command line that names them need not load them."""

AUTO_FLAT_LIMIT = 50_000
"""Vectors up to which `auto` searches exhaustively."""
