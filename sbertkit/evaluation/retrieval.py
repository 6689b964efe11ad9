"""How well an encoder, an index or a run finds the relevant documents."""

import hashlib
import json
import logging
import os
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sbertkit.arguments import path_text, whole_number
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
from sbertkit.encoder import Encoder
from sbertkit.encoder.long_options import TRUNCATE, LongOptions
from sbertkit.encoder.protocols import EncoderLike
from sbertkit.errors import InputError, InputTypeError
from sbertkit.evaluation.answers import (
    SHOWN,
    Answers,
    Passages,
    check_run,
    from_encoder,
    from_index,
    from_run,
)
from sbertkit.evaluation.collection_search import from_both, from_words
from sbertkit.evaluation.measures import DEFAULT_MEASURES, Measures, is_count
from sbertkit.evaluation.reranked import rerank_answers, texts_of_corpus, texts_of_index
from sbertkit.evaluation.text_counts import TextCounts
from sbertkit.formatting import listed
from sbertkit.lexical.options import LexicalOptions
from sbertkit.metrics import Interval, bootstrap_interval
from sbertkit.reranking import RERANK_DEPTH
from sbertkit.retrieval import Fusion, SearchIndex
from sbertkit.retrieval.modes import DENSE, HYBRID, LEXICAL, checked_mode
from sbertkit.retrieval.rerank import LoadedReranker, Rerank, Reranking
from sbertkit.schema import Digest, to_dict

logger = logging.getLogger(__name__)

_FUSION = Fusion()
DEPTH = 1_000
"""Documents retrieved per query, as in TREC's runs."""
_MAX_LISTED = 5

System = EncoderLike | SearchIndex | str | os.PathLike[str] | Run | None
"""What is evaluated: an encoder, an index, a run, or the words of the collection."""


@dataclass(frozen=True, slots=True)
class RetrievalResult:
    """The retrieval measures of a system on judged queries.

    Attributes:
        measures: Means over the queries by ir-measures' names; of counts (``NumRel``) the sums.
        intervals: Their 95 % bootstrap intervals over the queries; None where undefined, and for
            counts.
        queries: Number of queries in the means.
        left_out: Ids of queries that are not: not judged, or without a relevant document.
        without_hits: Ids of queries in the means for which nothing was found.
        missing: Ids of relevant documents that are not in the corpus, or blank there; they count as
            not found.
        exclude_self: Whether a query's own document was excluded.
        self_matches: Number of queries that found such a document.
        same_ids: Number of queries that found a document with their id that is not theirs: it has
            another text, or is judged relevant. It was kept.
        per_query: Values by measure and query id.
        reranked: Counts of the pairs that a re-ranker scored; None without one.
        encoded: Counts of the queries and documents that were encoded, the queries alone for an
            index; None for a run, and where words count.
        run: Scores of the documents found, by query id and document id.
        qrels: Grades of the queries in the means; as `run` not part of `to_dict`.
        sha256: A hash over these grades.
        passages: Start and end of the passages that an index found first, by query id and document
            id, where a document has several; not part of `to_dict` either.
        fusion: How vectors and words became one; None unless they did.
    """

    measures: Mapping[str, float]
    intervals: Mapping[str, Interval | None]
    queries: int
    left_out: tuple[str, ...]
    without_hits: tuple[str, ...]
    missing: tuple[str, ...]
    exclude_self: bool
    self_matches: int
    same_ids: int
    per_query: Mapping[str, Mapping[str, float]]
    encoded: TextCounts | None
    run: Run
    qrels: Qrels
    sha256: Digest
    passages: Passages = field(default_factory=dict)
    reranked: TextCounts | None = None
    fusion: Fusion | None = None

    def to_dict(self) -> dict[str, Any]:
        """The result without `run`, `qrels` and `passages`, as strict JSON can hold it."""
        return to_dict(self, without=("run", "qrels", "passages"))


