"""The report of a comparison."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sbertkit.evaluation.comparison import Comparison
from sbertkit.evaluation.report import figures
from sbertkit.evaluation.report.page import Page, Picture, Section, Table, lineage_of
from sbertkit.formatting import UNDEFINED, decimal, listed, p_value_text
from sbertkit.metrics import Interval

TEST = "two-sided paired permutation test"
_LEVEL = 0.05
_MAX_ROWS = 15
_MAX_LISTED = 20
_EXPLAINED = {
    "queries": "Queries are exchanged between the systems for the test, and drawn with replacement "
    "for the interval.",
    "pairs": "Sentence pairs are exchanged between the systems for the test, and drawn with "
    "replacement for the interval. Scores are times 100.",
    "sets": "Queries or sentence pairs are exchanged between the systems for the test, and drawn "
    "with replacement for the interval, within their set; the mean weighs the sets equally. Scores "
    "are times 100.",
}


@dataclass(frozen=True, slots=True)
class _Scale:
    """How scores are shown."""

    factor: int
    places: int

    def score(self, value: float, *, sign: str = "") -> str:
        return decimal(self.factor * value, self.places, sign=sign)

    def interval(self, interval: Interval | None) -> str:
        if interval is None:
            return UNDEFINED
        return f"{self.score(interval.low, sign='+')} to {self.score(interval.high, sign='+')}"

    def cells(self, found: Comparison, measure: str) -> tuple[str, ...]:
        """Both scores, their difference, its interval and p-value."""
        test = found.tests[measure]
        return (
            self.score(found.first[measure]),
            self.score(found.second[measure]),
            self.score(test.difference, sign="+"),
            self.interval(test.interval),
            p_value_text(test.p_value),
        )


_FRACTIONS, _PERCENTS = _Scale(1, 4), _Scale(100, 2)


def _scale(found: Comparison) -> _Scale:
    return _FRACTIONS if found.unit == "queries" else _PERCENTS


def comparison_table(found: Comparison) -> Table:
    """Both systems' scores by measure, or by set with their mean, and the tests."""
    tested = ("A>", "B>", "A - B>", "95 % interval>", "p>")
    scale = _scale(found)
    if not found.sets:
        rows = [(name, *scale.cells(found, name)) for name in found.tests]
        return Table(("measure", *tested), rows)
    rows = [
        (name, one.headline, _over(one), *scale.cells(one, one.headline))
        for name, one in found.sets.items()
    ]
    rows.append((found.headline, "", _over(found), *scale.cells(found, found.headline)))
    return Table(("set", "measure", "over", *tested), rows)


def _over(found: Comparison) -> str:
    """What the scores are over: ``1,379 pairs``."""
    units = {"queries": "query", "pairs": "pair", "sets": "set"}
    return f"{found.count:,} {units[found.unit] if found.count == 1 else found.unit}"


def verdict(found: Comparison) -> str:
    """Which system is significantly better by the first measure, in words."""
    test = found.tests[found.headline]
    if test.p_value >= _LEVEL:
        return f"no significant difference in {found.headline} at the level {_LEVEL}"
    better = "A" if test.difference > 0 else "B"
    return f"{better} is significantly better in {found.headline} at the level {_LEVEL}"


def comparison_page(found: Comparison, about: Mapping[str, Any]) -> Page:
    """The page of a comparison.

    Args:
        found: Of `compare_results` or `compare_runs`.
        about: What was compared, by name: the files ``A`` and ``B`` and more.
    """
    test, scale = found.tests[found.headline], _scale(found)
    headline = {
        f"{found.headline}, A - B": scale.score(test.difference, sign="+"),
        "95 % interval": scale.interval(test.interval),
        "p": p_value_text(test.p_value),
        found.unit: f"{found.count:,}",
    }
    facts = {
        "A": system_name(found.systems[0], about.get("A")),
        "B": system_name(found.systems[1], about.get("B")),
        "verdict": verdict(found),
        "test": TEST,
    }
    if found.left_out:
        facts["sets left out"] = listed(found.left_out, _MAX_LISTED)
    sections = [_differences(found), *([_items(found)] if found.details else [])]
    names = found.systems
    if names[0] == names[1] and "A" in about:
        names = about["A"], about["B"]
    title = f"Comparison: {names[0]} and {names[1]}"
    return Page(title, headline, facts, sections, lineage_of(about))


def system_name(name: str, file: object) -> str:
    """A system's name with its file."""
    return name if file is None or name == file else f"{name} ({file})"


def _differences(found: Comparison) -> Section:
    scale = _scale(found)
    tests = {name: one.tests[one.headline] for name, one in found.sets.items()}
    tests.update(found.tests)
    return Section(
        "Differences",
        [_EXPLAINED[found.unit]],
        [comparison_table(found)],
        [
            Picture(
                figures.bars(
                    list(tests),
                    [one.difference for one in tests.values()],
                    [one.interval for one in tests.values()],
                    x_label="A - B" if scale.factor == 1 else f"(A - B) × {scale.factor}",
                    name="differences",
                    scale=scale.factor,
                ),
                "Each difference with its 95 % bootstrap interval; above 0, A is better.",
            )
        ],
    )


def _items(found: Comparison) -> Section:
    """The queries or pairs in which the systems differ most."""
    pairs = found.unit == "pairs"
    gains = {
        name: (second - first if pairs else first - second)
        for name, (first, second) in found.details.items()
    }
    order = sorted((name for name in gains if gains[name]), key=lambda name: -gains[name])
    columns = ("pair>", "ranks off by A>", "ranks off by B>") if pairs else ("query", "A>", "B>")
    places = 0 if pairs else 4
    parts = {
        "A is better": [name for name in order[:_MAX_ROWS] if gains[name] > 0],
        "B is better": [name for name in order[: -_MAX_ROWS - 1 : -1] if gains[name] < 0],
    }
    tables = [
        Table(
            columns,
            [(name, *(decimal(value, places) for value in found.details[name])) for name in names],
            title,
        )
        for title, names in parts.items()
        if names
    ]
    counts = [sum(gain > 0 for gain in gains.values()), sum(gain < 0 for gain in gains.values())]
    by = found.headline
    if pairs:
        by = "how far the rank by cosine is from the rank by gold score; pairs count from 1"
    sentence = (
        f"Of {len(gains):,} {found.unit}, A is better in {counts[0]:,} and B in {counts[1]:,}, "
        f"measured by {by}."
    )
    return Section(f"{found.unit.capitalize()} that differ most", [sentence], tables)
