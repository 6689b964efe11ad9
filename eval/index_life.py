"""What becomes of an index that changes: recall after replacements, and 1,000 small additions.

    SBERTKIT_DATA=FOLDER python eval/index_life.py [--wordnet FOLDER] [--work FOLDER]

30 percent of the glosses of WordNet are replaced by other lines in 20 changes, and the recall that
the index then states is compared with that of queries it has not seen. And an index is filled by
1,000 additions of 50 lines each, and compared with one that is built of them at once: time, and
latency of a search. index_vectors.py says what the texts are. Each is an entry of
results/index_life.json; the next call measures the missing ones. Nothing else should run meanwhile.
"""

import statistics
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
from index_vectors import Embedded, add_arguments, prepare, recall_per_query
from recording import Entries, Figures, arguments_of

from sbertkit import Encoder, SearchIndex
from sbertkit.arrays import Vectors
from sbertkit.encoder.resolve import BUNDLED_NAME

KINDS = ("hnsw", "ivfpq")
TARGET = 0.95
CHANGES = 20
REPLACED = 0.3
ADDITIONS = 1_000
ADDED = 50
QUERIES = 300
SOURCES = ["sbertkit/index", "sbertkit/retrieval", "eval/index_life.py", "eval/index_vectors.py"]


def main() -> None:
    """Measures the missing entries."""
    parser = arguments_of(__doc__)
    add_arguments(parser)
    embedded = prepare(parser.parse_args())
    encoder = Encoder.load(BUNDLED_NAME, device="cpu", precision="int8")
    entries = Entries("index_life", SOURCES)
    for kind in KINDS:
        settings = {"kind": kind, "recall": TARGET, "precision": "int8"}
        entries.measure(
            f"replaced {kind}",
            {**settings, "changes": CHANGES, "share": REPLACED},
            partial(replaced, kind, encoder, embedded),
        )
        entries.measure(
            f"added {kind}",
            {**settings, "additions": ADDITIONS, "documents": ADDED},
            partial(added, kind, encoder, embedded),
        )


def replaced(kind: str, encoder: Encoder, embedded: dict[str, Embedded]) -> Figures:
    """An index after many of its documents have become others."""
    glosses, queries = embedded["glosses"].texts, embedded["queries"].vectors
    known = set(glosses)
    others = [text for text in embedded["lines"].texts if text not in known]
    chosen = np.random.default_rng(0).permutation(len(glosses))
    count = int(REPLACED * len(glosses)) // CHANGES
    with tempfile.TemporaryDirectory() as folder:
        documents = [(str(row), text) for row, text in enumerate(glosses)]
        with SearchIndex.build(
            documents, encoder, Path(folder) / "i", kind=kind, recall=TARGET, with_encoder=False
        ) as index:
            before = recall(index, queries)
            for change in range(CHANGES):
                rows = chosen[change * count : (change + 1) * count].tolist()
                new = others[change * count : (change + 1) * count]
                index.upsert([(str(row), text) for row, text in zip(rows, new, strict=True)])
            info = index.info()
            after = recall(index, queries)
    measured = info.measured
    if measured is None:
        raise SystemExit(f"the index of kind {kind} was not measured")
    return {
        "documents": len(glosses),
        "replaced": CHANGES * count,
        "queries": len(queries),
        "before": before,
        "after": after,
        "stated": {
            "recall": measured.recall,
            "bound": measured.bound,
            "generation": measured.generation,
            "changed": measured.changed,
        },
        "segments": info.segments,
    }


def added(kind: str, encoder: Encoder, embedded: dict[str, Embedded]) -> Figures:
    """An index of many small additions, and one that is built at once."""
    texts = embedded["lines"].texts[: ADDITIONS * ADDED]
    documents = [(str(row), text) for row, text in enumerate(texts)]
    queries = embedded["queries"].vectors
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        whole = SearchIndex.build(
            documents, encoder, Path(folder) / "w", kind=kind, recall=TARGET, with_encoder=False
        )
        at_once = time.perf_counter() - started
        started = time.perf_counter()
        parts = SearchIndex.build(
            documents[:ADDED],
            encoder,
            Path(folder) / "p",
            kind=kind,
            recall=TARGET,
            with_encoder=False,
        )
        slowest = 0.0
        for start in range(ADDED, len(documents), ADDED):
            begun = time.perf_counter()
            parts.add(documents[start : start + ADDED])
            slowest = max(slowest, time.perf_counter() - begun)
        one_by_one = time.perf_counter() - started
        with whole, parts:
            latencies = [latency(one, queries) for one in (whole, parts)]
            return {
                "at_once": {
                    "seconds": at_once,
                    "segments": whole.info().segments,
                    "milliseconds": latencies[0],
                    "recall": recall(whole, queries),
                },
                "one_by_one": {
                    "seconds": one_by_one,
                    "slowest": slowest,
                    "segments": parts.info().segments,
                    "milliseconds": latencies[1],
                    "recall": recall(parts, queries),
                },
            }


def latency(index: SearchIndex, queries: Vectors) -> float:
    """Median milliseconds of a search."""
    seconds = []
    for query in queries[:QUERIES]:
        started = time.perf_counter()
        index.search(query, mode="dense")
        seconds.append(time.perf_counter() - started)
    return 1000 * statistics.median(seconds)


def recall(index: SearchIndex, queries: Vectors | Sequence[Vectors]) -> float:
    """Mean recall@10 against exhaustive search."""
    found = index.search_batch(queries, 10, mode="dense")
    exact = index.search_batch(queries, 10, mode="dense", exact=True)
    return statistics.fmean(recall_per_query(found, exact))


if __name__ == "__main__":
    main()
