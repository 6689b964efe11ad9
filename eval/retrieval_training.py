"""What training for retrieval brings where it was trained, and what it loses elsewhere.

    SBERTKIT_DATA=FOLDER python eval/retrieval_training.py [--base MODEL] [--seeds 1 2 3]
        [--epochs 4] [--work FOLDER] [--dry]

FOLDER holds retrieval/scifact and the other collections of `SETS`. The base is trained on SciFact's
train split with negatives that are mined from an index of its corpus; then the trained encoder and
the mean of its weights and those of the base are measured on all collections. Each encoder is an
entry of results/retrieval_training.json; the next call measures the missing ones. --work keeps the
index. With ``--dry`` training has two steps, and two small collections are measured.
"""

import tempfile
from functools import partial
from pathlib import Path

from recording import RESULTS, WEIGHTS, Entries, Figures, arguments_of, data_folder

from sbertkit import (
    Encoder,
    Mining,
    SearchIndex,
    TrainConfig,
    evaluate_retrieval,
    merge,
    train_pairs,
)
from sbertkit.data.named import find_named
from sbertkit.encoder.resolve import BUNDLED_NAME

SETS = ("scifact", "nfcorpus-ecir", "cranfield", "cisi", "npl", "lisa")
DRY_SETS = ("cranfield", "cisi")
SEEDS = (1, 2, 3)
SHARE = 0.5
"""Of the trained weights in the merged encoder."""

SOURCES = [*WEIGHTS, "eval/retrieval_training.py"]
MINING = Mining(negatives=3, mine_depth=50, mine_margin=0.05)


def scores(folder: str, root: Path, sets: tuple[str, ...]) -> Figures:
    """NDCG@10 of the encoder in a folder, by collection."""
    encoder = Encoder.load(folder, device="cpu")
    return {
        name: evaluate_retrieval(
            encoder, root / find_named(name).path, measures=["nDCG@10"]
        ).measures["nDCG@10"]
        for name in sets
    }


def opened(root: Path, base: str, path: Path) -> SearchIndex:
    """The index of SciFact, built where there is none yet."""
    if not (path / "manifest.json").exists():
        encoder = Encoder.load(base, device="cpu")
        SearchIndex.build(
            root / "retrieval/scifact", encoder, path, long="truncate", lexical=False
        ).close()
    return SearchIndex.open(path)


def measure(
    base: str, root: Path, work: Path, sets: tuple[str, ...], config: TrainConfig
) -> Figures:
    """Trains, merges, and scores both."""
    with tempfile.TemporaryDirectory() as folder:
        output, merged = Path(folder) / "trained", Path(folder) / "merged"
        with opened(root, base, work / "index") as index:
            result = train_pairs(
                base,
                root / "retrieval/scifact",
                output,
                pooling=None,
                mine=index,
                mining=MINING,
                config=config,
            )
        merge(output, base, merged, weight=SHARE)
        return {
            "steps": result.steps,
            "seconds": round(result.record["seconds"], 1),
            "examples": result.record["examples"],
            "trained": scores(str(output), root, sets),
            "merged": scores(str(merged), root, sets),
        }


def main() -> None:
    """Measures the missing entries."""
    parser = arguments_of(__doc__)
    parser.add_argument("--base", default=BUNDLED_NAME)
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))
    parser.add_argument("--epochs", type=float, default=4.0)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--dry", action="store_true")
    given = parser.parse_args()
    root = data_folder("retrieval/scifact")
    sets = DRY_SETS if given.dry else SETS
    with tempfile.TemporaryDirectory() as temporary:
        work = given.work or Path(temporary)
        entries = Entries("retrieval_training", SOURCES, work if given.dry else RESULTS)
        settings = {"base": Path(given.base).name}
        entries.measure("base", settings, lambda: {"base": scores(given.base, root, sets)})
        for seed in given.seeds:
            config = TrainConfig(
                epochs=given.epochs,
                max_steps=2 if given.dry else None,
                batch_size=32,
                learning_rate=2e-5,
                max_tokens=256,
                seed=seed,
                device="cpu",
            )
            measured = partial(measure, given.base, root, work, sets, config)
            entries.measure(f"{seed}", {**settings, "training": config.identity()}, measured)


if __name__ == "__main__":
    main()
