"""Percentile bootstrap intervals over the rows of an evaluation."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sbertkit.errors import InputError
from sbertkit.metrics.correlation import correlate_codes, order_codes, spearman

_MIN_DEFINED = 0.5


class Interval(NamedTuple):
    """A confidence interval; ``level`` is its nominal coverage, as in 0.95."""

    low: float
    high: float
    level: float


@dataclass(frozen=True, slots=True)
class StoredInterval:
    """An interval in JSON."""

    low: float
    high: float
    level: float

    def interval(self) -> Interval:
        """The interval."""
        return Interval(self.low, self.high, self.level)


def bootstrap_interval(
    statistic: Callable[..., float | None],
    *arrays: npt.NDArray[Any],
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> Interval | None:
    """The percentile bootstrap interval of a statistic of rows, or None where it is undefined.

    A resample draws as many rows as there are, with replacement, the same rows of every array.
    Resamples whose statistic is None or NaN are dropped; the interval is undefined if more than
    half of them are, since the rest would not represent the data.

    Args:
        statistic: Takes the resampled arrays, gives a number, or None where it is undefined.
        *arrays: One or more arrays with one row (first axis) for each observation.
        resamples: Number of resamples, at least 1.
        level: Nominal coverage, between 0 and 1.
        seed: Seed of the draws; the same seed gives the same interval.

    Raises:
        InputError: No array, arrays of different lengths, or an option out of its range.

    Source: Efron & Tibshirani 1993, An Introduction to the Bootstrap, section 13.3.
    """
    if not 0 < level < 1:
        raise InputError(f"level must be between 0 and 1, not {level}")
    values = bootstrap_values(statistic, *arrays, resamples=resamples, seed=seed)
    return interval_of(values, level=level)


def bootstrap_values(
    statistic: Callable[..., float | None],
    *arrays: npt.NDArray[Any],
    resamples: int = 1000,
    seed: int | Sequence[int] = 0,
) -> npt.NDArray[np.float64]:
    """A statistic of resampled rows, (resamples,), NaN where undefined; see `bootstrap_interval`.

    Without rows there is no value, (0,).
    """
    rows = _checked_rows(arrays)
    if resamples < 1:
        raise InputError(f"resamples must be at least 1, not {resamples}")
    generator = np.random.default_rng(seed)
    values: list[float] = []
    for _ in range(resamples if rows else 0):
        drawn = generator.integers(rows, size=rows)
        value = statistic(*(array[drawn] for array in arrays))
        values.append(math.nan if value is None else value)
    return np.array(values, dtype=np.float64)


def interval_of(values: npt.NDArray[np.float64], *, level: float = 0.95) -> Interval | None:
    """The percentile interval of `bootstrap_values`; None if more than half are undefined."""
    defined = values[~np.isnan(values)]
    if not len(defined) or len(defined) < _MIN_DEFINED * len(values):
        return None
    low, high = np.quantile(defined, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high), level)


def spearman_interval(
    gold: npt.ArrayLike,
    predicted: npt.ArrayLike,
    *,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> Interval | None:
    """The percentile bootstrap interval of Spearman's correlation, or None where it is undefined.

    Equal to ``bootstrap_interval`` with ``spearman``, several times faster: the values are
    sorted once, and each resample is ranked by counting.

    Raises:
        InputError: As ``spearman`` and ``bootstrap_interval``.
    """
    if spearman(gold, predicted).value is None:
        return None
    return bootstrap_interval(
        correlate_codes,
        order_codes(gold),
        order_codes(predicted),
        resamples=resamples,
        level=level,
        seed=seed,
    )


def _checked_rows(arrays: tuple[npt.NDArray[Any], ...]) -> int:
    if not arrays:
        raise InputError("expected at least one array to resample, found none")
    shapes = [np.shape(array) for array in arrays]
    if any(not shape for shape in shapes):
        raise InputError("expected arrays with a row for each observation, found a single number")
    if len({shape[0] for shape in shapes}) > 1:
        raise InputError(
            f"expected arrays of one length, found {', '.join(str(shape[0]) for shape in shapes)}"
        )
    return int(shapes[0][0])
