"""The objective of cosines that are those of a teacher."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from sbertkit.arguments import refuses_unknown
from sbertkit.training.data_forms import TEXT_PAIRS, DataForm, TrainingData
from sbertkit.training.objectives.taught import Taught, numbered

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from torch import Tensor, nn

    from sbertkit.training.examples import Examples, TextTable


@refuses_unknown
@dataclass(frozen=True, slots=True)
class TeacherScores(Taught):
    """Squared error of the cosine of a pair against that of a teacher.

    For a pair with the student's vectors u, v and the teacher's p, q:
    ``(cos(u, v) - cos(p, q))^2``. Student and teacher may have vectors of different sizes. It is
    the regression objective of Reimers & Gurevych 2019, Sentence-BERT, section 3, with a teacher's
    scores in place of people's.

    Source: Thakur et al. 2021, Augmented SBERT, section 3.1.
    """

    name: ClassVar[str] = "teacher-scores"
    data_forms: ClassVar[tuple[DataForm, ...]] = (TEXT_PAIRS,)
    normalize: ClassVar[bool] = True
    learning_rate: ClassVar[float] = 1e-4
    summary: ClassVar[str] = "the cosine of two texts learned to be that of a teacher"
    formula: ClassVar[str] = "(cos(u, v) - cos(p, q))^2"
    source: ClassVar[str] = "Thakur et al. 2021, Augmented SBERT, section 3.1"

    def teacher_texts(self, data: TrainingData) -> Sequence[str]:
        """The texts of all pairs."""
        return list(numbered(text for row in data.rows for text in row[:2]))

    def examples(self, data: TrainingData, table: "TextTable") -> "Examples":
        """One row per pair; its target is for now the numbers of both texts."""
        import numpy as np

        from sbertkit.training.examples import Examples

        pairs = list(dict.fromkeys(tuple(row[:2]) for row in data.rows))
        known = numbered(text for pair in pairs for text in pair)
        texts = np.array([table.numbers(pair) for pair in pairs], np.int64).reshape(-1, 2)
        numbers = np.array([[known[text] for text in pair] for pair in pairs], np.int64)
        repeated = len(data.rows) - len(pairs)
        left_out = {"that repeat earlier ones": repeated} if repeated else {}
        return Examples(texts, numbers, texts[:, 0], left_out=left_out)

    def taught(self, examples: "Examples", vectors: "npt.NDArray[np.float32]") -> "Examples":
        """The rows with the teacher's cosines as targets."""
        import numpy as np

        from sbertkit.metrics import row_cosines

        first, second = np.asarray(examples.targets, np.intp).T
        return replace(examples, targets=row_cosines(vectors, first, second).astype(np.float32))

    def loss(self, vectors: "Tensor", batch: "Mapping[str, Tensor]", head: "nn.Module") -> "Tensor":
        """The mean squared error."""
        from torch.nn import functional

        first, second = batch["columns"].T
        cosines = functional.cosine_similarity(vectors[first], vectors[second])
        return functional.mse_loss(cosines, batch["targets"])
