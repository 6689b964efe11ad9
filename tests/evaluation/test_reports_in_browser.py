"""Reports in a real browser: they ask nobody for anything. Needs Chromium; part of make bench."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from sbertkit.encoder import Encoder
from sbertkit.evaluation import diagnose, evaluate_isotropy, evaluate_run, evaluate_sts
from sbertkit.evaluation.report.diagnosis import diagnosis_page
from sbertkit.evaluation.report.isotropy import isotropy_page
from sbertkit.evaluation.report.page import write_page
from sbertkit.evaluation.report.retrieval import retrieval_page
from sbertkit.evaluation.report.sts import sts_page
from sbertkit.evaluation.report.suite import suite_page
from sbertkit.evaluation.suites import SuiteResult, read_suite
from sbertkit.evaluation.suites.runner import SetScore
from sbertkit.metrics import Interval

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
    score = SetScore("sts", "Spearman", 0.8, Interval(0.78, 0.82, 0.95), {})
    scores = {one.name: score for one in suite.sets[:-1]}
    missing = {suite.sets[-1].name: "not on this machine"}
    return SuiteResult(suite, "tiny", "0" * 64, scores, missing, 0.8)


@pytest.fixture(params=["sts", "isotropy", "diagnosis", "retrieval", "suite"])
def page(request: pytest.FixtureRequest, tiny_encoder: Encoder, tmp_path: Path) -> Path:
    about = {"model": "tiny", "corpus": "texts"}
    made = {
        "sts": lambda: sts_page(evaluate_sts(tiny_encoder, PAIRS), about),
        "isotropy": lambda: isotropy_page(evaluate_isotropy(tiny_encoder, TEXTS), about),
        "diagnosis": lambda: diagnosis_page(diagnose(tiny_encoder, TEXTS), about),
        "retrieval": lambda: retrieval_page(evaluate_run(RUN, QRELS), about),
        "suite": lambda: suite_page(suite_result()),
    }[request.param]()
    path = tmp_path / f"{request.param}.html"
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


def test_a_report_fits_a_narrow_window(page: Path, tmp_path: Path) -> None:
    script = "<script>document.title = document.documentElement.scrollWidth;</script></body>"
    wide = tmp_path / "measured.html"
    text = page.read_text().replace("default-src 'none'", "script-src 'unsafe-inline'")
    wide.write_text(text.replace("</body>", script))
    shown = browse(wide, tmp_path / "profile", "--window-size=500,900", "--dump-dom")
    width = int(shown.split("<title>")[1].split("</title>")[0])
    assert width <= 500
