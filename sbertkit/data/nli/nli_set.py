"""Labeled pairs of premise and hypothesis, and where they came from."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sbertkit.data.nli_labels import NLI_LABELS
from sbertkit.data.text import has_surrogates, is_blank, printable
from sbertkit.errors import InputError, InputTypeError


class NliPair(NamedTuple):
    """A premise, a hypothesis, and the index in `NLI_LABELS` of what the first says of the second.

    The label is 0 for entailment, 1 for neutral, 2 for contradiction.
    """

    premise: str
    hypothesis: str
    label: int


@dataclass(frozen=True, slots=True)
class NliSource:
    """A file or folder that was read.

    Attributes:
        source: The path as it was given.
        sha256: Of the file's bytes as they lie on the disk, in hexadecimal; for a folder of its
            list, a line ``<sha256>  <path in the folder>`` for each file read, in that order.
        rows: Rows kept.
        skipped: Rows without a gold label, which are left out.
        duplicates: Kept rows that repeat an earlier row of the set exactly.
        other_splits: Rows of other splits, which are left out.
    """

    source: str
    sha256: str
    rows: int
    skipped: int
    duplicates: int
    other_splits: int = 0


@dataclass(frozen=True, slots=True)
class NliSet:
    """The labeled pairs of all sources.

    Attributes:
        pairs: In the order of the sources and of their rows.
        sources: In the order in which they were given.
    """

    pairs: tuple[NliPair, ...]
    sources: tuple[NliSource, ...]

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the labels in the order of their indices."""
        return NLI_LABELS

    @property
    def counts(self) -> dict[str, int]:
        """How many pairs each label has, by its name."""
        found = Counter(pair.label for pair in self.pairs)
        return {name: found[index] for index, name in enumerate(NLI_LABELS)}

    @property
    def skipped(self) -> int:
        """Rows without a gold label, which were left out."""
        return sum(source.skipped for source in self.sources)


def check_pairs(pairs: Sequence[object]) -> None:
    """Nothing, if the pairs are what `read_nli` would give: for sets that a caller made by hand.

    Raises:
        InputError: No pair, a blank text, an unpaired surrogate, or a label that is none.
        InputTypeError: Something else than (premise, hypothesis, label).
    """
    if not pairs:
        raise InputError("expected labeled pairs, found none")
    labels = range(len(NLI_LABELS))
    for row, pair in enumerate(pairs):
        match pair:
            case (str() as premise, str() as hypothesis, int() as label):
                pass
            case _:
                raise InputTypeError(
                    f"pair {row}: expected (premise, hypothesis, label), two str and an int, found "
                    f"{printable(repr(pair))}"
                )
        if label not in labels:
            raise InputError(f"pair {row}: expected a label from 0 to 2, found {label}")
        for text in (premise, hypothesis):
            if is_blank(text) or has_surrogates(text):
                fault = "blank" if is_blank(text) else "with an unpaired surrogate"
                raise InputError(f"pair {row}: expected two texts, found one that is {fault}")


class Duplicates(NamedTuple):
    """Duplicate pairs."""

    rows: list[int]
    """Places of the rows that repeat an earlier one exactly, in order."""
    contradictory: int
    """How many pairs of premise and hypothesis have more than one label."""


def find_duplicates(pairs: Sequence[NliPair]) -> Duplicates:
    """Which rows are duplicates, found with a few bytes per row."""
    # Equal texts have equal hashes; only the few rows that share one are compared themselves.
    hashes = np.fromiter((hash(pair[:2]) for pair in pairs), np.int64, len(pairs))
    order = np.argsort(hashes, kind="stable")
    equal = hashes[order[1:]] == hashes[order[:-1]]
    shared = np.zeros(len(pairs), np.bool_)
    shared[order[1:][equal]] = True
    shared[order[:-1][equal]] = True
    rows = []
    labels: dict[tuple[str, str], set[int]] = {}
    for place in np.flatnonzero(shared).tolist():
        premise, hypothesis, label = pairs[place]
        known = labels.setdefault((premise, hypothesis), set())
        if label in known:
            rows.append(place)
        known.add(label)
    return Duplicates(rows, sum(len(known) > 1 for known in labels.values()))
