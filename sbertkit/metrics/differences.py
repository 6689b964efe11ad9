"""The difference of two systems over the same rows, with rows exchanged or resampled."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from sbertkit.errors import InputError
from sbertkit.metrics.bootstrap import bootstrap_values
from sbertkit.metrics.correlation import (
    Correlation,
    correlate_codes,
    order_codes,
    pearson,
    ranks_of_codes,
    spearman,
)

Floats = npt.NDArray[np.float64]
Seed = int | Sequence[int]
_CONSTANT = 1e-12
"""A smaller variance of standardized values is a rounding error."""


class Difference(Protocol):
    """A statistic of the first system minus that of the second.

    Attributes:
        observed: The difference as it is.
        rows: Number of rows in which the systems differ, so that exchanging them matters.
    """

    observed: float
    rows: int

    def exchanged(self, signs: npt.NDArray[np.int8]) -> Floats:
        """The difference, (samples,), with the systems exchanged where a sign is -1.

        Args:
            signs: 1 and -1, (samples, rows).
        """
        ...

    def resampled(self, *, resamples: int = 1000, seed: Seed = 0) -> Floats:
        """The difference over rows drawn with replacement, (resamples,); NaN where undefined."""
        ...


class MeanDifference:
    """The mean of one column minus that of another; see `Difference`.

    Args:
        first: Values of the first system, (n,).
        second: Values of the second system, in the same order, (n,).

    Raises:
        InputError: Columns of different lengths, empty, or with other than finite numbers.
    """

    def __init__(self, first: npt.ArrayLike, second: npt.ArrayLike) -> None:
        left, right = _checked(first, second)
        self._all = left - right
        self._differing = self._all[self._all != 0]
        self.observed = float(self._all.mean())
        self.rows = len(self._differing)

    def exchanged(self, signs: npt.NDArray[np.int8]) -> Floats:
        """See `Difference`."""
        means: Floats = signs @ self._differing / len(self._all)
        return means

    def resampled(self, *, resamples: int = 1000, seed: Seed = 0) -> Floats:
        """See `Difference`."""
        return bootstrap_values(
            lambda rows: float(rows.mean()), self._all, resamples=resamples, seed=seed
        )


class CorrelationDifference:
    """One column's correlation with gold scores minus that of another; see `Difference`.

    Before they are exchanged, the values of each system are replaced by their ranks, or are
    standardized: systems differ in the level and the spread of their values.

    Args:
        gold: Gold scores, (n,).
        first: Predictions of the first system, (n,).
        second: Predictions of the second system, (n,).
        ranks: Spearman's correlation, else Pearson's.

    Raises:
        InputError: Columns of different lengths or with other than finite numbers, or an
            undefined correlation.

    Source: Deutsch, Dror & Roth 2021, A Statistical Analysis of Summarization Evaluation Metrics
        Using Resampling Methods, sections 3.2 and 4.2.
    """

    def __init__(
        self, gold: npt.ArrayLike, first: npt.ArrayLike, second: npt.ArrayLike, *, ranks: bool
    ) -> None:
        correlate = spearman if ranks else pearson
        self.observed = _defined(correlate(gold, first)) - _defined(correlate(gold, second))
        self._columns: list[npt.NDArray[Any]] = [
            order_codes(column) if ranks else np.asarray(column, dtype=np.float64)
            for column in (gold, first, second)
        ]
        self._statistic = _code_difference if ranks else _value_difference
        scales = (ranks_of_codes(column) if ranks else column for column in self._columns)
        target, left, right = (_standardized(column) for column in scales)
        # A swap changes the sums of a system's values, of their squares and of their products
        # with the gold scores by these amounts; a correlation needs no more.
        sums = np.stack([np.stack([x, x * x, x * target], axis=1) for x in (left, right)])
        differing: npt.NDArray[np.bool_] = left != right
        self._first, self._second = sums.sum(axis=1)  # (3,) each
        self._changes = (sums[1] - sums[0])[differing]  # (rows, 3)
        self._count = len(target)
        self.rows = int(differing.sum())

    def exchanged(self, signs: npt.NDArray[np.int8]) -> Floats:
        """See `Difference`."""
        changes = (signs < 0).astype(np.float64) @ self._changes  # (samples, 3)
        return self._correlations(self._first + changes) - self._correlations(
            self._second - changes
        )

    def _correlations(self, sums: Floats) -> Floats:
        """Correlations with the gold scores by those sums, (samples,); 0 for a constant column."""
        variance = sums[:, 1] / self._count - (sums[:, 0] / self._count) ** 2
        covariance = sums[:, 2] / self._count
        varies = variance > _CONSTANT
        correlations: Floats = np.divide(
            covariance, np.sqrt(np.abs(variance)), where=varies, out=np.zeros(len(sums))
        )
        return correlations

    def resampled(self, *, resamples: int = 1000, seed: Seed = 0) -> Floats:
        """See `Difference`."""
        return bootstrap_values(self._statistic, *self._columns, resamples=resamples, seed=seed)


def _checked(first: npt.ArrayLike, second: npt.ArrayLike) -> tuple[Floats, Floats]:
    left, right = (np.asarray(column, dtype=np.float64) for column in (first, second))
    if left.ndim != 1 or left.shape != right.shape or not len(left):
        raise InputError(
            f"expected two columns of the same length, found shapes {left.shape} and {right.shape}"
        )
    if not (np.isfinite(left).all() and np.isfinite(right).all()):
        raise InputError("expected finite values of both systems, found NaN or infinity")
    return left, right


def _defined(found: Correlation) -> float:
    if found.value is None:
        raise InputError(f"the correlation is undefined: {found.reason}")
    return found.value


def _standardized(column: npt.NDArray[Any]) -> Floats:
    """The column with mean 0 and variance 1."""
    scaled = column / np.abs(column).max()  # squares of very large numbers have no float64
    centered = scaled - scaled.mean()
    standardized: Floats = centered / centered.std()
    return standardized


def _code_difference(
    gold: npt.NDArray[np.intp], first: npt.NDArray[np.intp], second: npt.NDArray[np.intp]
) -> float | None:
    return _minus(correlate_codes(gold, first), correlate_codes(gold, second))


def _value_difference(gold: Floats, first: Floats, second: Floats) -> float | None:
    return _minus(pearson(gold, first).value, pearson(gold, second).value)


def _minus(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one - other
