"""Numbers as reports and terminals show them."""

from sbertkit.metrics import Interval


def percent(value: float | None) -> str:
    """A correlation times 100 to two places."""
    return "n/a" if value is None else f"{100 * value:.2f}"


def interval_text(interval: Interval | None) -> str:
    """The ends of an interval times 100."""
    if interval is None:
        return "n/a"
    return f"{100 * interval.low:.2f} to {100 * interval.high:.2f}"


def decimal(value: float | None, places: int = 3) -> str:
    """A number to so many places."""
    return "n/a" if value is None else f"{value:.{places}f}"
