"""What re-ranking brings: a small re-ranker trained on SciFact's train split, measured on its test.

    SBERTKIT_DATA=FOLDER python eval/train_reranker.py --base MODEL --output WORK
        [--epochs 3] [--max-steps N] [--nli-steps N] [--depth 20 50 100] [--dry]

FOLDER holds retrieval/scifact and, for ``--nli-steps``, nli/snli/train_part.jsonl.gz. WORK, outside
the project, gets the index of the corpus by all-MiniLM-L6-v2, from which negatives are mined, and
the models; the next call resumes what was interrupted and keeps what is done. With ``--nli-steps``
the base first learns to tell entailed hypotheses from neutral ones. Dense search, and re-ranking
in fp32 and int8 at each depth, are written to results/train_reranker.json; with ``--dry`` they are
printed. The model is a stand-in where no re-ranker can be downloaded: it says little about others.
"""

import time
from argparse import Namespace
from functools import partial
from pathlib import Path

from recording import WEIGHTS, Entries, Figures, arguments_of, data_folder

from sbertkit import (
    BinaryCrossEntropy,
    Encoder,
    Mining,
    RankingPair,
    RankingSet,
    Reranker,
    SearchIndex,
    TrainConfig,
    evaluate_retrieval,
    train_reranker,
)
from sbertkit.data.nli import read_nli
from sbertkit.data.nli_labels import NLI_LABELS
from sbertkit.encoder.resolve import BUNDLED_NAME

MEASURES = ("nDCG@10", "RR@10", "R@100")
NEGATIVES = 7
MAX_TOKENS = 256
SOURCES = [
    *WEIGHTS,
    "sbertkit/reranking",
    "sbertkit/retrieval/rerank.py",
    "sbertkit/evaluation/reranked.py",
    "eval/train_reranker.py",
]


def nli_pairs(file: Path) -> RankingSet:
    """Hypotheses as queries, premises as documents: relevant if they entail it, not if neutral."""
    labels = {NLI_LABELS.index("entailment"): 1.0, NLI_LABELS.index("neutral"): 0.0}
    pairs = (
        RankingPair.of(pair.hypothesis, pair.premise, labels[pair.label])
        for pair in read_nli(file).pairs
        if pair.label in labels
    )
    return RankingSet(tuple(dict.fromkeys(pairs)))


def opened_index(root: Path, work: Path) -> SearchIndex:
    """The index of the corpus, built where there is none yet."""
    path = work / "index"
    if not (path / "manifest.json").exists():
        encoder = Encoder.load(BUNDLED_NAME, device="cpu")
        SearchIndex.build(root, encoder, path, long="truncate", resume=True, progress=True).close()
    return SearchIndex.open(path)


def trained(
    base: Path | str,
    data: RankingSet | Path,
    output: Path,
    index: SearchIndex | None,
    **more: object,
) -> Path:
    """The model of a run, begun, resumed, or done before."""
    if output.exists():
        return output
    config = TrainConfig(
        batch_size=32,
        learning_rate=5e-5,
        max_tokens=MAX_TOKENS,
        resume=output.with_name(f"{output.name}.run").exists(),
        progress=True,
        **more,  # type: ignore[arg-type]
    )
    objective = BinaryCrossEntropy(positive_weight=1.0 if index is None else NEGATIVES / 2)
    mining = Mining(negatives=NEGATIVES, mine_depth=50)
    train_reranker(
        base, data, output, objective=objective, mine=index, mining=mining, config=config
    )
    return output


def measure(
    index: SearchIndex, root: Path, reranker: Reranker | None = None, depth: int = 100
) -> Figures:
    """The measures of the test split."""
    started = time.perf_counter()
    result = evaluate_retrieval(index, root, measures=MEASURES, rerank=reranker, rerank_depth=depth)
    interval = result.intervals["nDCG@10"]
    return {
        "measures": dict(result.measures),
        "interval": None if interval is None else interval._asdict(),
        "reranked": None if result.reranked is None else result.reranked.texts,
        "truncated": None if result.reranked is None else result.reranked.truncated,
        "seconds": round(time.perf_counter() - started, 1),
    }


def train(given: Namespace, data: Path, index: SearchIndex) -> Path:
    """The trained model."""
    base: Path | str = given.base
    if given.nli_steps:
        pairs = nli_pairs(data / "nli/snli/train_part.jsonl.gz")
        base = trained(base, pairs, given.output / "nli", None, max_steps=given.nli_steps)
    steps = {"max_steps": given.max_steps} if given.max_steps else {"epochs": given.epochs}
    root = data / "retrieval/scifact"
    return trained(base, root, given.output / "model", index, **steps)


def main() -> None:
    """Trains, resumes, and measures what is missing."""
    parser = arguments_of(__doc__)
    parser.add_argument("--base", required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--epochs", type=float, default=3.0)
    parser.add_argument("--max-steps", type=int)
    parser.add_argument("--nli-steps", type=int, default=0)
    parser.add_argument("--depth", type=int, nargs="+", default=[20, 50, 100])
    parser.add_argument("--dry", action="store_true")
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    data = data_folder("retrieval/scifact")
    root = data / "retrieval/scifact"
    entries = Entries("train_reranker", SOURCES)
    with opened_index(root, given.output) as index:
        model = train(given, data, index)
        systems = {"dense": partial(measure, index, root)}
        exact, small = (
            Reranker.load(model, device="cpu", precision=one) for one in ("fp32", "int8")
        )
        for depth in given.depth:
            systems[f"re-ranked {depth}, fp32"] = partial(measure, index, root, exact, depth)
            systems[f"re-ranked {depth}, int8"] = partial(measure, index, root, small, depth)
        settings = {
            "encoder": BUNDLED_NAME,
            "base": Path(given.base).name,
            "fingerprint": exact.fingerprint,
        }
        for name, system in systems.items():
            if given.dry:
                print(name, system(), flush=True)
            else:
                entries.measure(name, settings, system)


if __name__ == "__main__":
    main()
