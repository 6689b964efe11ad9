"""The paired permutation test against scipy's and against values worked out by hand."""

import numpy as np
import pytest
from scipy.stats import permutation_test

from sbertkit.errors import InputError
from sbertkit.metrics.permutation import paired_permutation


def test_few_rows_are_counted_out() -> None:
    # Of the 8 sign changes of (1, 1, 1) two give a sum as far from 0 as 3.
    test = paired_permutation([2, 3, 4], [1, 2, 3])
    assert test.difference == 1.0
    assert test.p_value == 2 / 8


def test_rows_without_a_difference_change_nothing() -> None:
    assert paired_permutation([2, 3, 4, 5, 6], [1, 2, 3, 5, 6]).p_value == 2 / 8


def test_equal_systems_do_not_differ() -> None:
    test = paired_permutation([0.1, 0.5], [0.1, 0.5])
    assert (test.difference, test.p_value) == (0.0, 1.0)


def test_rounding_does_not_decide_what_is_as_large() -> None:
    # 0.1 + 0.2 - 0.3 is 5.6e-17, not 0: by hand all sums but the two of one sign are smaller.
    first = np.array([0.3, 0.1, 0.2])
    assert paired_permutation(first, np.zeros(3)).p_value == 2 / 8


@pytest.mark.parametrize("rows", [5, 12, 16, 17, 40, 300])
def test_the_p_value_is_scipys(rows: int) -> None:
    random = np.random.default_rng(rows)
    first = random.random(rows)
    second = first - random.normal(0.03, 0.2, rows)
    ours = paired_permutation(first, second, samples=60_000)
    theirs = permutation_test(
        (first, second),
        lambda a, b: (a - b).mean(),
        permutation_type="samples",
        n_resamples=np.inf if rows <= 16 else 60_000,
        rng=1,
    )
    assert ours.difference == pytest.approx(theirs.statistic)
    tolerance = 1e-9 if rows <= 16 else 0.02
    assert ours.p_value == pytest.approx(theirs.pvalue, abs=tolerance)


def test_the_sign_of_the_difference_does_not_count_and_the_seed_repeats() -> None:
    random = np.random.default_rng(3)
    first, second = random.random((2, 60))
    one, other = paired_permutation(first, second), paired_permutation(second, first)
    assert one.difference == -other.difference
    assert one.p_value == pytest.approx(other.p_value, abs=0.01)
    assert one == paired_permutation(first, second)


def test_a_p_value_of_samples_is_never_zero() -> None:
    assert paired_permutation(np.ones(100), np.zeros(100), samples=99).p_value == 1 / 100


def test_the_interval_has_the_difference_in_it() -> None:
    random = np.random.default_rng(5)
    first = random.random(200)
    second = first - random.normal(0.1, 0.1, 200)
    test = paired_permutation(first, second)
    assert test.interval is not None
    assert test.interval.low < test.difference < test.interval.high


@pytest.mark.parametrize(
    ("first", "second"),
    [([], []), ([1.0], [1.0, 2.0]), ([[1.0]], [[1.0]]), ([np.nan], [0.0]), ([0.0], [np.inf])],
)
def test_columns_that_are_none_are_refused(first: list[float], second: list[float]) -> None:
    with pytest.raises(InputError):
        paired_permutation(first, second)


def test_no_sample_is_refused() -> None:
    with pytest.raises(InputError, match="samples"):
        paired_permutation([1.0], [0.0], samples=0)
