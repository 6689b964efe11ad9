"""Scored sentence pairs, and where they came from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


class StsPair(NamedTuple):
    """Two sentences and how alike people judged them, on the scale of their data set."""

    score: float
    first: str
    second: str


@dataclass(frozen=True, slots=True)
class StsSet:
    """The pairs read from a file or folder.

    Attributes:
        pairs: In the order of the source.
        split: The split that was read, ``all`` for the rows of all, None where there are none.
        splits: The splits of the source, in the order of their first rows.
        source: The path as it was given.
        subsets: Places in `pairs` by the name of the sub-corpus, where the source has such.
    """

    pairs: tuple[StsPair, ...]
    split: str | None
    splits: tuple[str, ...]
    source: str
    subsets: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
