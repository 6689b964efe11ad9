"""The report of a retrieval evaluation."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from sbertkit.data.retrieval.runs import ranked
from sbertkit.evaluation.measures import is_count
from sbertkit.evaluation.report import figures
from sbertkit.evaluation.report.page import Case, Page, Picture, Section, Table, lineage_of
from sbertkit.evaluation.report.published import published_section
from sbertkit.evaluation.retrieval import RetrievalResult
from sbertkit.formatting import decimal, interval_text, listed, percent
from sbertkit.retrieval.modes import DENSE

_NONE: Mapping[str, str] = MappingProxyType({})
_BINS = 20
_MAX_QUERIES = 20
_MAX_DOCUMENTS = 3
_MAX_CHARS = 240
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
    result: RetrievalResult,
    about: Mapping[str, Any],
    queries: Mapping[str, str] = _NONE,
    documents: Mapping[str, str] = _NONE,
) -> Page:
    """The page of a result.

    Args:
        result: Of `evaluate_retrieval` or `evaluate_run`.
        about: What was evaluated, by name: ``collection``, ``split``, ``model`` and more.
        queries: Texts by query id, where they are known.
        documents: Texts by document id, of those of `shown_documents`, where they are known.
    """
    first = next(iter(result.measures))
    system = _system(about)
    headline = {
        **{name: f"{value:.4f}" for name, value in list(result.measures.items())[:4]},
        "queries": f"{result.queries:,}",
    }
    facts = {
        "collection": about.get("collection"),
        "split": about.get("split"),
        "system": system,
        "self-matches": self_match_text(result),
        **({} if result.encoded is None else result.encoded.facts()),
        **({} if result.reranked is None else result.reranked.pair_facts()),
    }
    published = None
    if about.get("split") == "test" and "nDCG@10" in result.measures:
        measured = (system, percent(result.measures["nDCG@10"]))
        published = published_section(about.get("collection"), measured)
    sections = [
        _measures(result),
        *([published] if published else []),
        _distribution(result, first),
        _missing(result),
        _hardest(result, queries, documents),
    ]
    title = f"Retrieval: {system}" if system else "Retrieval"
    return Page(title, headline, facts, sections, lineage_of(about))


def _system(about: Mapping[str, Any]) -> str:
    """What was evaluated, in a few words."""
    mode = about.get("mode", DENSE)
    name = about.get("index") or about.get("run") or about.get("model")
    parts = [] if name is None else [str(name)]
    if mode != DENSE:
        parts.append("BM25" if name is None else f"{mode} search")
    if about.get("rerank"):
        parts.append(f"re-ranked by {about['rerank']}")
    return ", ".join(parts)


def _measures(result: RetrievalResult) -> Section:
    means = [name for name in result.measures if not is_count(name)]
    return Section(
        "Measures",
        [
            "Means over the queries with a relevant document, by trec_eval's own code, with 95 % "
            "bootstrap intervals."
        ],
        [measure_table(result)],
        [
            Picture(
                figures.bars(
                    means,
                    [result.measures[name] for name in means],
                    [result.intervals[name] for name in means],
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


def shown_documents(result: RetrievalResult) -> set[str]:
    """Ids of the documents whose texts a page shows."""
    return {
        document
        for query in _hardest_queries(result)
        for document in (*_returned(result, query), *_relevant(result, query))
    }


def _hardest_queries(result: RetrievalResult) -> list[str]:
    values = next(iter(result.per_query.values()))
    return sorted(values, key=lambda query: values[query])[:_MAX_QUERIES]


def _returned(result: RetrievalResult, query: str) -> list[str]:
    return ranked(result.run.get(query, {}))[:_MAX_DOCUMENTS]


def _relevant(result: RetrievalResult, query: str) -> list[str]:
    """The relevant documents, those of the highest grades first."""
    grades = result.qrels[query]
    order = sorted(grades, key=lambda document: -grades[document])
    return [document for document in order if grades[document] > 0][:_MAX_DOCUMENTS]


def _hardest(
    result: RetrievalResult, queries: Mapping[str, str], documents: Mapping[str, str]
) -> Section:
    """The queries with the lowest values, what was returned, and what should have been."""
    name = next(iter(result.measures))
    cases = []
    for query in _hardest_queries(result):
        grades, found = result.qrels[query], result.run.get(query, {})
        ranks = {document: rank for rank, document in enumerate(ranked(found), 1)}
        places = result.passages.get(query, {})
        returned = [
            _shown(
                document,
                "relevant" if grades.get(document, 0) > 0 else "",
                documents,
                places.get(document),
            )
            for document in _returned(result, query)
        ]
        relevant = [
            _shown(
                document,
                f"rank {ranks[document]:,}" if document in ranks else "not returned",
                documents,
            )
            for document in _relevant(result, query)
        ]
        count = sum(grade > 0 for grade in grades.values())
        lists = {"returned": returned or ["nothing"], f"relevant ({count:,} in all)": relevant}
        title = f"{query}: {name} {decimal(result.per_query[name][query], 4)}"
        cases.append(Case(title, queries.get(query, ""), lists))
    return Section(
        f"Queries with the lowest {name}",
        ["What was returned first, and what should have been."],
        cases=cases,
    )


def _shown(
    document: str,
    remark: str,
    documents: Mapping[str, str],
    passage: tuple[int, int] | None = None,
) -> str:
    """A document as ``ID (REMARK): TEXT``; of its text the passage with these bounds."""
    text = documents.get(document, "")
    if passage is not None:
        text = text[slice(*passage)]
    text = " ".join(text.split())
    short = text if len(text) <= _MAX_CHARS else f"{text[: _MAX_CHARS - 3]}..."
    named = f"{document} ({remark})" if remark else document
    return f"{named}: {short}" if short else named
