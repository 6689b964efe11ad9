"""How well the cosines of an encoder follow human scores of sentence pairs (STS)."""

import hashlib
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sbertkit.arguments import path_text
from sbertkit.arrays import Vectors
from sbertkit.data.distinct import distinct_texts
from sbertkit.data.named import local_path
from sbertkit.data.sts import StsPair, StsSet, read_sts
from sbertkit.data.text import is_blank, printable
from sbertkit.encoder.protocols import EncoderLike
from sbertkit.errors import InputError, InputTypeError
from sbertkit.evaluation.text_counts import TextCounts
from sbertkit.metrics import (
    Interval,
    mean_random_cosine,
    pearson,
    row_similarities,
    spearman,
    spearman_interval,
)
from sbertkit.schema import Digest, to_dict

StsData = str | os.PathLike[str] | StsSet | Iterable[tuple[float, str, str]]
"""A file for `read_sts` or the name of a data set, what was read, or triples of score, sentence,
sentence."""


class Correlations(NamedTuple):
    """Rank and product-moment correlation with the gold scores; None where undefined."""

    spearman: float | None
    pearson: float | None


class SubsetScore(NamedTuple):
    """A sub-corpus: its number of pairs, Spearman of the cosine, and the interval of that."""

    pairs: int
    spearman: float | None
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class PairValues:
    """What two encoders are compared by, pair by pair.

    Attributes:
        sha256: A hash over the pairs, gold scores and sentences, in order.
        gold: The gold score of each pair.
        cosines: The cosine of each pair.
    """

    sha256: Digest
    gold: tuple[float, ...]
    cosines: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class StsDetails:
    """The pairs behind a result, for a report.

    Attributes:
        pairs: The pairs, in order.
        cosines: The cosine of each pair.
        truncated: The distinct sentences that were truncated at the encoder's token limit.
    """

    pairs: tuple[StsPair, ...]
    cosines: tuple[float, ...]
    truncated: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StsResult:
    """The correlation of an encoder's cosines with gold scores.

    Attributes:
        spearman: Rank correlation, from -1 to 1; None where it is undefined.
        pearson: Product-moment correlation, from -1 to 1; None where it is undefined.
        reason: Why the correlations are undefined, else None.
        interval: 95 % bootstrap interval of `spearman` over the pairs; None where undefined.
        pairs: Number of pairs compared.
        split: The split that was read, ``all`` for the rows of all, None where there are none.
        source: The file that was read, None for pairs from memory.
        sentences: Number of distinct sentences encoded.
        truncated: Number of distinct sentences truncated at the encoder's token limit.
        mean_random_cosine: Mean cosine of two distinct sentences; high values mean anisotropy.
        similarities: Correlations by ``cosine``, ``dot``, negative ``euclidean`` and ``manhattan``
            distance.
        subsets: By name the sub-corpora of the data, where it has such.
        weighted_mean: Mean of their `spearman`, weighted by their pairs, as often reported for the
            SemEval tasks; None where one of them is undefined or there are none.
        encoded: Counts of the distinct sentences.
        details: The pairs with their cosines.
    """

    spearman: float | None
    pearson: float | None
    reason: str | None
    interval: Interval | None
    pairs: int
    split: str | None
    source: str | None
    sentences: int
    truncated: int
    mean_random_cosine: float | None
    similarities: Mapping[str, Correlations]
    subsets: Mapping[str, SubsetScore]
    weighted_mean: float | None
    encoded: TextCounts
    details: StsDetails = field(repr=False, compare=False)

    def per_pair(self) -> PairValues:
        """The values of each pair."""
        pairs = self.details.pairs
        digest = hashlib.sha256()
        for pair in pairs:
            digest.update(json.dumps(tuple(pair)).encode() + b"\n")
        gold = tuple(pair.score for pair in pairs)
        return PairValues(digest.hexdigest(), gold, self.details.cosines)

    def to_dict(self) -> dict[str, Any]:
        """The result with `per_pair` in place of `details`, as strict JSON can hold it."""
        return {**to_dict(self, without=("details",)), "per_pair": to_dict(self.per_pair())}


class MeanScore(NamedTuple):
    """A mean Spearman correlation, and the names of the sets with and without a defined score."""

    value: float | None
    used: tuple[str, ...]
    left_out: tuple[str, ...]


