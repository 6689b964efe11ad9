"""Curves of a log: which panels there are, what they show, and that any log can be drawn."""

import math
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from xml.etree import ElementTree as ET

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sbertkit.errors import InputError
from sbertkit.training.report.curves import (
    _figure,
    _Line,
    _read_lines,
    _smoothed,
    _thinned,
    draw_curves,
)

SVG = "{http://www.w3.org/2000/svg}"
TITLES = {
    "loss": "Loss",
    "learning_rate": "Learning rate and gradient norm",
    "dev_spearman": "Dev Spearman × 100",
    "random_cosine": "Isotropy",
    "effective_rank": "Effective rank",
    "entailment": "Mean cosine by label",
}


def log(steps: int = 40) -> list[dict[str, Any]]:
    """A made-up run with every kind of line."""
    rows: list[dict[str, Any]] = []
    for step in range(0, steps + 1, 2):
        if step:
            rows.append({"step": step, "loss": 1 / step, "grad_norm": 2.0, "learning_rate": 2e-5})
        if step % 10 == 0:
            rows.append({"step": step, "dev_spearman": 0.6 + 0.01 * min(step, 60 - step) / 3})
            cosines = {"entailment": 0.8, "neutral": 0.6, "contradiction": 0.4}
            spread = {"random_cosine": 0.3, "uniformity": -2.5, "effective_rank": 90.0 + step}
            rows.append({"step": step, **spread, **cosines})
    return rows


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in ET.fromstring(svg).iter(f"{SVG}text")]


def panels(svg: str) -> set[str]:
    return set(texts(svg)) & set(TITLES.values())


def test_a_full_log_has_every_panel_with_labeled_axes() -> None:
    words = texts(draw_curves(log()))
    assert set(TITLES.values()) < set(words)
    for label in (
        *("Training curves", "step", "loss", "as logged", "smoothed", "learning rate"),
        *("gradient norm", "Spearman × 100", "cosine of random pairs", "uniformity"),
        *("effective rank", "directions", "cosine", "entailment", "neutral", "contradiction"),
    ):
        assert label in words


def test_the_best_dev_score_and_the_one_before_are_marked() -> None:
    words = texts(draw_curves(log()))  # 60 + step / 3 up to step 30, falling after
    assert "before: 60.00" in words
    assert "best: 70.00 at step 30" in words


def test_without_a_score_at_step_0_nothing_is_marked_as_before() -> None:
    words = texts(draw_curves([{"step": 5, "dev_spearman": 0.5}]))
    assert not any("before" in word for word in words)
    assert "best: 50.00 at step 5" in words


@pytest.mark.parametrize("key", TITLES)
def test_only_panels_with_data_are_drawn(key: str) -> None:
    rows = [{"step": 1, key: 0.5}, {"step": 2, key: 0.25}]
    rows += [{"step": 2, other: math.nan} for other in TITLES if other != key]
    assert panels(draw_curves(rows)) == {TITLES[key]}


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [{"step": 3}],
        [{"step": 3, "loss": None, "dev_spearman": math.nan, "neutral": "0.5"}],
        [{"step": 3, "examples_per_second": 60.0}],
    ],
)
def test_a_log_without_values_says_so(rows: list[dict[str, Any]]) -> None:
    assert texts(draw_curves(rows)) == ["no steps logged"]


def test_the_same_log_gives_the_same_text_whatever_the_settings_of_the_process() -> None:
    first = draw_curves(log())
    with mpl.rc_context({"font.size": 20.0, "svg.hashsalt": "x", "lines.linewidth": 9.0}):
        assert draw_curves(iter(log())) == first
        assert mpl.rcParams["font.size"] == 20.0
    assert not re.search(r"date|matplotlib v|Matplotlib v", first)


def test_threads_draw_what_one_alone_draws() -> None:
    before = dict(mpl.rcParams)
    logs = [log(4), log(8), log(12)]
    alone = [draw_curves(rows) for rows in logs]
    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(draw_curves, logs)) == alone
    assert dict(mpl.rcParams) == before


def test_nothing_is_fetched_or_run() -> None:
    svg = draw_curves(log())
    assert "<!DOCTYPE" not in svg
    assert "<script" not in svg
    addresses = set(re.findall(r'[a-z]+://[^\s"<>]+', svg))
    assert addresses == {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    root = ET.fromstring(svg)
    for element in root.iter():
        assert element.get("{http://www.w3.org/1999/xlink}href", "#").startswith("#")


def test_it_is_900_pixels_wide() -> None:
    width = ET.fromstring(draw_curves(log())).get("width")
    assert width == "675pt"  # 72 points and 96 pixels an inch


def test_pyplot_is_not_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)  # importing it now fails
    assert panels(draw_curves(log(4))) == set(TITLES.values())


