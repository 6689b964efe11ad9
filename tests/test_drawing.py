"""Drawings: one lock, settings that are put back, and labels that stay text."""

import threading
import xml.etree.ElementTree as ET
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from sbertkit.drawing import svg


def test_settings_are_in_force_while_drawing_and_put_back() -> None:
    before = dict(mpl.rcParams)
    seen = []

    def draw() -> Figure:
        seen.append((mpl.rcParams["font.size"], mpl.rcParams["axes.grid"]))
        return Figure()

    svg(draw, {"font.size": 3.5}, "a drawing")
    assert seen == [(3.5, True)]
    assert dict(mpl.rcParams) == before


def test_of_two_threads_one_draws_at_a_time() -> None:
    drawing, most = [0], [0]
    sizes = []

    def draw() -> Figure:
        drawing[0] += 1
        most[0] = max(most[0], drawing[0])
        threading.Event().wait(0.02)
        sizes.append(mpl.rcParams["font.size"])
        drawing[0] -= 1
        return Figure()

    threads = [
        threading.Thread(target=svg, args=(draw, {"font.size": size}, "x")) for size in (4, 5, 6, 7)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]
    assert sorted(sizes) == [4, 5, 6, 7]


def test_a_label_stays_text_and_nothing_is_loaded() -> None:
    label = "a \"b\" <c> & 'd' \x1b[31m"
    text = svg(lambda: Figure(), {}, label)
    root: Any = ET.fromstring(text)
    assert root.attrib["aria-label"].startswith("a \"b\" <c> & 'd' ")
    assert root.attrib["role"] == "img"
    assert "\x1b" not in text
    assert "DOCTYPE" not in text
    assert text == svg(lambda: Figure(), {}, label)
