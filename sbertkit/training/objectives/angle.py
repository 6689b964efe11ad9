"""The objective of angles in complex space that are in the order of scores."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from sbertkit.arguments import refuses_unknown
from sbertkit.settings import setting
from sbertkit.training.data_forms import SCORED, DataForm, TrainingData
from sbertkit.training.objectives.base import Objective
from sbertkit.training.objectives.cosent import check_order, order_loss

if TYPE_CHECKING:
    from torch import Tensor, nn

    from sbertkit.training.examples import Examples, TextTable


@refuses_unknown
@dataclass(frozen=True, slots=True)
class Angle(Objective):
    """CoSENT's loss of a similarity in complex space, whose gradient is large where cosines are 1.

    For all pairs i, j of a batch with scores y_i > y_j:
    ``log(1 + sum over y_i > y_j of exp((s_j - s_i) / t))``. The similarity s of unit vectors
    u = (a, b) and v = (c, d), each divided in two halves: ``|a c + b d + b c - a d|``, the absolute
    sum of real and imaginary part of (a + bi) / (c + di). It is only one of the three parts of the
    paper's loss, as in sentence-transformers' AnglELoss.

    Source: Li & Li 2023, AnglE-optimized Text Embeddings, section 3.4.
    """

    temperature: float = setting(0.05, "Similarities are divided by it.", above=0)

    name: ClassVar[str] = "angle"
    data_forms: ClassVar[tuple[DataForm, ...]] = (SCORED,)
    normalize: ClassVar[bool] = True
    learning_rate: ClassVar[float] = 2e-5
    summary: ClassVar[str] = (
        "the angles of pairs in complex space learned to be in the order of their scores"
    )
    formula: ClassVar[str] = "log(1 + sum over y_i > y_j of exp((s_j - s_i) / t))"
    source: ClassVar[str] = "Li & Li 2023, AnglE-optimized Text Embeddings, section 3.4"

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
        check_order(examples, batches, self.name)

    def loss(self, vectors: "Tensor", batch: "Mapping[str, Tensor]", head: "nn.Module") -> "Tensor":
        """The loss of the batch, which is no mean: it grows with the log of the number of pairs."""
        from torch.nn import functional

        unit = functional.pad(functional.normalize(vectors, dim=1), (0, vectors.shape[1] % 2))
        first, second = batch["columns"].T
        (a, b), (c, d) = unit[first].chunk(2, dim=1), unit[second].chunk(2, dim=1)
        similarities = (a * c + b * d + b * c - a * d).sum(dim=1).abs()
        return order_loss(similarities / self.temperature, batch["targets"])