def evaluate_run(
    run: str | os.PathLike[str] | Run,
    qrels: str | os.PathLike[str] | Qrels,
    *,
    measures: Sequence[str] = DEFAULT_MEASURES,
    exclude_self: bool = False,
) -> RetrievalResult:
    """The measures of a run, as trec_eval computes them, over the queries with a relevant document.

    One that the run does not answer counts as 0 (option ``-c`` of trec_eval, which divides by the
    queries without a relevant document too).

    Args:
        run: A file for `read_run`, or scores by query id and document id.
        qrels: A file for `read_qrels`, or grades by query id and document id.
        measures: Measures by ir-measures' names.
        exclude_self: Exclude documents with the query's own id, as BEIR does; their texts are not
            known here.

    Raises:
        InputError: A bad file, an unknown measure, or no query of the run is judged.
        InputTypeError: Neither a path nor a mapping of mappings.
        MissingFile: A file does not exist.
    """
    wanted = Measures(measures)
    grades = read_qrels(qrels) if isinstance(qrels, str | os.PathLike) else checked_qrels(qrels)
    wanted.check_grades(grades)
    found = read_run(run) if isinstance(run, str | os.PathLike) else checked_run(run)
    check_run(found, grades)
    return _measure(Answers(found, (), (), frozenset()), grades, wanted, exclude_self=exclude_self)


