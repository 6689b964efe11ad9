"""How evenly an encoder's vectors use their space, measured on unlabeled texts."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sbertkit.arrays import Vectors
from sbertkit.data.documents import ReadOptions
from sbertkit.data.pseudo_pairs import all_halves
from sbertkit.data.sampling import Sample, Texts, sample_texts
from sbertkit.encoder import Encoder
from sbertkit.encoder.multi_pooling import encode_poolings
from sbertkit.encoder.pooling import POOLINGS, Pooling
from sbertkit.encoder.report import EncodeStats
from sbertkit.encoder.token_vectors import TokenVectors, token_vectors
from sbertkit.errors import InputError, InputTypeError
from sbertkit.evaluation.text_counts import TextCounts
from sbertkit.metrics import (
    alignment,
    effective_rank,
    isoscore,
    mean_random_cosine,
    row_cosines,
    spearman,
    uniformity,
    unit_rows,
    variance_shares,
)
from sbertkit.schema import to_dict

_DEFAULT = ReadOptions()

Rows = npt.NDArray[np.floating]

SAMPLE = 2_000
"""Default number of texts in the sample."""
COMPONENTS = 10
BINS = 40
_MIN_COUNT = 5
"""Tokens that are rarer in the sample say nothing about frequency."""
_MIN_TEXTS = 2
_PAIRS = 20_000
_CHUNK = 4_096


class _Embedded(NamedTuple):
    """What a measure is computed from.

    Attributes:
        vectors: Vectors of the texts, (n, dim).
        halves: Vectors of the first and second halves of texts in turn, (2 m, dim).
        seed: Seed of random draws.
    """

    vectors: Rows
    halves: Rows
    seed: int


def _measure(title: str, compute: Callable[[_Embedded], object]) -> Any:
    """Metadata of a field of `Space`: its title in tables, and what computes it."""
    return {"title": title, "compute": compute}


@dataclass(frozen=True, slots=True)
class Space:
    """How vectors lie in their space; None where a measure is undefined.

    Each field is a measure with its title and function; results, tables and reports walk them.

    Attributes:
        random_cosine: Mean cosine of two texts.
        random_dot: Mean dot product of two texts.
        random_distance: Mean Euclidean distance of two texts.
        uniformity: Log of the mean Gaussian potential of two texts (Wang & Isola 2020).
        alignment: Mean squared distance of both halves of a text, scaled to length 1.
        effective_rank: Number of directions that they spread over (Roy & Vetterli 2007).
        isoscore: How evenly the variance fills the dimensions, 0 to 1 (Rudman et al. 2022).
        variance_shares: Shares of the variance along the strongest principal components.
        norm: Mean length of a vector.
        norm_deviation: Standard deviation of the lengths.
    """

    random_cosine: float | None = field(
        metadata=_measure(
            "cosine of random pairs", lambda of: mean_random_cosine(of.vectors, seed=of.seed)
        )
    )
    random_dot: float | None = field(
        metadata=_measure("dot product of random pairs", lambda of: _mean_dot(of.vectors))
    )
    random_distance: float | None = field(
        metadata=_measure(
            "distance of random pairs", lambda of: _mean_distance(of.vectors, of.seed)
        )
    )
    uniformity: float | None = field(
        metadata=_measure(
            "uniformity (lower is more even)", lambda of: uniformity(of.vectors, seed=of.seed)
        )
    )
    alignment: float | None = field(
        metadata=_measure(
            "alignment of halves (lower is closer)",
            lambda of: alignment(of.halves[::2], of.halves[1::2]) if len(of.halves) else None,
        )
    )
    effective_rank: float | None = field(
        metadata=_measure("effective rank", lambda of: effective_rank(of.vectors))
    )
    isoscore: float | None = field(metadata=_measure("IsoScore", lambda of: isoscore(of.vectors)))
    norm: float = field(metadata=_measure("mean length", lambda of: float(_norms(of).mean())))
    norm_deviation: float = field(
        metadata=_measure("deviation of lengths", lambda of: float(_norms(of).std()))
    )
    variance_shares: tuple[float, ...] | None = field(
        metadata=_measure("variance of the first", lambda of: _variance_shares(of.vectors))
    )


@dataclass(frozen=True, slots=True)
class Frequency:
    """Rank correlations with frequency in the corpus; None where undefined, as for equal lengths.

    Attributes:
        items: Number of tokens or texts.
        norm: Correlation of the length of a vector.
        center: Correlation of its distance from the mean vector.
    """

    items: int
    norm: float | None
    center: float | None


@dataclass(frozen=True, slots=True)
class IsotropyResult:
    """The space of an encoder on a sample of texts.

    Attributes:
        texts: Number of texts in the sample.
        documents: Number of documents in the corpus.
        before: The vectors before normalization.
        after: The vectors scaled to length 1.
        histogram: Counts of cosines of random pairs, in 40 equal bins from -1 to 1.
        frequency: How length and position correlate with frequency, for ``input tokens`` (rows of
            the embedding table), ``output tokens`` (means in the last layer) and ``texts`` (by the
            mean log frequency of their tokens), each also ``... after normalization``.
        layers: Mean cosine of random pairs by layer, from 0 for the embeddings.
        encoded: Counts of the texts that were encoded, without their halves.
    """

    texts: int
    documents: int
    before: Space
    after: Space
    histogram: tuple[int, ...]
    frequency: Mapping[str, Frequency]
    layers: tuple[float | None, ...]
    encoded: TextCounts

    def to_dict(self) -> dict[str, Any]:
        """The result as strict JSON can hold it."""
        return to_dict(self)


def evaluate_isotropy(
    encoder: Encoder,
    corpus: Texts,
    *,
    sample: int = SAMPLE,
    seed: int = 0,
    read: ReadOptions = _DEFAULT,
    progress: bool = False,
) -> IsotropyResult:
    """The isotropy of an encoder's vectors on texts drawn from a corpus.

    Args:
        encoder: The encoder to evaluate.
        corpus: A path for `read_corpus`, or an iterable of texts or documents.
        sample: Maximum number of texts drawn.
        seed: Seed of random draws.
        read: How a path is read.
        progress: Show progress on standard error.

    Raises:
        InputError: A corpus that cannot be read, or with fewer than two different texts.
        InputTypeError: No encoder or no corpus.
        MissingFile: The path does not exist.
    """
    if not isinstance(encoder, Encoder):
        raise InputTypeError(f"expected an Encoder, found {type(encoder).__name__}")
    drawn = sample_texts(corpus, sample, seed=seed, read=read)
    if len(drawn.texts) < _MIN_TEXTS:
        raise InputError("expected at least two different texts, found one; give more text")
    return _evaluate(encoder, drawn, seed, progress=progress)


def _evaluate(encoder: Encoder, drawn: Sample, seed: int, *, progress: bool) -> IsotropyResult:
    texts = list(drawn.texts)
    pairs = all_halves(texts)
    model = encoder.torch
    declared = model.network.pooling
    layered = "mean" if POOLINGS[declared.name].first_and_last else declared.name
    layers = [Pooling(layered, (layer,)) for layer in range(model.transformer.layer_count + 1)]
    stats = EncodeStats()
    grid = encode_poolings(encoder, texts, [declared, *layers], progress=progress, stats=stats)
    texts_of_halves = [half for pair in pairs for half in pair]
    halves = encode_poolings(encoder, texts_of_halves, [declared])[declared]
    vectors = grid[declared]
    tokens = token_vectors(encoder, texts)
    cosines = row_cosines(vectors, *_random_pairs(len(vectors), seed))
    counts, _ = np.histogram(cosines, bins=BINS, range=(-1.0, 1.0))
    return IsotropyResult(
        texts=len(texts),
        documents=drawn.documents,
        before=_space(_Embedded(vectors, halves, seed)),
        after=_space(_Embedded(unit_rows(vectors), unit_rows(halves), seed)),
        histogram=tuple(int(count) for count in counts),
        frequency=_frequencies(vectors, tokens),
        layers=tuple(mean_random_cosine(grid[layer], seed=seed) for layer in layers),
        encoded=TextCounts.of(stats.report(0, 0)),
    )


def _space(embedded: _Embedded) -> Space:
    measures = {one.name: one.metadata["compute"](embedded) for one in fields(Space)}
    return Space(**measures)


def _norms(embedded: _Embedded) -> npt.NDArray[np.float64]:
    norms: npt.NDArray[np.float64] = np.linalg.norm(embedded.vectors.astype(np.float64), axis=1)
    return norms


def _variance_shares(vectors: Rows) -> tuple[float, ...] | None:
    shares = variance_shares(vectors, COMPONENTS)
    return None if shares is None else tuple(shares)


def _mean_dot(vectors: Rows) -> float:
    """The mean dot product over all pairs of different rows, from sums alone."""
    rows = vectors.astype(np.float64)
    total = rows.sum(axis=0)
    squares = float((np.linalg.norm(rows, axis=1) ** 2).sum())
    return (float(total @ total) - squares) / (len(rows) * (len(rows) - 1))


def _random_pairs(rows: int, seed: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Rows of two different texts, drawn with replacement."""
    random = np.random.default_rng(seed)
    left = random.integers(rows, size=_PAIRS)
    right = (left + 1 + random.integers(rows - 1, size=_PAIRS)) % rows
    return left, right


