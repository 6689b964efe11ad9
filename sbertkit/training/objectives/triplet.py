"""The objective of anchors that are nearer to a positive than to a negative."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from sbertkit.arguments import refuses_unknown
from sbertkit.errors import InputError
from sbertkit.settings import setting
from sbertkit.training.data_forms import PAIRS, DataForm, TrainingData
from sbertkit.training.objectives.base import Objective

if TYPE_CHECKING:
    from torch import Tensor, nn

    from sbertkit.training.examples import Examples, TextTable

DISTANCES = ("cosine", "euclidean")


@refuses_unknown
@dataclass(frozen=True, slots=True)
class Triplet(Objective):
    """How much an anchor lacks of being nearer to its positive than to a negative by a margin.

    For an anchor a, a positive p and a negative n, with the distance d and the margin m:
    ``max(0, d(a, p) - d(a, n) + m)``. The distance is 1 - cosine, or Euclidean.

    Source: Reimers & Gurevych 2019, Sentence-BERT, section 3 (triplet objective function);
        Schroff et al. 2015, FaceNet, section 3.1.
    """

    distance: str = setting("cosine", "How the distance is measured.", choices=DISTANCES)
    margin: float = setting(
        0.2, "How much nearer positives should be; 1 suits Euclidean distances.", minimum=0
    )

    name: ClassVar[str] = "triplet"
    data_forms: ClassVar[tuple[DataForm, ...]] = (PAIRS,)
    normalize: ClassVar[bool] = True
    learning_rate: ClassVar[float] = 2e-5
    summary: ClassVar[str] = "a text was drawn nearer to its positive than to a negative"
    formula: ClassVar[str] = "max(0, d(a, p) - d(a, n) + m)"
    source: ClassVar[str] = "Reimers & Gurevych 2019, Sentence-BERT, section 3"

    def examples(self, data: TrainingData, table: "TextTable") -> "Examples":
        """Rows of anchor, positive and negative, so that each positive and negative is in one.

        Raises:
            InputError: No anchor has both.
        """
        import numpy as np

        from sbertkit.training.anchors import by_anchor
        from sbertkit.training.examples import Examples

        found = by_anchor(data, table)
        rows = [
            (anchor, positives[place % len(positives)], negatives[place % len(negatives)])
            for anchor, positives in found.positives.items()
            if (negatives := found.negatives[anchor])
            for place in range(max(len(positives), len(negatives)))
        ]
        if not rows:
            raise InputError(
                "the objective triplet needs anchors with a positive and a negative, found none; "
                "add negatives to the data, or mine them (mine, --mine INDEX)"
            )
        texts = np.array(rows, np.int64)
        without = sum(not found.negatives[anchor] for anchor in found.positives)
        left_out = found.left_out | ({"of anchors without a negative": without} if without else {})
        return Examples(texts, np.zeros(len(texts)), texts[:, 0], left_out=left_out)

    def loss(self, vectors: "Tensor", batch: "Mapping[str, Tensor]", head: "nn.Module") -> "Tensor":
        """The mean over the triplets."""
        from torch.nn import functional

        if self.distance == "cosine":
            vectors = functional.normalize(vectors, dim=1)
        anchors, positives, negatives = (vectors[column] for column in batch["columns"].T)
        if self.distance == "cosine":
            gaps = (anchors * (negatives - positives)).sum(dim=1)
        else:
            near, far = (
                functional.pairwise_distance(anchors, others) for others in (positives, negatives)
            )
            gaps = near - far
        return (gaps + self.margin).relu().mean()
