"""The objective of labels: binary cross-entropy of a re-ranker's scores."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from sbertkit.arguments import refuses_unknown
from sbertkit.data.ranking import RankingPair
from sbertkit.errors import InputError
from sbertkit.settings import setting
from sbertkit.training.data_forms import RANKING, DataForm, TrainingData
from sbertkit.training.objectives.base import Objective

if TYPE_CHECKING:
    from torch import Tensor, nn

    from sbertkit.training.examples import Examples, TextTable


@refuses_unknown
@dataclass(frozen=True, slots=True)
class BinaryCrossEntropy(Objective):
    """Binary cross-entropy of the sigmoid of a pair's score and its label.

    For a score s and a label y from 0 to 1: ``-(w y log σ(s) + (1 - y) log(1 - σ(s)))``, with the
    weight w of relevant pairs.

    Source: Nogueira & Cho 2019, Passage Re-ranking with BERT, section 3.2.
    """

    positive_weight: float = setting(
        1.0, "What a relevant pair counts beside another, such as their ratio.", above=0
    )

    name: ClassVar[str] = "bce"
    data_forms: ClassVar[tuple[DataForm, ...]] = (RANKING,)
    normalize: ClassVar[bool] = False
    learning_rate: ClassVar[float] = 2e-5
    summary: ClassVar[str] = "the score of a pair learned to tell relevant documents from others"
    formula: ClassVar[str] = "-(w y log σ(s) + (1 - y) log(1 - σ(s)))"
    source: ClassVar[str] = "Nogueira & Cho 2019, Passage Re-ranking with BERT, section 3.2"

    def examples(self, data: TrainingData, table: "TextTable") -> "Examples":
        """One row per pair; its label is the target.

        Raises:
            InputError: The pairs are all relevant, or none is.
        """
        import numpy as np

        from sbertkit.training.examples import Examples

        pairs = [RankingPair(*row) for row in data.rows]
        if len({pair.group for pair in pairs}) < 2:
            raise InputError(
                "the objective bce needs documents that are relevant and others, found one kind "
                "alone; add negatives to the data, or mine them (mine, --mine INDEX)"
            )
        texts = np.array(table.numbers(pair[:2] for pair in pairs), np.int64)[:, None]
        targets = np.array([pair.label for pair in pairs], np.float32)
        return Examples(texts, targets, np.array(data.first_texts, np.int64))

    def loss(self, vectors: "Tensor", batch: "Mapping[str, Tensor]", head: "nn.Module") -> "Tensor":
        """The mean cross-entropy."""
        from torch.nn import functional

        scores = vectors[batch["columns"][:, 0], 0]
        weight = scores.new_tensor(self.positive_weight)
        return functional.binary_cross_entropy_with_logits(
            scores, batch["targets"], pos_weight=weight
        )
