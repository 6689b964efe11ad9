"""Recall and latency of searches with a filter, over 300,000 lines.

    SBERTKIT_DATA=FOLDER python eval/index_filters.py [--wordnet FOLDER] [--work FOLDER]

Each line has random numbers and a topic (its cluster of 20) as metadata. Filters leave 50 to 0.05
percent of the lines by a number, 4 and 1 percent by two of them, those of the topic of a query, and
those that are of the topic farthest from it. Recall@10 is that against an exhaustive search with
the same filter. Each kind is an entry of results/index_filters.json. Nothing else should run
meanwhile.
"""

import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from index_vectors import Embedded, add_arguments, prepare, recall_per_query
from recording import Entries, Figures, arguments_of

from sbertkit import BuildOptions, Document, Encoder, SearchIndex
from sbertkit.encoder.resolve import BUNDLED_NAME
from sbertkit.index.faiss_library import load_faiss

KINDS = ("hnsw", "ivfpq")
TARGET = 0.95
TOPICS = 20
QUERIES = 500
TIMED = 100
RANDOM = {
    "50 %": "n < 5000",
    "20 %": "n < 2000",
    "5 %": "n < 500",
    "0.5 %": "n < 50",
    "0.05 %": "n < 5",
    "4 %, two conditions": "a < 20 and b < 20",
    "1 %, two conditions": "a < 10 and b < 10",
}
SOURCES = [
    "sbertkit/index",
    "sbertkit/retrieval/filters",
    "sbertkit/retrieval/tuning_queries.py",
    "sbertkit/retrieval/vector_index.py",
    "eval/index_filters.py",
    "eval/index_vectors.py",
]


def main() -> None:
    """Measures the missing entries."""
    parser = arguments_of(__doc__)
    add_arguments(parser)
    embedded = prepare(parser.parse_args())
    entries = Entries("index_filters", SOURCES)
    for kind in KINDS:
        settings = {"kind": kind, "recall": TARGET, "queries": QUERIES, "topics": TOPICS}
        entries.measure(kind, settings, partial(filtered, kind, embedded))


def filtered(kind: str, embedded: dict[str, Embedded]) -> Figures:
    """Every filter over an index of a kind."""
    texts, vectors = embedded["lines"]
    queries = embedded["queries"].vectors[:: len(embedded["queries"].vectors) // QUERIES][:QUERIES]
    faiss = load_faiss()
    means = faiss.Kmeans(vectors.shape[1], TOPICS, niter=20, spherical=True, seed=0)
    means.train(vectors[:100_000])
    topics = np.argmax(vectors @ means.centroids.T, axis=1).tolist()
    products = queries @ means.centroids.T
    with (
        tempfile.TemporaryDirectory() as folder,
        SearchIndex.build(
            _documents(texts, topics),
            Encoder.load(BUNDLED_NAME, device="cpu"),
            Path(folder) / "i",
            kind=kind,
            recall=TARGET,
            with_encoder=False,
            lexical=False,
            long="truncate",
            options=BuildOptions(vectors=vectors),
        ) as index,
    ):
        figures = {
            name: measured(index, [(condition, queries)]) for name, condition in RANDOM.items()
        }
        for name, chosen in (
            ("topic of the query", products.argmax(axis=1)),
            ("topic farthest from it", products.argmin(axis=1)),
            ("all but its topic", -1 - products.argmax(axis=1)),
        ):
            groups = [
                (f"topic {'=' if topic >= 0 else '!='} {max(topic, -1 - topic)}", rows)
                for topic in np.unique(chosen).tolist()
                for rows in [queries[chosen == topic]]
            ]
            figures[name] = measured(index, groups)
        return {"filters": figures, "without": measured(index, [(None, queries)])}


def _documents(texts: list[str], topics: list[int]) -> Iterator[Document]:
    drawn = np.random.default_rng(0)
    numbers = drawn.permutation(len(texts)) * 10_000 // len(texts)
    first, second = drawn.integers(100, size=(2, len(texts))).tolist()
    for row, (text, n, a, b, topic) in enumerate(
        zip(texts, numbers.tolist(), first, second, topics, strict=True)
    ):
        yield Document(str(row), text, {"n": n, "a": a, "b": b, "topic": topic})


def measured(index: SearchIndex, groups: Sequence[tuple[str | None, Any]]) -> Figures:
    """Recall, hits and latency of queries, each group with a filter."""
    shares: list[float] = []
    hits, seconds, plans = [], [], set()
    for condition, queries in groups:
        found = index.search_batch(queries, 10, mode="dense", filter=condition)
        exact = index.search_batch(queries, 10, mode="dense", filter=condition, exact=True)
        shares += recall_per_query(found, exact)
        hits += [len(one) for one in found]
        for query in queries[: max(2, TIMED // len(groups))]:
            started = time.perf_counter()
            one = index.search(query, mode="dense", filter=condition, explain=True)
            seconds.append(time.perf_counter() - started)
        plans.add(str(one[0].plan).split(":", 1)[0].split(" ", 1)[0])
    return {
        "recall_at_10": statistics.fmean(shares),
        "fewest_hits": min(hits),
        "matching": sum(index.count(condition) for condition, _ in groups) / len(groups),
        "milliseconds": 1000 * statistics.median(seconds),
        "plans": sorted(plans),
    }


if __name__ == "__main__":
    main()
