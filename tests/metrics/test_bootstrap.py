import time

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from sbertkit.errors import InputError
from sbertkit.metrics import Interval, bootstrap_interval, spearman, spearman_interval


def mean(values: np.ndarray) -> float:
    return float(values.mean())


def spearman_value(gold: np.ndarray, predicted: np.ndarray) -> float | None:
    return spearman(gold, predicted).value


def test_a_constant_statistic_has_an_interval_of_no_width() -> None:
    assert bootstrap_interval(mean, np.full(7, 2.5)) == Interval(2.5, 2.5, 0.95)


def test_the_interval_of_a_mean_is_near_that_of_the_normal_distribution() -> None:
    values = np.random.default_rng(5).normal(size=2000)
    interval = bootstrap_interval(mean, values, resamples=2000, level=0.9)
    assert interval is not None
    error = values.std() / np.sqrt(len(values))
    assert interval.low == pytest.approx(values.mean() - 1.645 * error, abs=0.15 * error)
    assert interval.high == pytest.approx(values.mean() + 1.645 * error, abs=0.15 * error)
    assert interval.level == 0.9


def test_the_interval_agrees_with_scipy() -> None:
    generator = np.random.default_rng(3)
    gold = generator.integers(0, 6, 200).astype(float)
    predicted = gold + generator.normal(scale=2, size=200)
    ours = spearman_interval(gold, predicted, resamples=2000)
    theirs = scipy.stats.bootstrap(
        (gold, predicted),
        lambda a, b: scipy.stats.spearmanr(a, b).statistic,
        paired=True,
        vectorized=False,
        n_resamples=500,
        method="percentile",
        rng=1,
    ).confidence_interval
    assert ours is not None
    assert ours.low == pytest.approx(theirs.low, abs=0.02)
    assert ours.high == pytest.approx(theirs.high, abs=0.02)


def test_rows_of_all_arrays_stay_together() -> None:
    ids = np.arange(20)
    seen = []

    def together(rows: np.ndarray, doubled: np.ndarray) -> float:
        seen.append(bool((doubled == 2 * rows[:, 0]).all()) and rows.shape == (20, 3))
        return 0.0

    bootstrap_interval(together, np.stack([ids] * 3, axis=1), 2 * ids, resamples=10)
    assert seen == [True] * 10


def test_the_same_seed_gives_the_same_interval() -> None:
    values = np.random.default_rng(0).normal(size=50)
    first, again, other = (bootstrap_interval(mean, values, seed=seed) for seed in (7, 7, 8))
    assert first == again
    assert first != other


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(-9, 9)), min_size=0, max_size=25),
    st.integers(0, 5),
)
@settings(max_examples=40)
def test_counting_gives_the_interval_of_ranking_each_resample(
    pairs: list[tuple[int, int]], seed: int
) -> None:
    gold = np.array([pair[0] for pair in pairs], dtype=float)
    predicted = np.array([pair[1] for pair in pairs], dtype=float) / 9
    fast = spearman_interval(gold, predicted, resamples=30, seed=seed)
    slow = bootstrap_interval(spearman_value, gold, predicted, resamples=30, seed=seed)
    if fast is None or slow is None:
        assert fast is slow
    else:
        assert fast == pytest.approx(slow, abs=1e-12)


def test_undefined_resamples_are_dropped() -> None:
    values = iter([0.0, None, float("nan"), 1.0, 2.0, 3.0, None, 4.0])
    interval = bootstrap_interval(lambda rows: next(values), np.zeros(3), resamples=8, level=0.5)
    assert interval == Interval(1.0, 3.0, 0.5)  # quartiles of 0, 1, 2, 3, 4


def test_no_interval_is_given_when_most_resamples_are_undefined() -> None:
    values = iter([None, None, None, 1.0, 2.0])
    assert bootstrap_interval(lambda rows: next(values), np.zeros(3), resamples=5) is None


def test_undefined_data_have_no_interval() -> None:
    assert spearman_interval([3.0] * 4, [0.1, 0.2, 0.3, 0.4]) is None
    assert spearman_interval([], []) is None
    assert bootstrap_interval(mean, np.zeros(0)) is None


def test_a_thousand_resamples_of_five_thousand_pairs_take_at_most_a_few_seconds() -> None:
    generator = np.random.default_rng(0)
    gold = generator.integers(0, 26, 5000) / 5
    start = time.perf_counter()
    interval = spearman_interval(gold, gold + generator.normal(size=5000))
    assert time.perf_counter() - start < 5
    assert interval is not None
    assert interval.low < interval.high


@pytest.mark.parametrize(
    ("arrays", "options", "message"),
    [
        ((), {}, "at least one array"),
        ((np.zeros(3), np.zeros(4)), {}, "found 3, 4"),
        ((np.array(1.0),), {}, "single number"),
        ((np.zeros(3),), {"resamples": 0}, "resamples must be at least 1, not 0"),
        ((np.zeros(3),), {"level": 0.0}, "level must be between 0 and 1, not 0.0"),
        ((np.zeros(3),), {"level": 95}, "level must be between 0 and 1, not 95"),
    ],
)
def test_other_arguments_are_refused(
    arrays: tuple[np.ndarray, ...], options: dict[str, float], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        bootstrap_interval(lambda *rows: 0.0, *arrays, **options)  # type: ignore[arg-type]
