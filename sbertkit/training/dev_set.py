"""The dev set: scored sentence pairs that show whether training helps."""

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from sbertkit.arguments import path_text
from sbertkit.data.distinct import distinct_texts
from sbertkit.data.named import local_path
from sbertkit.data.ranking import read_ranking
from sbertkit.data.sts import StsSet, read_sts
from sbertkit.data.sts.sts_set import StsPair
from sbertkit.data.text import folded
from sbertkit.encoder import Encoder
from sbertkit.errors import InputError
from sbertkit.metrics import Interval, row_cosines, spearman, spearman_interval
from sbertkit.storage import sha256_file

_SPLITS = ("dev",)


MEASURES = {"spearman": "Spearman", "ndcg": "nDCG@10"}
"""What dev scores are called, by the name of the measure in records."""


class DevScore(NamedTuple):
    """The score of an encoder, and its 95 % bootstrap interval; None where it is undefined."""

    value: float | None
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class DevSet:
    """Pairs to score an encoder on, by Spearman's correlation of cosines with their scores.

    Attributes:
        pairs: What was read.
        sha256: See `pairs_sha256`.
        measure: One of `MEASURES`.
    """

    pairs: StsSet
    sha256: str

    measure: ClassVar[str] = "spearman"

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> "DevSet":
        """The pairs of a file or folder for `read_sts`, or of a named data set.

        Of several splits ``dev`` is read, under any of its names. The source of the pairs is the
        path or the name as it was given, or ``pipe``.

        Raises:
            InputError: All scores are equal, a named set is not here yet, or see `read_sts`.
            MissingFile: The file does not exist.
        """
        given = path_text(path)
        place = local_path(given)
        source = given if Path(place).is_file() or Path(place).is_dir() else "pipe"
        pairs = replace(read_sts(place, prefer=_SPLITS), source=source)
        scores = {pair.score for pair in pairs.pairs}
        if len(scores) < 2:
            raise InputError(
                f"{pairs.source}: expected pairs with different scores as dev set, found "
                f"{len(pairs.pairs)} with the score {scores.pop():g}; they allow no correlation"
            )
        return cls(pairs, pairs_sha256(place, pairs.pairs))

    def score(self, encoder: Encoder, *, interval: bool = False) -> DevScore:
        """The score of an encoder; it is put in evaluation mode."""
        texts, rows = distinct_texts((pair.first, pair.second) for pair in self.pairs.pairs)
        cosines = row_cosines(encoder.encode(texts), *rows.T)
        gold = np.array([pair.score for pair in self.pairs.pairs])
        return DevScore(
            spearman(gold, cosines).value, spearman_interval(gold, cosines) if interval else None
        )

    def overlap(self, rows: Sequence[tuple[Any, ...]]) -> "Overlap":
        """Rows whose first two texts are a dev pair, in any order; case and blanks do not count.

        A row of one text is none.
        """
        dev_pairs = {
            frozenset((folded(pair.first), folded(pair.second))) for pair in self.pairs.pairs
        }
        sentences = {sentence for pair in dev_pairs for sentence in pair}
        found, shared = [], 0
        for number, row in enumerate(rows):
            both = frozenset(folded(text) for text in row[:2] if isinstance(text, str))
            if both in dev_pairs:
                found.append(number)
            elif not both.isdisjoint(sentences):
                shared += 1
        return Overlap(tuple(found), shared)


class RankingDevSet(DevSet):
    """Labeled pairs of query and document to score a re-ranker on."""

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> "RankingDevSet":
        """The pairs of a file or folder for `read_ranking`; of a BEIR folder, its split ``dev``.

        Raises:
            InputError: All labels are equal, or see `read_ranking`.
            MissingFile: The file does not exist.
        """
        found = read_ranking(path, split=_SPLITS[0])
        pairs = tuple(StsPair(one.label, one.query, one.document) for one in found.pairs)
        if len({pair.score for pair in pairs}) < 2:
            raise InputError(
                f"{path}: expected relevant documents and others as dev set, found {len(pairs)} "
                "pairs of one kind; they allow no correlation"
            )
        source = found.sources[0]
        return cls(StsSet(pairs, None, (), source.source), source.sha256)

    def score(self, encoder: Encoder, *, interval: bool = False) -> DevScore:
        """Spearman's correlation of scores with labels."""
        rows: Any = [(pair.first, pair.second) for pair in self.pairs.pairs]
        scores = encoder.encode(rows)[:, 0].astype(np.float64)
        gold = np.array([pair.score for pair in self.pairs.pairs])
        return DevScore(
            spearman(gold, scores).value, spearman_interval(gold, scores) if interval else None
        )


def pairs_sha256(path: str, pairs: Sequence[StsPair]) -> str:
    """A hash of the file's bytes; of the pairs themselves, where a folder or a pipe was read."""
    if Path(path).is_file():
        return sha256_file(Path(path))
    return hashlib.sha256(repr([tuple(pair) for pair in pairs]).encode()).hexdigest()


class Overlap(NamedTuple):
    """Rows that are dev pairs, and how many others share one sentence with the dev set."""

    rows: tuple[int, ...]
    shared: int
