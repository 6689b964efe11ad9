"""Scores and intervals as text."""

import pytest

from sbertkit.formatting import (
    counted,
    decimal,
    interval_text,
    listed,
    p_value_text,
    percent,
    percent_interval,
)
from sbertkit.metrics import Interval
from sbertkit.progress import duration

INTERVAL = Interval(-0.01234, 0.5, 0.95)


def test_numbers_have_fixed_decimal_places() -> None:
    assert decimal(0.12345) == "0.123"
    assert decimal(2, 0) == "2"
    assert decimal(0.5, 2, sign="+") == "+0.50"
    assert percent(0.82034) == "82.03"
    assert percent(-1) == "-100.00"


def test_intervals_are_shown_by_their_ends() -> None:
    assert interval_text(INTERVAL) == "-0.0123 to 0.5000"
    assert interval_text(INTERVAL, 1, sign="+") == "-0.0 to +0.5"
    assert percent_interval(INTERVAL) == "-1.23 to 50.00"
    assert percent_interval(INTERVAL, sign="+") == "-1.23 to +50.00"


def test_a_p_value_is_never_shown_as_zero() -> None:
    shown = [p_value_text(value) for value in (1.0, 0.04, 0.0001, 0.00009999, 1e-5, 0.0)]
    assert shown == ["1.0000", "0.0400", "0.0001", "< 0.0001", "< 0.0001", "< 0.0001"]


def test_undefined_values_are_shown_as_such() -> None:
    shown = {decimal(None), percent(None), interval_text(None), percent_interval(None)}
    assert shown == {"n/a"}


@pytest.mark.parametrize(
    ("names", "text"),
    [([], ""), (["a"], "a"), (["a", "b"], "a, b"), (["a", "b", "c", "d"], "a, b, and 2 more")],
)
def test_long_lists_end_with_the_number_of_the_rest(names: list[str], text: str) -> None:
    assert listed(names, 2) == text


@pytest.mark.parametrize(("count", "text"), [(0, "0 rows"), (1, "1 row"), (1_234, "1,234 rows")])
def test_what_is_counted_has_its_number(count: int, text: str) -> None:
    assert counted(count, "row") == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (42.4, "42 s"), (89, "89 s"), (100, "2 min"), (4_201, "1 h 10 min")],
)
def test_times_are_told_in_words(seconds: float, text: str) -> None:
    assert duration(seconds) == text
