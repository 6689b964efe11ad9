"""The log of a training run as an SVG picture of small panels over the steps."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sbertkit.drawing import svg
from sbertkit.errors import InputError

_GROUPS = (
    ("loss", "grad_norm", "learning_rate"),
    ("held_out_loss",),
    ("held_out_accuracy",),
    ("dev_spearman",),
    ("dev_ndcg",),
    (
        *("random_cosine", "uniformity", "effective_rank"),
        *("entailment", "neutral", "contradiction"),
    ),
    ("relevant", "other"),
)
"""Values that are logged together: a line that has one of them and lacks another leaves a gap."""

_WIDTH = 9.375  # inches: 675 points, which are 900 pixels
_MAX_POINTS = 1200
_MAX_STEP = 2**53
_MAX_VALUE = 1e30  # beyond it matplotlib's own sums overflow
_GREY = "#595959"

_SETTINGS = {
    "font.size": 9.0,
    "axes.edgecolor": "#b0b0b0",
    "axes.labelcolor": _GREY,
    "xtick.color": _GREY,
    "ytick.color": _GREY,
    "grid.color": "#ececec",
    "legend.fontsize": 8.0,
}


class _Line(NamedTuple):
    """Steps in rising order and their values, NaN where there is none; both float64 ``(n,)``."""

    steps: npt.NDArray[np.float64]
    values: npt.NDArray[np.float64]


class _Style(NamedTuple):
    """How one value is drawn; the colors are those of Okabe and Ito, safe for color blindness."""

    label: str
    color: str
    marker: str = ""


_STYLES = {
    "loss": _Style("loss", "#0072B2"),
    "learning_rate": _Style("learning rate", "#0072B2"),
    "grad_norm": _Style("gradient norm", "#D55E00"),
    "held_out_loss": _Style("held-out loss", "#0072B2", "o"),
    "held_out_accuracy": _Style("held-out accuracy", "#D55E00", "s"),
    "dev_spearman": _Style("dev", "#0072B2", "o"),
    "dev_ndcg": _Style("dev", "#0072B2", "o"),
    "random_cosine": _Style("cosine of random pairs", "#0072B2", "o"),
    "uniformity": _Style("uniformity", "#D55E00", "s"),
    "effective_rank": _Style("effective rank", "#0072B2", "o"),
    "entailment": _Style("entailment", "#0072B2", "o"),
    "neutral": _Style("neutral", "#E69F00", "s"),
    "contradiction": _Style("contradiction", "#D55E00", "^"),
    "relevant": _Style("relevant", "#0072B2", "o"),
    "other": _Style("other", "#D55E00", "^"),
}


_CYCLE = (
    ("#0072B2", "o"),
    ("#D55E00", "^"),
    ("#E69F00", "s"),
    ("#009E73", "v"),
    ("#CC79A7", "D"),
    ("#56B4E9", "P"),
)
_OF_PARTS = {
    "loss ": "Loss by set or task",
    "held_out_loss ": "Held-out loss by task",
    "held_out_accuracy ": "Held-out accuracy by task",
}
"""How the values of several sets or tasks begin, and the titles of their panels: ``loss nli``."""
_OF_SET = ": "
"""How the cosines of a set's labels are named: ``nli: entailment``."""


def draw_curves(rows: Iterable[Mapping[str, Any]]) -> str:
    """The curves of a run as the text of an SVG document, the same text for the same rows.

    A panel whose values are nowhere in the log is left out. Where a step is logged twice, as
    after a resumed run, the later row counts. Null and NaN are gaps in a line.

    Args:
        rows: Lines of the log in any mixture, each with ``step`` and some of ``loss``,
            ``grad_norm``, ``learning_rate``, ``held_out_loss``, ``held_out_accuracy``,
            ``dev_spearman`` or ``dev_ndcg`` (step 0: before training), ``random_cosine``,
            ``uniformity``, ``effective_rank``, ``entailment``, ``neutral`` and
            ``contradiction``, of several sets or tasks ``loss NAME``, ``held_out_loss NAME``,
            ``held_out_accuracy NAME`` and ``NAME: LABEL``; other keys are left alone.

    Raises:
        InputError: A row without a step that is a whole number from 0.
    """
    lines = _read_lines(rows)
    return svg(lambda: _figure(lines), _SETTINGS, "Training curves")


def _read_lines(rows: Iterable[Mapping[str, Any]]) -> dict[str, _Line]:
    """The values of the log by key; keys without a single value are left out."""
    found: dict[str, dict[int, float]] = {}
    for number, row in enumerate(rows, start=1):
        step = row.get("step")
        if not isinstance(step, int) or isinstance(step, bool) or not 0 <= step <= _MAX_STEP:
            raise InputError(
                f"expected a step, a whole number from 0, in row {number} of the training log, "
                f"found {'none' if step is None else repr(step)[:40]}; fix or remove the row"
            )
        for key, value in _values(row):
            if value is None:
                found.setdefault(key, {}).setdefault(step, np.nan)
            else:
                found.setdefault(key, {})[step] = value
    lines = {}
    for key, values in found.items():
        steps = sorted(values)
        line = _Line(np.array(steps, dtype=float), np.array([values[step] for step in steps]))
        if np.isfinite(line.values).any():
            lines[key] = line
    return lines


