"""Tries poolings, layers and post-processing on unlabelled texts, and recommends one."""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from threadpoolctl import threadpool_limits
from torch import nn

from sbertkit.arrays import Vectors
from sbertkit.data.documents import ReadOptions
from sbertkit.data.sampling import Sample, Texts, sample_texts
from sbertkit.encoder import Encoder
from sbertkit.encoder.multi_pooling import encode_grid
from sbertkit.encoder.whitening import FITS, post_processed
from sbertkit.errors import InputError, InputTypeError
from sbertkit.evaluation.diagnosis.candidates import Candidate, poolings_of, steps
from sbertkit.evaluation.diagnosis.scoring import Scores, pair_scores
from sbertkit.evaluation.pseudo_pairs import pseudo_pair
from sbertkit.metrics import PairedTest, mean_random_cosine, paired_permutation, uniformity
from sbertkit.progress import track

logger = logging.getLogger(__name__)
_DEFAULT = ReadOptions()

SAMPLE = 2_000
"""Texts looked at, unless asked for otherwise."""
LEAST_PAIRS = 100
"""Fewer pairs would decide by chance."""
_SPACE_PAIRS = 5_000


@dataclass(frozen=True, slots=True)
class Judged:
    """A candidate and what was found of it.

    Attributes:
        candidate: What was tried.
        score: Mean score of the pairs, 0 to 1; higher is better.
        random_cosine: Mean cosine of two texts; shown, it decides nothing.
        uniformity: How evenly they lie (Wang & Isola 2020), lower is more even; decides nothing.
    """

    candidate: Candidate
    score: float
    random_cosine: float | None
    uniformity: float | None


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What suits an encoder on some texts.

    Attributes:
        texts: The sample, which is also what a recommended step is fitted on.
        documents: How many documents the corpus has.
        pairs: How many texts gave a pair of parts.
        current: The encoder as it is.
        best: The candidate with the highest score on the pairs that choose.
        gain: Of the best over the current, on the other pairs, with a 95 % interval.
        judged: All candidates, the best first.
    """

    texts: tuple[str, ...]
    documents: int
    pairs: int
    current: Judged
    best: Judged
    gain: PairedTest
    judged: tuple[Judged, ...]

    @property
    def recommended(self) -> Judged:
        """The best where it is better beyond the interval, else the encoder as it is."""
        interval = self.gain.interval
        better = interval is not None and interval.low > 0
        return self.best if better else self.current

    @property
    def leaves_it(self) -> bool:
        """Whether the recommendation is to leave the encoder as it is."""
        return self.recommended.candidate == self.current.candidate

    def to_dict(self) -> dict[str, Any]:
        """The result as strict JSON can hold it, without the texts."""
        return {**self.summary(), "judged": [_as_dict(one) for one in self.judged]}

    def summary(self) -> dict[str, Any]:
        """The same without what was found of each candidate, for a saved model's lineage."""
        interval = self.gain.interval
        return {
            "texts": len(self.texts),
            "documents": self.documents,
            "pairs": self.pairs,
            "recommended": _as_dict(self.recommended),
            "leave_it_as_it_is": self.leaves_it,
            "current": _as_dict(self.current),
            "best": _as_dict(self.best),
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
    """Which pooling, layer and post-processing suit an encoder on one's own texts.

    No labels are needed: a text gives two neighbouring sentences, or its halves where it is short,
    and a candidate is as good as such parts find each other and their text among all. What is
    fitted is fitted on one part of the texts and judged on the other, in turn. Half of the pairs
    choose the best candidate, the other half tell by how much it is better than the encoder as it
    is. A step that too few texts do not suffice for is left out with a
    warning.

    Args:
        encoder: What is diagnosed.
        corpus: A path for `read_corpus`, or an iterable of texts or documents.
        sample: How many texts are drawn at most.
        seed: Of the draw.
        read: How a path is read.
        progress: Show progress on standard error.

    Raises:
        InputError: A corpus that cannot be read, or with fewer than 100 texts to divide.
        InputTypeError: No encoder, or no corpus.
        MissingFile: The path does not exist.

    Source: parts of a text as each other's queries, after the Inverse Cloze Task, Lee, Chang &
        Toutanova 2019, section 4.1.
    """
    if not isinstance(encoder, Encoder):
        raise InputTypeError(
            f"expected an encoder, found {type(encoder).__name__}; load one with Encoder.load"
        )
    drawn = sample_texts(corpus, sample, seed=seed, read=read)
    paired = {text: pair for text in drawn.texts if (pair := pseudo_pair(text)) is not None}
    count = len(paired)
    if count < LEAST_PAIRS:
        raise InputError(
            f"expected at least {LEAST_PAIRS} different texts of some words to divide, found "
            f"{count} among {len(drawn.texts):,}; give more or longer texts"
        )
    poolings = poolings_of(encoder)
    texts = [*paired, *(pair.first for pair in paired.values())]
    texts += [pair.second for pair in paired.values()]
    grid = encode_grid(encoder, texts, poolings, progress=progress)
    order = np.random.default_rng(seed).permutation(count)
    judged: dict[Candidate, _Outcome] = {}
    left_out: dict[str, str] = {}
    # Matrices this small are many times slower on several threads that wait for each other.
    limits = threadpool_limits(1, user_api="blas")
    total = len(poolings) * len(steps())
    with limits, track("judging", total, shown=progress) as advance:
        for pooling in poolings:
            parts = _Parts(*np.split(grid.pop(pooling), 3))
            for step in steps():
                try:
                    judged[Candidate(pooling, step)] = _judge(parts, step, order, seed)
                except InputError as error:  # too few texts, or too alike, for the step
                    left_out.setdefault(str(step), str(error))
                advance(1)
    for name, reason in left_out.items():
        logger.warning("%s could not be tried everywhere: %s", name, reason)
    return _conclude(drawn, judged, order, seed)


def configured(encoder: Encoder, candidate: Candidate, texts: Sequence[str]) -> Encoder:
    """The encoder with a candidate's pooling, and its step fitted on some texts.

    Args:
        encoder: That was diagnosed; it stays as it is.
        candidate: Of a diagnosis.
        texts: To fit on, such as those of the diagnosis.

    Raises:
        InputError: Texts that are too few or too alike for the step.
    """
    pooled = encoder.variant(candidate.pooling, encoder.steps)
    return pooled if candidate.step is None else post_processed(pooled, candidate.step, texts)


class _Parts(NamedTuple):
    """Vectors (n, dim) of the texts and of their two parts."""

    whole: Vectors
    first: Vectors
    second: Vectors


class _Outcome(NamedTuple):
    """Scores of the pairs, (n,), and the space of the texts."""

    scores: Scores
    random_cosine: float | None
    uniformity: float | None


def _judge(parts: _Parts, step: str | None, order: npt.NDArray[np.intp], seed: int) -> _Outcome:
    """What a step makes of vectors; each part of the texts is judged with the other's fit."""
    scores = np.empty(len(order))
    transformed = np.empty_like(parts.whole, shape=(0, 0))
    for fitted, held_out in _folds(order):
        apply = _identity if step is None else _applied(FITS[step](parts.whole[fitted]))
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
    """Both halves of a shuffled order, as what is fitted on and what is judged, in turn."""
    middle = len(order) // 2
    yield order[:middle], order[middle:]
    yield order[middle:], order[:middle]


def _identity(vectors: Vectors) -> Vectors:
    return vectors


def _applied(step: nn.Module) -> Callable[[Vectors], Vectors]:
    def apply(vectors: Vectors) -> Vectors:
        with torch.inference_mode():
            result: Vectors = step(torch.from_numpy(vectors)).numpy()
        return result

    return apply


def _conclude(
    drawn: Sample, outcomes: dict[Candidate, _Outcome], order: npt.NDArray[np.intp], seed: int
) -> Diagnosis:
    """The ranking, the best, and its gain on pairs that did not choose it."""
    choosing, telling = order[::2], order[1::2]
    judged = sorted(
        (
            Judged(candidate, float(one.scores[choosing].mean()), *one[1:])
            for candidate, one in outcomes.items()
        ),
        key=lambda one: -one.score,
    )
    own = next(iter(outcomes))  # the encoder's own pooling and nothing after it come first
    best = judged[0]
    gain = paired_permutation(
        outcomes[best.candidate].scores[telling], outcomes[own].scores[telling], seed=seed
    )
    return Diagnosis(
        texts=drawn.texts,
        documents=drawn.documents,
        pairs=len(order),
        current=next(one for one in judged if one.candidate == own),
        best=best,
        gain=gain,
        judged=tuple(judged),
    )


def _as_dict(one: Judged) -> dict[str, Any]:
    return {
        "pooling": one.candidate.pooling.name,
        "layers": list(one.candidate.pooling.layers),
        "step": one.candidate.step,
        "score": one.score,
        "random_cosine": one.random_cosine,
        "uniformity": one.uniformity,
    }
