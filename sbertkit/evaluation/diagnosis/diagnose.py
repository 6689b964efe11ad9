"""Tries poolings, layers and post-processors on unlabeled texts, and recommends one."""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from threadpoolctl import threadpool_limits
from torch import nn

from sbertkit.arrays import Vectors
from sbertkit.data.documents import ReadOptions
from sbertkit.data.sampling import Sample, Texts
from sbertkit.encoder import Encoder
from sbertkit.encoder.multi_pooling import encode_poolings
from sbertkit.encoder.report import EncodeStats
from sbertkit.encoder.whitening import FITTERS
from sbertkit.errors import InputError, InputTypeError
from sbertkit.evaluation.diagnosis.candidates import Candidate, candidates_of
from sbertkit.evaluation.diagnosis.pairs import SAMPLE, draw_pairs
from sbertkit.evaluation.diagnosis.scoring import Scores, pair_scores
from sbertkit.evaluation.text_counts import TextCounts
from sbertkit.metrics import PairedTest, mean_random_cosine, paired_permutation, uniformity
from sbertkit.progress import track
from sbertkit.schema import to_dict

logger = logging.getLogger(__name__)
_DEFAULT = ReadOptions()

_SPACE_PAIRS = 5_000


@dataclass(frozen=True, slots=True)
class CandidateScore:
    """A candidate with its score.

    Attributes:
        candidate: The configuration.
        score: Mean score of the selection pairs, 0 to 1; higher is better.
        random_cosine: Mean cosine of two texts; not used for the choice.
        uniformity: How evenly they lie (Wang & Isola 2020), lower is more even; not used, either.
    """

    candidate: Candidate
    score: float
    random_cosine: float | None
    uniformity: float | None

    def to_dict(self) -> dict[str, Any]:
        """The score as strict JSON can hold it."""
        pooling = self.candidate.pooling
        return {
            "pooling": pooling.name,
            "layers": list(pooling.layers),
            "postprocessor": self.candidate.postprocessor,
            **to_dict(self, without=("candidate",)),
        }


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The configurations of an encoder, scored on a sample of texts.

    Attributes:
        texts: The sample, on which a recommended post-processor is fitted, too.
        documents: Number of documents in the corpus.
        pairs: Number of texts that gave a pair of parts.
        current: The encoder's current configuration.
        best: The candidate with the highest score on the selection half of the pairs.
        gain: Gain of the best over the current one on the validation half, with a 95 % interval.
        candidates: All candidates, the best first.
        encoded: Counts of the texts and the parts of texts that were encoded.
    """

    texts: tuple[str, ...]
    documents: int
    pairs: int
    current: CandidateScore
    best: CandidateScore
    gain: PairedTest
    candidates: tuple[CandidateScore, ...]
    encoded: TextCounts

    @property
    def recommended(self) -> CandidateScore:
        """The best if its gain is significant, else the current one."""
        interval = self.gain.interval
        better = interval is not None and interval.low > 0
        return self.best if better else self.current

    @property
    def keeps_current(self) -> bool:
        """Whether the current configuration is recommended."""
        return self.recommended.candidate == self.current.candidate

    def apply(self, encoder: Encoder) -> Encoder:
        """The encoder in the recommended configuration; the one given stays as it is.

        Args:
            encoder: The encoder that was diagnosed.
        """
        return self.recommended.candidate.apply(encoder, self.texts)

    def to_dict(self) -> dict[str, Any]:
        """The result as strict JSON can hold it, without the texts."""
        return {**self.summary(), "candidates": [one.to_dict() for one in self.candidates]}

    def summary(self) -> dict[str, Any]:
        """`to_dict` without the list of candidates, for the lineage of a saved model."""
        interval = self.gain.interval
        return {
            "texts": len(self.texts),
            "documents": self.documents,
            "pairs": self.pairs,
            "recommended": self.recommended.to_dict(),
            "keeps_current": self.keeps_current,
            "current": self.current.to_dict(),
            "best": self.best.to_dict(),
            "encoded": to_dict(self.encoded),
            "gain": self.gain.difference,
            "interval": None if interval is None else interval._asdict(),
        }


def diagnose(
    encoder: Encoder,
    corpus: Texts,
    *,
    sample: int = SAMPLE,
    seed: int = 0,
    read: ReadOptions = _DEFAULT,
    progress: bool = False,
) -> Diagnosis:
    """Which pooling, layer and post-processor suit an encoder on the user's own texts.

    No labels are needed: a text gives a pair of parts (two neighboring sentences, or its halves if
    it is short), and the score of a candidate is how well such parts find each other and their
    text. Post-processors are fitted on one half of the texts and scored on the other, in turn. The
    selection half of the pairs chooses the best candidate; the validation half measures its gain
    over the current configuration. A post-processor that needs more texts is left out with a
    warning.

    Args:
        encoder: The encoder to diagnose.
        corpus: A path for `read_corpus`, or an iterable of texts or documents.
        sample: Maximum number of texts drawn.
        seed: Seed of the draw.
        read: How a path is read.
        progress: Show progress on standard error.

    Raises:
        InputError: A corpus that cannot be read, or with fewer than 100 texts to split.
        InputTypeError: No encoder, or no corpus.
        MissingFile: The path does not exist.

    Source: parts of a text as each other's queries, after the Inverse Cloze Task, Lee, Chang &
        Toutanova 2019, section 4.1.
    """
    if not isinstance(encoder, Encoder):
        raise InputTypeError(
            f"expected an encoder, found {type(encoder).__name__}; load one with Encoder.load"
        )
    drawn, paired = draw_pairs(corpus, sample, seed=seed, read=read)
    count = len(paired)
    candidates = candidates_of(encoder)
    poolings = list(dict.fromkeys(one.pooling for one in candidates))
    texts = [*paired, *(pair.first for pair in paired.values())]
    texts += [pair.second for pair in paired.values()]
    stats = EncodeStats()
    grid = encode_poolings(encoder, texts, poolings, progress=progress, stats=stats)
    order = np.random.default_rng(seed).permutation(count)
    scored: dict[Candidate, _Outcome] = {}
    left_out: dict[str, str] = {}
    # On several threads such small matrices are many times slower, since the threads wait.
    limits = threadpool_limits(1, user_api="blas")
    with limits, track("scoring", len(candidates), shown=progress) as advance:
        for candidate in candidates:
            parts = _Parts(*np.split(grid[candidate.pooling], 3))
            try:
                scored[candidate] = _score(parts, candidate.postprocessor, order, seed)
            except InputError as error:  # too few texts, or too similar ones
                reason = str(error).partition(";")[0]  # what to do is for who calls the step itself
                left_out.setdefault(str(candidate.postprocessor), reason)
            advance(1)
    for name, reason in left_out.items():
        logger.warning("%s could not be tried everywhere: %s", name, reason)
    return _conclude(drawn, scored, order, seed, TextCounts.of(stats.report(0, 0)))


class _Parts(NamedTuple):
    """Vectors (n, dim) of the texts and of their two parts."""

    whole: Vectors
    first: Vectors
    second: Vectors


class _Outcome(NamedTuple):
    """Scores of the pairs, (n,), and two measures of the space."""

    scores: Scores
    random_cosine: float | None
    uniformity: float | None


def _score(
    parts: _Parts, postprocessor: str | None, order: npt.NDArray[np.intp], seed: int
) -> _Outcome:
    """The scores after a post-processor; each half of the texts is scored with the other's fit."""
    scores = np.empty(len(order))
    transformed = np.empty_like(parts.whole, shape=(0, 0))
    for fitted, held_out in _folds(order):
        fit = None if postprocessor is None else FITTERS[postprocessor](parts.whole[fitted])
        apply = _function_of(fit)
        transformed = apply(parts.whole[held_out])
        scores[held_out] = pair_scores(
            transformed, apply(parts.first[held_out]), apply(parts.second[held_out])
        )
    return _Outcome(
        scores,
        mean_random_cosine(transformed, pairs=_SPACE_PAIRS, seed=seed),
        uniformity(transformed, pairs=_SPACE_PAIRS, seed=seed),
    )


