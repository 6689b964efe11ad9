"""How well the cosines of an encoder follow people's judgement of sentence pairs (STS)."""

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from numbers import Real
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from sbertkit.data.sts import StsPair, StsSet, read_sts
from sbertkit.data.text import is_blank, printable
from sbertkit.errors import InputError, InputTypeError
from sbertkit.metrics import (
    Interval,
    mean_random_cosine,
    pearson,
    row_similarities,
    spearman,
    spearman_interval,
)


class TruncationReport(Protocol):
    """What STS asks of a report on encoding: the rows (from 0) that were cut."""

    @property
    def truncated(self) -> tuple[int, ...]:
        """Rows that were cut."""
        ...


class EncodedSentences(Protocol):
    """Vectors of shape (n, dim) in the order of the sentences, and the report on them."""

    @property
    def vectors(self) -> npt.NDArray[np.float32]:
        """One row for each sentence."""
        ...

    @property
    def report(self) -> TruncationReport:
        """What encoding met."""
        ...


class SentenceEncoder(Protocol):
    """What STS asks of an encoder."""

    def encode_with_report(self, texts: Sequence[str], /) -> EncodedSentences:
        """The vectors of the texts and the report on them."""
        ...


class Correlations(NamedTuple):
    """Rank and product-moment correlation with the gold scores; None where undefined."""

    spearman: float | None
    pearson: float | None


class SubsetScore(NamedTuple):
    """A sub-corpus: how many pairs, Spearman of the cosine, and its interval."""

    pairs: int
    spearman: float | None
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class StsDetails:
    """What stands behind a result, for a report.

    Attributes:
        pairs: The pairs, in order.
        cosines: Of each.
        cut: The distinct sentences that were cut at the encoder's limit.
    """

    pairs: tuple[StsPair, ...]
    cosines: tuple[float, ...]
    cut: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StsResult:
    """The correlation of an encoder's cosines with gold scores.

    Attributes:
        spearman: Rank correlation, from -1 to 1; None where it is undefined.
        pearson: Product-moment correlation, from -1 to 1; None where it is undefined.
        reason: Why the correlations are undefined, else None.
        interval: 95 % bootstrap interval of ``spearman`` over the pairs; None where undefined.
        pairs: Pairs compared.
        split: The split that was read, ``all`` for the rows of all, None where there are none.
        source: The file that was read, None for pairs from elsewhere.
        sentences: Distinct sentences encoded.
        truncated: Distinct sentences that were cut at the encoder's limit.
        mean_random_cosine: Mean cosine of two distinct sentences, a sign of anisotropy when high.
        similarities: Correlations by ``cosine``, ``dot``, negative ``euclidean`` and ``manhattan``
            distance.
        subsets: By name the sub-corpora of the data, where it has such.
        weighted_mean: Mean of their ``spearman``, weighted by their pairs, as SemEval's tasks are
            often reported; None where one of them is undefined or there are none.
        details: The pairs with their cosines; not part of `to_dict`.
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
    details: StsDetails = field(repr=False, compare=False)

    def to_dict(self) -> dict[str, object]:
        """The result as strict JSON can hold it: None for what is undefined, never NaN."""
        content = asdict(self)
        del content["details"]
        return content | {
            "interval": _as_dict(self.interval),
            "similarities": {name: one._asdict() for name, one in self.similarities.items()},
            "subsets": {
                name: {**score._asdict(), "interval": _as_dict(score.interval)}
                for name, score in self.subsets.items()
            },
        }


class MeanScore(NamedTuple):
    """A mean Spearman correlation, and the names of the sets that went into it and that did not."""

    value: float | None
    used: tuple[str, ...]
    left_out: tuple[str, ...]


def evaluate_sts(
    encoder: SentenceEncoder,
    pairs_or_path: str | os.PathLike[str] | StsSet | Iterable[tuple[float, str, str]],
    *,
    split: str | None = None,
) -> StsResult:
    """The correlation of cosines with gold scores over scored sentence pairs.

    Each distinct sentence is encoded once; cosines are computed in float64. The same vectors
    give the same result, interval included. A zero vector has cosine 0 with any other.

    Args:
        encoder: Gives the vectors.
        pairs_or_path: A file for ``read_sts``, what it read, or score, sentence, sentence triples.
        split: Which split of a file to use, see ``read_sts``.

    Raises:
        InputError: Bad or no pairs, ``split`` for pairs that do not come from a file, or vectors
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
    data = _as_set(pairs_or_path, split)
    rows: dict[str, int] = {}
    for pair in data.pairs:
        rows.setdefault(pair.first, len(rows))
        rows.setdefault(pair.second, len(rows))
    encoded = encoder.encode_with_report(list(rows))
    vectors = encoded.vectors
    _check_vectors(vectors, list(rows))
    gold = np.array([pair.score for pair in data.pairs], dtype=np.float64)
    left = np.array([rows[pair.first] for pair in data.pairs], dtype=np.intp)
    right = np.array([rows[pair.second] for pair in data.pairs], dtype=np.intp)
    cut = set(encoded.report.truncated)
    similarities = row_similarities(vectors, left, right)
    cosines = similarities["cosine"]
    rank = spearman(gold, cosines)
    subsets = {
        name: _subset_score(gold, cosines, np.array(places, dtype=np.intp))
        for name, places in data.subsets.items()
    }
    return StsResult(
        spearman=rank.value,
        pearson=pearson(gold, cosines).value,
        reason=rank.reason,
        interval=spearman_interval(gold, cosines),
        pairs=len(data.pairs),
        split=data.split,
        source=data.source or None,
        sentences=len(rows),
        truncated=len(cut),
        mean_random_cosine=mean_random_cosine(vectors),
        similarities={
            name: Correlations(spearman(gold, values).value, pearson(gold, values).value)
            for name, values in similarities.items()
        },
        subsets=subsets,
        weighted_mean=_weighted_mean(subsets),
        details=StsDetails(
            data.pairs,
            tuple(cosines.tolist()),
            tuple(sentence for row, sentence in enumerate(rows) if row in cut),
        ),
    )


