"""Training speed against sentence-transformers' trainer with the same loss, and a bare loop.

    SBERTKIT_DATA=FOLDER python eval/train_speed.py [--rows 1600] [--runs 3] [--batches 16 64]
        [--objectives softmax cosent contrastive triplet] [--dry]

FOLDER holds the files of `nli_files` and sts/stsb.tsv. Both train all-MiniLM-L6-v2 (mean
pooling) for one epoch over the same rows in turns, in one process. sbertkit runs with its defaults
for order, length groups, precision and optimizer, but without the guard, since the peer has none.
The bare loop has sbertkit's own batches, model and optimizer, and nothing of the Trainer. Nothing
else should run meanwhile. --dry tries all of it on a few rows and records nothing.
"""

import math
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
import transformers
from datasets import Dataset
from peer_training import triplets
from recording import (
    WEIGHTS,
    Figures,
    arguments_of,
    data_folder,
    median_ratio,
    nli_files,
    record,
)
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
    losses,
)
from sentence_transformers.sentence_transformer.losses.triplet import TripletDistanceMetric

from sbertkit import RankingPair, RankingSet, TrainConfig
from sbertkit.data.nli import NLI_LABELS, NliSet, read_nli
from sbertkit.data.sts import StsSet, read_sts
from sbertkit.encoder.resolve import BUNDLED_NAME, resolve_model
from sbertkit.training.mining import Mining
from sbertkit.training.nli import nli_recipe
from sbertkit.training.pairs import pairs_recipe
from sbertkit.training.recipe import Recipe
from sbertkit.training.run.pretraining import collator_of, model_of
from sbertkit.training.run.setup import Setup, set_up
from sbertkit.training.start import train
from sbertkit.training.sts import sts_recipe

LEARNING_RATE = 2e-5
LAST = 0.25
"""Share of the steps over which the final loss is averaged."""
SCALE = (0.0, 5.0)
MARGIN = 0.2

SentenceLoss = Callable[[SentenceTransformer], torch.nn.Module]


class Run(NamedTuple):
    """Rows per second, and the mean loss of the last quarter."""

    pairs_per_second: float
    loss: float


@dataclass(frozen=True, slots=True)
class Case:
    """An objective on rows that both trainers get.

    Attributes:
        recipe: sbertkit's run with those settings.
        columns: The rows for the peer.
        loss: The peer's loss.
    """

    recipe: Callable[[TrainConfig], Recipe]
    columns: dict[str, list[Any]]
    loss: SentenceLoss

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(next(iter(self.columns.values())))


def softmax(folder: Path, rows: int) -> Case:
    """Labeled pairs of NLI."""
    read = read_nli(nli_files(folder))
    data = NliSet(read.pairs[:rows], read.sources)
    columns: dict[str, list[Any]] = {
        "premise": [pair.premise for pair in data.pairs],
        "hypothesis": [pair.hypothesis for pair in data.pairs],
        "label": [pair.label for pair in data.pairs],
    }

    def recipe(config: TrainConfig) -> Recipe:
        return nli_recipe(
            BUNDLED_NAME, data, pooling="mean", objective="softmax", dev=None, config=config
        )

    return Case(
        recipe,
        columns,
        lambda model: losses.SoftmaxLoss(
            model, model.get_embedding_dimension(), num_labels=len(NLI_LABELS)
        ),
    )


def cosent(folder: Path, rows: int) -> Case:
    """Scored pairs of STS-B."""
    read = read_sts(folder / "sts/stsb.tsv", split="train")
    data = StsSet(read.pairs[:rows], read.split, read.splits, read.source)
    columns: dict[str, list[Any]] = {
        "sentence1": [pair.first for pair in data.pairs],
        "sentence2": [pair.second for pair in data.pairs],
        "score": [pair.score / SCALE[1] for pair in data.pairs],
    }

    def recipe(config: TrainConfig) -> Recipe:
        return sts_recipe(
            BUNDLED_NAME, data, pooling="mean", objective="cosent", dev=None, config=config
        )

    return Case(recipe, columns, lambda model: losses.CoSENTLoss(model, scale=20.0))


