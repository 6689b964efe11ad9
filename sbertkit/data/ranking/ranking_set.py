"""Pairs of query and document with a label, and where they came from."""

from dataclasses import dataclass
from typing import NamedTuple

from sbertkit.errors import InputError, InputTypeError

RELEVANT = 0.5
"""Labels from which on a document counts as relevant."""


class RankingPair(NamedTuple):
    """A query, a document, and whether it is relevant.

    Attributes:
        query: Its text.
        document: Its text.
        group: 0 for a relevant document, 1 for another.
        label: From 0 to 1 for the most relevant.
        score: A teacher's score of the pair, on any scale; None where there is none.
    """

    query: str
    document: str
    group: int
    label: float
    score: float | None = None

    @classmethod
    def of(
        cls, query: str, document: str, label: float, score: float | None = None
    ) -> "RankingPair":
        """The pair with that label."""
        return cls(query, document, int(label < RELEVANT), label, score)


@dataclass(frozen=True, slots=True)
class RankingSource:
    """A file or folder that was read.

    Attributes:
        source: The path as it was given.
        sha256: A hash of its content.
        rows: Pairs made of it.
        skipped: Judged pairs without the text of the query or document, left out.
    """

    source: str
    sha256: str
    rows: int
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class RankingSet:
    """The pairs of some sources, in their order.

    Attributes:
        pairs: The pairs.
        sources: What was read.

    Raises:
        InputError: A label out of range.
        InputTypeError: Something else than pairs of texts.
    """

    pairs: tuple[RankingPair, ...]
    sources: tuple[RankingSource, ...] = ()

    def __post_init__(self) -> None:
        for number, pair in enumerate(self.pairs):
            known: object = pair
            if not isinstance(known, RankingPair) or not all(
                isinstance(text, str) for text in known[:2]
            ):
                raise InputTypeError(
                    f"pair {number}: expected a RankingPair of two texts, found {known!r:.100}"
                )
            if not 0 <= pair.label <= 1 or pair.group != int(pair.label < RELEVANT):
                raise InputError(
                    f"pair {number}: expected a label from 0 to 1 and its group, found "
                    f"{pair.label} and {pair.group}; make pairs with RankingPair.of"
                )
