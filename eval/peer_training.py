"""NLI training by sentence-transformers' trainer, for the measurements that compare with it."""

import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import transformers
from datasets import Dataset
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
    losses,
)

from sbertkit.data.nli import NLI_LABELS, NliSet

WARMUP = 0.1


@dataclass(frozen=True, slots=True)
class PeerRecipe:
    """How it trains.

    Attributes:
        loss: ``softmax`` (SoftmaxLoss) or ``ranking`` (MultipleNegativesRankingLoss).
        batch_size: Pairs or triplets per batch.
        learning_rate: Peak; it rises over a tenth of the run and falls to zero.
        bf16: Whether it trains in bf16; its default is fp32.
    """

    loss: str
    batch_size: int
    learning_rate: float
    bf16: bool = False

    @property
    def precision(self) -> str:
        """Precision of matrix products."""
        return "bf16" if self.bf16 else "fp32"


SOFTMAX = PeerRecipe("softmax", 16, 2e-5)
"""Source: Reimers & Gurevych 2019, Sentence-BERT, section 3.1; batches as in the documentation's
examples/sentence_transformer/training/nli/training_nli.py."""

RANKING = PeerRecipe("ranking", 128, 5e-5)
"""Source: the documentation's examples/sentence_transformer/training/nli/training_nli_v2.py, which
leaves the learning rate at the trainer's default and keeps equal texts out of a batch."""


class Trained(NamedTuple):
    """A finished run.

    Attributes:
        seconds: Seconds from the first step to the last.
        steps: Optimizer steps.
        examples: Pairs or triplets per epoch.
        batch_size: Pairs or triplets per batch.
        learning_rate: Peak learning rate.
        precision: ``fp32`` or ``bf16``.
        max_tokens: Token limit at which texts are truncated.
    """

    seconds: float
    steps: int
    examples: int
    batch_size: int
    learning_rate: float
    precision: str
    max_tokens: int | None


def train_peer(
    base: Path, data: NliSet, folder: Path, *, recipe: PeerRecipe, steps: int, seed: int
) -> Trained:
    """Trains the base with mean pooling, the default for a plain encoder, and saves it."""
    transformers.set_seed(seed)  # the head is made before the trainer sets its seed
    model = SentenceTransformer(str(base), device="cpu")
    if recipe.loss == "softmax":
        columns: dict[str, list[Any]] = {
            "premise": [pair.premise for pair in data.pairs],
            "hypothesis": [pair.hypothesis for pair in data.pairs],
            "label": [pair.label for pair in data.pairs],
        }
        loss = losses.SoftmaxLoss(model, model.get_embedding_dimension(), len(NLI_LABELS))
    else:
        columns = triplets(data)
        loss = losses.MultipleNegativesRankingLoss(model)
    clock = _Clock()
    trainer = SentenceTransformerTrainer(
        model=model,
        args=SentenceTransformerTrainingArguments(
            output_dir=f"{folder}.work",
            max_steps=steps,
            per_device_train_batch_size=recipe.batch_size,
            learning_rate=recipe.learning_rate,
            warmup_steps=WARMUP,
            batch_sampler="no_duplicates" if recipe.loss == "ranking" else "batch_sampler",
            bf16=recipe.bf16,
            seed=seed,
            use_cpu=True,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
        ),
        train_dataset=Dataset.from_dict(columns),
        loss=loss,
        callbacks=[clock],
    )
    trainer.remove_callback(transformers.PrinterCallback)
    trainer.train()
    model.save_pretrained(str(folder))
    return Trained(
        clock.seconds,
        trainer.state.global_step,
        len(next(iter(columns.values()))),
        recipe.batch_size,
        recipe.learning_rate,
        recipe.precision,
        model.max_seq_length,
    )


def triplets(data: NliSet) -> dict[str, list[Any]]:
    """Premise, entailment and contradiction: one row per entailment whose premise has both.

    The contradictions of a premise are assigned to its entailments in turn.
    """
    entailed: dict[str, dict[str, None]] = defaultdict(dict)  # as ordered sets
    contradicted: dict[str, dict[str, None]] = defaultdict(dict)
    kinds = {
        NLI_LABELS.index("entailment"): entailed,
        NLI_LABELS.index("contradiction"): contradicted,
    }
    for pair in data.pairs:
        if pair.label in kinds:
            kinds[pair.label][pair.premise][pair.hypothesis] = None
    columns: dict[str, list[Any]] = {"anchor": [], "positive": [], "negative": []}
    for premise, hypotheses in entailed.items():
        negatives = list(contradicted.get(premise, ()))
        for number, hypothesis in enumerate(hypotheses if negatives else ()):
            row = (premise, hypothesis, negatives[number % len(negatives)])
            for name, text in zip(columns, row, strict=True):
                columns[name].append(text)
    return columns


class _Clock(transformers.TrainerCallback):
    """Seconds from the first step to the end of the last, as sbertkit counts them."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._begun = 0.0

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        self._begun = time.perf_counter()

    def on_step_end(self, *_: Any, **__: Any) -> None:
        self.seconds = time.perf_counter() - self._begun