def evaluate_retrieval(
    system: System,
    data: str | os.PathLike[str] | Collection,
    *,
    split: str = "test",
    exclude_self: bool | None = None,
    measures: Sequence[str] = DEFAULT_MEASURES,
    depth: int = DEPTH,
    long: LongOptions = TRUNCATE,
    mode: str = DENSE,
    fusion: Fusion = _FUSION,
    rerank: "Rerank | None" = None,
    rerank_depth: int = RERANK_DEPTH,
    progress: bool = False,
) -> RetrievalResult:
    """The measures of an encoder with exact search, of words, of a built index, or of a run.

    Title and text of a document are joined, as in BEIR. For an encoder the corpus is encoded chunk
    by chunk, and only the best documents of each query are kept, so that memory does not grow with
    the corpus.

    Args:
        system: An `Encoder`, a `SearchIndex`, or a run as for `evaluate_run`; ``None`` for the
            words of the collection alone, of mode ``lexical``.
        data: A collection in BEIR's layout, the name of a data set (``cisi``), or what
            `read_collection` read.
        split: Split of the qrels, for a folder.
        exclude_self: Exclude documents with the query's own id, as BEIR does. None excludes them
            where they are the query: the texts are equal or nearly so, or one holds the other, and
            the document is not judged relevant. Elsewhere ids are equal by chance.
        measures: Measures by ir-measures' names.
        depth: Number of documents retrieved per query, excluded ones not counted.
        long: What an encoder does with documents longer than its limit; with ``passages`` the best
            passage of a document counts. By default they are truncated, as for published results.
        mode: ``dense``, ``lexical`` or ``hybrid``, as for a search. For an encoder and ``hybrid``
            an index is built for the time being, with the weight that suits it.
        fusion: How vectors and words become one, of mode ``hybrid``.
        rerank: A `Reranker`, or the name of its model, that orders the first documents of each
            query again; the others follow in their order. The texts of all first documents are in
            memory, but of an index.
        rerank_depth: How many documents of each query it orders.
        progress: Show progress on standard error.

    Raises:
        InputError: A bad file, an unknown split, measure or mode, a mode for a run, an index
            without words, a model that cannot re-rank.
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
    fetched = depth if exclude_self is False else depth + 1
    reranking = None
    if rerank is not None:
        reranking = Reranking(LoadedReranker().of(rerank), rerank_depth)
    shown = SHOWN if reranking is None else max(SHOWN, reranking.depth)
    search = _Search(fetched, shown, long, checked_mode(mode), fusion, progress)
    answers = search.answers(system, collection)
    if reranking is not None:
        if isinstance(system, SearchIndex):
            texts = texts_of_index(system, answers)
        else:
            texts = texts_of_corpus(collection, answers.run, reranking.depth)
        answers = rerank_answers(answers, collection, reranking, texts)
    if collection.without_text:
        logger.warning(_count(collection.without_text, "judged query", "without a text"))
    return _measure(answers, collection.qrels, wanted, exclude_self=exclude_self, depth=depth)


@dataclass(frozen=True, slots=True)
class _Search:
    """How documents are found; for the attributes see `evaluate_retrieval` and `from_index`."""

    k: int
    shown: int
    long: LongOptions
    mode: str
    fusion: Fusion
    progress: bool

    def answers(self, system: System, of: Collection) -> Answers:
        """What a system finds in a collection."""
        if isinstance(system, str | os.PathLike | Mapping):
            if self.mode != DENSE:
                raise InputError(f"a run was searched already: leave mode (--mode) {self.mode} out")
            return from_run(system, of)
        if isinstance(system, SearchIndex):
            return from_index(
                system, of, self.k, mode=self.mode, fusion=self.fusion, shown=self.shown
            )
        if self.mode == LEXICAL and (system is None or hasattr(system, "start_run")):
            return from_words(of, self.k, LexicalOptions(), progress=self.progress)
        if self.mode == HYBRID and isinstance(system, Encoder):
            return from_both(system, of, self.k, self.long, self.fusion, progress=self.progress)
        if self.mode == DENSE and system is not None and hasattr(system, "start_run"):
            return from_encoder(system, of, self.k, self.long, progress=self.progress)
        raise InputTypeError(
            f"expected an Encoder, a SearchIndex or a run, found {type(system).__name__}"
        )


def counted_queries(qrels: Qrels) -> Qrels:
    """The judgements of the queries that have a relevant document.

    Raises:
        InputError: None has.
    """
    counted = {
        query: grades
        for query, grades in qrels.items()
        if any(grade > 0 for grade in grades.values())
    }
    if not counted:
        raise InputError("no query has a relevant document: expected a grade above 0, found none")
    return counted


def _measure(
    answers: Answers,
    qrels: Qrels,
    measures: Measures,
    *,
    exclude_self: bool | None,
    depth: int | None = None,
) -> RetrievalResult:
    counted = counted_queries(qrels)
    asked = dict.fromkeys([*qrels, *answers.run, *answers.unjudged])
    left_out = tuple(query for query in asked if query not in counted)
    run = {query: answers.run.get(query, {}) for query in counted}
    matches = {query for query, found in run.items() if query in found}
    by_chance = matches & answers.other_texts
    kept = by_chance if exclude_self is None else set[str]()
    if exclude_self is not False:
        run = {
            query: _without(found, query) if query in matches - kept else found
            for query, found in run.items()
        }
    if depth is not None:
        run = {
            query: {document: found[document] for document in ranked(found)[:depth]}
            for query, found in run.items()
        }
    per_query = measures.per_query(counted, run)
    _warn(answers, left_out)
    _warn_of_matches(matches, by_chance, exclude_self)
    return RetrievalResult(
        measures={name: measures.mean(name, per_query[name]) for name in measures.names},
        intervals={
            name: None if is_count(name) else _interval(per_query[name]) for name in measures.names
        },
        queries=len(counted),
        left_out=left_out,
        without_hits=tuple(query for query, found in run.items() if not found),
        missing=answers.missing,
        exclude_self=exclude_self is not False,
        self_matches=len(matches - kept),
        same_ids=len(kept),
        per_query=per_query,
        encoded=answers.encoded,
        run=run,
        qrels=counted,
        sha256=_digest(counted),
        passages=answers.passages,
        reranked=answers.reranked,
        fusion=answers.fusion,
    )


def _digest(qrels: Qrels) -> str:
    rows = sorted((query, sorted(judged.items())) for query, judged in qrels.items())
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()


def _without(found: Mapping[str, float], query: str) -> Mapping[str, float]:
    return {document: score for document, score in found.items() if document != query}


def _interval(values: Mapping[str, float]) -> Interval | None:
    column = np.array(list(values.values()))
    return bootstrap_interval(lambda rows: float(rows.mean()), column)


def _warn(answers: Answers, left_out: Sequence[str]) -> None:
    if answers.missing:
        logger.warning(_count(answers.missing, "judged document", "not in the corpus, or blank"))
    if left_out:
        logger.warning(
            "%s: not judged, or without a relevant document",
            _count(left_out, "query", "left out"),
        )


def _warn_of_matches(matches: Set[str], by_chance: Set[str], exclude_self: bool | None) -> None:
    """Warns of documents with the query's own id that were kept, or excluded by their id alone."""
    if exclude_self is False:
        count = len(matches)
        rest = "its own id, which was kept; BEIR excludes them: pass exclude_self (--exclude-self)"
    else:
        count = len(by_chance)
        rest = "its own id, but another text or judged relevant, which was "
        rest += (
            "excluded by its id alone; leave out exclude_self (--exclude-self) to keep it"
            if exclude_self
            else "kept: ids that are equal by chance; exclude_self (--exclude-self) excludes it, "
            "as BEIR does"
        )
    if count:
        found = "1 query found" if count == 1 else f"{count:,} queries each found"
        logger.warning("%s a document with %s", found, rest)


def _count(names: Sequence[str], noun: str, what: str) -> str:
    """The number of names, and the first of them: ``2 queries left out (q3, q4)``."""
    plural = f"{noun.removesuffix('y')}ies" if noun.endswith("y") else f"{noun}s"
    shown = listed([printable(name, 40) for name in names], _MAX_LISTED)
    return f"{len(names):,} {noun if len(names) == 1 else plural} {what} ({shown})"
