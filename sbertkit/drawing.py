"""Drawings as text: SVG by matplotlib, the same text for the same data."""

import re
import warnings
from collections.abc import Callable, Mapping
from html import escape
from io import StringIO
from threading import Lock
from typing import TYPE_CHECKING, Any

from sbertkit.terminal import visible_text
from sbertkit.user_cache import use_for_matplotlib

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LOCK = Lock()  # matplotlib's settings belong to the process
_SETTINGS = {
    "svg.hashsalt": "sbertkit",
    "svg.fonttype": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
}


def svg(draw: "Callable[[], Figure]", settings: Mapping[str, Any], label: str) -> str:
    """A figure as the text of an SVG document that loads nothing.

    Args:
        draw: Makes the figure; it is called with the settings in force.
        settings: Of matplotlib, beside those that all drawings share.
        label: What the drawing is, for those who do not see it.
    """
    use_for_matplotlib()
    import matplotlib as mpl
    from matplotlib import style

    text = StringIO()
    # Without these fields there is no metadata, hence no date, version or address.
    absent = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with (
        _LOCK,
        style.context("default"),
        mpl.rc_context({**_SETTINGS, **settings}),
        warnings.catch_warnings(),
    ):
        # Such as of glyphs that its fonts lack; the reader's browser has fonts of its own.
        warnings.simplefilter("ignore")
        draw().savefig(text, format="svg", metadata=absent)
    # The document type names a file on the net, which some readers would fetch.
    document = re.sub(r"<!DOCTYPE[^>]*>\s*", "", text.getvalue(), count=1)
    shown = escape(visible_text(label))
    return document.replace("<svg ", f'<svg role="img" aria-label="{shown}" ', 1)
