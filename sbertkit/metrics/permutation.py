"""Paired permutation test: is the difference of two systems' means significant?"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sbertkit.errors import InputError
from sbertkit.metrics.bootstrap import Interval, bootstrap_interval

_MAX_EXACT = 16
_SAMPLES_PER_CHUNK = 1_000
_EQUAL = 1e-12
"""Smaller differences of sums are rounding errors."""


class PairedTest(NamedTuple):
    """The difference of two means over the same rows, and its significance.

    Attributes:
        difference: Mean of the first minus mean of the second.
        p_value: Probability of a difference at least as large in either direction, if the systems
            were exchangeable.
        interval: Bootstrap interval of the difference.
    """

    difference: float
    p_value: float
    interval: Interval | None


def paired_permutation(
    first: npt.ArrayLike, second: npt.ArrayLike, *, samples: int = 100_000, seed: int = 0
) -> PairedTest:
    """The two-sided paired permutation test of two systems' values, each of shape (n,).

    With up to 16 rows that differ all sign changes are counted, and the value is exact; with more,
    `samples` random ones are drawn, and the observed one is added to them.

    Args:
        first: Values of the first system.
        second: Values of the second system, in the same order.
        samples: Number of random sign changes.
        seed: Seed of the draws.

    Raises:
        InputError: Columns of different lengths, empty, or with other than finite numbers.

    Source: Smucker, Allan & Carterette 2007, A Comparison of Statistical Significance Tests for
        Information Retrieval Evaluation, section 3.1; Phipson & Smyth 2010 for adding the observed
        one.
    """
    left, right = (np.asarray(column, dtype=np.float64) for column in (first, second))
    if left.ndim != 1 or left.shape != right.shape or not len(left):
        raise InputError(
            f"expected two columns of the same length, found shapes {left.shape} and {right.shape}"
        )
    if not (np.isfinite(left).all() and np.isfinite(right).all()):
        raise InputError("expected finite values of both systems, found NaN or infinity")
    if samples < 1:
        raise InputError(f"samples must be at least 1, not {samples}")
    differences = left - right
    return PairedTest(
        float(differences.mean()),
        _p_value(differences[differences != 0], samples, seed),
        bootstrap_interval(lambda rows: float(rows.mean()), differences, seed=seed),
    )


def _p_value(differences: npt.NDArray[np.float64], samples: int, seed: int) -> float:
    if not len(differences):
        return 1.0
    observed = abs(differences.sum()) - _EQUAL
    if len(differences) <= _MAX_EXACT:
        changes = np.arange(1 << len(differences))[:, None] >> np.arange(len(differences)) & 1
        return float((np.abs((1 - 2 * changes) @ differences) >= observed).mean())
    random = np.random.default_rng(seed)
    extreme = 0
    for start in range(0, samples, _SAMPLES_PER_CHUNK):
        rows = min(_SAMPLES_PER_CHUNK, samples - start)
        signs = 1 - 2 * random.integers(2, size=(rows, len(differences)), dtype=np.int8)
        extreme += int((np.abs(signs @ differences) >= observed).sum())
    return (extreme + 1) / (samples + 1)
