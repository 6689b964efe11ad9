"""Vector segments: how unit vectors are stored and searched; knows rows, never texts."""

from sbertkit.index.kinds import AUTO_FLAT_LIMIT, KINDS, check_kind, choose_kind
from sbertkit.index.live_rows import LiveRows
from sbertkit.index.opened_file import OpenedFile
from sbertkit.index.segment import (
    BUILD_FILE,
    INDEX_FILE,
    VECTORS_FILE,
    Neighbours,
    VectorSegment,
    segment_files,
    unit_pools,
    write_vectors,
)

__all__ = [
    "AUTO_FLAT_LIMIT",
    "BUILD_FILE",
    "INDEX_FILE",
    "KINDS",
    "VECTORS_FILE",
    "LiveRows",
    "Neighbours",
    "OpenedFile",
    "VectorSegment",
    "check_kind",
    "choose_kind",
    "segment_files",
    "unit_pools",
    "write_vectors",
]
