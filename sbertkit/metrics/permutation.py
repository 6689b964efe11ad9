"""Paired permutation test: is the difference of two systems significant?"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sbertkit.errors import InputError
from sbertkit.metrics.bootstrap import Interval, interval_of
from sbertkit.metrics.differences import Difference, MeanDifference, Seed

SAMPLES = 100_000
"""Default number of random exchanges."""
_MAX_EXACT = 16
_SAMPLES_PER_CHUNK = 1_000
_EQUAL = 1e-12
"""Smaller differences are rounding errors."""


class PairedTest(NamedTuple):
    """The difference of two systems over the same rows, and its significance.

    Attributes:
        difference: Of the first minus of the second, such as of their means.
        p_value: Probability of a difference at least as large in either direction, if the systems
            were exchangeable.
        interval: Bootstrap interval of the difference.
    """

    difference: float
    p_value: float
    interval: Interval | None


def paired_test(found: Difference, *, samples: int = SAMPLES, seed: int = 0) -> PairedTest:
    """The two-sided paired permutation test of a difference.

    With up to 16 rows that differ all exchanges are counted, and the value is exact; with more,
    `samples` random ones are drawn, and the observed one is added to them.

    Args:
        found: The difference.
        samples: Number of random exchanges.
        seed: Seed of the draws.

    Raises:
        InputError: `samples` below 1.

    Source: Smucker, Allan & Carterette 2007, A Comparison of Statistical Significance Tests for
        Information Retrieval Evaluation, section 3.1; Phipson & Smyth 2010 for adding the observed
        one.
    """
    if samples < 1:
        raise InputError(f"samples must be at least 1, not {samples}")
    interval = interval_of(found.resampled(seed=seed))
    return PairedTest(found.observed, _p_value(found, samples, seed), interval)


def paired_permutation(
    first: npt.ArrayLike, second: npt.ArrayLike, *, samples: int = SAMPLES, seed: int = 0
) -> PairedTest:
    """`paired_test` of the means of two systems' values, each of shape (n,).

    Args:
        first: Values of the first system.
        second: Values of the second system, in the same order.
        samples: Number of random exchanges.
        seed: Seed of the draws.

    Raises:
        InputError: Columns of different lengths, empty, or with other than finite numbers.
    """
    return paired_test(MeanDifference(first, second), samples=samples, seed=seed)


def mean_test(found: Sequence[Difference], *, samples: int = SAMPLES, seed: int = 0) -> PairedTest:
    """`paired_test` of the mean of differences over several sets of rows, such as of data sets.

    Rows are exchanged and resampled within their set: the sets themselves are given, not drawn.

    Args:
        found: The difference over each set, at least one.
        samples: Number of random exchanges.
        seed: Seed of the draws.
    """
    observed = float(np.mean([one.observed for one in found]))
    seeds = [(seed, number) for number in range(len(found))]
    resampled = np.mean(
        [one.resampled(seed=of_set) for one, of_set in zip(found, seeds, strict=True)], axis=0
    )
    exchanged = np.mean(
        [
            np.concatenate([one.exchanged(signs) for signs in _random(one.rows, samples, of_set)])
            for one, of_set in zip(found, seeds, strict=True)
        ],
        axis=0,
    )
    extreme = int((np.abs(exchanged) >= abs(observed) - _EQUAL).sum())
    return PairedTest(observed, (extreme + 1) / (samples + 1), interval_of(resampled))


def _p_value(found: Difference, samples: int, seed: Seed) -> float:
    if not found.rows:
        return 1.0
    observed = abs(found.observed) - _EQUAL
    if found.rows <= _MAX_EXACT:
        changes = np.arange(1 << found.rows)[:, None] >> np.arange(found.rows) & 1
        signs = (1 - 2 * changes).astype(np.int8)
        return float((np.abs(found.exchanged(signs)) >= observed).mean())
    extreme = sum(
        int((np.abs(found.exchanged(signs)) >= observed).sum())
        for signs in _random(found.rows, samples, seed)
    )
    return (extreme + 1) / (samples + 1)


def _random(rows: int, samples: int, seed: Seed) -> Iterator[npt.NDArray[np.int8]]:
    """Random signs, (samples, rows), chunk by chunk."""
    random = np.random.default_rng(seed)
    for start in range(0, samples, _SAMPLES_PER_CHUNK):
        count = min(_SAMPLES_PER_CHUNK, samples - start)
        yield 1 - 2 * random.integers(2, size=(count, rows), dtype=np.int8)
