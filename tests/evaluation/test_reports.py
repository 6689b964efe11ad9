"""Reports: complete, escaped and self-contained."""

import platform
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import numpy as np
import pytest

import sbertkit
from sbertkit.data.sts import StsPair, StsSet
from sbertkit.evaluation import Comparison, evaluate_isotropy, evaluate_run, evaluate_sts
from sbertkit.evaluation.environment import environment
from sbertkit.evaluation.report import figures
from sbertkit.evaluation.report.comparison import comparison_page
from sbertkit.evaluation.report.isotropy import isotropy_page
from sbertkit.evaluation.report.page import Page, Section, Table, render, write_page
from sbertkit.evaluation.report.retrieval import retrieval_page, shown_documents
from sbertkit.evaluation.report.sts import sts_page
from sbertkit.metrics import Interval, PairedTest
from sbertkit.terminal import visible_text

if TYPE_CHECKING:
    from sbertkit.encoder import Encoder

EVIL = '</td><script>alert(1)</script><img src=x onerror=alert(2)>" &lt; $x$ \x1b[2J\x07'
ABOUT = {"model": "mine", "fingerprint": "f" * 64, "pooling": "mean", "corpus": "corpus.txt"}
TEXTS = [
    f"{who} {does} at noon" for who in ("a baker", "a goat", "rain") for does in ("is", "goes")
]
VOID = {"meta", "link", "br", "img", "path", "use", "hr", "wbr"}