def contrastive(folder: Path, rows: int) -> Case:
    """Triplets of NLI with in-batch negatives in both directions."""
    return _triplets(
        folder,
        rows,
        "contrastive",
        lambda model: losses.MultipleNegativesRankingLoss(
            model,
            scale=20.0,
            directions=("query_to_doc", "doc_to_query"),
            partition_mode="per_direction",
        ),
    )


def triplet(folder: Path, rows: int) -> Case:
    """Triplets of NLI."""
    return _triplets(
        folder,
        rows,
        "triplet",
        lambda model: losses.TripletLoss(
            model, distance_metric=TripletDistanceMetric.COSINE, triplet_margin=MARGIN
        ),
    )


def _triplets(folder: Path, rows: int, objective: str, loss: SentenceLoss) -> Case:
    """One triplet of each premise, so that both trainers have the same rows."""
    found = triplets(read_nli(nli_files(folder)))
    first: dict[str, tuple[str, str]] = {}
    for anchor, *others in zip(*found.values(), strict=True):
        if len({anchor, *others}) == 3:
            first.setdefault(anchor, (others[0], others[1]))
    kept = list(first.items())[:rows]
    data = RankingSet(
        tuple(
            RankingPair.of(anchor, text, label)
            for anchor, texts in kept
            for text, label in zip(texts, (1.0, 0.0), strict=True)
        ),
        (),
    )
    columns: dict[str, list[Any]] = {
        "anchor": [anchor for anchor, _ in kept],
        "positive": [texts[0] for _, texts in kept],
        "negative": [texts[1] for _, texts in kept],
    }

    def recipe(config: TrainConfig) -> Recipe:
        return pairs_recipe(
            BUNDLED_NAME,
            data,
            pooling="mean",
            objective=objective,
            dev=None,
            mine=None,
            mining=Mining(),
            config=config,
        )

    return Case(recipe, columns, loss)


CASES = {"softmax": softmax, "cosent": cosent, "contrastive": contrastive, "triplet": triplet}


def settings(name: str, batch_size: int, precision: str) -> TrainConfig:
    """Sbertkit's settings."""
    return TrainConfig(
        batch_size=batch_size,
        learning_rate=LEARNING_RATE,
        precision=precision,
        scale=SCALE if name == "cosent" else None,
        guard=False,
        checkpoint_steps=10**9,
        device="cpu",
    )


def run_ours(case: Case, config: TrainConfig) -> Run:
    """One epoch by sbertkit."""
    with tempfile.TemporaryDirectory() as folder:
        result = train(case.recipe(config), Path(folder) / "model")
    rows = [row["loss"] for row in result.log if "loss" in row]
    return Run(result.record["examples_per_second"], _last(rows))


def run_theirs(case: Case, batch_size: int, precision: str) -> Run:
    """One epoch by sentence-transformers with the defaults of its trainer."""
    loaded = SentenceTransformer(str(resolve_model(BUNDLED_NAME)), device="cpu")
    model = SentenceTransformer(modules=list(loaded)[:2], device="cpu")  # without normalization
    with tempfile.TemporaryDirectory() as folder:
        trainer = SentenceTransformerTrainer(
            model=model,
            args=SentenceTransformerTrainingArguments(
                output_dir=folder,
                num_train_epochs=1,
                per_device_train_batch_size=batch_size,
                learning_rate=LEARNING_RATE,
                warmup_steps=0.1,
                bf16=precision == "bf16",
                use_cpu=True,
                logging_steps=1,
                save_strategy="no",
                report_to=[],
                disable_tqdm=True,
            ),
            train_dataset=Dataset.from_dict(case.columns),
            loss=case.loss(model),
        )
        trainer.remove_callback(transformers.PrinterCallback)
        seconds = trainer.train().metrics["train_runtime"]
        rows = [row["loss"] for row in trainer.state.log_history if "loss" in row]
    return Run(case.rows / seconds, _last(rows))


