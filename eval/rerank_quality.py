"""What re-ranking brings, in each precision: nDCG@10 of the first candidates of a dense search.

    SBERTKIT_DATA=FOLDER python eval/rerank_quality.py --model RERANKER --indexes WORK
        [--sets scifact,lisa] [--queries N] [--depths 20 50 100] [--dry]

FOLDER holds the sets below retrieval/. WORK, outside the project, gets the index of each by
all-MiniLM-L6-v2, or has it already. The candidates of a set are scored once for all depths; those
of the first queries also by sentence-transformers' CrossEncoder, whose scores are the same. Each
set and precision is written to results/rerank_quality.json.
"""

import time
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from recording import Entries, Figures, arguments_of, data_folder
from sentence_transformers import CrossEncoder

from sbertkit import Encoder, Reranker, SearchIndex, evaluate_run
from sbertkit.arrays import Vectors
from sbertkit.data.retrieval import read_collection
from sbertkit.encoder.resolve import BUNDLED_NAME

MEASURE = "nDCG@10"
PRECISIONS = ("fp32", "int8")
LIBRARY_QUERIES = 10
"""Whose candidates sentence-transformers scores, too."""
SOURCES = ["sbertkit/encoder", "sbertkit/reranking", "eval/rerank_quality.py"]


class Candidates:
    """The first documents of each query of a set.

    Args:
        folder: The set.
        index: The folder of its index, which is built where there is none.
        depth: Documents per query.
        queries: How many of the first queries; ``None`` for all.
    """

    def __init__(self, folder: Path, index: Path, depth: int, queries: int | None) -> None:
        self._folder = folder
        self._index = index
        self._depth = depth
        collection = read_collection(folder)
        self._queries = dict(islice(collection.queries.items(), queries))
        self._qrels = {query: collection.qrels[query] for query in self._queries}

    @cached_property
    def found(self) -> dict[str, dict[str, tuple[float, str]]]:
        """Score and text of each candidate by its id, for each query by its id."""
        if not (self._index / "manifest.json").exists():
            encoder = Encoder.load(BUNDLED_NAME, device="cpu")
            SearchIndex.build(
                self._folder, encoder, self._index, kind="flat", progress=True
            ).close()
        queries = self._queries
        with SearchIndex.open(self._index) as index:
            found = index.search_batch(list(queries.values()), self._depth, mode="dense")
        return {
            query: {hit.id: (hit.score, hit.passage.text) for hit in hits}
            for query, hits in zip(queries, found, strict=True)
        }

    @cached_property
    def pairs(self) -> list[tuple[str, str]]:
        """Queries with each of their candidates."""
        return [
            (self._queries[query], text)
            for query, hits in self.found.items()
            for _, text in hits.values()
        ]

    def measure(self, scores: Sequence[float], depth: int) -> float:
        """The measure with the first candidates ordered by new scores, the others after them."""
        left = iter(scores)
        run: dict[str, Mapping[str, float]] = {}
        for query, hits in self.found.items():
            new = {one: next(left) for one in hits}
            head = dict(list(new.items())[:depth])
            lowest = min(head.values())
            tail = {one: lowest - 1 - place for place, one in enumerate(list(hits)[depth:])}
            run[query] = head | tail
        result = evaluate_run(run, self._qrels, measures=(MEASURE,))
        return float(result.measures[MEASURE] or 0)

    def dense(self) -> Figures:
        """The measure of the search itself."""
        scores = [score for hits in self.found.values() for score, _ in hits.values()]
        return {"depths": {0: self.measure(scores, self._depth)}, "queries": len(self.found)}


def re_ranked(
    candidates: Candidates, model: Path, precision: str, depths: Sequence[int]
) -> Figures:
    """The measure at each depth with the scores of a re-ranker."""
    reranker = Reranker.load(model, device="cpu", precision=precision)
    pairs = candidates.pairs
    started = time.perf_counter()
    scores, report = reranker.score_with_report(pairs, activated=False, progress=True)
    figures: Figures = {
        "seconds": round(time.perf_counter() - started, 1),
        "pairs": len(pairs),
        "truncated": len(report.truncated),
        "depths": {depth: candidates.measure(scores.tolist(), depth) for depth in depths},
    }
    if precision == "fp32":
        count = sum(len(hits) for hits in list(candidates.found.values())[:LIBRARY_QUERIES])
        differences = np.abs(library_scores(model, pairs[:count]) - scores[:count])
        figures["largest_difference"] = float(differences.max())
    return figures


def library_scores(model: Path, pairs: Sequence[tuple[str, str]]) -> Vectors:
    """The scores of sentence-transformers."""
    encoder = CrossEncoder(str(model), device="cpu", activation_fn=torch.nn.Identity())
    scores: Vectors = encoder.predict(pairs)
    return scores


def main() -> None:
    """Measures what is missing."""
    parser = arguments_of(__doc__)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--indexes", type=Path, required=True)
    parser.add_argument("--sets", default="scifact,lisa,npl,cisi,cranfield")
    parser.add_argument("--queries", type=int)
    parser.add_argument("--depths", type=int, nargs="+", default=[20, 50, 100])
    parser.add_argument("--dry", action="store_true")
    given = parser.parse_args()
    entries = Entries("rerank_quality", SOURCES)
    fingerprint = Reranker.load(given.model, device="cpu").fingerprint
    settings = {
        "model": given.model.name,
        "fingerprint": fingerprint,
        "depths_measured": given.depths,
    }
    for name in given.sets.split(","):
        folder = data_folder(f"retrieval/{name}") / "retrieval" / name
        candidates = Candidates(folder, given.indexes / name, max(given.depths), given.queries)
        systems = {"dense": candidates.dense}
        for one in PRECISIONS:
            systems[one] = partial(re_ranked, candidates, given.model, one, given.depths)
        for system, measure in systems.items():
            if given.dry:
                print(name, system, measure(), flush=True)
            else:
                entries.measure(f"{name}: {system}", settings, measure)


if __name__ == "__main__":
    main()
