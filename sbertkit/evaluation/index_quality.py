"""What approximate search costs and saves: recall against exact search, latency, bytes."""

import os
import time
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from sbertkit.arguments import path_text, whole_number
from sbertkit.arrays import Vectors
from sbertkit.data.named import local_path
from sbertkit.data.retrieval import Collection, read_collection
from sbertkit.errors import InputError, InputTypeError
from sbertkit.evaluation.answers import texts_of_same_ids
from sbertkit.evaluation.measures import Measures
from sbertkit.evaluation.retrieval import counted_queries
from sbertkit.evaluation.self_matches import other_texts
from sbertkit.metrics import Interval, bootstrap_interval
from sbertkit.progress import Advance, track
from sbertkit.retrieval import Hit, SearchIndex
from sbertkit.retrieval.modes import DENSE
from sbertkit.schema import to_dict

INDEX_MEASURES = ("nDCG@10",)
_WARM_UP = 10
"""Searches before latency is measured."""
_EQUAL = 1e-6
"""Cosines that differ by less are equal: it does not matter which of the documents is found."""
_PERCENTILES = (50, 95, 99)


class Latency(NamedTuple):
    """Percentiles of the milliseconds per query, without encoding it."""

    p50: float
    p95: float
    p99: float


class MeasureDrop(NamedTuple):
    """A measure with exact search, with the index, and the difference."""

    exact: float
    approximate: float
    drop: float


@dataclass(frozen=True, slots=True)
class IndexResult:
    """An index compared with exact search over its vectors; the encoder's quality does not count.

    Attributes:
        kind: Kind of the index.
        documents: Number of documents.
        k: Number of hits per query.
        queries: Number of queries searched.
        recall: Share of the `k` best documents that the index finds, the mean over the queries.
        interval: 95 % bootstrap interval of `recall` over the queries.
        min_recall: The lowest share of a query.
        latency: Latency of the index, one query after another.
        exact_latency: Latency of exact search over the same vectors.
        bytes_per_vector: Size of the stored ``vectors`` and of the ``index`` over them.
        measures: Retrieval measures of both, by name, where queries are judged.
    """

    kind: str
    documents: int
    k: int
    queries: int
    recall: float
    interval: Interval | None
    min_recall: float
    latency: Latency
    exact_latency: Latency
    bytes_per_vector: Mapping[str, float]
    measures: Mapping[str, MeasureDrop] | None

    def to_dict(self) -> dict[str, Any]:
        """The result as strict JSON can hold it."""
        return to_dict(self)


def evaluate_index(
    index: SearchIndex,
    data: str | os.PathLike[str] | None = None,
    *,
    k: int = 10,
    queries: int = 1_000,
    split: str = "test",
    measures: Sequence[str] = INDEX_MEASURES,
    seed: int = 0,
    progress: bool = False,
) -> IndexResult:
    """Compares the hits of an index with those of exact search over its stored vectors.

    Without `data` the queries are stored vectors drawn at random, each without its own document.
    With a collection they are its judged queries, and the hits are scored with `measures`, too;
    a query's own document is excluded as `evaluate_retrieval` does by default.

    Args:
        index: An opened index.
        data: A collection in BEIR's layout or the name of a data set, whose corpus the index holds.
        k: Number of hits per query.
        queries: Number of stored vectors drawn.
        split: Split of the collection's qrels.
        measures: Measures by ir-measures' names.
        seed: Seed of the draw.
        progress: Show progress on standard error.

    Raises:
        InputError: `k` or `queries` below 1, or a bad collection, split or measure.
        InputTypeError: No index.
        MissingFile: The folder or a file in it does not exist.
    """
    if not isinstance(index, SearchIndex):
        raise InputTypeError(f"expected a SearchIndex, found {type(index).__name__}")
    k, queries = whole_number("k", k), whole_number("queries", queries)
    if not len(index):
        raise InputError(f"the index {index.path} has no documents to evaluate; add some")
    collection, wanted = None, Measures(measures)
    if data is None:
        ids, vectors = index.sample(queries, seed)
        own = set(ids)
    else:
        k = max(k, wanted.cutoff)
        collection = read_collection(local_path(path_text(data)), split)
        wanted.check_grades(collection.qrels)  # before anything is encoded
        ids = list(collection.queries)
        vectors = index.encoder.encode(list(collection.queries.values()), kind="query")
        same_ids = texts_of_same_ids(index, collection)
        own = same_ids.keys() - other_texts(collection.queries, same_ids, collection.qrels)
    with track("searching", 2 * len(ids), shown=progress) as advance:
        queried = _Queries(ids, vectors, own)
        found = _search(index, queried, k, advance, exact=False)
        best = _search(index, queried, k, advance, exact=True)
    recalls = np.array(
        [_recall(have, want) for have, want in zip(found.hits, best.hits, strict=True)]
    )
    sizes = index.sizes()
    return IndexResult(
        kind=index.info().kind,
        documents=len(index),
        k=k,
        queries=len(ids),
        recall=float(recalls.mean()),
        interval=bootstrap_interval(lambda rows: float(rows.mean()), recalls),
        min_recall=float(recalls.min()),
        latency=found.latency,
        exact_latency=best.latency,
        bytes_per_vector={
            part: round(sizes.get(name, 0) / index.info().vectors, 1)
            for part, name in (("vectors", "vectors.npy"), ("index", "index.faiss"))
        },
        measures=None
        if collection is None
        else _drops(ids, found.hits, best.hits, collection, wanted),
    )


class _Queries(NamedTuple):
    """Ids and vectors of queries, and which of the ids are those of the queries' own documents."""

    ids: Sequence[str]
    vectors: Vectors
    own: Set[str]


@dataclass(frozen=True, slots=True)
class _Found:
    hits: list[list[Hit]]
    latency: Latency


def _search(
    index: SearchIndex, queried: _Queries, k: int, advance: Advance, *, exact: bool
) -> _Found:
    """The hits of each query without its own document, searched one after another."""
    for vector in queried.vectors[:_WARM_UP]:
        index.search(vector, k + 1, exact=exact, mode=DENSE)
    hits = []
    seconds = []
    for query, vector in zip(queried.ids, queried.vectors, strict=True):
        start = time.perf_counter()
        found = index.search(vector, k + 1, exact=exact, mode=DENSE)
        seconds.append(time.perf_counter() - start)
        own = query if query in queried.own else None
        hits.append([hit for hit in found if hit.id != own][:k])
        advance(1)
    percentiles = np.percentile(seconds, _PERCENTILES) * 1_000
    return _Found(hits, Latency(*(round(float(value), 3) for value in percentiles)))


def _recall(found: Sequence[Hit], best: Sequence[Hit]) -> float:
    """The share of the best that was found; another document of the same score is as good."""
    if not best:
        return 1.0
    min_score = best[-1].score - _EQUAL
    return sum(hit.score >= min_score for hit in found) / len(best)


def _drops(
    ids: Sequence[str],
    found: Sequence[Sequence[Hit]],
    best: Sequence[Sequence[Hit]],
    collection: Collection,
    measures: Measures,
) -> dict[str, MeasureDrop]:
    counted = counted_queries(collection.qrels)
    exact, indexed = (
        measures.per_query(
            counted,
            {
                query: {hit.id: hit.score for hit in row}
                for query, row in zip(ids, hits, strict=True)
            },
        )
        for hits in (best, found)
    )
    drops = {}
    for name in measures.names:
        one, other = (measures.mean(name, values[name]) for values in (exact, indexed))
        drops[name] = MeasureDrop(one, other, one - other)
    return drops
