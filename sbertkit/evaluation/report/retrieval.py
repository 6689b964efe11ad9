"""The report of a retrieval evaluation."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from sbertkit.evaluation.report import figures
from sbertkit.evaluation.report.page import Page, Picture, Section, Table
from sbertkit.evaluation.report.published import published_section
from sbertkit.evaluation.retrieval import RetrievalResult
from sbertkit.formatting import decimal, interval_text, listed, percent

_BINS = 20
_MAX_QUERIES = 30
_MAX_IDS = 20


def measure_table(result: RetrievalResult) -> Table:
    """The mean of each measure with its interval."""
    rows = [
        (name, decimal(value, 4), interval_text(result.intervals[name]))
        for name, value in result.measures.items()
    ]
    return Table(("measure", "mean>", "95 % interval>"), rows)


def self_match_text(result: RetrievalResult) -> str:
    """What became of the documents with a query's own id."""
    text = f"{'excluded' if result.exclude_self else 'kept'} ({result.self_matches:,} found)"
    if result.same_ids:
        text += f"; {result.same_ids:,} with the query's id by chance kept"
    return text


def retrieval_page(
    result: RetrievalResult, about: Mapping[str, Any], queries: Mapping[str, str] | None = None
) -> Page:
    """The page of a result.

    Args:
        result: Of `evaluate_retrieval` or `evaluate_run`.
        about: What was evaluated, by name: ``collection``, ``split``, ``model`` and more.
        queries: Texts by query id, where they are known.
    """
    first = next(iter(result.measures))
    system = about.get("index") or about.get("run") or about.get("model")
    headline = {
        **{name: f"{value:.4f}" for name, value in list(result.measures.items())[:4]},
        "queries": f"{result.queries:,}",
    }
    facts = {
        "collection": about.get("collection"),
        "split": about.get("split"),
        "system": system,
        "self-matches": self_match_text(result),
    }
    published = None
    if about.get("split") == "test" and "nDCG@10" in result.measures:
        measured = (str(system), percent(result.measures["nDCG@10"]))
        published = published_section(about.get("collection"), measured)
    sections = [
        _measures(result),
        *([published] if published else []),
        _distribution(result, first),
        _missing(result),
        _hardest(result, first, queries or {}),
    ]
    return Page(f"Retrieval: {system}", headline, facts, sections, dict(about))


def _measures(result: RetrievalResult) -> Section:
    return Section(
        "Measures",
        ["Means over the queries as trec_eval computes them, with 95 % bootstrap intervals."],
        [measure_table(result)],
        [
            Picture(
                figures.bars(
                    list(result.measures),
                    list(result.measures.values()),
                    list(result.intervals.values()),
                    x_label="mean over the queries",
                    name="measures",
                ),
                "Each mean with its interval.",
            )
        ],
    )


def _distribution(result: RetrievalResult, name: str) -> Section:
    values = list(result.per_query[name].values())
    high = max(1.0, *values)
    counts, _ = np.histogram(values, bins=_BINS, range=(0.0, high))
    return Section(
        "Distribution over the queries",
        pictures=[
            Picture(
                figures.histogram(
                    counts.tolist(), 0.0, high, x_label=name, name="per query", of="queries"
                ),
                f"Distribution of {name} over the queries.",
            )
        ],
    )


def _missing(result: RetrievalResult) -> Section:
    groups = {
        "queries left out: not judged, or without a relevant document": result.left_out,
        "queries without any hit; they count as 0": result.without_hits,
        "relevant documents that are not in the corpus, or blank; they count as not found": (
            result.missing
        ),
    }
    rows = [(title, len(ids), listed(ids, _MAX_IDS) or "none") for title, ids in groups.items()]
    return Section("What is missing", tables=[Table(("what", "count>", "ids"), rows)])


def _hardest(result: RetrievalResult, name: str, queries: Mapping[str, str]) -> Section:
    values = result.per_query[name]
    order = sorted(values, key=lambda query: values[query])[:_MAX_QUERIES]
    rows = [(query, decimal(values[query], 4), queries.get(query, "")) for query in order]
    return Section(
        f"Queries with the lowest {name}", tables=[Table(("id", f"{name}>", "query"), rows)]
    )
