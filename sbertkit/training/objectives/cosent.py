"""The objective of cosines that are in the order of scores."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from sbertkit.arguments import refuses_unknown
from sbertkit.errors import InputError
from sbertkit.settings import setting
from sbertkit.training.data_forms import SCORED, DataForm, TrainingData
from sbertkit.training.objectives.base import Objective

if TYPE_CHECKING:
    from torch import Tensor, nn

    from sbertkit.training.examples import Examples, TextTable


@refuses_unknown
@dataclass(frozen=True, slots=True)
class Cosent(Objective):
    """Log of the summed exponentials of pairs of a batch whose cosines are in the wrong order.

    For all pairs i, j of a batch with scores y_i > y_j, with s the cosine of a pair:
    ``log(1 + sum over y_i > y_j of exp((s_j - s_i) / t))``.

    Source: Huang et al. 2024, CoSENT: Consistent Sentence Embedding via Similarity Ranking.
    """

    temperature: float = setting(0.05, "Similarities are divided by it.", above=0)

    name: ClassVar[str] = "cosent"
    data_forms: ClassVar[tuple[DataForm, ...]] = (SCORED,)
    normalize: ClassVar[bool] = True
    learning_rate: ClassVar[float] = 2e-5
    summary: ClassVar[str] = "the cosines of pairs learned to be in the order of their scores"
    formula: ClassVar[str] = "log(1 + sum over y_i > y_j of exp((s_j - s_i) / t))"
    source: ClassVar[str] = (
        "Huang et al. 2024, CoSENT: Consistent Sentence Embedding via Similarity Ranking"
    )

    def examples(self, data: TrainingData, table: "TextTable") -> "Examples":
        """One row per pair; its score is the target.

        Raises:
            InputError: No pair, or all scores are equal.
        """
        from sbertkit.training.examples import scored_examples

        return scored_examples(data, table, self.name)

    def check_batches(self, examples: "Examples", batches: Iterable[Sequence[int]]) -> None:
        """Nothing, if a batch has pairs with different scores.

        Raises:
            InputError: None has.
        """
        count = 0
        for rows in batches:
            targets = examples.targets[rows]
            if (targets != targets[0]).any():
                return
            count += 1
        raise InputError(
            f"the objective {self.name} compares pairs with different scores, found none in any of "
            f"{count} batches; raise batch_size (--batch-size)"
        )

    def loss(self, vectors: "Tensor", batch: "Mapping[str, Tensor]", head: "nn.Module") -> "Tensor":
        """The loss of the batch, which is no mean: it grows with the log of the number of pairs."""
        first, second = batch["columns"].T
        similarities = self.similarities(vectors[first], vectors[second])
        return order_loss(similarities / self.temperature, batch["targets"])

    def similarities(self, first: "Tensor", second: "Tensor") -> "Tensor":
        """The cosine of each pair, (B,), of vectors (B, dim)."""
        from torch.nn import functional

        return functional.cosine_similarity(first, second)


def order_loss(similarities: "Tensor", targets: "Tensor") -> "Tensor":
    """``log(1 + sum over y_i > y_j of exp(s_j - s_i))``, for similarities and targets, (B,)."""
    import torch

    differences = similarities[None, :] - similarities[:, None]  # (B, B): s_j - s_i
    counted = targets[:, None] > targets[None, :]
    wrong = differences[counted]
    return torch.cat((wrong.new_zeros(1), wrong)).logsumexp(dim=0)
