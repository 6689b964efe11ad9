"""How well an encoder, an index or a run finds the relevant documents."""

import logging
import os
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sbertkit.arguments import path_text, whole_number
from sbertkit.data import Document, ReadReport, read_corpus
from sbertkit.data.named import local_path
from sbertkit.data.retrieval import (
    Collection,
    Qrels,
    Run,
    checked_qrels,
    checked_run,
    read_collection,
    read_qrels,
    read_run,
)
from sbertkit.data.retrieval.runs import ranked
from sbertkit.data.text import printable
from sbertkit.encoder.protocols import EncoderLike
from sbertkit.errors import InputError, InputTypeError, UnknownId
from sbertkit.evaluation.measures import DEFAULT_MEASURES, Measures
from sbertkit.evaluation.top_k import TopK
from sbertkit.formatting import listed
from sbertkit.metrics import Interval, bootstrap_interval, unit_rows
from sbertkit.retrieval import SearchIndex
from sbertkit.schema import to_dict

logger = logging.getLogger(__name__)

DEPTH = 1_000
"""Documents retrieved per query, as in TREC's runs."""
_MAX_LISTED = 5
_QUERIES_PER_CHUNK = 64


@dataclass(frozen=True, slots=True)
class RetrievalResult:
    """The retrieval measures of a system on judged queries.

    Attributes:
        measures: Means over the queries by ir-measures' names.
        intervals: Their 95 % bootstrap intervals over the queries; None where undefined.
        queries: Number of queries in the means.
        left_out: Ids of queries that are not: not judged, or without a relevant document.
        without_hits: Ids of queries in the means for which nothing was found.
        missing: Ids of relevant documents that are not in the corpus, or blank there; they count as
            not found.
        exclude_self: Whether documents with the query's own id were excluded.
        self_matches: Number of queries that found such a document.
        per_query: Values by measure and query id.
        run: Scores of the documents found, by query id and document id.
    """

    measures: Mapping[str, float]
    intervals: Mapping[str, Interval | None]
    queries: int
    left_out: tuple[str, ...]
    without_hits: tuple[str, ...]
    missing: tuple[str, ...]
    exclude_self: bool
    self_matches: int
    per_query: Mapping[str, Mapping[str, float]]
    run: Run

    def to_dict(self) -> dict[str, Any]:
        """The result without `run`, as strict JSON can hold it."""
        return to_dict(self, without=("run",))


def evaluate_run(
    run: str | os.PathLike[str] | Run,
    qrels: str | os.PathLike[str] | Qrels,
    *,
    measures: Sequence[str] = DEFAULT_MEASURES,
    exclude_self: bool = False,
) -> RetrievalResult:
    """The measures of a run, equal to trec_eval's over all judged queries (its option ``-c``).

    Args:
        run: A file for `read_run`, or scores by query id and document id.
        qrels: A file for `read_qrels`, or grades by query id and document id.
        measures: Measures by ir-measures' names.
        exclude_self: Exclude documents with the query's own id, as BEIR does.

    Raises:
        InputError: A bad file, an unknown measure, or no query of the run is judged.
        InputTypeError: Neither a path nor a mapping of mappings.
        MissingFile: A file does not exist.
    """
    wanted = Measures(measures)
    grades = read_qrels(qrels) if isinstance(qrels, str | os.PathLike) else checked_qrels(qrels)
    wanted.check_grades(grades)
    found = read_run(run) if isinstance(run, str | os.PathLike) else checked_run(run)
    _check_run(found, grades)
    return _measure(_Answers(found, (), ()), grades, wanted, exclude_self=exclude_self)


