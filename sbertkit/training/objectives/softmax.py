"""Sentence-BERT's classification objective."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from sbertkit.arguments import refuses_unknown
from sbertkit.errors import InputError
from sbertkit.settings import setting
from sbertkit.training.data_forms import NLI, DataForm, TrainingData
from sbertkit.training.objectives.base import Objective

if TYPE_CHECKING:
    from torch import Tensor, nn

    from sbertkit.training.examples import Examples, TextTable

FEATURES = ("u", "v", "abs_diff", "product")


@refuses_unknown
@dataclass(frozen=True, slots=True)
class Softmax(Objective):
    """Cross-entropy of a linear layer over features of both vectors of a labeled pair.

    For a pair with vectors u, v and class y: ``-log softmax(W [u; v; |u - v|] + b)[y]``, with
    |u - v| element by element. The features may also have the product u * v, or lack parts.

    Source: Reimers & Gurevych 2019, Sentence-BERT, section 3 (classification objective function)
        and table 6 for the features; section 3.1 for the learning rate.
    """

    features: tuple[str, ...] = setting(
        ("u", "v", "abs_diff"),
        f"What the head sees of both vectors, in order: of {','.join(FEATURES)}.",
        choices=FEATURES,
    )

    name: ClassVar[str] = "softmax"
    data_forms: ClassVar[tuple[DataForm, ...]] = (NLI,)
    normalize: ClassVar[bool] = False
    learning_rate: ClassVar[float] = 2e-5
    summary: ClassVar[str] = (
        "a head on top of the vectors of two sentences learned to name their label"
    )
    formula: ClassVar[str] = "-log softmax(W [u; v; |u - v|] + b)[y]"
    source: ClassVar[str] = "Reimers & Gurevych 2019, Sentence-BERT, section 3"
    labels: ClassVar[tuple[str, ...]] = NLI.labels
    head_example: ClassVar[str] = (
        "from sbertkit import classify_pairs\n\n"
        'pair = ("A man is eating food.", "Somebody has a meal.")\n'
        'classify_pairs("path/to/this/folder", [pair])'
    )

    def examples(self, data: TrainingData, table: "TextTable") -> "Examples":
        """One row per pair: premise, hypothesis; its label is the target.

        Raises:
            InputError: No pair.
        """
        import numpy as np

        from sbertkit.training.examples import Examples

        if not data.rows:
            raise InputError("the objective softmax needs labeled pairs, found none; add data")
        sides = [table.numbers(row[side] for row in data.rows) for side in range(2)]
        texts = np.array(sides, dtype=np.int64).T
        return Examples(texts, np.array(data.label_numbers, dtype=np.int64), texts[:, 0])

    def make_head(self, dim: int) -> "nn.Linear":
        """The layer with W and b, for vectors of a size."""
        from torch import nn

        return nn.Linear(len(self.features) * dim, len(self.labels))

    def logits(self, u: "Tensor", v: "Tensor", head: "nn.Module") -> "Tensor":
        """Scores of the classes, (B, classes), for the vectors of both sides, (B, dim) each."""
        import torch

        parts = {"u": u, "v": v, "abs_diff": (u - v).abs(), "product": u * v}
        scores: Tensor = head(torch.cat([parts[name] for name in self.features], dim=1))
        return scores

    def loss(self, vectors: "Tensor", batch: "Mapping[str, Tensor]", head: "nn.Module") -> "Tensor":
        """The mean cross-entropy."""
        from torch.nn import functional

        first, second = batch["columns"].T
        logits = self.logits(vectors[first], vectors[second], head)
        return functional.cross_entropy(logits, batch["targets"])