def mean_score(results: Mapping[str, StsResult]) -> MeanScore:
    """The unweighted mean of the Spearman correlations of several named sets.

    Undefined ones are left out, by name; the value is None where none is defined.
    """
    defined = {name: r.spearman for name, r in results.items() if r.spearman is not None}
    left_out = tuple(name for name in results if name not in defined)
    value = math.fsum(defined.values()) / len(defined) if defined else None
    return MeanScore(value, tuple(defined), left_out)


def _subset_score(
    gold: npt.NDArray[np.float64], cosines: npt.NDArray[np.float64], places: npt.NDArray[np.intp]
) -> SubsetScore:
    own, predicted = gold[places], cosines[places]
    return SubsetScore(
        len(places), spearman(own, predicted).value, spearman_interval(own, predicted)
    )


def _weighted_mean(subsets: Mapping[str, SubsetScore]) -> float | None:
    scores = [(score.pairs, score.spearman) for score in subsets.values()]
    defined = [(pairs, value) for pairs, value in scores if value is not None]
    if not defined or len(defined) < len(scores):
        return None
    total = sum(pairs for pairs, _ in defined)
    return math.fsum(pairs * value for pairs, value in defined) / total


def _as_dict(interval: Interval | None) -> dict[str, float] | None:
    return None if interval is None else interval._asdict()


def _as_set(
    pairs_or_path: str | os.PathLike[str] | StsSet | Iterable[tuple[float, str, str]],
    split: str | None,
) -> StsSet:
    if isinstance(pairs_or_path, str | os.PathLike):
        return read_sts(pairs_or_path, split=split)
    if split is not None:
        raise InputError(
            f"split {split!r} was asked of pairs that are read already; pass a file, or the pairs "
            "of that split alone"
        )
    if isinstance(pairs_or_path, StsSet):
        return pairs_or_path
    if not isinstance(pairs_or_path, Iterable):
        raise InputTypeError(
            "expected a path or an iterable of (score, sentence, sentence), found "
            f"{type(pairs_or_path).__name__}"
        )
    pairs = tuple(_checked_pair(row, item) for row, item in enumerate(pairs_or_path, 1))
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


def _check_vectors(vectors: npt.NDArray[np.float32], sentences: Sequence[str]) -> None:
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
