"""Objectives of re-rankers: the label of a pair, or a teacher's margin between two."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from sbertkit.arguments import refuses_unknown
from sbertkit.data.ranking import RankingPair
from sbertkit.errors import InputError
from sbertkit.settings import setting
from sbertkit.training.data_forms import RANKING, DataForm, TrainingData
from sbertkit.training.objectives.base import Objective

if TYPE_CHECKING:
    from torch import Tensor, nn

    from sbertkit.reranking import Reranker
    from sbertkit.training.examples import Examples, Int64, TextTable


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
    data_form: ClassVar[DataForm] = RANKING
    normalize: ClassVar[bool] = False
    learning_rate: ClassVar[float] = 2e-5
    summary: ClassVar[str] = "the score of a pair learned to tell relevant documents from others"
    task: ClassVar[Literal["embed", "rerank"]] = "rerank"

    def examples(self, data: TrainingData, table: "TextTable") -> "Examples":
        """One row per pair; its label is the target.

        Raises:
            InputError: The pairs are all relevant, or none is.
        """
        import numpy as np

        from sbertkit.training.examples import Examples

        if len({pair.group for pair in _pairs(data)}) < 2:
            raise InputError(
                "the objective bce needs documents that are relevant and others, found one kind "
                "alone; add negatives to the data, or mine them (mine, --mine INDEX)"
            )
        texts = np.array(table.numbers(row[:2] for row in data.rows), np.int64)[:, None]
        targets = np.array([pair.label for pair in _pairs(data)], np.float32)
        return Examples(texts, targets, _numbers_of_queries(data))

    def collate(
        self, examples: "Examples", rows: Sequence[int], columns: "Int64", texts: "Int64"
    ) -> "dict[str, Tensor]":
        """The labels, (B,)."""
        import torch

        return {"targets": torch.from_numpy(examples.targets[rows])}

    def loss(self, vectors: "Tensor", batch: "Mapping[str, Tensor]", head: "nn.Module") -> "Tensor":
        """The mean cross-entropy."""
        from torch.nn import functional

        scores = vectors[batch["columns"][:, 0], 0]
        weight = scores.new_tensor(self.positive_weight)
        return functional.binary_cross_entropy_with_logits(
            scores, batch["targets"], pos_weight=weight
        )


@refuses_unknown
@dataclass(frozen=True, slots=True)
class MarginMse(Objective):
    """Squared error of the margin between a relevant document and another, against a teacher's.

    For scores s of the model and t of the teacher, before the activation:
    ``((s(q, d+) - s(q, d-)) - (t(q, d+) - t(q, d-)))^2``.

    Source: Hofstätter et al. 2021, Improving Efficient Neural Ranking Models with
        Cross-Architecture Knowledge Distillation, equation 4.
    """

    teacher: str | None = setting(None, "The re-ranker whose margins are learned.", metavar="MODEL")

    name: ClassVar[str] = "margin-mse"
    data_form: ClassVar[DataForm] = RANKING
    normalize: ClassVar[bool] = False
    learning_rate: ClassVar[float] = 2e-5
    summary: ClassVar[str] = (
        "the difference of the scores of two documents learned to be that of a teacher"
    )
    task: ClassVar[Literal["embed", "rerank"]] = "rerank"

    def __post_init__(self) -> None:
        Objective.__post_init__(self)
        if self.teacher is None:
            raise InputError(
                "the objective margin-mse needs a teacher: pass the re-ranker (--teacher MODEL)"
            )

    @property
    def options(self) -> dict[str, Any]:
        """The teacher, by name and fingerprint."""
        from sbertkit.encoder.saving import lineage_name

        name = str(self.teacher)
        return {"teacher": lineage_name(name), "teacher_fingerprint": _teacher(name).fingerprint}

    def examples(self, data: TrainingData, table: "TextTable") -> "Examples":
        """One row per relevant document and other one of a query; the target is the margin.

        Raises:
            InputError: No query has both.
        """
        import numpy as np

        from sbertkit.training.examples import Examples

        sides: dict[str, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
        for number, pair in enumerate(_pairs(data)):
            sides[pair.query][pair.group].append(number)
        rows = [(one, two) for side in sides.values() for one in side[0] for two in side[1]]
        if not rows:
            raise InputError(
                "the objective margin-mse needs queries with a relevant document and another, "
                "found none; add negatives to the data, or mine them (mine, --mine INDEX)"
            )
        pairs = [row[:2] for row in data.rows]
        scores = _teacher(str(self.teacher)).score(pairs, activated=False)
        numbers, chosen = np.array(table.numbers(pairs), np.int64), np.array(rows, np.int64)
        targets = scores[chosen[:, 0]] - scores[chosen[:, 1]]
        return Examples(numbers[chosen], targets, _numbers_of_queries(data)[chosen[:, 0]])

    def collate(
        self, examples: "Examples", rows: Sequence[int], columns: "Int64", texts: "Int64"
    ) -> "dict[str, Tensor]":
        """The margins, (B,)."""
        import torch

        return {"targets": torch.from_numpy(examples.targets[rows])}

    def loss(self, vectors: "Tensor", batch: "Mapping[str, Tensor]", head: "nn.Module") -> "Tensor":
        """The mean squared error."""
        from torch.nn import functional

        relevant, other = batch["columns"].T
        return functional.mse_loss(vectors[relevant, 0] - vectors[other, 0], batch["targets"])


@lru_cache(maxsize=1)
def _teacher(name: str) -> "Reranker":
    """The re-ranker of that name, loaded once."""
    from sbertkit.reranking import Reranker

    return Reranker.load(name)


def _numbers_of_queries(data: TrainingData) -> "Int64":
    import numpy as np

    numbers: dict[str, int] = {}
    found = [numbers.setdefault(pair.query, len(numbers)) for pair in _pairs(data)]
    return np.array(found, np.int64)


def _pairs(data: TrainingData) -> list[RankingPair]:
    return [RankingPair(*row) for row in data.rows]
