"""The report of a suite: an encoder's scores beside published ones."""

from collections.abc import Mapping

from sbertkit.evaluation.report import figures
from sbertkit.evaluation.report.page import Page, Picture, Section, Table
from sbertkit.evaluation.suites import SuiteResult
from sbertkit.formatting import interval_text, percent
from sbertkit.metrics import Interval

Row = tuple[object, ...]


def suite_rows(result: SuiteResult) -> tuple[tuple[str, ...], list[Row]]:
    """Columns and rows of scores x 100: the encoder first, then published rows."""
    names = list(result.scores)
    whole = "mean" if not result.missing else f"mean of {len(names)}"
    columns = ("encoder", *(f"{name}>" for name in names), f"{whole}>")
    own = {name: score.score for name, score in result.scores.items()}
    rows: list[Row] = [(result.model, *map(percent, own.values()), percent(result.mean))]
    for row in result.suite.published:
        mean = result.published_mean(row.scores)
        cells = (_cell(row.scores, name) for name in names)
        rows.append((f"published: {row.name}", *cells, "" if mean is None else f"{mean:.2f}"))
    return columns, rows


def suite_page(result: SuiteResult) -> Page:
    """The page of a result."""
    suite = result.suite
    columns, rows = suite_rows(result)
    headline = {
        "mean": percent(result.mean),
        "sets": f"{len(result.scores)} of {len(suite.sets)}",
    }
    facts = {"suite": suite.title, "model": result.model}
    sections = [
        Section(
            "Beside published rows",
            [f"All scores are times 100. {_measures(result)}"],
            [Table(columns, rows, marked=frozenset({0}))],
        ),
        _each(result),
        _sources(result),
    ]
    lineage = {"model": result.model, "fingerprint": result.fingerprint, "suite": suite.name}
    return Page(f"{suite.title}: {result.model}", headline, facts, sections, lineage)


def _measures(result: SuiteResult) -> str:
    names = dict.fromkeys(f"{one.measure} ({one.task})" for one in result.scores.values())
    return f"Measured: {', '.join(names)}."


def _each(result: SuiteResult) -> Section:
    scores = list(result.scores.values())
    rows = [
        (name, one.measure, percent(one.score), interval_text(one.interval))
        for name, one in result.scores.items()
    ]
    return Section(
        "Set by set",
        tables=[Table(("set", "measure", "score>", "95 % interval>"), rows)],
        pictures=[
            Picture(
                figures.bars(
                    list(result.scores),
                    [None if one.score is None else 100 * one.score for one in scores],
                    [_ends(one.interval) for one in scores],
                    x_label="score × 100",
                    name="sets",
                ),
                "Each set with its 95 % bootstrap interval.",
            )
        ],
    )


def _sources(result: SuiteResult) -> Section:
    rows: list[Row] = [
        (one.name, one.title, one.rows, one.licence, one.cite)
        for one in result.suite.sets
        if one.name in result.scores
    ]
    missing = [f"Left out: {reason}" for reason in result.missing.values()]
    published = [f"{row.name}: {row.source}." for row in result.suite.published]
    return Section(
        "Where it comes from",
        [*missing, *published],
        [Table(("set", "what", "rows", "licence", "cite"), rows)],
    )


def _cell(scores: Mapping[str, float], name: str) -> str:
    return f"{scores[name]:.2f}" if name in scores else ""


def _ends(interval: Interval | None) -> tuple[float, float] | None:
    return None if interval is None else (100 * interval.low, 100 * interval.high)
