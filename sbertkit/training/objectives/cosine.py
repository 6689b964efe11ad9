"""The objective of cosines that equal scores."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from sbertkit.arguments import refuses_unknown
from sbertkit.training.data_forms import SCORED, DataForm, TrainingData
from sbertkit.training.objectives.base import Objective

if TYPE_CHECKING:
    from torch import Tensor, nn

    from sbertkit.training.examples import Examples, TextTable


@refuses_unknown
@dataclass(frozen=True, slots=True)
class Cosine(Objective):
    """Squared error of the cosine of a pair against its score.

    For a pair with vectors u, v and a score y from 0 to 1: ``(cos(u, v) - y)^2``.

    Source: Reimers & Gurevych 2019, Sentence-BERT, section 3 (regression objective function).
    """

    name: ClassVar[str] = "cosine"
    data_forms: ClassVar[tuple[DataForm, ...]] = (SCORED,)
    normalize: ClassVar[bool] = True
    learning_rate: ClassVar[float] = 2e-5
    summary: ClassVar[str] = "the cosine of two sentences learned to be their score"
    formula: ClassVar[str] = "(cos(u, v) - y)^2"
    source: ClassVar[str] = "Reimers & Gurevych 2019, Sentence-BERT, section 3"

    def examples(self, data: TrainingData, table: "TextTable") -> "Examples":
        """One row per pair; its score is the target.

        Raises:
            InputError: No pair, or all scores are equal.
        """
        from sbertkit.training.examples import scored_examples

        return scored_examples(data, table, self.name)

    def loss(self, vectors: "Tensor", batch: "Mapping[str, Tensor]", head: "nn.Module") -> "Tensor":
        """The mean squared error."""
        from torch.nn import functional

        first, second = batch["columns"].T
        cosines = functional.cosine_similarity(vectors[first], vectors[second])
        return functional.mse_loss(cosines, batch["targets"])
