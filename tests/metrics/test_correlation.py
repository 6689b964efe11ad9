import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sbertkit.errors import InputError
from sbertkit.metrics import Correlation, pearson, spearman

numbers = st.integers(-50, 50).map(float)
columns = st.integers(2, 40).flatmap(
    lambda n: st.tuples(
        st.lists(numbers, min_size=n, max_size=n), st.lists(numbers, min_size=n, max_size=n)
    )
)
correlations = pytest.mark.parametrize("correlation", [spearman, pearson])


def test_pearson_of_a_hand_worked_column() -> None:
    # deviations (-1, 0, 1) and (-2, 1, 1): 3 / sqrt(2 * 6)
    assert pearson([1, 2, 3], [1, 4, 4]).value == pytest.approx(3 / math.sqrt(12), abs=1e-15)


def test_spearman_of_a_hand_worked_column_with_ties() -> None:
    # ranks (1, 2, 3) and (1, 2.5, 2.5): 1.5 / sqrt(2 * 1.5)
    assert spearman([0.1, 0.2, 9], [-7, 5, 5]).value == pytest.approx(1.5 / math.sqrt(3), abs=1e-15)


def test_spearman_without_ties_follows_the_formula_of_squared_rank_differences() -> None:
    # ranks (2, 1, 4, 5, 3), so squared differences 1, 1, 1, 1, 4
    assert spearman([1, 2, 3, 4, 5], [2, 1, 3, 6, 2.5]).value == pytest.approx(
        1 - 6 * (1 + 1 + 1 + 1 + 4) / (5 * 24)
    )


@given(columns)
def test_both_agree_with_scipy(pair: tuple[list[float], list[float]]) -> None:
    gold, predicted = pair
    assume(len(set(gold)) > 1 and len(set(predicted)) > 1)
    assert spearman(gold, predicted).value == pytest.approx(
        float(scipy.stats.spearmanr(gold, predicted).statistic), abs=1e-12
    )
    assert pearson(gold, predicted).value == pytest.approx(
        float(scipy.stats.pearsonr(gold, predicted).statistic), abs=1e-12
    )


@given(columns)
def test_a_value_is_within_bounds_or_has_a_reason(pair: tuple[list[float], list[float]]) -> None:
    for correlation in (spearman, pearson):
        value, reason = correlation(*pair)
        if value is None:
            assert reason in ("constant gold scores", "constant predictions")
        else:
            assert reason is None
            assert -1 <= value <= 1


@given(columns)
def test_spearman_is_unchanged_by_a_rising_function(pair: tuple[list[float], list[float]]) -> None:
    gold, predicted = pair
    assert spearman(gold, [value**3 + value for value in predicted]) == spearman(gold, predicted)


@correlations
@given(
    hnp.arrays(np.float64, st.integers(2, 20), elements=st.floats(allow_nan=False, width=64)),
)
def test_any_finite_column_is_handled_without_a_warning(
    correlation: object, column: np.ndarray
) -> None:
    assume(np.isfinite(column).all())
    for result in (
        correlation(np.arange(len(column)), column),  # type: ignore[operator]
        correlation(column, np.arange(len(column))),  # type: ignore[operator]
    ):
        assert (result.value is None) == (result.reason is not None)
        assert result.value is None or -1 <= result.value <= 1


@correlations
def test_constant_gold_scores_are_undefined(correlation: object) -> None:
    result = correlation([3.0] * 4, [0.1, 0.5, 0.2, 0.4])  # type: ignore[operator]
    assert result == Correlation(None, "constant gold scores")


@correlations
@pytest.mark.parametrize(
    "predicted",
    [
        [0.5, 0.5, 0.5],
        [0.0, 0.0, 0.0],
        [0.0, -0.0, 0.0],
        [0.3, 0.1 + 0.2, 0.3],  # equal but for rounding
        [1.0, np.nextafter(1.0, 0.0), 1.0],
    ],
)
def test_constant_predictions_are_undefined(correlation: object, predicted: list[float]) -> None:
    result = correlation([1, 2, 3], predicted)  # type: ignore[operator]
    assert result == Correlation(None, "constant predictions")


@correlations
@pytest.mark.parametrize("scale", [1e-300, 1e-12, 1e300])
def test_very_small_and_very_large_numbers_are_not_constant(
    correlation: object, scale: float
) -> None:
    result = correlation([1, 2, 3], [scale, 2 * scale, 3 * scale])  # type: ignore[operator]
    assert result.value == pytest.approx(1.0)


@correlations
@pytest.mark.parametrize("column", [[], [1.0]])
def test_fewer_than_two_pairs_are_undefined(correlation: object, column: list[float]) -> None:
    result = correlation(column, column)  # type: ignore[operator]
    assert result == Correlation(None, "fewer than 2 pairs")


@correlations
@pytest.mark.parametrize(
    ("gold", "predicted", "message"),
    [
        ([1, 2, 3], [1, 2], "3 gold scores and 2 predictions"),
        ([1, math.nan, 3], [1, 2, 3], "gold scores: .* found nan at position 1"),
        ([1, 2, 3], [1, 2, -math.inf], "predictions: .* found -inf at position 2"),
        ([[1, 2, 3]], [1, 2, 3], r"gold scores: .* shape \(1, 3\)"),
        ([1, 2], [[1, 2], [3]], "predictions: expected one column"),
        (3.0, [1, 2, 3], r"gold scores: .* shape \(\)"),
        (["1", "2"], [1, 2], "gold scores: expected numbers"),
        ([1, None], [1, 2], "gold scores: expected numbers"),
        ([1, 2], [1j, 2], "predictions: expected numbers"),
    ],
)
def test_other_input_is_refused(
    correlation: object, gold: object, predicted: object, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        correlation(gold, predicted)  # type: ignore[operator]


def test_integers_and_float32_are_taken() -> None:
    gold = np.array([1, 2, 3], dtype=np.uint8)
    assert pearson(gold, np.array([3, 2, 1], dtype=np.float32)).value == pytest.approx(-1.0)
