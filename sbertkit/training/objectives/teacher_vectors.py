"""The objective of vectors that are those of a teacher."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from sbertkit.arguments import refuses_unknown
from sbertkit.errors import InputError
from sbertkit.settings import setting
from sbertkit.training.config import TrainConfig
from sbertkit.training.data_forms import PARALLEL, TEXTS, DataForm, TrainingData
from sbertkit.training.objectives.taught import Taught, numbered

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from torch import Tensor, nn

    from sbertkit.encoder import Encoder
    from sbertkit.training.examples import Examples, Int64, TextTable

LOSSES = ("mse", "cosine")


@refuses_unknown
@dataclass(frozen=True, slots=True)
class TeacherVectors(Taught):
    """Squared distance of a text's vector from that of a teacher, or what their cosine lacks of 1.

    For a text x, the student s and the teacher t, by the distance:
    ``|s(x) - t(x)|^2, or 1 - cos(s(x), t(x))``. For a sentence x with its translation y: the mean
    of that and of the same for s(y) and t(x), so that both come to where the teacher puts the
    sentence. A student of another size gets a linear layer to that of the teacher, which starts as
    the least squares fit and is saved with it.

    Source: Reimers & Gurevych 2020, Making Monolingual Sentence Embeddings Multilingual using
        Knowledge Distillation, equation 1.
    """

    distance: str = setting(
        "mse",
        "What of the student's and the teacher's vector becomes small: mse, their squared "
        "distance, or cosine, 1 less their cosine.",
        choices=LOSSES,
        flags=("--loss",),
    )
    projection: bool = setting(
        True, "A linear layer to the size of the teacher, where the student has another."
    )

    name: ClassVar[str] = "teacher-vectors"
    data_forms: ClassVar[tuple[DataForm, ...]] = (TEXTS, PARALLEL)
    normalize: ClassVar[bool] = True
    learning_rate: ClassVar[float] = 1e-4
    summary: ClassVar[str] = "the vector of a text learned to be that of a teacher"
    formula: ClassVar[str] = "|s(x) - t(x)|^2, or 1 - cos(s(x), t(x))"
    source: ClassVar[str] = (
        "Reimers & Gurevych 2020, Making Monolingual Sentence Embeddings Multilingual using "
        "Knowledge Distillation, equation 1"
    )

    def with_defaults(self, config: TrainConfig) -> TrainConfig:
        """The settings; vectors have unit length where those of the teacher have."""
        wanted = config.normalize
        normalize = self.required.normalizes if wanted is None else wanted
        return super(TeacherVectors, self).with_defaults(replace(config, normalize=normalize))

    def student(self, encoder: "Encoder") -> "Encoder":
        """The encoder, with a linear layer to the teacher's size where it has another.

        Raises:
            InputError: It has another, and no layer is wanted.
        """
        dim = self.required.dim
        if encoder.dim == dim:
            return encoder
        if not self.projection:
            raise InputError(
                f"the teacher's vectors have {dim} numbers, those of the student {encoder.dim}; "
                "leave out --no-projection, or learn the teacher's scores "
                "(--objective teacher-scores)"
            )
        from sbertkit.training.projection import with_projection

        return with_projection(encoder, dim)

    def teacher_texts(self, data: TrainingData) -> Sequence[str]:
        """The texts, or the sentences that have translations."""
        return list(numbered(row[0] for row in data.rows))

    def examples(self, data: TrainingData, table: "TextTable") -> "Examples":
        """One row per text, or per sentence and translation; its target numbers a vector."""
        import numpy as np

        from sbertkit.training.examples import Examples

        width = data.form.texts
        rows = list(dict.fromkeys(tuple(row[:width]) for row in data.rows))
        sources = numbered(row[0] for row in rows)
        texts = np.array([table.numbers(row) for row in rows], np.int64).reshape(-1, width)
        numbers = np.array([sources[row[0]] for row in rows], np.int64)
        repeated = len(data.rows) - len(rows)
        left_out = {"that repeat earlier ones": repeated} if repeated else {}
        return Examples(texts, numbers, numbers, left_out=left_out)

    def taught(self, examples: "Examples", vectors: "npt.NDArray[np.float32]") -> "Examples":
        """The rows with the vectors that their targets number."""
        return replace(examples, vectors=vectors)

    def collate(
        self, examples: "Examples", rows: Sequence[int], columns: "Int64", texts: "Int64"
    ) -> "dict[str, Tensor]":
        """``targets``: the teacher's vectors, (B, dim)."""
        import numpy as np
        import torch

        if examples.vectors is None:
            raise InputError(f"the objective {self.name} has no vectors of a teacher yet")
        wanted = examples.vectors[examples.targets[rows]]
        return {"targets": torch.from_numpy(np.array(wanted, np.float32))}

    def loss(self, vectors: "Tensor", batch: "Mapping[str, Tensor]", head: "nn.Module") -> "Tensor":
        """The mean over all texts of the batch."""
        from torch.nn import functional

        found = vectors[batch["columns"]]  # (B, texts, dim)
        wanted = batch["targets"][:, None]  # (B, 1, dim)
        if self.distance == "cosine":
            return (1 - functional.cosine_similarity(found, wanted, dim=2)).mean()
        return (found - wanted).square().sum(dim=2).mean()
