"""The dev set: scored sentence pairs that say whether training helps."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from sbertkit.data.nli import NliPair
from sbertkit.data.sts import StsSet, read_sts
from sbertkit.encoder import Encoder
from sbertkit.errors import InputError
from sbertkit.metrics import Interval, row_cosines, spearman, spearman_interval
from sbertkit.storage import sha256_file

_SPLITS = ("dev",)


class DevScore(NamedTuple):
    """Spearman's correlation of cosines with gold scores, and its 95 % bootstrap interval."""

    spearman: float | None
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class DevSet:
    """Pairs to score an encoder on.

    Attributes:
        pairs: What was read.
        sha256: Hash of the file.
    """

    pairs: StsSet
    sha256: str

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> "DevSet":
        """The pairs of a file for `read_sts`, from its split ``dev`` where it has several.

        Raises:
            InputError: All scores are equal, or see `read_sts`.
            MissingFile: The file does not exist.
        """
        pairs = read_sts(path, prefer=_SPLITS)
        scores = {pair.score for pair in pairs.pairs}
        if len(scores) < 2:
            raise InputError(
                f"{pairs.source}: expected pairs with different scores as dev set, found "
                f"{len(pairs.pairs)} with the score {scores.pop():g}; they allow no correlation"
            )
        return cls(pairs, sha256_file(Path(path)))

    def score(self, encoder: Encoder, *, interval: bool = False) -> DevScore:
        """The score of an encoder; it is put in evaluation mode."""
        encoder.network.eval()
        rows: dict[str, int] = {}
        sides = [
            (rows.setdefault(pair.first, len(rows)), rows.setdefault(pair.second, len(rows)))
            for pair in self.pairs.pairs
        ]
        vectors = encoder.encode(list(rows))
        left, right = np.array(sides, dtype=np.intp).T
        cosines = row_cosines(vectors, left, right)
        gold = np.array([pair.score for pair in self.pairs.pairs])
        return DevScore(
            spearman(gold, cosines).value, spearman_interval(gold, cosines) if interval else None
        )

    def overlap(self, pairs: Sequence[NliPair]) -> "Overlap":
        """Which training pairs are dev pairs, in either order; case and blanks do not count."""
        dev_pairs = {
            frozenset((_folded(pair.first), _folded(pair.second))) for pair in self.pairs.pairs
        }
        sentences = {sentence for pair in dev_pairs for sentence in pair}
        rows, shared = [], 0
        for row, pair in enumerate(pairs):
            both = frozenset((_folded(pair.premise), _folded(pair.hypothesis)))
            if both in dev_pairs:
                rows.append(row)
            elif not both.isdisjoint(sentences):
                shared += 1
        return Overlap(tuple(rows), shared)


class Overlap(NamedTuple):
    """Rows that are dev pairs, and how many others share one sentence with the dev set."""

    rows: tuple[int, ...]
    shared: int


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())