def evaluate_sts(encoder: EncoderLike, data: StsData, *, split: str | None = None) -> StsResult:
    """The correlation of cosines with gold scores over scored sentence pairs.

    Each distinct sentence is encoded once; cosines are computed in float64. The same vectors
    give the same result, interval included. A zero vector has cosine 0 with any other.

    Args:
        encoder: The encoder to evaluate.
        data: A file for `read_sts`, the name of a data set (``stsb``), what `read_sts` read, or
            triples of score, sentence, sentence.
        split: Which split of a file to use, see `read_sts`.

    Raises:
        InputError: Bad or no pairs, `split` for pairs that do not come from a file, or vectors
            that are not finite or not one for each sentence.
        InputTypeError: A pair is not a number and two strings.
        MissingFile: The file does not exist.

    Source: Reimers & Gurevych 2019, Sentence-BERT, section 4.1; Spearman is the figure to compare
        (Reimers, Beyer & Gurevych 2016, Task-Oriented Intrinsic Evaluation of STS).
    """
    if not hasattr(encoder, "encode_with_report"):
        raise InputTypeError(
            f"expected an encoder, found {type(encoder).__name__}; load one with Encoder.load"
        )
    sts = _as_set(data, split)
    sentences, rows = distinct_texts((pair.first, pair.second) for pair in sts.pairs)
    encoded = encoder.encode_with_report(sentences)
    vectors = encoded.vectors
    _check_vectors(vectors, sentences)
    gold = np.array([pair.score for pair in sts.pairs], dtype=np.float64)
    similarities = row_similarities(vectors, *rows.T)
    cosines = similarities["cosine"]
    rank = spearman(gold, cosines)
    truncated = tuple(sentences[row] for row in encoded.report.truncated)
    subsets = {
        name: _subset_score(gold[list(members)], cosines[list(members)])
        for name, members in sts.subsets.items()
    }
    return StsResult(
        spearman=rank.value,
        pearson=pearson(gold, cosines).value,
        reason=rank.reason,
        interval=spearman_interval(gold, cosines),
        pairs=len(sts.pairs),
        split=sts.split,
        source=sts.source or None,
        sentences=len(sentences),
        truncated=len(truncated),
        mean_random_cosine=mean_random_cosine(vectors),
        similarities={
            name: Correlations(spearman(gold, values).value, pearson(gold, values).value)
            for name, values in similarities.items()
        },
        subsets=subsets,
        weighted_mean=_weighted_mean(subsets),
        encoded=TextCounts.of(encoded.report),
        details=StsDetails(sts.pairs, tuple(cosines.tolist()), truncated),
    )


def mean_score(results: Mapping[str, StsResult]) -> MeanScore:
    """The unweighted mean of the Spearman correlations of several named sets.

    Undefined ones are left out, by name; the value is None where none is defined.
    """
    defined = {name: r.spearman for name, r in results.items() if r.spearman is not None}
    left_out = tuple(name for name in results if name not in defined)
    value = math.fsum(defined.values()) / len(defined) if defined else None
    return MeanScore(value, tuple(defined), left_out)


def _subset_score(gold: npt.NDArray[np.float64], cosines: npt.NDArray[np.float64]) -> SubsetScore:
    return SubsetScore(len(gold), spearman(gold, cosines).value, spearman_interval(gold, cosines))


def _weighted_mean(subsets: Mapping[str, SubsetScore]) -> float | None:
    scores = [(score.pairs, score.spearman) for score in subsets.values()]
    defined = [(pairs, value) for pairs, value in scores if value is not None]
    if not defined or len(defined) < len(scores):
        return None
    total = sum(pairs for pairs, _ in defined)
    return math.fsum(pairs * value for pairs, value in defined) / total


def _as_set(data: StsData, split: str | None) -> StsSet:
    if isinstance(data, str | os.PathLike):
        return read_sts(local_path(path_text(data)), split=split)
    if split is not None:
        raise InputError(
            f"split {split!r} was given for pairs in memory; pass a file, or the pairs of that "
            "split alone"
        )
    if isinstance(data, StsSet):
        return data
    if not isinstance(data, Iterable):
        raise InputTypeError(
            "expected a path or an iterable of (score, sentence, sentence), found "
            f"{type(data).__name__}"
        )
    pairs = tuple(_checked_pair(row, item) for row, item in enumerate(data, 1))
    if not pairs:
        raise InputError("expected scored sentence pairs, found none")
    return StsSet(pairs, None, (), "")


def _checked_pair(row: int, item: object) -> StsPair:
    match item:
        case (Real() as score, str() as first, str() as second):
            pass
        case _:
            raise InputTypeError(
                f"pair {row}: expected (score, sentence, sentence), a number and two str, found "
                f"{printable(repr(item), 120)}"
            )
    try:
        number = float(score)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise InputError(f"pair {row}: expected a finite score, found {number}")
    if is_blank(first) or is_blank(second):
        raise InputError(f"pair {row}: expected two sentences, found a blank one; leave it out")
    return StsPair(number, first, second)


def _check_vectors(vectors: Vectors, sentences: Sequence[str]) -> None:
    if vectors.ndim != 2 or len(vectors) != len(sentences):
        raise InputError(
            f"expected vectors of shape ({len(sentences)}, dim) from the encoder, found the shape "
            f"{vectors.shape}"
        )
    bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if bad.size:
        raise InputError(
            f"expected finite vectors from the encoder, found {bad.size} with NaN or infinity, the "
            f"first for {printable(sentences[bad[0]])!r}; check the model and its precision"
        )
