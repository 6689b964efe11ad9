"""The guard: snapshots of a space in training, and when they mean that a run has gone wrong."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from sbertkit.encoder import Encoder
from sbertkit.errors import InputError
from sbertkit.metrics import effective_rank, mean_random_cosine, row_cosines, uniformity
from sbertkit.schema import Count
from sbertkit.training.data_forms import TrainingData

COLLAPSE_BOUND = 0.9
"""Mean cosine of random pairs above which a space counts as collapsing while it rises, or when it
is nearly 1, if directions are lost as well."""
_DIRECTIONS_LEFT = 0.25
"""Share of the directions beside the common one that a collapsing space has left at most; cosent
and angle compare cosines with each other alone, so that all may rise with few directions lost."""
_RISE = 0.01
_SURE = 4.0
"""Standard errors by which labels must be in the wrong order."""
_MIN_PAIRS = 16

NOT_FINITE = "the encoder's vectors are no longer finite; lower the learning rate, or train in fp32"


@dataclass(frozen=True, slots=True)
class SpaceSnapshot:
    """What a space is like at one moment; None where it is undefined.

    Attributes:
        random_cosine: Mean cosine of two random texts; near 1 when all texts look the same.
        uniformity: See `sbertkit.metrics.uniformity`.
        effective_rank: See `sbertkit.metrics.effective_rank`.
        label_cosines: Mean cosine of premise and hypothesis by label.
        label_errors: Standard errors of those means.
        of_scores: Whether it is one of a re-ranker: label_cosines are then mean scores.
    """

    random_cosine: float | None
    uniformity: float | None
    effective_rank: float | None
    label_cosines: dict[str, float]
    label_errors: dict[str, float]
    of_scores: bool = False

    def row(self) -> dict[str, float | None]:
        """The values by name, as the log has them."""
        if self.of_scores:
            return dict(self.label_cosines)
        return {
            "random_cosine": self.random_cosine,
            "uniformity": self.uniformity,
            "effective_rank": self.effective_rank,
            **self.label_cosines,
        }


SPACE_PAIRS = 48
"""Rows of each label that the space is described by, whatever the number of rows: what is measured
of a space depends on how many vectors there are."""


class ProbeSet:
    """Fixed pairs of texts whose vectors are encoded from time to time.

    Args:
        data: Rows to draw from, of which the first two texts are taken, or the only one.
        per_label: Rows of each label.
        seed: Seed of the draw.
    """

    def __init__(self, data: TrainingData, per_label: int, seed: int) -> None:
        drawn = _draw(data, per_label, seed)
        chosen = [row for rows in drawn for row in rows]
        described = [number < SPACE_PAIRS for rows in drawn for number in range(len(rows))]
        self._names = data.form.labels
        self._labels = np.array(data.label_numbers)[chosen]
        numbers: dict[str, int] = {}
        width = min(2, data.form.texts)
        pairs = ((data.rows[row][0], data.rows[row][width - 1]) for row in chosen)
        self._sides = np.array(
            [[numbers.setdefault(text, len(numbers)) for text in pair] for pair in pairs],
            dtype=np.intp,
        ).reshape(-1, 2)
        self._texts = list(numbers)
        self._space = np.unique(self._sides[np.array(described, np.bool_)])

    def snapshot(self, encoder: Encoder) -> SpaceSnapshot | None:
        """The space of the encoder as it is now; None when its vectors are not finite."""
        vectors = _vectors(encoder, self._texts)
        if vectors is None:
            return None
        cosines = row_cosines(vectors, self._sides[:, 0], self._sides[:, 1])
        means, errors = _by_label(cosines, self._labels, self._names)
        space = vectors[self._space]
        return SpaceSnapshot(
            mean_random_cosine(space), uniformity(space), effective_rank(space), means, errors
        )


class PairProbeSet:
    """Fixed pairs that a model in training scores from time to time.

    Args:
        data: Rows to draw from, whose first two texts are a pair.
        per_label: Rows of each label.
        seed: Seed of the draw.
    """

    def __init__(self, data: TrainingData, per_label: int, seed: int) -> None:
        chosen = [row for rows in _draw(data, per_label, seed) for row in rows]
        self._names = data.form.labels
        self._labels = np.array(data.label_numbers)[chosen]
        self._pairs: list[Any] = [tuple(data.rows[row][:2]) for row in chosen]

    def snapshot(self, encoder: Encoder) -> SpaceSnapshot | None:
        """The mean scores of the labels as they are now; None when scores are not finite."""
        scores = _vectors(encoder, self._pairs)
        if scores is None:
            return None
        means, errors = _by_label(scores[:, 0], self._labels, self._names)
        return SpaceSnapshot(None, None, None, means, errors, of_scores=True)


def probe_of(encoder: Encoder, data: TrainingData, per_label: int, seed: int) -> "Probe":
    """What shows how a model in training does, from rows of its data."""
    kind = PairProbeSet if encoder.spec.scores_pairs else ProbeSet
    return kind(data, per_label, seed)


Probe = ProbeSet | PairProbeSet


def _draw(data: TrainingData, per_label: int, seed: int) -> list[list[int]]:
    """So many rows of each label."""
    random = np.random.default_rng(seed)
    labels = np.array(data.label_numbers)
    return [
        random.permutation(np.flatnonzero(labels == label))[:per_label].tolist()
        for label in range(max(1, len(data.form.labels)))
    ]


def _by_label(
    values: npt.NDArray[Any], labels: npt.NDArray[Any], names: Sequence[str]
) -> tuple[dict[str, float], dict[str, float]]:
    """The mean of the values of each label, and its standard error."""
    means, errors = {}, {}
    for label, name in enumerate(names):
        part = values[labels == label]
        if len(part):
            means[name] = float(part.mean())
        if len(part) >= _MIN_PAIRS:
            errors[name] = float(part.std(ddof=1)) / math.sqrt(len(part))
    return means, errors


def _vectors(encoder: Encoder, texts: list[str]) -> npt.NDArray[np.float32] | None:
    try:
        return encoder.encode(texts)
    except InputError:  # not finite
        return None


@dataclass(slots=True)
class Guard:
    """Judges snapshots in their order.

    Attributes:
        first: The snapshot before training.
        orders: Labels whose order counts, each time that of the most similar pairs first.
        doubts: Judgements in a row that found the same fault; at the second the run is stopped.
        last_cosine: Random-pair cosine of the snapshot before.
        fault: The fault that the last snapshot showed, if any.
    """

    first: SpaceSnapshot
    orders: tuple[tuple[str, ...], ...] = ()
    doubts: Count = 0
    last_cosine: float = field(default=-1.0)
    fault: str | None = None

    def judge(self, snapshot: SpaceSnapshot | None, *, check_labels: bool) -> str | None:
        """Why the run must stop, or None.

        Args:
            snapshot: The space now; None when its vectors are not finite.
            check_labels: Whether enough was trained for the order of the labels to count.
        """
        if snapshot is None:
            return NOT_FINITE
        found = self._collapse(snapshot) or (
            any_wrong_order(snapshot, self.orders) if check_labels else None
        )
        self.last_cosine = -1.0 if snapshot.random_cosine is None else snapshot.random_cosine
        kind = None if found is None else found.split(":")[0]
        self.doubts = (
            self.doubts + 1 if kind is not None and kind == self.fault else int(bool(kind))
        )
        self.fault = kind
        return found if self.doubts >= 2 else None

    @property
    def has_warning(self) -> bool:
        """Whether the last snapshot showed a fault, so that no checkpoint should be made of it."""
        return self.doubts > 0

    def _collapse(self, snapshot: SpaceSnapshot) -> str | None:
        if snapshot.of_scores:  # which form no space
            return None
        start = self.first.random_cosine or 0.0
        now = snapshot.random_cosine
        if now is None:
            return "collapse: all vectors became zero; lower the learning rate"
        rising = now >= self.last_cosine or now > 1 - (1 - COLLAPSE_BOUND) / 2
        # A base near 1 has no room for the whole rise: half of what is left counts then.
        bound = max(COLLAPSE_BOUND, min(start + _RISE, (1 + start) / 2))
        before, rank = self.first.effective_rank, snapshot.effective_rank
        if now <= bound or not rising or not _lost_directions(before, rank):
            return None
        known = before is not None and rank is not None
        fallen = f" and an effective rank of {rank:.1f} ({before:.1f})" if known else ""
        return (
            f"collapse: random pairs of texts have a mean cosine of {now:.3f} (before training "
            f"{start:.3f}, bound {COLLAPSE_BOUND}){fallen}, so that all texts look the same; lower "
            "the learning rate, lengthen the warm-up or take larger batches"
        )


def _lost_directions(before: float | None, now: float | None) -> bool:
    """Whether an effective rank, of which 1 is the common direction, fell to little of what it was.

    An unknown one did.
    """
    return before is None or now is None or now - 1 < _DIRECTIONS_LEFT * (before - 1)


def any_wrong_order(snapshot: SpaceSnapshot, orders: Sequence[Sequence[str]]) -> str | None:
    """The first of the faults that `wrong_order` finds, else None."""
    faults = (wrong_order(snapshot, labels) for labels in orders)
    return next((fault for fault in faults if fault is not None), None)


def wrong_order(snapshot: SpaceSnapshot, labels: Sequence[str]) -> str | None:
    """What is wrong when pairs of the first label are surely less similar than others, else None.

    Surely: by more than four standard errors of the difference. The order of the other labels does
    not count: not every healthy space tells contradicting from neutral pairs by a cosine.
    """
    means, errors = snapshot.label_cosines, snapshot.label_errors
    measure = "score" if snapshot.of_scores else "cosine"
    for other in labels[1:]:
        if not {labels[0], other} <= errors.keys():
            continue
        gap = means[other] - means[labels[0]]
        if gap > _SURE * math.hypot(errors[labels[0]], errors[other]):
            shown = ", ".join(f"{name} {means[name]:.3f}" for name in labels if name in means)
            return (
                f"label order: pairs labeled {labels[0]} should have the highest mean {measure}, "
                f"found {shown}; the labels are probably swapped, or scores are distances: check "
                "the data, and labels (--labels) where they are numbers"
            )
    return None
