"""Texts that occur several times, encoded once."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class DistinctTexts(NamedTuple):
    """The distinct texts of pairs, and where each pair finds its own.

    Attributes:
        texts: In the order in which they first occur.
        rows: Row of each text of each pair, (pairs, 2).
    """

    texts: list[str]
    rows: npt.NDArray[np.intp]


def distinct_texts(pairs: Iterable[Sequence[str]]) -> DistinctTexts:
    """The distinct texts of pairs of texts."""
    numbers: dict[str, int] = {}
    rows = [[numbers.setdefault(text, len(numbers)) for text in pair] for pair in pairs]
    return DistinctTexts(list(numbers), np.array(rows, np.intp).reshape(-1, 2))
