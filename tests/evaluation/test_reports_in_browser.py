"""Reports in a real browser: they ask nobody for anything. Needs Chromium; part of make bench."""

import json
import shutil
import subprocess
from dataclasses import asdict, replace
from functools import partial
from html import escape, unescape
from pathlib import Path

import pytest

from sbertkit.encoder import Encoder
from sbertkit.evaluation import (
    Comparison,
    diagnose,
    evaluate_isotropy,
    evaluate_run,
    evaluate_sts,
)
from sbertkit.evaluation.environment import environment
from sbertkit.evaluation.report.comparison import comparison_page
from sbertkit.evaluation.report.diagnosis import diagnosis_page
from sbertkit.evaluation.report.isotropy import isotropy_page
from sbertkit.evaluation.report.page import write_page
from sbertkit.evaluation.report.retrieval import retrieval_page
from sbertkit.evaluation.report.sts import sts_page
from sbertkit.evaluation.report.suite import suite_page
from sbertkit.evaluation.suites import SuiteResult, read_suite
from sbertkit.evaluation.suites.runner import SetScore
from sbertkit.evaluation.text_counts import TextCounts
from sbertkit.metrics import Interval, PairedTest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
TEXTS = [
    f"the {animal} number {row} climbs a hill" for row in range(60) for animal in ("goat", "ox")
]
PAIRS = [(row % 6, TEXTS[row], TEXTS[row + 1]) for row in range(40)]

RUN = {f"q{row}": {f"d{rank}": 1.0 / rank for rank in range(1, 30)} for row in range(1, 25)}
QRELS = {f"q{row}": {f"d{row}": 1} for row in range(1, 25)}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
]


def suite_result() -> SuiteResult:
    suite = read_suite("sts")
    details = {"encoded": asdict(TextCounts(12_345, 678, 9_012, 345, 678_901))}
    score = SetScore("sts", "Spearman", 0.8, Interval(0.78, 0.82, 0.95), details)
    scores = {one.name: score for one in suite.sets[:-1]}
    missing = {suite.sets[-1].name: "not on this machine"}
    return SuiteResult(suite, "tiny", "0" * 64, scores, missing, 0.8)


def comparison(unit: str) -> Comparison:
    tests = {
        "nDCG@10": PairedTest(-0.00123, 0.00001, Interval(-0.0037, 0.0005, 0.95)),
        "Success@10": PairedTest(0.0, 1.0, Interval(0.0, 0.0, 0.95)),
    }
    scores = dict.fromkeys(tests, 0.8)
    if unit == "sets":
        sets = {name: comparison("pairs") for name in ("sts12", "stsb-zh-cnsd", "nfcorpus-ecir")}
        return Comparison("sets", 3, scores, scores, tests, ("one", "other"), sets, ("sick",))
    details = {f"a-query-{row}": (row / 9, 0.5) for row in range(9)}
    return Comparison(unit, 9, scores, scores, tests, ("one", "other"), details=details)


PAGES = (
    *("sts", "isotropy", "diagnosis", "retrieval", "suite"),
    *("compare queries", "compare pairs", "compare sets"),
)
QUERIES = dict.fromkeys(QRELS, "does a normalization of the boundary layer help?")
DOCUMENTS = {f"d{rank}": "a characteristically long-winded text " * 9 for rank in range(30)}


@pytest.fixture(params=PAGES)
def page(request: pytest.FixtureRequest, tiny_encoder: Encoder, tmp_path: Path) -> Path:
    about = {
        "model": "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2",
        "corpus": "/home/somebody/collections/retrieval/cranfield",
        "fingerprint": "0123456789abcdef" * 4,
        "environment": environment(tiny_encoder),
    }
    compared = request.param.removeprefix("compare ")
    published = partial(replace, source="stsb.tsv", split="test")
    pages = {
        "sts": lambda: sts_page(published(evaluate_sts(tiny_encoder, PAIRS)), about),
        "isotropy": lambda: isotropy_page(evaluate_isotropy(tiny_encoder, TEXTS), about),
        "diagnosis": lambda: diagnosis_page(diagnose(tiny_encoder, TEXTS), about),
        "retrieval": lambda: retrieval_page(evaluate_run(RUN, QRELS), about, QUERIES, DOCUMENTS),
        "suite": lambda: suite_page(suite_result(), about),
    }
    compare = partial(comparison_page, comparison(compared), about)
    made = pages.get(request.param, compare)()
    path = tmp_path / "page.html"
    write_page(path, made)
    return path


