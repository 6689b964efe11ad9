"""What an encoder, an index or a run finds for the queries of a collection."""

import logging
import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from sbertkit.arrays import Vectors
from sbertkit.data import Document, ReadReport, read_corpus
from sbertkit.data.retrieval import Collection, Qrels, Run, checked_run, read_run
from sbertkit.data.text import printable
from sbertkit.encoder.divided_texts import TextDivider
from sbertkit.encoder.long_options import LongOptions
from sbertkit.encoder.protocols import DividingEncoder, EncoderLike, RunLike
from sbertkit.errors import InputError, InputTypeError, UnknownId
from sbertkit.evaluation.self_matches import other_texts
from sbertkit.evaluation.text_counts import TextCounts
from sbertkit.evaluation.top_k import TopK
from sbertkit.metrics import unit_rows
from sbertkit.retrieval import Fusion, SearchIndex
from sbertkit.retrieval.modes import DENSE, HYBRID

logger = logging.getLogger(__name__)

_FUSION = Fusion()
_QUERIES_PER_CHUNK = 64
SHOWN = 100
"""Hits of a query whose passages are kept, for those who look at them."""


Passages = Mapping[str, Mapping[str, tuple[int, int]]]


@dataclass(frozen=True, slots=True)
class Answers:
    """The hits of a system.

    Attributes:
        run: Scores by query id and document id.
        unjudged: Queries that were not searched, since they are not judged.
        missing: Judged documents that cannot be found.
        other_texts: Queries whose id is by chance that of a document.
        encoded: Counts of the texts that were encoded; None for a run.
        passages: Start and end of the passage that an index found, by query id and document id.
        reranked: Counts of the pairs that a re-ranker scored; None without one.
        fusion: How vectors and words became one; None unless they did.
    """

    run: Run
    unjudged: tuple[str, ...]
    missing: tuple[str, ...]
    other_texts: frozenset[str]
    encoded: TextCounts | None = None
    passages: Passages = field(default_factory=dict)
    reranked: TextCounts | None = None
    fusion: Fusion | None = None


def check_run(run: Run, qrels: Qrels) -> None:
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


def from_run(system: str | os.PathLike[str] | Run, collection: Collection) -> Answers:
    """The hits of a run.

    Raises:
        InputError: A bad file, or none of its queries is judged.
        MissingFile: The file does not exist.
    """
    run = read_run(system) if isinstance(system, str | os.PathLike) else checked_run(system)
    check_run(run, collection.qrels)
    missing = relevant(collection.qrels)
    same_ids: dict[str, str] = {}
    for document, _ in read_corpus(collection.folder, keep_blank=True):
        missing.pop(document.id, None)
        if document.id in collection.queries:
            same_ids[document.id] = document.text
    return answers_of(run, collection, missing, same_ids)


def answers_of(
    run: Run,
    collection: Collection,
    missing: Iterable[str],
    same_ids: Mapping[str, str],
    encoded: TextCounts | None = None,
) -> Answers:
    """Answers to a collection's queries; `same_ids` are texts of documents with a query's id."""
    others = other_texts(collection.queries, same_ids, collection.qrels)
    return Answers(run, collection.unjudged, tuple(missing), others, encoded)


