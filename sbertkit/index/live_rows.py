"""The rows that a search may find: not deleted, and matching its filter."""

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from sbertkit.index.faiss_library import load_faiss

Mask = npt.NDArray[np.bool_]


class LiveRows:
    """Which rows may be found; safe to share between threads.

    Attributes:
        mask: Whether each row is live (neither deleted nor filtered out), (n,).
        count: Number of live rows.
    """

    def __init__(self, mask: Mask) -> None:
        self.mask = mask
        self.count = int(np.count_nonzero(mask))
        self._parts: dict[tuple[int, int], LiveRows] = {}

    @cached_property
    def selector(self) -> Any:
        """The live rows as a selector for faiss."""
        return load_faiss().IDSelectorBitmap(np.packbits(self.mask, bitorder="little"))

    @cached_property
    def numbers(self) -> npt.NDArray[np.int64]:
        """The numbers of the live rows, ascending."""
        return np.flatnonzero(self.mask)

    def part(self, start: int, end: int) -> "LiveRows":
        """The live rows from `start` to before `end`, numbered from there."""
        if (start, end) == (0, len(self.mask)):
            return self
        known = self._parts.get((start, end))
        if known is None:
            known = self._parts.setdefault((start, end), LiveRows(self.mask[start:end]))
        return known
