"""Indexes that are asked for a recall, and their frontier against other libraries.

    SBERTKIT_DATA=FOLDER python eval/bench_index.py [--wordnet FOLDER] [--work FOLDER] [--runs 5]

Every kind over the glosses of WordNet is asked for the recalls of `TARGETS`, and those of
`LARGE_KINDS` over 300,000 lines for theirs; each is then measured with 2,000 queries that no index
has seen. Then
each system and setting with a recall of at least 0.85 is timed in turns, over the lines, with two
threads each: all queries at once, and one after another. index_vectors.py says what the texts are
and makes their vectors. Each index is an entry of results/bench_index.json, and so are all timed
points; the next call measures the missing ones. Nothing else should run meanwhile.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
from index_vectors import EQUAL, add_arguments, prepare
from index_worker import SYSTEMS, THREADS, K
from peer_environment import peer_python
from recording import ROOT, Entries, Figures, alternate, arguments_of

from sbertkit.index.kinds import NAMES

TARGETS = (0.9, 0.95, 0.99)
LARGE_KINDS = {"hnsw": TARGETS, "ivfpq": (0.9, 0.95, 0.97, 0.98, 0.99)}
MIN_RECALL = 0.85
SINGLE_QUERIES = 200
SOURCES = [
    "sbertkit/index",
    "sbertkit/retrieval/tuning_queries.py",
    "sbertkit/retrieval/vector_index.py",
    "eval/bench_index.py",
    "eval/index_vectors.py",
    "eval/index_worker.py",
    "eval/peers/requirements.txt",
]
_ROWS_PER_CHUNK = 10_000

Setting = Any
Batch = Callable[[], float]


class Worker:
    """A system in its own process; see index_worker.py.

    Args:
        system: Its name there.
        work: The folder of the vectors.
        corpus: ``glosses`` or ``lines``.
    """

    def __init__(self, system: str, work: Path, corpus: str) -> None:
        is_peer = system in SYSTEMS and SYSTEMS[system].is_peer
        python = peer_python() if is_peer else sys.executable
        script = ROOT / "eval" / "index_worker.py"
        self._process = subprocess.Popen(
            [python, script, system, work, corpus],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._orders: Any = self._process.stdin
        self._answers: Any = self._process.stdout
        self._system = system

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._orders.close()
        self._process.wait()

    def ask(self, method: str, *given: Any) -> Any:
        """The result of a method of the worker."""
        print(json.dumps([method, *given]), file=self._orders, flush=True)
        answer = self._answers.readline()
        if not answer:
            raise SystemExit(f"{self._system} ended with exit status {self._process.wait()}")
        return json.loads(answer)


class Recall:
    """Recall of the best `K` rows against exact search.

    Attributes:
        queries: How many queries there are.

    Args:
        vectors: Unit rows (n, dim).
        queries: Unit rows (q, dim).
    """

    def __init__(self, vectors: Any, queries: Any) -> None:
        self._vectors, self._rows = vectors, queries
        best = np.empty((len(queries), 0), np.float32)
        for start in range(0, len(vectors), _ROWS_PER_CHUNK):
            scores = queries @ vectors[start : start + _ROWS_PER_CHUNK].T
            best = np.concatenate([best, scores], axis=1)
            best = np.partition(best, -K, axis=1)[:, -K:]
        self._bounds = best.min(axis=1) - EQUAL
        self.queries = len(queries)

    def per_query(self, rows: list[list[int]]) -> Any:
        """The share of the best that each query found, (q,)."""
        found = np.array(rows)
        scores = np.matmul(self._vectors[found], self._rows[:, :, None])[:, :, 0]  # (q, K)
        scores[found < 0] = -np.inf  # where there are fewer than K
        return (scores >= self._bounds[:, None]).sum(axis=1) / K


def build(system: str, work: Path, corpus: str, recall: Recall) -> Figures:
    """Builds an index; what it takes, and what one of sbertkit then finds."""
    with Worker(system, work, corpus) as worker:
        figures: Figures = worker.ask("build")
        if system in SYSTEMS or "refused" in figures:
            return figures
        worker.ask("open")
        found = recall.per_query(worker.ask("rows", "rows"))
        error = 1.96 * found.std() / len(found) ** 0.5
        interval = {"low": float(found.mean() - error), "high": float(found.mean() + error)}
        return figures | {
            "recall_at_10": float(found.mean()),
            "interval": interval,
            "stored": worker.ask("info"),
        }


def frontier(systems: list[str], work: Path, runs: int, recall: Recall) -> Figures:
    """Recall and speed of every system and setting, timed in turns."""
    with ExitStack() as stack:
        batches: list[Batch] = []
        singles: list[Batch] = []
        points = []
        for system in systems:
            worker = stack.enter_context(Worker(system, work, "lines"))
            worker.ask("open")
            for setting in worker.ask("settings"):
                found = float(recall.per_query(worker.ask("rows", setting)).mean())
                print(system, setting, round(found, 4), flush=True)
                if found < MIN_RECALL:
                    continue
                points.append({"system": system, "setting": setting, "recall_at_10": found})
                batches.append(partial(worker.ask, "batch", setting))
                singles.append(partial(worker.ask, "single", setting, SINGLE_QUERIES))
        timed = zip(points, alternate(runs, *batches), alternate(runs, *singles), strict=True)
        # In seconds per query.
        return {
            "points": [
                point | {"batch": [second / recall.queries for second in batch], "single": single}
                for point, batch, single in timed
            ]
        }


def main() -> None:
    """Measures the missing entries."""
    parser = arguments_of(__doc__)
    add_arguments(parser)
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    embedded, work = prepare(arguments), arguments.work
    entries = Entries("bench_index", SOURCES)
    recalls = {
        corpus: Recall(embedded[corpus].vectors, embedded["queries"].vectors)
        for corpus in ("glosses", "lines")
    }

    def measured(system: str, corpus: str) -> Figures:
        key, rows = f"{corpus}: {system}", len(embedded[corpus].texts)
        settings = {"corpus": corpus, "system": system, "rows": rows, "threads": THREADS}
        entries.measure(key, settings, partial(build, system, work, corpus, recalls[corpus]))
        return entries.known(key, settings) or {}

    ours = [f"sbertkit {kind} {target}" for kind, asked in LARGE_KINDS.items() for target in asked]
    built = [name for name in (*ours, *SYSTEMS) if "refused" not in measured(name, "lines")]
    for kind in NAMES[:-1]:  # a factory has no default
        for target in TARGETS:
            measured(f"sbertkit {kind} {target}", "glosses")
    settings = {
        "rows": len(embedded["lines"].texts),
        "queries": len(embedded["queries"].texts),
        "threads": THREADS,
        "runs": arguments.runs,
    }
    run = partial(frontier, built, work, arguments.runs, recalls["lines"])
    entries.measure("frontier", settings, run)


if __name__ == "__main__":
    main()