def browse(page: Path, profile: Path, *options: str) -> str:
    assert CHROMIUM is not None
    done = subprocess.run(
        [CHROMIUM, *OPTIONS, f"--user-data-dir={profile}", *options, page.as_uri()],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return done.stdout


def asked_by_page(log: Path) -> set[str]:
    """What a page asked the network for; the browser's own questions have no origin."""
    events = json.loads(log.read_text())["events"]
    told = [event["params"] for event in events if "initiator" in event.get("params", {})]
    urls = {one["url"] for one in told if one["initiator"] != "not an origin"}
    return {url for url in urls if not url.startswith(("file:", "data:"))}


def test_a_report_opens_and_asks_nobody(page: Path, tmp_path: Path) -> None:
    log = tmp_path / "net.json"
    shown = browse(page, tmp_path / "profile", f"--log-net-log={log}", "--dump-dom")
    assert "</html>" in shown
    assert shown.count("<svg") == page.read_text().count("<svg")
    assert not asked_by_page(log)


def test_a_page_that_asks_would_be_noticed(tmp_path: Path) -> None:
    page = tmp_path / "asks.html"
    page.write_text('<img src="http://127.0.0.1:9/x.png">')
    log = tmp_path / "net.json"
    browse(page, tmp_path / "profile", f"--log-net-log={log}", "--dump-dom")
    assert asked_by_page(log) == {"http://127.0.0.1:9/x.png"}


_MEASURE = r"""
const page = frame.contentDocument, words = [];
const walker = page.createTreeWalker(page.body, NodeFilter.SHOW_TEXT);
for (let node; (node = walker.nextNode()); ) {
  if (node.parentElement.closest("svg, style")) continue;
  for (const found of node.data.matchAll(/[\p{L}\p{N}_]+/gu)) {
    const range = page.createRange();
    range.setStart(node, found.index);
    range.setEnd(node, found.index + found[0].length);
    const lines = new Set([...range.getClientRects()].map((one) => Math.round(one.top)));
    if (found[0].length < 30 && lines.size > 1) words.push(found[0]);
  }
}
const sizes = [...page.querySelectorAll("svg text")].map((one) => {
  const {a, b} = one.getScreenCTM();  // rotated ones, too
  return parseFloat(page.defaultView.getComputedStyle(one).fontSize) * Math.hypot(a, b);
});
const clipped = [...page.querySelectorAll(".wide")].filter(
  (one) => one.scrollWidth > one.clientWidth
).length;
const overlaps = [];
for (const drawing of page.querySelectorAll("svg")) {
  const labels = [...drawing.querySelectorAll("text")];
  const boxes = labels.map((one) => one.getBoundingClientRect());
  for (let i = 0; i < boxes.length; i++)
    for (let j = 0; j < i; j++) {
      const [a, b] = [boxes[i], boxes[j]];
      const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (across > 1 && down > 3) overlaps.push([labels[i].textContent, labels[j].textContent]);
    }
}
const width = page.documentElement.scrollWidth;
document.title = JSON.stringify({width, words, clipped, overlaps, size: Math.min(...sizes)});
"""


@pytest.mark.parametrize("width", [400, 1280])
def test_a_report_fits_a_window(page: Path, tmp_path: Path, width: int) -> None:
    # A window has at least 500 pixels, a frame may have fewer.
    frame = (
        f'<iframe id="frame" style="border:0;width:{width}px;height:900px" '
        f'srcdoc="{escape(page.read_text())}"></iframe>'
    )
    script = f"<script>frame.onload = () => {{ {_MEASURE} }};</script>"
    outer = tmp_path / "outer.html"
    outer.write_text(f"<!doctype html><title></title><body>{frame}{script}</body>")
    shown = browse(outer, tmp_path / "profile", "--window-size=1400,900", "--dump-dom")
    found = json.loads(unescape(shown.split("<title>")[1].split("</title>")[0]))
    assert found["width"] <= width
    assert found["clipped"] == 0
    assert found["words"] == []
    assert found["overlaps"] == []
    assert found["size"] >= 9