def evaluate_retrieval(
    system: EncoderLike | SearchIndex | str | os.PathLike[str] | Run,
    data: str | os.PathLike[str] | Collection,
    *,
    split: str = "test",
    exclude_self: bool = True,
    measures: Sequence[str] = DEFAULT_MEASURES,
    depth: int = DEPTH,
    progress: bool = False,
) -> RetrievalResult:
    """The measures of an encoder with exact search, of a built index, or of a run.

    Title and text of a document are joined, as in BEIR. For an encoder the corpus is encoded chunk
    by chunk, and only the best documents of each query are kept, so that memory does not grow with
    the corpus.

    Args:
        system: An `Encoder`, a `SearchIndex`, or a run as for `evaluate_run`.
        data: A collection in BEIR's layout, the name of a data set (``cisi``), or what
            `read_collection` read.
        split: Split of the qrels, for a folder.
        exclude_self: Exclude documents with the query's own id, as BEIR does.
        measures: Measures by ir-measures' names.
        depth: Number of documents retrieved per query, excluded ones not counted.
        progress: Show progress on standard error.

    Raises:
        InputError: A bad file, an unknown split or measure.
        InputTypeError: No encoder, index or run.
        MissingFile: The folder or a file in it does not exist.
    """
    wanted = Measures(measures)
    depth = whole_number("depth", depth, least=max(1, wanted.cutoff))
    if isinstance(data, Collection):
        collection = data
    else:
        collection = read_collection(local_path(path_text(data)), split)
    wanted.check_grades(collection.qrels)  # before anything is encoded
    fetched = depth + 1 if exclude_self else depth
    if isinstance(system, str | os.PathLike | Mapping):
        answers = _from_run(system, collection)
    elif isinstance(system, SearchIndex):
        answers = _from_index(system, collection, fetched)
    elif hasattr(system, "start_run"):
        answers = _from_encoder(system, collection, fetched, progress=progress)
    else:
        raise InputTypeError(
            f"expected an Encoder, a SearchIndex or a run, found {type(system).__name__}"
        )
    if collection.without_text:
        logger.warning(_count(collection.without_text, "judged query", "without a text"))
    return _measure(answers, collection.qrels, wanted, exclude_self=exclude_self, depth=depth)


@dataclass(frozen=True, slots=True)
class _Answers:
    """The hits of a system.

    Attributes:
        run: Scores by query id and document id.
        unjudged: Queries that were not searched, since they are not judged.
        missing: Judged documents that cannot be found.
    """

    run: Run
    unjudged: tuple[str, ...]
    missing: tuple[str, ...]


def _check_run(run: Run, qrels: Qrels) -> None:
    """Refuses a run with other queries than the judged ones; warns about other documents.

    Raises:
        InputError: None of its queries is judged.
    """
    if not any(query in qrels for query in run):
        raise InputError(
            f"none of the {len(run):,} queries of the run is judged: it has "
            f"{printable(next(iter(run)), 40)!r}, the qrels "
            f"{printable(next(iter(qrels)), 40)!r}; ids must be equal as text"
        )
    found = {document for query in run if query in qrels for document in run[query]}
    judged = {document for grades in qrels.values() for document in grades}
    if found and judged.isdisjoint(found):
        logger.warning(
            "no document of the run is judged: it has %r, the qrels %r; ids must be equal as text",
            printable(next(iter(found)), 40),
            printable(next(iter(judged)), 40),
        )


def _from_run(system: str | os.PathLike[str] | Run, collection: Collection) -> _Answers:
    run = read_run(system) if isinstance(system, str | os.PathLike) else checked_run(system)
    _check_run(run, collection.qrels)
    missing = _relevant(collection.qrels)
    for document in read_corpus(collection.folder, keep_blank=True):
        missing.pop(document.document.id, None)
    return _Answers(run, collection.unjudged, tuple(missing))


def _from_index(index: SearchIndex, collection: Collection, k: int) -> _Answers:
    run: dict[str, dict[str, float]] = {}
    names = list(collection.queries)
    for start in range(0, len(names), _QUERIES_PER_CHUNK):
        chunk = names[start : start + _QUERIES_PER_CHUNK]
        hits = index.search_batch([collection.queries[name] for name in chunk], k)
        for name, found in zip(chunk, hits, strict=True):
            run[name] = {hit.id: hit.score for hit in found}
    missing = tuple(name for name in _relevant(collection.qrels) if not _holds(index, name))
    return _Answers(run, collection.unjudged, missing)


def _holds(index: SearchIndex, document: str) -> bool:
    try:
        index.get(document)
    except UnknownId:
        return False
    return True