def _folds(
    order: npt.NDArray[np.intp],
) -> Iterator[tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]]:
    """Both halves of a shuffled order, each once for fitting and once held out."""
    middle = len(order) // 2
    yield order[:middle], order[middle:]
    yield order[middle:], order[:middle]


def _function_of(postprocessor: nn.Module | None) -> Callable[[Vectors], Vectors]:
    def apply(vectors: Vectors) -> Vectors:
        if postprocessor is None:
            return vectors
        with torch.inference_mode():
            result: Vectors = postprocessor(torch.from_numpy(vectors)).numpy()
        return result

    return apply


def _conclude(
    drawn: Sample,
    outcomes: dict[Candidate, _Outcome],
    order: npt.NDArray[np.intp],
    seed: int,
    encoded: TextCounts,
) -> Diagnosis:
    """The ranking, the best, and its gain on the validation pairs."""
    selection, validation = order[::2], order[1::2]
    ranked = sorted(
        (
            CandidateScore(candidate, float(one.scores[selection].mean()), *one[1:])
            for candidate, one in outcomes.items()
        ),
        key=lambda one: -one.score,
    )
    current = next(iter(outcomes))
    best = ranked[0]
    gain = paired_permutation(
        outcomes[best.candidate].scores[validation], outcomes[current].scores[validation], seed=seed
    )
    return Diagnosis(
        texts=drawn.texts,
        documents=drawn.documents,
        pairs=len(order),
        current=next(one for one in ranked if one.candidate == current),
        best=best,
        gain=gain,
        candidates=tuple(ranked),
        encoded=encoded,
    )