def _values(row: Mapping[str, Any]) -> Iterator[tuple[str, float | None]]:
    """The values of a row that are drawn; None for those that others were logged without."""
    for group in _GROUPS:
        if not row.keys().isdisjoint(group):
            yield from ((key, _number(row[key]) if key in row else None) for key in group)
    yield from ((key, _number(value)) for key, value in row.items() if _is_of_set(key))


def _is_of_set(key: str) -> bool:
    """Whether a value is one of several sets: a loss, or the cosine of a label."""
    return key.startswith(tuple(_OF_PARTS)) or _OF_SET in key


def _panels_of_sets(keys: Iterable[str]) -> "list[_Panel]":
    """A panel for the losses of several sets, and one for the labels of each."""
    panels: dict[str, list[str]] = {}
    for key in keys:
        if start := _start(key):
            panels.setdefault(_OF_PARTS[start], []).append(key)
        elif _OF_SET in key:
            name = key.split(_OF_SET)[0]
            panels.setdefault(f"Mean cosine by label, {name}", []).append(key)
    return [
        _Panel(title, tuple(found), _lines_on(_start(found[0]).split("_")[-1].strip() or "cosine"))
        for title, found in panels.items()
    ]


def _start(key: str) -> str:
    """What goes before the name of a set or task; empty for the cosine of a label."""
    return next((start for start in _OF_PARTS if key.startswith(start)), "")


def _style(key: str, place: int) -> _Style:
    """How a value is drawn that is at a place among those of its panel."""
    if key in _STYLES:
        return _STYLES[key]
    start = _start(key)
    name = key.removeprefix(start) if start else key.split(_OF_SET)[1]
    return _Style(name, *_CYCLE[place % len(_CYCLE)])


def _number(value: object) -> float:
    """The value where it is a number that can be drawn, else NaN."""
    if isinstance(value, int | float) and -_MAX_VALUE <= value <= _MAX_VALUE:
        return float(value)
    return np.nan