def _from_encoder(
    encoder: EncoderLike, collection: Collection, k: int, *, progress: bool
) -> _Answers:
    texts = list(collection.queries.values())
    queries = encoder.encode_with_report(texts, kind="query").vectors
    best = TopK(unit_rows(queries).astype(np.float32), k)
    missing = _relevant(collection.qrels)
    report = ReadReport()
    waiting: deque[str] = deque()  # ids of the documents that are being encoded

    def documents() -> Iterator[str]:
        for document in _documents(collection.folder, report):
            missing.pop(document.id, None)
            waiting.append(document.id)
            yield document.text

    for vectors in encoder.start_run(kind="document").vectors(documents(), progress=progress):
        ids = [waiting.popleft() for _ in range(len(vectors))]
        best.add(ids, unit_rows(vectors).astype(np.float32))
    for line in report.warnings():
        logger.warning(line)
    run = dict(zip(collection.queries, best.hits(), strict=True))
    return _Answers(run, collection.unjudged, tuple(missing))


def _documents(folder: Path, report: ReadReport) -> Iterator[Document]:
    """The documents of a collection.

    Raises:
        InputError: A duplicate id.
    """
    lines: dict[str, int] = {}
    for document, line in read_corpus(folder, report=report):
        known = lines.setdefault(document.id, line)
        if known != line:
            raise InputError(
                f"{folder}: the document id {printable(document.id)!r} is in lines {known} and "
                f"{line}; ids must be unique"
            )
        yield document


def _relevant(qrels: Qrels) -> dict[str, None]:
    """Relevant documents, each once, in order."""
    return {
        document: None
        for grades in qrels.values()
        for document, grade in grades.items()
        if grade > 0
    }


def _measure(
    answers: _Answers,
    qrels: Qrels,
    measures: Measures,
    *,
    exclude_self: bool,
    depth: int | None = None,
) -> RetrievalResult:
    counted = {
        query: grades
        for query, grades in qrels.items()
        if any(grade > 0 for grade in grades.values())
    }
    if not counted:
        raise InputError("no query has a relevant document: expected a grade above 0, found none")
    asked = dict.fromkeys([*qrels, *answers.run, *answers.unjudged])
    left_out = tuple(query for query in asked if query not in counted)
    self_matches = sum(query in found for query, found in answers.run.items() if query in counted)
    run = {query: answers.run.get(query, {}) for query in counted}
    if exclude_self:
        run = {query: _without(found, query) for query, found in run.items()}
    if depth is not None:
        run = {
            query: {document: found[document] for document in ranked(found)[:depth]}
            for query, found in run.items()
        }
    per_query = measures.per_query(counted, run)
    _warn(answers, left_out, 0 if exclude_self else self_matches)
    return RetrievalResult(
        measures={name: measures.mean(name, per_query[name]) for name in measures.names},
        intervals={name: _interval(per_query[name]) for name in measures.names},
        queries=len(counted),
        left_out=left_out,
        without_hits=tuple(query for query, found in run.items() if not found),
        missing=answers.missing,
        exclude_self=exclude_self,
        self_matches=self_matches,
        per_query=per_query,
        run=run,
    )


def _without(found: Mapping[str, float], query: str) -> Mapping[str, float]:
    return {document: score for document, score in found.items() if document != query}


def _interval(values: Mapping[str, float]) -> Interval | None:
    column = np.array(list(values.values()))
    return bootstrap_interval(lambda rows: float(rows.mean()), column)


def _warn(answers: _Answers, left_out: Sequence[str], kept_self_matches: int) -> None:
    if answers.missing:
        logger.warning(_count(answers.missing, "judged document", "not in the corpus, or blank"))
    if left_out:
        logger.warning(
            "%s: not judged, or without a relevant document",
            _count(left_out, "query", "left out"),
        )
    if kept_self_matches:
        logger.warning(
            "%d %s a document with its own id, which was kept; BEIR excludes them "
            "(exclude_self, --exclude-self)",
            kept_self_matches,
            "query found" if kept_self_matches == 1 else "queries each found",
        )


def _count(names: Sequence[str], noun: str, what: str) -> str:
    """The number of names, and the first of them: ``2 queries left out (q3, q4)``."""
    plural = f"{noun.removesuffix('y')}ies" if noun.endswith("y") else f"{noun}s"
    shown = listed([printable(name, 40) for name in names], _MAX_LISTED)
    return f"{len(names):,} {noun if len(names) == 1 else plural} {what} ({shown})"
