"""How evenly an encoder's vectors use their space, measured on unlabelled texts."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sbertkit.arrays import Vectors
from sbertkit.data.documents import ReadOptions
from sbertkit.data.sampling import Sample, Texts, sample_texts
from sbertkit.encoder import Encoder
from sbertkit.encoder.multi_pooling import encode_grid
from sbertkit.encoder.pooling import KINDS, Pooling
from sbertkit.encoder.token_vectors import TokenVectors, token_vectors
from sbertkit.errors import InputError, InputTypeError
from sbertkit.evaluation.pseudo_pairs import all_halves
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

_DEFAULT = ReadOptions()
Rows = npt.NDArray[np.floating]

SAMPLE = 2_000
"""Texts looked at, unless asked for otherwise."""
COMPONENTS = 10
BINS = 40
_LEAST_COUNT = 5
"""Tokens that are rarer in the sample say nothing about frequency."""
_LEAST_TEXTS = 2
_PAIRS = 20_000


@dataclass(frozen=True, slots=True)
class Space:
    """How vectors lie in their space; None where a measure is undefined.

    Attributes:
        random_cosine: Mean cosine of two texts.
        random_dot: Mean dot product of two texts.
        random_distance: Mean Euclidean distance of two texts.
        uniformity: Log of the mean Gaussian potential of two texts (Wang & Isola 2020).
        alignment: Mean squared distance of both halves of a text, scaled to length 1.
        effective_rank: How many directions they spread over (Roy & Vetterli 2007).
        isoscore: How evenly the variance fills the dimensions, 0 to 1 (Rudman et al. 2022).
        variance_shares: Shares of the variance along the strongest principal components.
        norm: Mean length of a vector.
        norm_deviation: Standard deviation of the lengths.
    """

    random_cosine: float | None
    random_dot: float | None
    random_distance: float | None
    uniformity: float | None
    alignment: float | None
    effective_rank: float | None
    isoscore: float | None
    variance_shares: tuple[float, ...] | None
    norm: float
    norm_deviation: float


@dataclass(frozen=True, slots=True)
class Frequency:
    """Rank correlations with frequency in the corpus; None where undefined, as for equal lengths.

    Attributes:
        items: How many tokens or texts.
        norm: Of the length of a vector.
        centre: Of its distance from the mean vector.
    """

    items: int
    norm: float | None
    centre: float | None


@dataclass(frozen=True, slots=True)
class IsotropyResult:
    """The space of an encoder on a sample of texts.

    Attributes:
        texts: How many were looked at.
        documents: How many the corpus has.
        before: The vectors before normalization.
        after: The vectors scaled to length 1.
        histogram: Counts of cosines of random pairs, in 40 equal bins from -1 to 1.
        frequency: What length and place have to do with frequency, by ``input tokens`` (rows of
            the embedding table), ``output tokens`` (means in the last layer) and ``texts`` (by the
            mean log frequency of their tokens), each also ``... after normalization``.
        layers: Mean cosine of random pairs by layer, from 0 for the embeddings.
    """

    texts: int
    documents: int
    before: Space
    after: Space
    histogram: tuple[int, ...]
    frequency: Mapping[str, Frequency]
    layers: tuple[float | None, ...]

    def to_dict(self) -> dict[str, Any]:
        """The result as strict JSON can hold it."""
        content = asdict(self)
        for side in ("before", "after"):
            shares = content[side]["variance_shares"]
            content[side]["variance_shares"] = None if shares is None else list(shares)
        return {
            **content,
            "histogram": list(self.histogram),
            "frequency": {name: asdict(found) for name, found in self.frequency.items()},
            "layers": list(self.layers),
        }


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
        encoder: Gives the vectors.
        corpus: A path for `read_corpus`, or an iterable of texts or documents.
        sample: How many texts are drawn at most.
        seed: Of the draws.
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
    if len(drawn.texts) < _LEAST_TEXTS:
        raise InputError("expected at least two different texts, found one; give more text")
    return _measure(encoder, drawn, seed, progress=progress)


def _measure(encoder: Encoder, drawn: Sample, seed: int, *, progress: bool) -> IsotropyResult:
    texts = list(drawn.texts)
    pairs = all_halves(texts)
    own = encoder.network.pooling
    layered = "mean" if KINDS[own.name].first_and_last else own.name
    layers = [Pooling(layered, (layer,)) for layer in range(encoder.transformer.layer_count + 1)]
    grid = encode_grid(encoder, texts, [own, *layers], progress=progress)
    parts = encode_grid(encoder, [part for pair in pairs for part in pair], [own])[own]
    vectors = grid[own]
    tokens = token_vectors(encoder, texts)
    cosines = row_cosines(vectors, *_random_pairs(len(vectors), seed))
    counts, _ = np.histogram(cosines, bins=BINS, range=(-1.0, 1.0))
    return IsotropyResult(
        texts=len(texts),
        documents=drawn.documents,
        before=_space(vectors, parts, seed),
        after=_space(unit_rows(vectors), unit_rows(parts), seed),
        histogram=tuple(int(count) for count in counts),
        frequency=_frequencies(vectors, tokens),
        layers=tuple(mean_random_cosine(grid[layer], seed=seed) for layer in layers),
    )


def _space(vectors: Rows, parts: Rows, seed: int) -> Space:
    """What is to be said of vectors; `parts` are the halves, first and second in turn."""
    rows = vectors.astype(np.float64)
    norms = np.linalg.norm(rows, axis=1)
    count = len(rows)
    # Over all pairs of different rows, from sums alone.
    total = rows.sum(axis=0)
    squares = float((norms**2).sum())
    dot = (float(total @ total) - squares) / (count * (count - 1))
    shares = variance_shares(vectors, COMPONENTS)
    return Space(
        random_cosine=mean_random_cosine(vectors, seed=seed),
        random_dot=dot,
        random_distance=_mean_distance(rows, seed),
        uniformity=uniformity(vectors, seed=seed),
        alignment=alignment(parts[::2], parts[1::2]) if len(parts) else None,
        effective_rank=effective_rank(vectors),
        isoscore=isoscore(vectors),
        variance_shares=None if shares is None else tuple(shares),
        norm=float(norms.mean()),
        norm_deviation=float(norms.std()),
    )


def _random_pairs(rows: int, seed: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Rows of two different texts, so many times."""
    random = np.random.default_rng(seed)
    left = random.integers(rows, size=_PAIRS)
    right = (left + 1 + random.integers(rows - 1, size=_PAIRS)) % rows
    return left, right


