"""Differences of correlations, against scipy's permutation test and Williams' test."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from sbertkit.errors import InputError
from sbertkit.metrics import (
    CorrelationDifference,
    MeanDifference,
    mean_test,
    paired_permutation,
    paired_test,
    pearson,
    spearman,
)
from sbertkit.metrics.permutation import _p_value

Columns = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.float64]]


def columns(rows: int, seed: int = 0, noise: tuple[float, float] = (0.6, 0.9)) -> Columns:
    """Gold scores with ties, and two predictions of different quality and scale."""
    random = np.random.default_rng(seed)
    gold = random.integers(0, 11, rows) / 2
    shared = gold + random.normal(0, 1, rows)
    first = 0.5 + 0.1 * (shared + random.normal(0, noise[0], rows))
    second = 40 + 7 * (shared + random.normal(0, noise[1], rows))
    return gold, first, second


def williams(gold: Any, first: Any, second: Any) -> float:
    """The two-sided p-value of Williams' test as Steiger 1980 gives it, equation 7."""
    one, other, between = (
        stats.pearsonr(a, b).statistic for a, b in ((gold, first), (gold, second), (first, second))
    )
    rows = len(gold)
    determinant = 1 - one**2 - other**2 - between**2 + 2 * one * other * between
    mean = (one + other) / 2
    scale = 2 * (rows - 1) / (rows - 3) * determinant + mean**2 * (1 - between) ** 3
    t = (one - other) * math.sqrt((rows - 1) * (1 + between) / scale)
    return float(2 * stats.t.sf(abs(t), rows - 3))


@pytest.mark.parametrize("seed", range(4))
def test_the_p_value_for_pearson_is_near_that_of_williams_test(seed: int) -> None:
    gold, first, second = columns(400, seed)
    found = paired_test(CorrelationDifference(gold, first, second, ranks=False), samples=20_000)
    correlations = [stats.pearsonr(gold, values).statistic for values in (first, second)]
    assert found.difference == pytest.approx(correlations[0] - correlations[1])
    assert found.p_value == pytest.approx(williams(gold, first, second), abs=0.04)


@pytest.mark.parametrize("seed", range(4))
def test_the_p_value_for_spearman_is_near_that_of_the_paired_bootstrap(seed: int) -> None:
    gold, first, second = columns(400, seed)
    difference = CorrelationDifference(gold, first, second, ranks=True)
    correlations = [stats.spearmanr(gold, values).statistic for values in (first, second)]
    assert difference.observed == pytest.approx(correlations[0] - correlations[1])
    normal = 2 * stats.norm.sf(abs(difference.observed) / difference.resampled().std())
    assert paired_test(difference, samples=20_000).p_value == pytest.approx(normal, abs=0.02)


@pytest.mark.parametrize("rows", [6, 12])
def test_few_pairs_are_counted_out_as_scipy_does(rows: int) -> None:
    gold, first, second = columns(rows, 1)
    target, *ranks = (stats.rankdata(column) for column in (gold, first, second))
    theirs = stats.permutation_test(
        ranks,
        lambda a, b: np.corrcoef(target, a)[0, 1] - np.corrcoef(target, b)[0, 1],
        permutation_type="samples",
        n_resamples=np.inf,
        vectorized=False,
    )
    ours = paired_test(CorrelationDifference(gold, first, second, ranks=True))
    assert ours.difference == pytest.approx(theirs.statistic)
    assert ours.p_value == pytest.approx(theirs.pvalue, abs=1e-9)


@pytest.mark.parametrize("ranks", [True, False])
def test_equal_systems_are_found_different_as_rarely_as_the_level_says(ranks: bool) -> None:
    pairs = (columns(60, seed, noise=(0.8, 0.8)) for seed in range(400))
    values = [_p_value(CorrelationDifference(*one, ranks=ranks), 199, 0) for one in pairs]
    assert np.mean(np.array(values) <= 0.05) == pytest.approx(0.05, abs=0.03)
    assert np.mean(values) == pytest.approx(0.5, abs=0.06)


def test_level_and_spread_of_the_predictions_do_not_count() -> None:
    gold, first, second = columns(200)
    tests = [
        paired_test(CorrelationDifference(gold, first, scaled, ranks=False), samples=2_000)
        for scaled in (second, second / 1e200, second * 1e200 - 1e203)
    ]
    for one in tests[1:]:
        assert one[:2] == pytest.approx(tests[0][:2])
        assert one.interval == pytest.approx(tests[0].interval)


def test_a_system_equals_itself() -> None:
    gold, first, _ = columns(50)
    for ranks in (True, False):
        test = paired_test(CorrelationDifference(gold, first, first, ranks=ranks))
        assert (test.difference, test.p_value) == (0.0, 1.0)


def test_opposite_systems_differ() -> None:
    gold = np.arange(30.0)
    test = paired_test(CorrelationDifference(gold, gold, -gold, ranks=True))
    assert test.difference == pytest.approx(2)
    assert test.p_value == 1 / 100_001


def test_the_interval_is_the_paired_bootstraps() -> None:
    gold, first, second = columns(80)
    random = np.random.default_rng(0)
    draws = [random.integers(80, size=80) for _ in range(1_000)]
    for ranks, correlate in ((True, spearman), (False, pearson)):
        expected = [
            (correlate(gold[rows], first[rows]).value or 0)
            - (correlate(gold[rows], second[rows]).value or 0)
            for rows in draws
        ]
        interval = paired_test(CorrelationDifference(gold, first, second, ranks=ranks)).interval
        assert interval is not None
        assert interval[:2] == pytest.approx(np.quantile(expected, [0.025, 0.975]))


@pytest.mark.parametrize("ranks", [True, False])
def test_an_undefined_correlation_is_refused(ranks: bool) -> None:
    with pytest.raises(InputError, match="constant predictions"):
        CorrelationDifference([1, 2, 3], [1, 2, 3], [4, 4, 4], ranks=ranks)
    with pytest.raises(InputError, match="one prediction for each"):
        CorrelationDifference([1, 2, 3], [1, 2, 3], [4, 5], ranks=ranks)


def test_the_mean_over_one_set_is_that_set() -> None:
    gold, first, second = columns(300)
    one = CorrelationDifference(gold, first, second, ranks=True)
    alone, mean = paired_test(one), mean_test([one])
    assert mean.difference == alone.difference
    assert mean.p_value == pytest.approx(alone.p_value, abs=0.005)


def test_the_mean_over_sets_weighs_them_equally_and_is_surer_than_each() -> None:
    random = np.random.default_rng(1)
    parts = [random.normal(0.1, 0.5, rows) for rows in (40, 400, 90)]
    found = mean_test([MeanDifference(part, np.zeros(len(part))) for part in parts])
    assert found.difference == pytest.approx(np.mean([part.mean() for part in parts]))
    spread = math.sqrt(sum(part.var() / len(part) for part in parts)) / 3
    normal = 2 * stats.norm.sf(abs(found.difference) / spread)
    assert found.p_value == pytest.approx(normal, abs=0.002)
    assert found.p_value < min(paired_permutation(part, 0 * part).p_value for part in parts[::2])
    assert found.interval is not None
    assert found.interval.high - found.interval.low == pytest.approx(2 * 1.96 * spread, rel=0.15)
