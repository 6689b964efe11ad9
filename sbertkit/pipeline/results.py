"""What a recipe comes to."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sbertkit.metrics import PairedTest, paired_permutation

BASE, ADAPT, TRAIN, DIAGNOSE, INDEX = "base", "adapt", "train-nli", "diagnose", "index"


@dataclass(frozen=True, slots=True)
class ScoredEncoder:
    """The encoder after a step, scored.

    Attributes:
        step: ``base``, ``adapt``, ``train-nli`` or ``diagnose``.
        model: Its folder or name.
        found: Of each text of the sample, the share of its two parts that find each other.
        random_cosine: Mean cosine of two parts drawn at random.
        dev: The score on the dev set, where there is one.
        ndcg: NDCG@10 on each collection, by its name.
        gain: `found` against the base, of which it is None.
        facts: What else the step gave.
        seconds: What the step took.
    """

    step: str
    model: str
    found: tuple[float, ...]
    random_cosine: float | None
    dev: float | None
    ndcg: Mapping[str, float | None]
    gain: PairedTest | None
    facts: Mapping[str, Any]
    seconds: float

    @property
    def accuracy(self) -> float:
        """The mean share of parts that find each other, from 0 to 1."""
        return float(np.mean(self.found))

    @property
    def is_better(self) -> bool | None:
        """Whether it finds more than the base; None while the interval holds 0."""
        interval = None if self.gain is None else self.gain.interval
        if interval is None or interval.low <= 0 <= interval.high:
            return None
        return interval.low > 0

    @classmethod
    def of(
        cls,
        step: str,
        model: str,
        scores: Mapping[str, Any],
        base: "ScoredEncoder | None",
        *,
        facts: Mapping[str, Any],
        seconds: float,
        seed: int,
    ) -> "ScoredEncoder":
        """An encoder with what `score` gave.

        Args:
            step: See `step`.
            model: See `model`.
            scores: Of the encoder.
            base: What it is compared with.
            facts: See `facts`.
            seconds: See `seconds`.
            seed: Of the interval.
        """
        found = tuple(scores["found"])
        gain = None
        if base is not None:
            gain = paired_permutation(np.array(found), np.array(base.found), seed=seed)
        own = {name: scores[name] for name in ("random_cosine", "dev", "ndcg")}
        return cls(step, model, found, **own, gain=gain, facts=facts, seconds=seconds)


@dataclass(frozen=True, slots=True)
class RecipeResult:
    """A finished recipe.

    Attributes:
        folder: Where everything is.
        about: What the recipe was for, by name, for the report.
        encoders: The base, and the encoder after each step.
        model: The folder or name of the encoder that was indexed.
        index: Facts about the index in ``index``; see `IndexInfo`.
        examples: Parts of texts as queries, with what the index finds for them.
        advice: What follows, in sentences.
    """

    folder: Path
    about: Mapping[str, str]
    encoders: tuple[ScoredEncoder, ...]
    model: str
    index: Mapping[str, Any]
    examples: Mapping[str, tuple[str, ...]]
    advice: tuple[str, ...]

    @property
    def report(self) -> Path:
        """The page that shows all of it."""
        return self.folder / "report.html"
