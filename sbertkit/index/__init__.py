"""Vector segments: how unit vectors are stored and searched; knows rows, never texts."""

from sbertkit.index.kinds import AUTO_FLAT_LIMIT, KINDS, check_kind, choose_kind
from sbertkit.index.segment import VECTORS_FILE, Neighbours, VectorSegment, write_vectors

__all__ = [
    "AUTO_FLAT_LIMIT",
    "KINDS",
    "VECTORS_FILE",
    "Neighbours",
    "VectorSegment",
    "check_kind",
    "choose_kind",
    "write_vectors",
]
