"""The objective of a teacher's margins between two documents of a query."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

from sbertkit.arguments import refuses_unknown
from sbertkit.data.ranking import RankingPair
from sbertkit.errors import InputError
from sbertkit.settings import setting
from sbertkit.training.data_forms import RANKING, DataForm, TrainingData
from sbertkit.training.objectives.base import Objective

if TYPE_CHECKING:
    from torch import Tensor, nn

    from sbertkit.reranking import Reranker
    from sbertkit.training.examples import Examples, TextTable


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
    data_forms: ClassVar[tuple[DataForm, ...]] = (RANKING,)
    normalize: ClassVar[bool] = False
    learning_rate: ClassVar[float] = 2e-5
    summary: ClassVar[str] = (
        "the difference of the scores of two documents learned to be that of a teacher"
    )
    formula: ClassVar[str] = "((s(q, d+) - s(q, d-)) - (t(q, d+) - t(q, d-)))^2"
    source: ClassVar[str] = (
        "Hofstätter et al. 2021, Improving Efficient Neural Ranking Models with "
        "Cross-Architecture Knowledge Distillation, equation 4"
    )

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
        for number, pair in enumerate(RankingPair(*row) for row in data.rows):
            sides[pair.query][pair.group].append(number)
        rows = [(one, two) for side in sides.values() for one in side[0] for two in side[1]]
        if not rows:
            raise InputError(
                "the objective margin-mse needs queries with a relevant document and another, "
                "found none; add negatives to the data, or mine them (mine, --mine INDEX)"
            )
        pairs = [row[:2] for row in data.rows]
        scores = _teacher(str(self.teacher)).score(pairs, activated=False)
        numbers, queries = (
            np.array(each, np.int64) for each in (table.numbers(pairs), data.first_texts)
        )
        chosen = np.array(rows, np.int64)
        targets = scores[chosen[:, 0]] - scores[chosen[:, 1]]
        return Examples(numbers[chosen], targets, queries[chosen[:, 0]])

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
