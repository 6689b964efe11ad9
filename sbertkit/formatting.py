"""Scores and their intervals as text, for terminals, reports and model cards."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sbertkit.metrics import Interval

UNDEFINED = "n/a"
_MIN_P_VALUE = 0.0001


def decimal(value: float | None, places: int = 3, *, sign: str = "") -> str:
    """A number with so many decimal places; ``sign="+"`` shows the sign of positive ones, too."""
    return UNDEFINED if value is None else f"{value:{sign}.{places}f}"


def percent(value: float | None, *, sign: str = "") -> str:
    """A score times 100 with two decimal places; see `decimal`."""
    return UNDEFINED if value is None else decimal(100 * value, 2, sign=sign)


def interval_text(interval: "Interval | None", places: int = 4, *, sign: str = "") -> str:
    """``LOW to HIGH``; see `decimal`."""
    if interval is None:
        return UNDEFINED
    low, high, _ = interval
    return f"{decimal(low, places, sign=sign)} to {decimal(high, places, sign=sign)}"


def percent_interval(interval: "Interval | None", *, sign: str = "") -> str:
    """``LOW to HIGH``, both times 100 with two decimal places; see `decimal`."""
    if interval is None:
        return UNDEFINED
    return f"{percent(interval.low, sign=sign)} to {percent(interval.high, sign=sign)}"


def p_value_text(value: float) -> str:
    """A p-value with four decimal places, ``< 0.0001`` where they would all be 0."""
    return decimal(value, 4) if value >= _MIN_P_VALUE else f"< {_MIN_P_VALUE}"


def counted(count: int, noun: str) -> str:
    """A number and what is counted: ``1 document``, ``2 documents``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def listed(names: "Sequence[str]", limit: int) -> str:
    """The first names, and how many more there are: ``a, b, and 3 more``."""
    more = [f"and {len(names) - limit:,} more"] if len(names) > limit else []
    return ", ".join([*names[:limit], *more])
