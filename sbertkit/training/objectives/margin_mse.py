"""The objective of a teacher's margins between two documents of a query."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

from sbertkit.arguments import refuses_unknown
from sbertkit.data.ranking import RankingPair
from sbertkit.errors import InputError
from sbertkit.settings import setting
from sbertkit.training.data_forms import PAIRS, RANKING, DataForm, TrainingData
from sbertkit.training.objectives.base import Objective

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from torch import Tensor, nn

    from sbertkit.reranking import Reranker
    from sbertkit.training.examples import Examples, TextTable

_COSINE_SCALE = 0.05
"""Re-rankers' margins reach about 20, those of cosines hardly 1."""


@refuses_unknown
@dataclass(frozen=True, slots=True)
class MarginMse(Objective):
    """Squared error of the margin between a relevant document and another, against a teacher's.

    For scores s of the model and t of the teacher, before the activation:
    ``((s(q, d+) - s(q, d-)) - (t(q, d+) - t(q, d-)))^2``. The score of an encoder is the cosine of
    query and document; the teacher's margins are scaled.

    Source: Hofstätter et al. 2021, Improving Efficient Neural Ranking Models with
        Cross-Architecture Knowledge Distillation, equation 4.
    """

    teacher: str | None = setting(
        None,
        "The re-ranker whose margins are learned; by default the data has its scores.",
        metavar="MODEL",
    )
    teacher_scale: float | None = setting(
        None,
        "The teacher's margins are multiplied by it; by default 1 for re-rankers, 0.05 for "
        "encoders.",
        above=0,
    )

    name: ClassVar[str] = "margin-mse"
    data_forms: ClassVar[tuple[DataForm, ...]] = (PAIRS, RANKING)
    normalize: ClassVar[bool] = True
    learning_rate: ClassVar[float] = 2e-5
    summary: ClassVar[str] = (
        "the difference of the scores of two documents learned to be that of a teacher"
    )
    formula: ClassVar[str] = "((s(q, d+) - s(q, d-)) - (t(q, d+) - t(q, d-)))^2"
    source: ClassVar[str] = (
        "Hofstätter et al. 2021, Improving Efficient Neural Ranking Models with "
        "Cross-Architecture Knowledge Distillation, equation 4"
    )
    model_option: ClassVar[str] = "teacher"

    def model_fingerprint(self) -> str:
        """That of the teacher."""
        return _teacher(str(self.teacher)).fingerprint

    def examples(self, data: TrainingData, table: "TextTable") -> "Examples":
        """One row per relevant document and other one of a query; the target is the margin.

        A row has the two pairs that a re-ranker scores, or query and both documents.

        Raises:
            InputError: No query has both, or there are neither a teacher nor scores of one.
        """
        import numpy as np

        from sbertkit.training.examples import Examples

        pairs = [RankingPair(*row) for row in data.rows]
        sides: dict[str, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
        for number, pair in enumerate(pairs):
            sides[pair.query][pair.group].append(number)
        rows = [(one, two) for side in sides.values() for one in side[0] for two in side[1]]
        if not rows:
            raise InputError(
                "the objective margin-mse needs queries with a relevant document and another, "
                "found none; add negatives to the data, or mine them (mine, --mine INDEX)"
            )
        chosen = np.array(rows, np.int64)  # (n, 2): numbers of pairs
        scores = self._scores(pairs, used=np.unique(chosen))
        scale = self.teacher_scale or (1.0 if data.form.task == "rerank" else _COSINE_SCALE)
        targets = (scores[chosen[:, 0]] - scores[chosen[:, 1]]) * scale
        queries = np.array(data.first_texts, np.int64)[chosen[:, 0]]
        if data.form.task == "rerank":
            texts = np.array(table.numbers(pair[:2] for pair in pairs), np.int64)[chosen]
            return Examples(texts, targets, queries)
        first = np.array(table.queries(pair.query for pair in pairs), np.int64)
        second = np.array(table.numbers(pair.document for pair in pairs), np.int64)
        texts = np.column_stack([first[chosen[:, 0]], second[chosen]])
        return Examples(texts, targets, queries)

    def _scores(
        self, pairs: list[RankingPair], used: "npt.NDArray[np.int64]"
    ) -> "npt.NDArray[np.float32]":
        """The teacher's score of each pair that is used, in their places among all."""
        import numpy as np

        scores = np.full(len(pairs), np.nan, np.float32)
        if self.teacher is not None:
            given = _teacher(self.teacher).score([pairs[n][:2] for n in used], activated=False)
            scores[used] = given
            return scores
        scores[used] = [np.nan if pairs[n].score is None else pairs[n].score for n in used]
        missing = int(np.isnan(scores[used]).sum())
        if missing:
            raise InputError(
                f"the objective margin-mse needs a teacher: {missing:,} of {len(used):,} pairs "
                "have no score of one (columns positive_score, negative_score); add them, or pass "
                "the re-ranker (--teacher MODEL)"
            )
        return scores

    def loss(self, vectors: "Tensor", batch: "Mapping[str, Tensor]", head: "nn.Module") -> "Tensor":
        """The mean squared error."""
        from torch.nn import functional

        columns = batch["columns"].T
        if len(columns) == 2:  # scores of pairs
            relevant, other = (vectors[column, 0] for column in columns)
        else:
            query, *documents = functional.normalize(vectors, dim=1)[columns]
            relevant, other = ((query * one).sum(dim=1) for one in documents)
        return functional.mse_loss(relevant - other, batch["targets"])


@lru_cache(maxsize=1)
def _teacher(name: str) -> "Reranker":
    """The re-ranker of that name, loaded once."""
    from sbertkit.reranking import Reranker

    return Reranker.load(name)