def run_loop(case: Case, config: TrainConfig) -> tuple[float, dict[str, float]]:
    """Rows per second of a bare loop over sbertkit's batches, and the seconds of each phase."""
    task = case.recipe(config).load()
    setup = set_up(task)
    torch.manual_seed(config.seed)
    task.encoder.torch.make_trainable()
    model = model_of(setup)
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, fused=True)
    schedule = transformers.get_linear_schedule_with_warmup(
        optimizer, setup.warmup, setup.plan.total
    )
    seconds = Counter[str]()
    begun = time.perf_counter()
    for batch in _batches(setup, seconds):
        with _Timed(seconds, "forward"), torch.autocast("cpu", enabled=setup.precision == "bf16"):
            loss = model(batch)
        with _Timed(seconds, "backward"):
            loss.backward()
        with _Timed(seconds, "optimizer"):
            torch.nn.utils.clip_grad_norm_(model.parameters(), config.max_grad_norm)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
    return len(setup.examples) / (time.perf_counter() - begun), dict(seconds)


def _batches(setup: Setup, seconds: "Counter[str]") -> Any:
    collate = collator_of(setup)
    for rows in setup.order:
        with _Timed(seconds, "batches"):
            batch = collate(rows)
        yield batch


class _Timed:
    """Adds the seconds of a block to those of a phase."""

    def __init__(self, seconds: "Counter[str]", phase: str) -> None:
        self._seconds: Any = seconds
        self._phase = phase
        self._begun = 0.0

    def __enter__(self) -> None:
        self._begun = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self._seconds[self._phase] += time.perf_counter() - self._begun


def _last(losses_by_step: list[float]) -> float:
    return statistics.mean(losses_by_step[-max(1, int(LAST * len(losses_by_step))) :])


def compare(name: str, case: Case, batch_size: int, runs: int) -> Figures:
    """All in turns, and each trainer once in the other's precision."""
    ours, theirs, loops = [], [], []
    for number in range(runs + 1):
        ours.append(run_ours(case, settings(name, batch_size, "auto")))
        theirs.append(run_theirs(case, batch_size, "fp32"))
        loops.append(run_loop(case, settings(name, batch_size, "auto")))
        print(name, batch_size, number, ours[-1], theirs[-1], loops[-1][0], flush=True)
    ours, theirs, loops = ours[1:], theirs[1:], loops[1:]  # the first round is a warm-up
    speeds, peer, bare = ([run[0] for run in found] for found in (ours, theirs, loops))
    phases: Counter[str] = sum((Counter(one) for _, one in loops), Counter[str]())
    whole = math.fsum(phases.values())
    return {
        "sbertkit_pairs_per_second": round(statistics.median(speeds), 1),
        "sentence_transformers_pairs_per_second": round(statistics.median(peer), 1),
        "ratio": round(median_ratio(speeds, peer), 3),
        "sbertkit_loss": round(statistics.mean(run.loss for run in ours), 4),
        "sentence_transformers_loss": round(statistics.mean(run.loss for run in theirs), 4),
        "sbertkit_fp32_pairs_per_second": round(
            run_ours(case, settings(name, batch_size, "fp32")).pairs_per_second, 1
        ),
        "sentence_transformers_bf16_pairs_per_second": round(
            run_theirs(case, batch_size, "bf16").pairs_per_second, 1
        ),
        "loop_pairs_per_second": round(statistics.median(bare), 1),
        "overhead": round(median_ratio(bare, speeds) - 1, 4),
        "phases": {phase: round(spent / whole, 4) for phase, spent in phases.items()},
    }


def main() -> None:
    """Measures, prints and records."""
    parser = arguments_of(__doc__)
    parser.add_argument("--rows", type=int, default=1_600)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--batches", type=int, nargs="+", default=[16, 64])
    parser.add_argument("--objectives", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--dry", action="store_true")
    arguments = parser.parse_args()
    rows, runs = (48, 1) if arguments.dry else (arguments.rows, arguments.runs)
    folder = data_folder("nli/snli/train_part.jsonl.gz")
    figures: Figures = {"rows": rows, "runs": runs}
    for name in arguments.objectives:
        case = CASES[name](folder, rows)
        for batch_size in arguments.batches:
            found = compare(name, case, batch_size, runs)
            figures[f"{name}_batch_{batch_size}"] = found
            print(name, batch_size, found, flush=True)
    if not arguments.dry:
        record("train_speed", [*WEIGHTS, "eval/train_speed.py"], figures)


if __name__ == "__main__":
    main()
