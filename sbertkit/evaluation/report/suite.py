"""The report of a suite: an encoder's scores and published ones."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from sbertkit.evaluation.report import figures
from sbertkit.evaluation.report.page import Page, Picture, Section, Table, lineage_of
from sbertkit.evaluation.suites import SuiteResult
from sbertkit.evaluation.suites.runner import SetScore
from sbertkit.evaluation.text_counts import TextCounts
from sbertkit.formatting import decimal, percent, percent_interval
from sbertkit.schema import as_record

Row = tuple[object, ...]


def suite_table(result: SuiteResult) -> Table:
    """Scores times 100: the encoder first, then published rows."""
    scores = result.scores
    mean = "mean" if not result.missing else f"mean of {len(scores)}"
    measured = (percent(one.score) for one in scores.values())
    rows: list[Row] = [(result.model, *measured, percent(result.mean))]
    for row in result.suite.published:
        values = [*(row.scores.get(name) for name in scores), result.published_mean(row.scores)]
        cells = ("" if value is None else decimal(value, 2) for value in values)
        rows.append((f"published: {row.name}", *cells))
    columns = ("encoder", *(f"{name}>" for name in scores), f"{mean}>")
    return Table(columns, rows, marked=frozenset({0}))


def suite_page(result: SuiteResult, about: Mapping[str, Any] = MappingProxyType({})) -> Page:
    """The page of a result.

    Args:
        result: Of `run_suite`.
        about: More on how it was measured, by name, such as ``environment``.
    """
    suite = result.suite
    headline = {
        "mean": percent(result.mean),
        "sets": f"{len(result.scores)} of {len(suite.sets)}",
    }
    facts = {"suite": suite.title, "model": result.model}
    sections = [
        Section(
            "Comparison with published results",
            [f"All scores are times 100. {_measures(result)}"],
            [suite_table(result)],
        ),
        _each(result),
        _sources(result),
    ]
    lineage = lineage_of(
        {"model": result.model, "fingerprint": result.fingerprint, "suite": suite.name, **about}
    )
    return Page(f"{suite.title}: {result.model}", headline, facts, sections, lineage)


def _measures(result: SuiteResult) -> str:
    names = dict.fromkeys(f"{one.measure} ({one.task})" for one in result.scores.values())
    return f"Measured: {', '.join(names)}."


def _each(result: SuiteResult) -> Section:
    scores = result.scores.values()
    rows = [
        (name, one.measure, percent(one.score), percent_interval(one.interval), *_counts(one))
        for name, one in result.scores.items()
    ]
    return Section(
        "Scores by set",
        tables=[
            Table(
                ("set", "measure", "score>", "95 % interval>", "truncated>", "unknown tokens>"),
                rows,
            )
        ],
        pictures=[
            Picture(
                figures.bars(
                    list(result.scores),
                    [one.score for one in scores],
                    [one.interval for one in scores],
                    x_label="score × 100",
                    name="sets",
                    scale=100,
                ),
                "Each set with its 95 % bootstrap interval.",
            )
        ],
    )


def _counts(one: SetScore) -> Row:
    counts = as_record(one.details["encoded"], TextCounts, "encoded")
    return tuple(counts.facts().values())


def _sources(result: SuiteResult) -> Section:
    rows: list[Row] = [
        (one.name, one.title, one.rows, one.licence, one.cite)
        for one in result.suite.sets
        if one.name in result.scores
    ]
    missing = [f"Left out: {reason}" for reason in result.missing.values()]
    published = [f"{row.name}: {row.source}." for row in result.suite.published]
    return Section(
        "Sources",
        [*missing, *published],
        [Table(("set", "what", "rows", "license", "cite"), rows)],
    )
