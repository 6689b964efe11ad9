"""Training speed against sentence-transformers' trainer with SoftmaxLoss and its defaults.

    SBERTKIT_DATA=FOLDER python eval/train_speed.py [--rows 1600] [--runs 3] [--batches 16 64]

FOLDER holds nli/snli/train_part.jsonl.gz. Both train all-MiniLM-L6-v2 (mean pooling, no
normalization) for one epoch over the same rows in turns, in one process. sbertkit runs with its
defaults for order, length groups, precision and optimizer, but without the guard, since the peer
has none. Nothing else should run meanwhile.
"""

import statistics
import tempfile
from pathlib import Path
from typing import NamedTuple

import transformers
from datasets import Dataset
from recording import WEIGHTS, Figures, arguments_of, data_folder, median_ratio, record
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
    losses,
)

from sbertkit import TrainConfig, train_nli
from sbertkit.data.nli import NLI_LABELS, NliSet, read_nli
from sbertkit.encoder.resolve import BUNDLED_NAME, resolve_model

LEARNING_RATE = 2e-5
LAST = 0.25
"""Share of the steps over which the final loss is averaged."""


class Run(NamedTuple):
    """Pairs per second, and the mean loss of the last quarter."""

    pairs_per_second: float
    loss: float


def run_ours(data: NliSet, batch_size: int, precision: str) -> Run:
    """One epoch by sbertkit."""
    with tempfile.TemporaryDirectory() as folder:
        result = train_nli(
            BUNDLED_NAME,
            data,
            Path(folder) / "model",
            objective="softmax",
            config=TrainConfig(
                batch_size=batch_size,
                learning_rate=LEARNING_RATE,
                precision=precision,
                guard=False,
                checkpoint_steps=10**9,
                device="cpu",
            ),
        )
        rows = [row["loss"] for row in result.log if "loss" in row]
        return Run(result.record["examples_per_second"], _last(rows))


def run_theirs(data: NliSet, batch_size: int, precision: str) -> Run:
    """One epoch by sentence-transformers with the defaults of its trainer."""
    loaded = SentenceTransformer(str(resolve_model(BUNDLED_NAME)), device="cpu")
    model = SentenceTransformer(modules=list(loaded)[:2], device="cpu")  # without normalization
    columns = {
        "premise": [pair.premise for pair in data.pairs],
        "hypothesis": [pair.hypothesis for pair in data.pairs],
        "label": [pair.label for pair in data.pairs],
    }
    loss = losses.SoftmaxLoss(model, model.get_embedding_dimension(), num_labels=len(NLI_LABELS))
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
            train_dataset=Dataset.from_dict(columns),
            loss=loss,
        )
        trainer.remove_callback(transformers.PrinterCallback)
        seconds = trainer.train().metrics["train_runtime"]
        rows = [row["loss"] for row in trainer.state.log_history if "loss" in row]
    return Run(len(data.pairs) / seconds, _last(rows))


def _last(losses_by_step: list[float]) -> float:
    return statistics.mean(losses_by_step[-max(1, int(LAST * len(losses_by_step))) :])


def compare(data: NliSet, batch_size: int, runs: int) -> Figures:
    """Both in turns, and each once in the other's precision."""
    ours, theirs = [], []
    for number in range(runs + 1):
        ours.append(run_ours(data, batch_size, "auto"))
        theirs.append(run_theirs(data, batch_size, "fp32"))
        print(batch_size, number, ours[-1], theirs[-1], flush=True)
    ours, theirs = ours[1:], theirs[1:]  # the first round is a warm-up
    return {
        "sbertkit_pairs_per_second": round(statistics.median(r.pairs_per_second for r in ours), 1),
        "sentence_transformers_pairs_per_second": round(
            statistics.median(r.pairs_per_second for r in theirs), 1
        ),
        "ratio": round(
            median_ratio([r.pairs_per_second for r in ours], [r.pairs_per_second for r in theirs]),
            3,
        ),
        "sbertkit_loss": round(statistics.mean(r.loss for r in ours), 4),
        "sentence_transformers_loss": round(statistics.mean(r.loss for r in theirs), 4),
        "sbertkit_fp32_pairs_per_second": round(
            run_ours(data, batch_size, "fp32").pairs_per_second, 1
        ),
        "sentence_transformers_bf16_pairs_per_second": round(
            run_theirs(data, batch_size, "bf16").pairs_per_second, 1
        ),
    }


def main() -> None:
    """Measures, prints and records."""
    parser = arguments_of(__doc__)
    parser.add_argument("--rows", type=int, default=1_600)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--batches", type=int, nargs="+", default=[16, 64])
    arguments = parser.parse_args()
    file = "nli/snli/train_part.jsonl.gz"
    data = read_nli(data_folder(file) / file)
    data = NliSet(data.pairs[: arguments.rows], data.sources)
    figures: Figures = {"rows": len(data.pairs), "runs": arguments.runs}
    for batch_size in arguments.batches:
        figures[f"batch_{batch_size}"] = compare(data, batch_size, arguments.runs)
        print(figures[f"batch_{batch_size}"], flush=True)
    record("train_speed", [*WEIGHTS, "eval/train_speed.py"], figures)


if __name__ == "__main__":
    main()
