"""How well vectors, words and both find relevant documents, and what the chosen weight loses.

    SBERTKIT_DATA=FOLDER python eval/retrieval_modes.py [--work FOLDER] [--reranker FOLDER]

FOLDER holds retrieval/scifact and the other collections of `SETS`. Each of them is an entry of
results/retrieval_modes.json, and with a re-ranker another one; the next call measures the missing
ones. --work keeps the indexes, which are encoded once.
"""

import tempfile
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random

from recording import VECTORS, Entries, Figures, arguments_of, data_folder

from sbertkit import Encoder, Fusion, InputError, Reranker, SearchIndex, evaluate_retrieval
from sbertkit.data.named import find_named
from sbertkit.data.retrieval import Collection, read_collection
from sbertkit.evaluation.retrieval import RetrievalResult

MODEL = "all-MiniLM-L6-v2"
SETS = ("scifact", "nfcorpus-ecir", "cranfield", "cisi", "npl", "lisa", "lcqmc-dup")
MEASURES = ("nDCG@10", "R@100")
DEPTH = 100
WAYS = {
    "dense": {"mode": "dense"},
    "lexical": {"mode": "lexical"},
    "hybrid": {"mode": "hybrid"},
    "hybrid, 0.5": {"mode": "hybrid", "fusion": Fusion(weight=0.5)},
    "hybrid, rrf": {"mode": "hybrid", "fusion": Fusion("rrf")},
}
WEIGHTS = tuple(round(0.1 * step, 1) for step in range(11))
MAX_QUERIES = 1_000
"""Of a collection with more, so many drawn at random are searched for."""
RERANKED = 20
"""Candidates of each query that a re-ranker orders."""
SOURCES = [
    *VECTORS,
    "sbertkit/data/retrieval",
    "sbertkit/lexical",
    *(
        f"sbertkit/retrieval/{name}.py"
        for name in ("fusion", "fusion_weight", "hybrid_candidates", "hybrid_hits", "lexical_hits")
    ),
    *(f"sbertkit/evaluation/{name}.py" for name in ("answers", "measures", "retrieval")),
]


def main() -> None:
    """Measures the missing collections."""
    parser = arguments_of(__doc__)
    parser.add_argument("--work", help="folder of the indexes; by default they are not kept")
    parser.add_argument("--reranker", help="folder of a re-ranker, for entries of their own")
    arguments = parser.parse_args()
    root = data_folder("retrieval/scifact")
    encoder = Encoder.load(MODEL, device="cpu")
    entries = Entries("retrieval_modes", SOURCES)
    settings = {"model": MODEL, "fingerprint": encoder.fingerprint}
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(arguments.work or temporary)
        for name in SETS:
            folder = root / find_named(name).path
            measure = partial(compare, encoder, folder, work / name)
            entries.measure(name, settings, measure)
            if arguments.reranker is not None:
                reranker = Reranker.load(arguments.reranker, device="cpu")
                more = {
                    "reranker": Path(reranker.model).name,
                    "reranker_fingerprint": reranker.fingerprint,
                    "reranked": RERANKED,
                }
                measure = partial(rerank, encoder, folder, work / name, reranker)
                entries.measure(f"{name} re-ranked", {**settings, **more}, measure)


def opened(encoder: Encoder, folder: Path, path: Path) -> SearchIndex:
    """The index of a collection, with the weight that this version measures."""
    if not path.exists():
        return SearchIndex.build(folder, encoder, path, kind="flat", with_encoder=False)
    index = SearchIndex.open(path, encoder)
    for lexical in (False, True):  # without the weight that was measured before
        index.compact(lexical=lexical)
    with suppress(InputError):  # too little is found to measure one
        index.tune(weight="auto")
    return index


def compare(encoder: Encoder, folder: Path, path: Path) -> Figures:
    """The measures of each way, and of each weight."""
    collection = fewer(read_collection(folder))
    with opened(encoder, folder, path) as index:
        results = {
            name: evaluate_retrieval(index, collection, measures=MEASURES, depth=DEPTH, **way)  # type: ignore[arg-type]
            for name, way in WAYS.items()
        }
        grid = [
            evaluate_retrieval(
                index,
                collection,
                measures=MEASURES[:1],
                depth=10,
                mode="hybrid",
                fusion=Fusion(weight=w),
            ).measures["nDCG@10"]
            for w in WEIGHTS
        ]
        lexical = index.info().lexical
    fusion = results["hybrid"].fusion
    if lexical is None or fusion is None:
        raise SystemExit(f"{path}: an index without words")
    return {
        "queries": results["dense"].queries,
        "language": lexical.language,
        "measures": {name: result.measures for name, result in results.items()},
        "weight": fusion.weight,
        "parts": lexical.weight.queries,
        "parts_gains": lexical.weight.gains,
        "grid": dict(zip(map(str, WEIGHTS), grid, strict=True)),
    }


def rerank(encoder: Encoder, folder: Path, path: Path, reranker: Reranker) -> Figures:
    """The measures of a hybrid search that is re-ranked."""
    with opened(encoder, folder, path) as index:
        result: RetrievalResult = evaluate_retrieval(
            index,
            fewer(read_collection(folder)),
            measures=MEASURES,
            depth=DEPTH,
            mode="hybrid",
            rerank=reranker,
            rerank_depth=RERANKED,
        )
    return {"queries": result.queries, "measures": {"hybrid, re-ranked": result.measures}}


def fewer(collection: Collection) -> Collection:
    """The collection with at most `MAX_QUERIES` of its queries."""
    if len(collection.queries) <= MAX_QUERIES:
        return collection
    drawn = Random(0).sample(sorted(collection.queries), MAX_QUERIES)
    return replace(
        collection,
        queries={name: collection.queries[name] for name in drawn},
        qrels={name: collection.qrels[name] for name in drawn},
    )


if __name__ == "__main__":
    main()
