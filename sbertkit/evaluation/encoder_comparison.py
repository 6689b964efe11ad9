"""Two encoders on one's own texts without labels: which finds more, and what it costs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sbertkit.data.documents import ReadOptions
from sbertkit.data.sampling import Texts
from sbertkit.encoder import Encoder
from sbertkit.errors import InputTypeError
from sbertkit.evaluation.diagnosis.pairs import SAMPLE, draw_pairs
from sbertkit.evaluation.part_search import ACCURACY, FoundParts, find_parts
from sbertkit.evaluation.text_counts import TextCounts
from sbertkit.formatting import percent, percent_interval
from sbertkit.metrics import PairedTest, paired_permutation
from sbertkit.schema import to_dict

_DEFAULT = ReadOptions()


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
    a query, with the encoder's query prompt, for the other part among the other parts of all texts
    (see `find_parts`).

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
    """
    for one in (first, second):
        if not isinstance(one, Encoder):
            raise InputTypeError(
                f"expected an encoder, found {type(one).__name__}; load one with Encoder.load"
            )
    drawn, paired = draw_pairs(corpus, sample, seed=seed, read=read)
    pairs = list(paired.values())
    found = [find_parts(one, pairs, progress=progress) for one in (first, second)]
    tests = {
        name: paired_permutation(scores, found[1].scores[name], seed=seed)
        for name, scores in found[0].scores.items()
    }
    compared = [_compared(*each) for each in zip((first, second), found, strict=True)]
    return EncoderComparison(
        drawn.documents, len(drawn.texts), len(pairs), compared[0], compared[1], tests
    )


def _compared(encoder: Encoder, found: FoundParts) -> ComparedEncoder:
    return ComparedEncoder(
        model=encoder.options.model,
        dim=encoder.dim,
        max_tokens=encoder.max_tokens,
        pooling=encoder.pooling,
        device=encoder.device,
        precision=encoder.precision,
        scores={name: float(values.mean()) for name, values in found.scores.items()},
        seconds=found.seconds,
        encoded=TextCounts.of(*found.reports),
    )
