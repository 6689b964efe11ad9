"""The report of a retrieval evaluation."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from sbertkit.evaluation.report import figures
from sbertkit.evaluation.report.page import Page, Picture, Section, Table
from sbertkit.evaluation.report.published import published_section
from sbertkit.evaluation.retrieval import RetrievalResult
from sbertkit.formatting import decimal

_BINS = 20
_WORST = 30
_NAMED = 20


def retrieval_page(
    result: RetrievalResult, about: Mapping[str, Any], queries: Mapping[str, str] | None = None
) -> Page:
    """The page of a result.

    Args:
        result: Of `evaluate_retrieval` or `evaluate_run`.
        about: What was measured, by name: ``collection``, ``split``, ``model`` and more.
        queries: Texts by query id, where they are known.
    """
    first = next(iter(result.measures))
    system = about.get("index") or about.get("run") or about.get("model")
    headline = {
        **{name: f"{value:.4f}" for name, value in list(result.measures.items())[:4]},
        "queries": f"{result.queries:,}",
    }
    own = "left out" if result.exclude_self else "kept"
    facts = {
        "collection": about.get("collection"),
        "split": about.get("split"),
        "system": system,
        "documents with the query's own id": f"{own} ({result.own:,} met)",
    }
    beside = None
    if about.get("split") == "test" and "nDCG@10" in result.measures:
        reached = (str(system), f"{100 * result.measures['nDCG@10']:.2f}")
        beside = published_section(about.get("collection"), reached)
    sections = [
        _measures(result),
        *([beside] if beside else []),
        _spread(result, first),
        _left_out(result),
        _worst(result, first, queries or {}),
    ]
    return Page(f"Retrieval: {system}", headline, facts, sections, dict(about))


def _measures(result: RetrievalResult) -> Section:
    rows = []
    for name, value in result.measures.items():
        interval = result.intervals[name]
        shown = "n/a" if interval is None else f"{interval.low:.4f} to {interval.high:.4f}"
        rows.append((name, f"{value:.4f}", shown))
    return Section(
        "Measures",
        ["Means over the queries as trec_eval computes them, with 95 % bootstrap intervals."],
        [Table(("measure", "mean>", "95 % interval>"), rows)],
        [
            Picture(
                figures.bars(
                    list(result.measures),
                    list(result.measures.values()),
                    [
                        None if interval is None else (interval.low, interval.high)
                        for interval in result.intervals.values()
                    ],
                    x_label="mean over the queries",
                    name="measures",
                ),
                "Each mean with its interval.",
            )
        ],
    )


def _spread(result: RetrievalResult, name: str) -> Section:
    values = list(result.per_query[name].values())
    high = max(1.0, *values)
    counts, _ = np.histogram(values, bins=_BINS, range=(0.0, high))
    return Section(
        "Over the queries",
        pictures=[
            Picture(
                figures.histogram(
                    counts.tolist(), 0.0, high, x_label=name, name="per query", of="queries"
                ),
                f"How {name} is spread over the queries.",
            )
        ],
    )


def _left_out(result: RetrievalResult) -> Section:
    def named(ids: tuple[str, ...]) -> str:
        more = f", and {len(ids) - _NAMED:,} more" if len(ids) > _NAMED else ""
        return f"{', '.join(ids[:_NAMED])}{more}" if ids else "none"

    rows = [
        (
            "queries left out: never judged, or no relevant document",
            len(result.left_out),
            named(result.left_out),
        ),
        (
            "queries for which nothing was found; they count as 0",
            len(result.without_hits),
            named(result.without_hits),
        ),
        (
            "relevant documents that are not in the corpus, or blank; they count as not found",
            len(result.missing),
            named(result.missing),
        ),
    ]
    return Section("What was missing", tables=[Table(("what", "count>", "ids"), rows)])


def _worst(result: RetrievalResult, name: str, queries: Mapping[str, str]) -> Section:
    values = result.per_query[name]
    order = sorted(values, key=lambda query: values[query])[:_WORST]
    rows = [(query, decimal(values[query], 4), queries.get(query, "")) for query in order]
    return Section(
        f"Queries with the lowest {name}", tables=[Table(("id", f"{name}>", "query"), rows)]
    )