def _mean_distance(vectors: Rows, seed: int) -> float:
    rows = vectors.astype(np.float64)
    left, right = _random_pairs(len(rows), seed)
    total = 0.0
    for start in range(0, len(left), _CHUNK):
        part = slice(start, start + _CHUNK)
        total += float(np.linalg.norm(rows[left[part]] - rows[right[part]], axis=1).sum())
    return total / len(left)


def _frequencies(vectors: Vectors, tokens: TokenVectors) -> dict[str, Frequency]:
    common = tokens.counts >= _MIN_COUNT
    with_tokens = ~np.isnan(tokens.text_frequency)
    items = {
        "input tokens": (tokens.inputs[common], np.log(tokens.counts[common])),
        "output tokens": (tokens.outputs[common], np.log(tokens.counts[common])),
        "texts": (vectors[with_tokens], tokens.text_frequency[with_tokens]),
    }
    found = {}
    for name, (rows, frequency) in items.items():
        found[name] = _frequency(rows, frequency)
        found[f"{name} after normalization"] = _frequency(unit_rows(rows), frequency, unit=True)
    return found


def _frequency(rows: Rows, frequency: npt.NDArray[np.float64], *, unit: bool = False) -> Frequency:
    """Rank correlations; None for lengths that normalization made equal."""
    if len(rows) < _MIN_TEXTS:
        return Frequency(len(rows), None, None)
    wide = rows.astype(np.float64)
    distances = np.linalg.norm(wide - wide.mean(axis=0), axis=1)
    norm = None if unit else spearman(frequency, np.linalg.norm(wide, axis=1)).value
    return Frequency(len(rows), norm, spearman(frequency, distances).value)
