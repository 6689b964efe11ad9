"""A small re-ranker, trained on SciFact's train split with hard negatives: a stand-in.

    SBERTKIT_DATA=FOLDER python eval/train_reranker.py --base MODEL --output WORK
        [--max-steps N] [--nli-steps N] [--titles] [--max-tokens 192] [--batch-size 16]
        [--negatives 4] [--dry]

FOLDER holds retrieval/scifact and, for ``--nli-steps``, nli/snli/train_part.jsonl.gz. WORK, outside
the project, gets the index of the corpus by all-MiniLM-L6-v2, from which negatives are mined, and
the models, the last of them in WORK/model; the next call resumes what was interrupted and keeps
what is done. With ``--nli-steps`` the base first learns to tell entailed hypotheses from neutral
ones; with ``--titles`` then to find the abstract of a title among those that a search takes for it,
once over the corpus, whose abstracts are indexed without their titles. What was trained is written
to results/train_reranker.json; ``rerank_quality.py`` and ``bench_reranker.py`` measure the model.
It says little about other re-rankers: it is trained where none can be downloaded.
"""

import json
from argparse import Namespace
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from recording import WEIGHTS, Entries, Figures, arguments_of, data_folder

from sbertkit import (
    BinaryCrossEntropy,
    Document,
    Encoder,
    Mining,
    RankingPair,
    RankingSet,
    Reranker,
    SearchIndex,
    TrainConfig,
    train_reranker,
)
from sbertkit.data.nli import read_nli
from sbertkit.data.nli_labels import NLI_LABELS
from sbertkit.encoder.resolve import BUNDLED_NAME

SOURCES = [*WEIGHTS, "eval/train_reranker.py"]


def nli_pairs(file: Path) -> RankingSet:
    """Hypotheses as queries, premises as documents: relevant if they entail it, not if neutral."""
    labels = {NLI_LABELS.index("entailment"): 1.0, NLI_LABELS.index("neutral"): 0.0}
    pairs = (
        RankingPair.of(pair.hypothesis, pair.premise, labels[pair.label])
        for pair in read_nli(file).pairs
        if pair.label in labels
    )
    return RankingSet(tuple(dict.fromkeys(pairs)))


def titled(root: Path) -> list[Document]:
    """The documents of the corpus that have a title beside their text."""
    lines = (root / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    rows = map(json.loads, lines)
    return [
        Document(row["_id"], row["text"], {"title": row["title"]})
        for row in rows
        if row["title"].strip() and row["text"].strip()
    ]


def opened_index(corpus: Path | list[Document], path: Path) -> SearchIndex:
    """The index of a corpus, built where there is none yet."""
    if not (path / "manifest.json").exists():
        encoder = Encoder.load(BUNDLED_NAME, device="cpu")
        SearchIndex.build(
            corpus, encoder, path, long="truncate", lexical=False, resume=True, progress=True
        ).close()
    return SearchIndex.open(path)


def trained(output: Path, train: Callable[[], object]) -> Figures:
    """What a run was trained on that is begun, resumed, or was done before."""
    if not output.exists():
        train()
    lineage = json.loads((output / "sbertkit.json").read_text(encoding="utf-8"))["lineage"]
    return {name: lineage[name] for name in ("examples", "counts", "objective", "settings")}


def config(given: Namespace, output: Path, steps: int | None, **more: Any) -> TrainConfig:
    """The settings of a run, which resumes what was interrupted."""
    return TrainConfig(
        max_steps=steps,
        batch_size=given.batch_size,
        learning_rate=5e-5,
        max_tokens=given.max_tokens,
        resume=output.with_name(f"{output.name}.run").exists(),
        progress=True,
        **more,
    )


def train_on_nli(given: Namespace, data: Path, output: Path) -> None:
    """The first run."""
    train_reranker(
        given.base,
        nli_pairs(data / "nli/snli/train_part.jsonl.gz"),
        output,
        objective=BinaryCrossEntropy(positive_weight=1.0),
        config=config(given, output, given.nli_steps),
    )


def train_on_titles(given: Namespace, base: Path | str, root: Path, output: Path) -> None:
    """The second run."""
    documents = titled(root)
    pairs = tuple(RankingPair.of(str(one.metadata["title"]), one.text, 1.0) for one in documents)
    with opened_index(documents, given.output / "abstracts") as index:
        train_reranker(
            base,
            RankingSet(pairs),
            output,
            objective=BinaryCrossEntropy(positive_weight=given.negatives / 2),
            mine=index,
            mining=Mining(negatives=given.negatives, mine_depth=50),
            config=config(given, output, None),
        )


def train_on_scifact(given: Namespace, base: Path | str, root: Path, output: Path) -> None:
    """The last run."""
    with opened_index(root, given.output / "index") as index:
        train_reranker(
            base,
            root,
            output,
            objective=BinaryCrossEntropy(positive_weight=given.negatives / 2),
            mine=index,
            mining=Mining(negatives=given.negatives, mine_depth=50),
            config=config(given, output, given.max_steps, epochs=given.epochs),
        )


def train(given: Namespace, data: Path) -> Figures:
    """The runs, as far as they are not done."""
    base: Path | str = given.base
    figures: Figures = {}
    if given.nli_steps:
        output = given.output / "nli"
        figures["nli"] = trained(output, partial(train_on_nli, given, data, output))
        base = output
    root = data / "retrieval/scifact"
    if given.titles:
        output = given.output / "titles"
        figures["titles"] = trained(output, partial(train_on_titles, given, base, root, output))
        base = output
    output = given.output / "model"
    figures["scifact"] = trained(output, partial(train_on_scifact, given, base, root, output))
    return figures | {"fingerprint": Reranker.load(output, device="cpu").fingerprint}


def main() -> None:
    """Trains, and records what was trained."""
    parser = arguments_of(__doc__)
    parser.add_argument("--base", required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--epochs", type=float, default=2.0)
    parser.add_argument("--max-steps", type=int)
    parser.add_argument("--nli-steps", type=int, default=0)
    parser.add_argument("--titles", action="store_true")
    parser.add_argument("--max-tokens", type=int, default=192)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--negatives", type=int, default=4)
    parser.add_argument("--dry", action="store_true")
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    data = data_folder("retrieval/scifact")
    if given.dry:
        print(train(given, data))
        return
    names = ("epochs", "max_steps", "nli_steps", "titles", "max_tokens", "batch_size", "negatives")
    settings = {name: getattr(given, name) for name in names} | {"base": Path(given.base).name}
    entries = Entries("train_reranker", SOURCES)
    entries.measure("scifact, a stand-in", settings, lambda: train(given, data))


if __name__ == "__main__":
    main()
