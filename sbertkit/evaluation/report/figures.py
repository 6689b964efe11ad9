"""The figures of reports as SVG whose colors follow the page, light or dark."""

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sbertkit.drawing import svg
from sbertkit.metrics import Interval
from sbertkit.terminal import visible_text

Numbers = Sequence[float] | npt.NDArray[np.floating]

# Placeholders for the page's colors: the drawing's are replaced by the page's CSS variables.
_INK, _SOFT, _LINE, _ONE, _TWO = "#010203", "#040506", "#070809", "#0a0b0c", "#0d0e0f"
_PAGE_COLORS = {
    _INK: "var(--ink)",
    _SOFT: "var(--soft)",
    _LINE: "var(--line)",
    _ONE: "var(--one)",
    _TWO: "var(--two)",
}
_SETTINGS = {
    "text.parse_math": False,
    "font.size": 10.0,
    "font.family": "sans-serif",
    "text.color": _INK,
    "axes.edgecolor": _LINE,
    "axes.labelcolor": _SOFT,
    "xtick.color": _SOFT,
    "ytick.color": _SOFT,
    "axes.axisbelow": True,
    "grid.color": _LINE,
    "grid.linewidth": 0.6,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
}
_WIDTH, _HEIGHT = 5.0, 3.2
_MAX_DOTS = 3_000
_MAX_LABEL = 28
_MAX_TICKS = 5
"""On the horizontal axis, so that long numbers do not overlap."""


def scatter(x: Numbers, y: Numbers, *, x_label: str, y_label: str, name: str) -> str:
    """Dots; of more than 3,000 a seeded sample is drawn."""
    across, up = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if len(across) > _MAX_DOTS:
        kept = np.random.default_rng(0).choice(len(across), _MAX_DOTS, replace=False)
        across, up = across[kept], up[kept]

    def draw(axes: Any) -> None:
        axes.plot(across, up, ".", color=_ONE, alpha=0.35, markersize=4, markeredgewidth=0)
        axes.set_xlabel(_label(x_label))
        axes.set_ylabel(_label(y_label))

    return _drawn(draw, name)


def histogram(
    counts: Sequence[int], low: float, high: float, *, x_label: str, name: str, of: str = "pairs"
) -> str:
    """Bars of counts over equal bins from `low` to `high`."""
    edges = np.linspace(low, high, len(counts) + 1)

    def draw(axes: Any) -> None:
        total = max(1, sum(counts))
        shares = [100 * count / total for count in counts]
        axes.bar(edges[:-1], shares, width=np.diff(edges), align="edge", color=_ONE, alpha=0.8)
        axes.set_xlabel(_label(x_label))
        axes.set_ylabel(f"% of {_label(of)}")
        filled = np.flatnonzero(counts)
        if len(filled):
            axes.set_xlim(edges[max(0, filled[0] - 1)], edges[min(len(counts), filled[-1] + 2)])

    return _drawn(draw, name)


def bars(
    names: Sequence[str],
    values: Sequence[float | None],
    intervals: Sequence[Interval | None] = (),
    *,
    x_label: str,
    name: str,
    scale: float = 1.0,
) -> str:
    """Horizontal bars of values times `scale` with their intervals, the first name on top."""
    positions = np.arange(len(names))[::-1]

    def draw(axes: Any) -> None:
        lengths = [scale * (value or 0.0) for value in values]
        axes.barh(positions, lengths, color=_ONE, alpha=0.8, height=0.6)
        for y, interval in zip(positions, intervals, strict=False):
            if interval is not None:
                ends = (scale * interval.low, scale * interval.high)
                axes.plot(ends, [y, y], color=_INK, linewidth=1.4)
        axes.set_yticks(positions, [_label(one) for one in names])
        axes.grid(visible=False, axis="y")
        axes.set_xlabel(_label(x_label))

    return _drawn(draw, name, height=max(1.4, 0.6 + 0.32 * len(names)))


def line(values: Sequence[float | None], *, x_label: str, y_label: str, name: str) -> str:
    """Values over 0, 1, 2, ...; undefined ones are gaps."""
    known = [np.nan if value is None else value for value in values]

    def draw(axes: Any) -> None:
        axes.plot(range(len(known)), known, "o-", color=_ONE, markersize=4, linewidth=1.6)
        axes.set_xlabel(_label(x_label))
        axes.set_ylabel(_label(y_label))

    return _drawn(draw, name, whole=True)


def _drawn(
    draw: Callable[[Any], None], name: str, height: float = _HEIGHT, *, whole: bool = False
) -> str:
    """The SVG element of one pair of axes.

    Args:
        draw: Draws on the axes.
        name: What the drawing is.
        height: In inches.
        whole: Whether only whole numbers are marked on the horizontal axis.
    """

    def figure() -> Any:
        from matplotlib.figure import Figure
        from matplotlib.ticker import MaxNLocator

        made = Figure(figsize=(_WIDTH, height), layout="constrained")
        axes = made.add_subplot()
        axes.xaxis.set_major_locator(MaxNLocator(_MAX_TICKS, integer=whole))
        draw(axes)
        return made

    document = svg(figure, _SETTINGS, name)
    opening, drawing = document[document.index("<svg ") :].split(">", 1)  # which has the name
    for color, variable in _PAGE_COLORS.items():
        drawing = drawing.replace(color, variable)
    # Several drawings share a page: their ids must differ.
    marks = set(re.findall(r'id="([^"]+)"', drawing))
    key = re.sub(r"\W+", "-", name)
    for mark in sorted(marks, key=len, reverse=True):
        drawing = re.sub(rf'(id="|#){re.escape(mark)}(?=["\)])', rf"\g<1>{key}-{mark}", drawing)
    return f"{opening}>{drawing}"


def _label(text: str) -> str:
    """The beginning of a label, without characters that SVG cannot hold."""
    visible = visible_text(text)
    short = f"{visible[: _MAX_LABEL - 3]}..."
    return visible if len(visible) <= _MAX_LABEL else short