def _figure(lines: Mapping[str, _Line]) -> Any:
    """A matplotlib figure with the panels that have data."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    panels = [panel for panel in _PANELS if not lines.keys().isdisjoint(panel.keys)]
    panels += _panels_of_sets(lines)
    if not panels:
        figure = Figure(figsize=(_WIDTH, 1.0))
        figure.text(0.5, 0.5, "no steps logged", ha="center", va="center", color=_GREY, size=11)
        return figure
    columns = min(2, len(panels))
    height = -(-len(panels) // columns)
    layout = ConstrainedLayoutEngine(h_pad=0.09, w_pad=0.09)
    figure = Figure(figsize=(_WIDTH, 0.5 + 2.35 * height), layout=layout)
    figure.suptitle("Training curves", x=0.012, ha="left", size=12, weight="bold")
    grid = figure.subplots(height, columns, sharex=True, squeeze=False).ravel()
    last = max(line.steps[-1] for line in lines.values())
    for position, (axes, panel) in enumerate(zip(grid, panels, strict=False)):
        axes.set_title(panel.title, loc="left", size=10, weight="bold", pad=17)
        panel.draw(axes, {key: lines[key] for key in panel.keys if key in lines})
        if position + columns >= len(panels):  # the lowest of its column
            axes.set_xlabel("step")
            axes.tick_params(labelbottom=True)
    for axes in grid[len(panels) :]:
        axes.remove()
    grid[0].set_xlim(-0.01 * max(last, 1), 1.02 * max(last, 1))
    grid[0].xaxis.set_major_locator(MaxNLocator(6, integer=True))
    grid[0].xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    return figure


def _draw_loss(axes: Any, lines: Mapping[str, _Line]) -> None:
    line, color = lines["loss"], _STYLES["loss"].color
    smooth = _smoothed(line)
    alpha = 1.0 if smooth is None else 0.4
    _plot(axes, line, _Style("as logged", color), linewidth=0.7, alpha=alpha)
    if smooth is not None:
        _plot(axes, smooth, _Style("smoothed", color), linewidth=1.8)
    _scale(axes, "loss")
    _legend(axes)


def _draw_dev(axes: Any, lines: Mapping[str, _Line]) -> None:
    ((key, line),) = lines.items()
    steps, values = line.steps, 100 * line.values
    _plot(axes, _Line(steps, values), _STYLES[key])
    if steps[0] == 0 and np.isfinite(values[0]):
        label = f"before: {values[0]:.2f}"
        axes.axhline(values[0], color=_GREY, linestyle="--", label=label, zorder=1)
    best = int(np.nanargmax(values))
    label = f"best: {values[best]:.2f} at step {steps[best]:,.0f}"
    star = {"marker": "*", "linestyle": "", "color": "#D55E00", "markersize": 11}
    axes.plot(steps[best], values[best], label=label, zorder=4, **star)
    _scale(axes, "Spearman × 100" if key == "dev_spearman" else "nDCG@10 × 100")
    _legend(axes)


def _draw_lines(axes: Any, lines: Mapping[str, _Line], *, label: str) -> None:
    for place, (key, line) in enumerate(lines.items()):
        _plot(axes, line, _style(key, place))
    _scale(axes, label)
    _legend(axes)


def _draw_two_scales(axes: Any, lines: Mapping[str, _Line]) -> None:
    """The first line before the second, each on its own scale, whose numbers have its color."""
    axes.set_zorder(1)
    axes.patch.set_visible(False)  # it would hide the line behind
    drawn: list[Any] = []
    for key, line in lines.items():
        side = axes.twinx() if drawn else axes
        # Unequal margins keep apart two lines of the same shape.
        side.margins(y=0.22 if drawn else 0.06)
        side.grid(visible=not drawn)
        style = _STYLES[key]
        _plot(side, line, style, **({"linewidth": 0.9, "alpha": 0.75} if drawn else {}))
        _scale(side, style.label)
        side.yaxis.label.set_color(style.color)
        side.tick_params(axis="y", colors=style.color)
        drawn.append(side.lines[0])
    _legend(axes, drawn)


def _plot(axes: Any, line: _Line, style: _Style, **options: Any) -> None:
    """Draws a line, with a dot for each point that has a gap on both sides."""
    steps, values = _thinned(line)
    axes.plot(
        *(steps, values),
        **({"color": style.color, "linewidth": 1.3, "markersize": 4} | options),
        marker=style.marker if len(steps) <= 60 else "",
        label=style.label,
    )
    gaps = np.isnan(np.concatenate(([np.nan], values, [np.nan])))
    alone = gaps[:-2] & gaps[2:] & ~gaps[1:-1]
    if alone.any():
        axes.plot(steps[alone], values[alone], ".", color=style.color, markersize=5)


def _scale(axes: Any, label: str) -> None:
    axes.set_ylabel(label)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")


def _legend(axes: Any, drawn: list[Any] | None = None) -> None:
    """Puts the legend between title and panel, where it hides no line."""
    place = {"loc": "lower left", "bbox_to_anchor": (-0.01, 0.985), "borderaxespad": 0.0}
    style = {"ncols": 3, "frameon": False, "handlelength": 1.6, "columnspacing": 1.4}
    legend = axes.legend(handles=drawn, **place, **style)
    legend.set_in_layout(False)  # a long one would push the columns apart


def _smoothed(line: _Line) -> _Line | None:
    """The mean over a twentieth of the points around each; None for fewer than 10 points."""
    if len(line.values) < 10:
        return None
    known = np.isfinite(line.values)
    window = np.ones(min(max(len(known) // 20, 3), 501))
    sums = np.convolve(np.where(known, line.values, 0.0), window, mode="same")
    counts = np.convolve(known.astype(float), window, mode="same")
    return _Line(line.steps, np.where(known, sums / np.maximum(counts, 1.0), np.nan))


def _thinned(line: _Line) -> _Line:
    """The line with the lowest and highest of each run of points, where there are too many."""
    if len(line.values) <= _MAX_POINTS:
        return line
    kept: set[int] = set()
    for part in np.array_split(np.arange(len(line.values)), _MAX_POINTS // 2):
        known = part[np.isfinite(line.values[part])]
        values = line.values[known]
        kept |= {known[values.argmin()], known[values.argmax()]} if known.size else {part[0]}
    order = sorted(kept)
    return _Line(line.steps[order], line.values[order])


@dataclass(frozen=True, slots=True)
class _Panel:
    """One panel: what is drawn, and how."""

    title: str
    keys: tuple[str, ...]
    draw: Callable[[Any, Mapping[str, _Line]], None]


def _lines_on(label: str) -> Callable[[Any, Mapping[str, _Line]], None]:
    return lambda axes, lines: _draw_lines(axes, lines, label=label)


_PANELS = (
    _Panel("Loss", ("loss",), _draw_loss),
    _Panel("Learning rate and gradient norm", ("learning_rate", "grad_norm"), _draw_two_scales),
    _Panel("Held-out loss", ("held_out_loss",), _lines_on("loss")),
    _Panel("Held-out accuracy", ("held_out_accuracy",), _lines_on("accuracy")),
    _Panel("Dev Spearman × 100", ("dev_spearman",), _draw_dev),
    _Panel("Dev nDCG@10 × 100", ("dev_ndcg",), _draw_dev),
    _Panel("Isotropy", ("random_cosine", "uniformity"), _draw_two_scales),
    _Panel("Effective rank", ("effective_rank",), _lines_on("directions")),
    _Panel(
        "Mean cosine by label",
        ("entailment", "neutral", "contradiction"),
        _lines_on("cosine"),
    ),
    _Panel("Mean score by label", ("relevant", "other"), _lines_on("score")),
)
