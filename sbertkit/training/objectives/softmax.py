"""Sentence-BERT's classification objective."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from sbertkit.data.nli import NLI_LABELS, NliSet
from sbertkit.errors import InputError
from sbertkit.training.examples import Examples, Int64, TextTable
from sbertkit.training.objectives.base import ObjectiveKind


class Softmax(nn.Module):
    """Cross-entropy of a linear layer over features of both vectors of a labelled pair.

    For a pair with vectors u, v and class y: ``-log softmax(W [u; v; |u - v|] + b)[y]``, with
    |u - v| element by element. The features may also have the product u * v, or lack parts.

    Source: Reimers & Gurevych 2019, Sentence-BERT, section 3 (classification objective function)
        and table 6 for the features.

    Args:
        dim: Size of a vector.
        features: Parts of what the layer sees, in order: ``u``, ``v``, ``abs_diff``, ``product``.
    """

    def __init__(self, dim: int, features: Sequence[str]) -> None:
        super().__init__()
        self.dim = dim
        self.features = tuple(features)
        self.head = nn.Linear(len(self.features) * dim, len(NLI_LABELS))

    def examples(self, data: NliSet, table: TextTable) -> Examples:
        """One row a pair: premise, hypothesis; its label is the target.

        Raises:
            InputError: No pair.
        """
        if not data.pairs:
            raise InputError("the objective softmax needs labelled pairs, found none; add data")
        premises = table.numbers(pair.premise for pair in data.pairs)
        hypotheses = table.numbers(pair.hypothesis for pair in data.pairs)
        texts = np.array([premises, hypotheses], dtype=np.int64).T
        targets = np.array([pair.label for pair in data.pairs], dtype=np.int64)
        return Examples(texts, targets, texts[:, 0])

    def collate(
        self, examples: Examples, rows: Sequence[int], columns: Int64, texts: Int64
    ) -> dict[str, Tensor]:
        """The classes, (B,)."""
        return {"targets": torch.from_numpy(examples.targets[rows])}

    def check_batches(self, examples: Examples, batches: Iterable[Sequence[int]]) -> None:
        """Nothing: each labelled pair teaches by itself."""

    def logits(self, u: Tensor, v: Tensor) -> Tensor:
        """Scores of the classes, (B, 3), for the vectors of both sides, (B, dim) each."""
        parts = {"u": u, "v": v, "abs_diff": (u - v).abs(), "product": u * v}
        result: Tensor = self.head(torch.cat([parts[name] for name in self.features], dim=1))
        return result

    def loss(self, vectors: Tensor, batch: Mapping[str, Tensor]) -> Tensor:
        """The mean cross-entropy."""
        columns = batch["columns"]
        logits = self.logits(vectors[columns[:, 0]], vectors[columns[:, 1]])
        return nn.functional.cross_entropy(logits, batch["targets"])


KIND = ObjectiveKind(
    "softmax",
    lambda dim, config: Softmax(dim, config.features),
    normalize=False,
    learning_rate=2e-5,
    unit="labelled pairs",
)
"""The rate is Sentence-BERT's (Reimers & Gurevych 2019, section 3.1)."""