def _mean_distance(rows: npt.NDArray[np.float64], seed: int) -> float:
    left, right = _random_pairs(len(rows), seed)
    total = 0.0
    for start in range(0, len(left), 4_096):
        part = slice(start, start + 4_096)
        total += float(np.linalg.norm(rows[left[part]] - rows[right[part]], axis=1).sum())
    return total / len(left)


def _frequencies(vectors: Vectors, tokens: TokenVectors) -> dict[str, Frequency]:
    common = tokens.counts >= _LEAST_COUNT
    worded = ~np.isnan(tokens.text_frequency)
    items = {
        "input tokens": (tokens.inputs[common], np.log(tokens.counts[common])),
        "output tokens": (tokens.outputs[common], np.log(tokens.counts[common])),
        "texts": (vectors[worded], tokens.text_frequency[worded]),
    }
    found = {}
    for name, (rows, frequency) in items.items():
        found[name] = _frequency(rows, frequency)
        found[f"{name} after normalization"] = _frequency(unit_rows(rows), frequency, unit=True)
    return found


def _frequency(rows: Rows, frequency: npt.NDArray[np.float64], *, unit: bool = False) -> Frequency:
    """Rank correlations; lengths that normalization made equal correlate with nothing."""
    if len(rows) < _LEAST_TEXTS:
        return Frequency(len(rows), None, None)
    wide = rows.astype(np.float64)
    distances = np.linalg.norm(wide - wide.mean(axis=0), axis=1)
    norm = None if unit else spearman(frequency, np.linalg.norm(wide, axis=1)).value
    return Frequency(len(rows), norm, spearman(frequency, distances).value)