class Reader(HTMLParser):
    """What a page holds: tags, addresses, text; and whether each tag is closed."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.ids: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            assert not name.startswith("on"), (tag, name)
            if name in ("src", "href", "xlink:href", "action", "data"):
                self.addresses.append(value or "")
            if name == "id":
                self.ids.append(value or "")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def check(page: Page) -> str:
    """The text of a page that is whole, safe and self-contained."""
    text = render(page)
    found = Reader(text)
    assert {"script", "iframe", "object", "embed", "form", "base"}.isdisjoint(found.tags)
    assert all(re.fullmatch(r"data:,|#[\w-]+", address) for address in found.addresses)
    assert len(found.ids) == len(set(found.ids))
    assert "url(http" not in text
    assert not re.search(r"@import|url\((?!#)", text)
    assert "Content-Security-Policy" in text
    assert "\x1b" not in text
    assert "\x07" not in text
    # Every name that a drawing refers to is there.
    for name in re.findall(r"url\(#([\w-]+)\)", text) + re.findall(r'href="#([\w-]+)"', text):
        assert name in found.ids
    return " ".join(" ".join(found.words).split())


@pytest.fixture
def sts(tiny_encoder: "Encoder") -> Any:
    random = np.random.default_rng(0)
    pairs = [
        StsPair(float(random.integers(6)), first, second)
        for first in TEXTS
        for second in [*TEXTS, EVIL]
        if first != second
    ]
    half = len(pairs) // 2
    subsets = {"news": tuple(range(half)), EVIL: tuple(range(half, len(pairs)))}
    return evaluate_sts(tiny_encoder, StsSet(tuple(pairs), None, (), "pairs.tsv", subsets))


def test_an_sts_report_is_complete(sts: Any) -> None:
    words = check(sts_page(sts, ABOUT))
    for expected in (
        *("Spearman × 100", "euclidean", "manhattan", "Sub-corpora", "weighted mean", "mine"),
        *("Largest disagreements", "f" * 64),
        *(f"{100 * sts.spearman:.2f}", "<script>alert(1)</script>"),
    ):
        assert expected in words
    assert render(sts_page(sts, ABOUT)).count("<svg ") == 3


@pytest.mark.parametrize(
    ("source", "split", "shown"),
    [
        ("data/sts12.tsv", "test", True),
        ("data/sts12.tsv.gz", "test", True),
        ("data/sts12.tsv", "train", False),
        ("data/mine.tsv", "test", False),
        (None, None, False),
    ],
)
def test_a_known_set_is_compared_with_published_results(
    sts: Any, source: str | None, split: str | None, shown: bool
) -> None:
    page = Reader(render(sts_page(replace(sts, source=source, split=split), ABOUT)))
    assert ("published: SBERT-NLI-base" in page.words) is shown
    assert ("70.97" in page.words) is shown


def test_an_undefined_sts_result_has_a_report(tiny_encoder: "Encoder") -> None:
    result = evaluate_sts(tiny_encoder, [(3.0, "a", "b"), (3.0, "a", "c")])
    words = check(sts_page(result, ABOUT))
    assert "n/a" in words
    assert "constant gold scores" in words


def test_truncated_sentences_are_listed(sts: Any) -> None:
    whole = replace(sts, truncated=0, details=replace(sts.details, truncated=()))
    assert "No sentence was truncated" in check(sts_page(whole, ABOUT))
    changed = replace(sts, truncated=1, details=replace(sts.details, truncated=("a long one",)))
    assert "a long one" in check(sts_page(changed, ABOUT))


def test_a_retrieval_report_is_complete() -> None:
    qrels = {f"q{number}": {"good": 1} for number in range(9)} | {
        EVIL: {"good": 1},
        "none": {"d": 0},
    }
    run = {query: {"good": 0.5, "bad": number / 9} for number, query in enumerate(qrels)}
    result = evaluate_run(run, qrels)
    words = check(retrieval_page(result, {"collection": "set", "run": "a.trec"}, {"q1": EVIL}))
    for expected in (*result.measures, "queries left out", "none", "a.trec", "trec_eval"):
        assert expected in words


@pytest.mark.parametrize("unit", ["queries", "pairs", "sets"])
def test_a_comparison_report_is_complete(unit: str) -> None:
    tests = {
        "first": PairedTest(0.25, 0.00001, Interval(0.2, 0.3, 0.95)),
        EVIL: PairedTest(0.0, 1.0, None),
    }
    ones = dict.fromkeys(tests, 0.5)
    details = {} if unit == "sets" else {"q1": (1.0, 0.0), EVIL: (0.0, 3.0), "q3": (0.5, 0.5)}
    sets = {}
    if unit == "sets":
        sets = {EVIL: Comparison("pairs", 1, ones, ones, tests)}
    systems = ("mine", EVIL)
    found = Comparison(unit, 3, ones, ones, tests, systems, sets, ("lost",), details)
    words = check(comparison_page(found, {"A": "a.json", "B": "b.json"}))
    shown = "+0.2500" if unit == "queries" else "+25.00"
    for expected in ("mine (a.json)", "< 0.0001", shown, "A is significantly better", "lost"):
        assert expected in words
    if details:
        assert f"Of 3 {unit}, A is better in 1 and B in 1" in words
        assert "B is better" in words


def test_an_isotropy_report_is_complete(tiny_encoder: "Encoder") -> None:
    result = evaluate_isotropy(tiny_encoder, [*TEXTS, EVIL])
    words = check(isotropy_page(result, ABOUT))
    for expected in ("IsoScore", "uniformity", "it cannot change", "input tokens", "corpus.txt"):
        assert expected in words


def test_tables_mark_rows_and_right_align_numbers() -> None:
    table = Table(("name", "value>"), [("a", 1), ("b", None)], "what", frozenset({1}))
    text = render(Page("t", {}, {}, [Section("s", tables=[table])]))
    assert '<th class="right">value</th>' in text
    assert re.search(r'<tr class="marked">\s*<td>b</td><td class="right">n/a</td>', text)


def test_the_same_result_gives_the_same_page(sts: Any, tmp_path: Path) -> None:
    page = sts_page(sts, ABOUT)
    write_page(tmp_path / "a.html", page)
    write_page(tmp_path / "b.html", page)
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


@pytest.mark.parametrize(
    "draw",
    [
        lambda: figures.scatter([], [], x_label="x", y_label="y", name="n"),
        lambda: figures.scatter(range(9_000), range(9_000), x_label="x", y_label="y", name="n"),
        lambda: figures.histogram([0, 0], -1, 1, x_label="x", name="n"),
        lambda: figures.bars([], [], x_label="x", name="n"),
        lambda: figures.bars(
            [EVIL, "b"], [None, 1.0], [None, Interval(0, 2, 0.95)], x_label="x", name=EVIL
        ),
        lambda: figures.line([None, None], x_label="x", y_label="y", name="n"),
    ],
)
def test_odd_values_are_drawn_and_colors_follow_the_page(draw: Callable[[], str]) -> None:
    drawing = draw()
    Reader(drawing)
    assert "<script" not in drawing
    assert "var(--ink)" in drawing or "var(--soft)" in drawing
    assert not re.search("#0[0-9a-f]0[0-9a-f]0[0-9a-f]", drawing)
    assert len(drawing) < 1_500_000


LABELS = [
    r"$\frac{1$",
    "$x$ and $y$",
    "\x1b[31mred\x1b[0m\x07\x0b\x85",
    "\u202egnp.exe\u2066 \u200f\u2028x",
    "lone \ud800 surrogate",
    "中文标签 👩\u200d🔬 \ue000",
    "a \"<&'> b",
    "",
]


@pytest.mark.parametrize("label", LABELS)
def test_a_label_is_text_in_every_drawing(label: str, recwarn: pytest.WarningsRecorder) -> None:
    drawings = [
        figures.scatter([1], [2], x_label=label, y_label=label, name=label),
        figures.histogram([1, 2], 0, 1, x_label=label, name=label, of=label),
        figures.bars([label, "b"], [1.0, 2.0], x_label=label, name=label),
        figures.line([1.0, 2.0], x_label=label, y_label=label, name=label),
    ]
    for drawing in drawings:
        root = ElementTree.fromstring(drawing)
        words = " ".join(root.itertext())
        assert visible_text(label)[:25] in words
        assert visible_text(label) == root.get("aria-label")
        assert visible_text(drawing.replace("\n", "")) == drawing.replace("\n", "")
    page = render(Page(label, {label: label}, {label: label}, [Section(label, [label])]))
    assert visible_text(page.replace("\n", "")) == page.replace("\n", "")
    assert not recwarn.list


def test_a_table_of_many_columns_names_each_cell_for_narrow_windows() -> None:
    columns = ("name", "one>", EVIL, "three>")
    text = render(Page("t", {}, {}, [Section("s", tables=[Table(columns, [("a", 1, 2, "")])])]))
    assert '<table class="stacked">' in text
    assert '<td data-column="one" class="right">1</td>' in text
    assert "<script" not in text
    assert check(Page("t", {}, {}, [Section("s", tables=[Table(columns, [("a", 1, 2, "")])])]))


def test_the_page_says_when_with_what_and_on_what_a_result_was_measured(
    sts: Any, tiny_encoder: "Encoder"
) -> None:
    words = check(sts_page(sts, {**ABOUT, "environment": environment(tiny_encoder)}))
    expected = (
        f"sbertkit {sbertkit.__version__}",
        f"torch {version('torch')}",
        f"date {datetime.now(UTC):%Y-%m-}",
        *("precision fp32", f"backend {tiny_encoder.backend}", "device cpu"),
        f"cores, {platform.system()}",
        f"truncated {sts.truncated} of {sts.sentences} texts",
    )
    for one in expected:
        assert one in words


def test_the_hardest_queries_show_what_was_returned_and_what_is_relevant() -> None:
    run = {
        "easy": {"good": 0.9},
        "hard": {"bad": 0.9, EVIL: 0.8, "worse": 0.7, "worst": 0.6, "good": 0.1},
        "none": {},
    }
    qrels = {"easy": {"good": 1}, "hard": {"good": 1, "lost": 3, "bad": 0}, "none": {"good": 1}}
    result = evaluate_run(run, qrels, measures=["RR"])
    assert shown_documents(result) == {"good", "lost", "bad", EVIL, "worse"}
    texts = {"bad": "word " * 100, "good": f"a {EVIL} text", "lost": "the lost one"}
    words = check(retrieval_page(result, {"collection": "set"}, {"hard": "the question"}, texts))
    for expected in (
        "hard: RR 0.2000 the question returned bad: word word",
        "relevant (2 in all) lost (not returned): the lost one good (rank 5): a",
        "none: RR 0.0000 returned nothing relevant (1 in all) good (not returned): a",
        "easy: RR 1.0000 returned good (relevant): a",
    ):
        assert expected in words
    assert words.index("none: RR") < words.index("hard: RR") < words.index("easy: RR")
    assert "word " * 60 not in words


@pytest.mark.parametrize(
    ("about", "title"),
    [
        ({"mode": "lexical"}, "BM25"),
        ({"model": "m", "mode": "dense"}, "m"),
        ({"model": "m", "mode": "hybrid", "rerank": "r"}, "m, hybrid search, re-ranked by r"),
        ({"index": "i", "model": "m", "mode": "lexical"}, "i, lexical search"),
    ],
)
def test_a_retrieval_report_names_all_that_was_evaluated(about: dict[str, Any], title: str) -> None:
    result = evaluate_run({"1": {"a": 1.0}}, {"1": {"a": 1}})
    assert retrieval_page(result, about).title == f"Retrieval: {title}"
