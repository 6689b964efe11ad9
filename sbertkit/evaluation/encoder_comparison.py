"""Two encoders on one's own texts without labels: which finds more, and what it costs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from sbertkit.arrays import Vectors
from sbertkit.data.documents import ReadOptions
from sbertkit.data.pseudo_pairs import PseudoPair
from sbertkit.data.sampling import Texts
from sbertkit.encoder import Encoder
from sbertkit.encoder.protocols import Kind
from sbertkit.encoder.report import EncodeReport
from sbertkit.errors import InputTypeError
from sbertkit.evaluation.diagnosis.pairs import SAMPLE, draw_pairs
from sbertkit.evaluation.diagnosis.scoring import found_ranks
from sbertkit.evaluation.text_counts import TextCounts
from sbertkit.formatting import percent, percent_interval
from sbertkit.metrics import PairedTest, paired_permutation
from sbertkit.progress import track
from sbertkit.schema import to_dict

Scores = npt.NDArray[np.float64]

_DEFAULT = ReadOptions()
ACCURACY = "accuracy"
RECIPROCAL_RANK = "reciprocal rank"


@dataclass(frozen=True, slots=True)
class ComparedEncoder:
    """One of two encoders.

    Attributes:
        model: Its name or folder.
        dim: Size of a vector.
        max_tokens: Tokens that a text may have; None for no limit.
        pooling: Name of the pooling.
        device: The kind of device that it ran on.
        precision: What it computed in.
        scores: ``accuracy``, the share of parts whose nearest other part is that of their own text,
            and ``reciprocal rank``, the mean over all parts; both 0 to 1, higher is better.
        seconds: Time to encode all parts.
        encoded: Counts of the parts that were encoded.
    """

    model: str
    dim: int
    max_tokens: int | None
    pooling: str
    device: str
    precision: str
    scores: Mapping[str, float]
    seconds: float
    encoded: TextCounts

    @property
    def texts_per_second(self) -> float:
        """How many parts were encoded in a second."""
        return self.encoded.texts / self.seconds if self.seconds > 0 else 0.0

    def to_dict(self) -> dict[str, Any]:
        """The encoder as strict JSON can hold it."""
        return {**to_dict(self), "texts_per_second": self.texts_per_second}


@dataclass(frozen=True, slots=True)
class EncoderComparison:
    """Two encoders on the same pairs of parts of texts.

    Attributes:
        documents: Number of documents in the corpus.
        texts: Number of texts drawn.
        pairs: Number of texts that gave a pair of parts.
        first: The first encoder.
        second: The second encoder.
        tests: First minus second with a 95 % interval and a p-value, by measure; texts are
            resampled and exchanged.
    """

    documents: int
    texts: int
    pairs: int
    first: ComparedEncoder
    second: ComparedEncoder
    tests: Mapping[str, PairedTest]

    @property
    def better(self) -> ComparedEncoder | None:
        """The encoder with the higher accuracy; None while the interval holds 0."""
        interval = self.tests[ACCURACY].interval
        if interval is None or interval.low <= 0 <= interval.high:
            return None
        return self.first if interval.low > 0 else self.second

    @property
    def verdict(self) -> str:
        """Which one finds more, in a sentence."""
        interval = percent_interval(self.tests[ACCURACY].interval, sign="+")
        one, other = self._ordered
        first, second = (f"{percent(each.scores[ACCURACY])} %" for each in (one, other))
        if self.better is None:
            return (
                f"no difference is shown: {one.model} finds {first} of the parts, {other.model} "
                f"{second}; the 95 % interval of A - B, {interval} points, holds 0"
            )
        return (
            f"{one.model} finds more: {first} of the parts, {other.model} {second}; the 95 % "
            f"interval of A - B, {interval} points, leaves 0 out"
        )

    @property
    def _ordered(self) -> tuple[ComparedEncoder, ComparedEncoder]:
        """The better one first."""
        return (
            (self.second, self.first) if self.better is self.second else (self.first, self.second)
        )

    def to_dict(self) -> dict[str, Any]:
        """The comparison as strict JSON can hold it."""
        better = self.better
        return {
            **to_dict(self, without=("first", "second")),
            "first": self.first.to_dict(),
            "second": self.second.to_dict(),
            "better": None if better is None else better.model,
            "verdict": self.verdict,
        }


def compare_encoders(
    first: Encoder,
    second: Encoder,
    corpus: Texts,
    *,
    sample: int = SAMPLE,
    seed: int = 0,
    read: ReadOptions = _DEFAULT,
    progress: bool = False,
) -> EncoderComparison:
    """Which of two encoders finds more on a corpus that has no labels.

    Each text gives two parts, as in `diagnose`: neighboring sentences, or its halves. Each part is
    a query, with the encoder's query prompt, for the other part among the other parts of all texts.

    Args:
        first: An encoder.
        second: Another one.
        corpus: A path for `read_corpus`, or an iterable of texts or documents.
        sample: Maximum number of texts drawn.
        seed: Seed of the draw and of the interval.
        read: How a path is read.
        progress: Show progress on standard error.

    Raises:
        InputError: A corpus that cannot be read, or with fewer than 100 texts to split.
        InputTypeError: No encoder, or no corpus.
        MissingFile: The path does not exist.

    Source: parts of a text as each other's queries: the Inverse Cloze Task, Lee, Chang & Toutanova
        2019, Latent Retrieval for Weakly Supervised Open Domain Question Answering, section 4.1.
    """
    for one in (first, second):
        if not isinstance(one, Encoder):
            raise InputTypeError(
                f"expected an encoder, found {type(one).__name__}; load one with Encoder.load"
            )
    drawn, paired = draw_pairs(corpus, sample, seed=seed, read=read)
    pairs = list(paired.values())
    results = [_encode(one, pairs, progress=progress) for one in (first, second)]
    # On several threads such small matrices are many times slower, since the threads wait.
    with (
        threadpool_limits(1, user_api="blas"),
        track("scoring", len(results), shown=progress) as advance,
    ):
        scores = []
        for encoded in results:
            scores.append(_scores(encoded))
            advance(1)
    tests = {
        name: paired_permutation(scores[0][name], scores[1][name], seed=seed) for name in scores[0]
    }
    compared = [_compared(*each) for each in zip((first, second), results, scores, strict=True)]
    return EncoderComparison(
        drawn.documents, len(drawn.texts), len(pairs), compared[0], compared[1], tests
    )


class _Encoded(NamedTuple):
    """Vectors of both parts as queries and as documents, and what encoding them took.

    Attributes:
        queries: First and second parts, (n, dim) each.
        documents: First and second parts, (n, dim) each.
        reports: Of all that was encoded.
    """

    queries: Sequence[Vectors]
    documents: Sequence[Vectors]
    reports: Sequence[EncodeReport]


def _encode(encoder: Encoder, pairs: Sequence[PseudoPair], *, progress: bool) -> _Encoded:
    texts = [pair.first for pair in pairs] + [pair.second for pair in pairs]
    encoder.encode(texts[:1])  # so that what is made on first use does not count
    kinds: list[Kind] = ["document"]
    if encoder.prompts.query != encoder.prompts.document:
        kinds.append("query")
    encoded = [encoder.encode_with_report(texts, kind=one, progress=progress) for one in kinds]
    vectors = [np.split(one.vectors, 2) for one in encoded]
    return _Encoded(vectors[-1], vectors[0], [one.report for one in encoded])


def _scores(encoded: _Encoded) -> dict[str, Scores]:
    """Scores of each text, (n,) by measure: the means of its two parts."""
    ranks = np.stack(
        [
            found_ranks(encoded.queries[0], encoded.documents[1]),
            found_ranks(encoded.queries[1], encoded.documents[0]),
        ]
    )
    return {
        ACCURACY: (ranks == 1).mean(axis=0),
        RECIPROCAL_RANK: (1.0 / ranks).mean(axis=0),
    }


def _compared(encoder: Encoder, encoded: _Encoded, scores: Mapping[str, Scores]) -> ComparedEncoder:
    return ComparedEncoder(
        model=encoder.options.model,
        dim=encoder.dim,
        max_tokens=encoder.max_tokens,
        pooling=encoder.pooling,
        device=encoder.device,
        precision=encoder.precision,
        scores={name: float(values.mean()) for name, values in scores.items()},
        seconds=sum(one.seconds for one in encoded.reports),
        encoded=TextCounts.of(*encoded.reports),
    )