def test_null_and_absent_values_leave_gaps_in_their_own_group_alone() -> None:
    rows: list[dict[str, Any]] = [
        {"step": 1, "loss": 3.0, "grad_norm": 1.0},
        {"step": 2, "dev_spearman": 0.5},
        {"step": 3, "loss": None, "grad_norm": 2.0},
        {"step": 5, "grad_norm": 3.0},
        {"step": 4, "loss": 1.0},
    ]
    lines = _read_lines(rows)
    np.testing.assert_array_equal(lines["loss"].steps, [1, 3, 4, 5])
    np.testing.assert_array_equal(lines["loss"].values, [3.0, np.nan, 1.0, np.nan])
    np.testing.assert_array_equal(lines["grad_norm"].values, [1.0, 2.0, np.nan, 3.0])
    assert list(lines["dev_spearman"].steps) == [2]
    assert "learning_rate" not in lines


def test_the_later_of_two_rows_for_a_step_counts() -> None:
    rows: list[dict[str, Any]] = [
        {"step": 1, "random_cosine": 0.9},
        {"step": 1, "random_cosine": 0.1},
        {"step": 1, "neutral": 0.5},
    ]
    lines = _read_lines(rows)
    assert lines["random_cosine"].values.tolist() == [0.1]
    assert lines["neutral"].values.tolist() == [0.5]


def test_a_point_between_gaps_is_drawn_as_a_dot() -> None:
    rows = [{"step": step, "loss": 1.0 if step == 50 else None} for step in range(100)]
    axes = _figure(_read_lines(rows)).axes[0]
    dots = [line for line in axes.lines if line.get_marker() == "."]
    assert [list(line.get_xdata()) for line in dots] == [[50.0], [50.0]]  # logged and smoothed


@pytest.mark.parametrize("step", [None, -1, 1.5, "3", True, 10**400, math.nan])
def test_a_row_without_a_step_is_refused_by_its_number(step: object) -> None:
    with pytest.raises(InputError, match="row 2 of the training log"):
        draw_curves([{"step": 1, "loss": 1.0}, {"step": step, "loss": 1.0}])


def test_smoothing_keeps_a_level_and_gaps() -> None:
    values = np.full(40, 2.0)
    values[7] = np.nan
    smooth = _smoothed(_Line(np.arange(40.0), values))
    assert smooth is not None
    np.testing.assert_allclose(smooth.values, values)
    assert _smoothed(_Line(np.arange(9.0), np.ones(9))) is None


def test_smoothing_is_the_mean_of_the_neighbors() -> None:
    smooth = _smoothed(_Line(np.arange(10.0), np.arange(10.0) ** 2))
    assert smooth is not None
    assert smooth.values[4] == pytest.approx((9 + 16 + 25) / 3)
    assert smooth.values[0] == pytest.approx((0 + 1) / 2)


def test_a_long_log_keeps_its_spikes_and_its_size() -> None:
    values = np.random.default_rng(0).normal(size=50_000)
    values[31_234], values[7], values[40_000:40_500] = 99.0, -99.0, np.nan
    line = _thinned(_Line(np.arange(50_000.0), values))
    assert len(line.steps) <= 1200
    assert (np.diff(line.steps) > 0).all()
    assert np.nanmax(line.values) == 99.0
    assert np.nanmin(line.values) == -99.0
    assert np.isnan(line.values).any()
    rows = [{"step": step, "loss": value} for step, value in enumerate(values.tolist())]
    assert len(draw_curves(rows)) < 200_000


NUMBERS = st.one_of(
    st.none(), st.floats(), st.integers(), st.sampled_from([10**400, "x", True, [1]])
)


@settings(max_examples=12, deadline=None)
@given(
    st.lists(
        st.builds(
            lambda step, values: {"step": step, **values},
            st.integers(0, 2**53),
            st.dictionaries(
                st.sampled_from([*TITLES, "grad_norm", "uniformity", "neutral"]), NUMBERS
            ),
        ),
        max_size=12,
    )
)
def test_every_log_can_be_drawn(rows: list[dict[str, Any]]) -> None:
    svg = draw_curves(rows)
    assert not re.search(r"[ \"]-?(nan|inf)\b", svg)
    assert texts(svg)