def from_index(
    index: SearchIndex,
    collection: Collection,
    k: int,
    *,
    mode: str = DENSE,
    fusion: Fusion = _FUSION,
    shown: int = SHOWN,
) -> Answers:
    """The `k` best documents of an index for each query, with the passages of the first `shown`."""
    run: dict[str, dict[str, float]] = {}
    passages: dict[str, dict[str, tuple[int, int]]] = {}
    names, texts = list(collection.queries), list(collection.queries.values())
    queries: Sequence[str] | Vectors = texts
    counts = None
    if mode == DENSE:
        queries, report = index.encoder.encode_with_report(texts, kind="query")
        counts = TextCounts.of(report)
    fused = fusion if mode == HYBRID else None
    for start in range(0, len(names), _QUERIES_PER_CHUNK):
        chunk = slice(start, start + _QUERIES_PER_CHUNK)
        hits = index.search_batch(queries[chunk], k, mode=mode, fusion=fused)
        for name, found in zip(names[chunk], hits, strict=True):
            run[name] = {hit.id: hit.score for hit in found}
            parts = (hit for hit in found[:shown] if hit.passage.text != hit.text)
            passages[name] = {hit.id: (hit.passage.start, hit.passage.end) for hit in parts}
    missing = (name for name in relevant(collection.qrels) if document_text(index, name) is None)
    same_ids = texts_of_same_ids(index, collection)
    answers = answers_of(run, collection, missing, same_ids, counts)
    words = index.info().lexical
    if fused is not None and words is not None:
        fused = fused.of_index(words.weight.value)
    return replace(answers, passages=passages, fusion=fused)


def texts_of_same_ids(index: SearchIndex, collection: Collection) -> dict[str, str]:
    """The texts of an index's documents that have the id of a query."""
    found = {name: document_text(index, name) for name in collection.queries}
    return {name: text for name, text in found.items() if text is not None}


def document_text(index: SearchIndex, document: str) -> str | None:
    """The text of a document; None if the index does not hold it."""
    try:
        return index.get(document).text
    except UnknownId:
        return None


def from_encoder(
    encoder: EncoderLike, collection: Collection, k: int, long: LongOptions, *, progress: bool
) -> Answers:
    """The `k` best documents for each query by exact search; the corpus is never in memory.

    Raises:
        InputError: A duplicate id in the corpus, or an overlap that does not suit the encoder.
    """
    texts = list(collection.queries.values())
    queries = encoder.encode_with_report(texts, kind="query")
    best = TopK(unit_rows(queries.vectors).astype(np.float32), k)
    missing = relevant(collection.qrels)
    report = ReadReport()
    waiting: deque[str] = deque()  # ids of the documents that are being encoded
    same_ids: dict[str, str] = {}

    def documents() -> Iterator[str]:
        for document in _documents(collection.folder, report):
            missing.pop(document.id, None)
            if document.id in collection.queries:
                same_ids[document.id] = document.text
            waiting.append(document.id)
            yield document.text

    encoding = encoder.start_run(kind="document")
    for vectors, each in _encoded(encoder, encoding, documents(), long, progress=progress):
        ids = [waiting.popleft() for _ in each]
        best.add(ids, unit_rows(vectors).astype(np.float32), each)
    for line in report.warnings():
        logger.warning(line)
    run = dict(zip(collection.queries, best.hits(), strict=True))
    counts = TextCounts.of(queries.report, encoding.report())
    return answers_of(run, collection, missing, same_ids, counts)


def _encoded(
    encoder: EncoderLike,
    encoding: RunLike,
    texts: Iterator[str],
    long: LongOptions,
    *,
    progress: bool,
) -> Iterator[tuple[Vectors, Sequence[int]]]:
    """Vectors (n, dim) of texts in order, chunk by chunk, and how many each text has."""
    if long.mode == "truncate":
        for vectors in encoding.vectors(texts, progress=progress):
            yield vectors, [1] * len(vectors)
        return
    if not isinstance(encoder, DividingEncoder):
        raise InputTypeError(
            f"a {type(encoder).__name__} has no limit by which to divide long texts: leave long "
            "(--long) out"
        )
    divider = TextDivider(encoder.spec, long.overlap)
    passages = encoding.vectors(divider.passages(texts), progress=progress)
    yield from divider.vectors(passages, mean=long.mode == "mean")


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


def relevant(qrels: Qrels) -> dict[str, None]:
    """Relevant documents, each once, in order."""
    return {
        document: None
        for grades in qrels.values()
        for document, grade in grades.items()
        if grade > 0
    }
