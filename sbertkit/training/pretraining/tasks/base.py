"""What a run asks of a pretraining task."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from sbertkit.errors import InputError
from sbertkit.training.data_forms import UNLABELED, DataForm, TrainingData
from sbertkit.training.objectives.base import Objective, SetHead

if TYPE_CHECKING:
    from torch import Tensor, nn

    from sbertkit.encoder import Encoder
    from sbertkit.training.examples import Examples, Int64, TextTable
    from sbertkit.training.pretraining.draws import Draws
    from sbertkit.training.pretraining.pieces import Pieces


class TaskLoss(NamedTuple):
    """What a task makes of a batch.

    Attributes:
        loss: The mean loss, a number.
        correct: How many predictions are right, a number.
        total: How many there are.
    """

    loss: "Tensor"
    correct: "Tensor"
    total: int


@dataclass(frozen=True, slots=True)
class PretrainingTask(Objective):
    """An objective that learns from texts without labels, by what it does to their tokens.

    A new task is a module with a subclass and an entry of `TASKS`. Its options are its fields. As
    of any objective, its module is loaded for the help of the command line.

    Attributes:
        shapes_vectors: Whether it trains text vectors, whose space is guarded then.
        uses_dropout: Whether it needs dropout also where it is measured.
        other_families: Model types that it does not suit, and the reason.
    """

    data_forms: ClassVar[tuple[DataForm, ...]] = (UNLABELED,)
    normalize: ClassVar[bool | None] = None
    learning_rate: ClassVar[float] = 5e-5
    shapes_vectors: ClassVar[bool] = False
    uses_dropout: ClassVar[bool] = False
    other_families: ClassVar[dict[str, str]] = {}

    def student(self, encoder: "Encoder") -> "Encoder":
        """The base itself.

        Raises:
            InputError: The task does not suit it; the message names those that do.
        """
        from sbertkit.training.pretraining.tasks import TASKS

        fault = self._fault(encoder)
        if fault is None:
            return encoder
        others = [name for name, kind in TASKS.items() if kind()._fault(encoder) is None]
        suiting = f"; tasks that suit it (--task): {', '.join(others)}" if others else ""
        raise InputError(f"{fault}{suiting}") from fault

    def _fault(self, encoder: "Encoder") -> InputError | None:
        """Why the task does not suit an encoder; None where it does."""
        kind = str(encoder.torch.transformer.model.config.model_type)
        if kind in self.other_families:
            return InputError(
                f"the task {self.name} does not suit {encoder.options.model}, whose type is "
                f"{kind}: {self.other_families[kind]}; choose another base (--base)"
            )
        try:
            self.check_base(encoder)
        except InputError as error:
            return error
        return None

    def heads(self, head: "nn.Module") -> list[SetHead]:
        """None in the layout of other objectives; see `pretraining.heads`."""
        return []

    def examples(self, data: TrainingData, table: "TextTable") -> "Examples":
        """One row per piece of the texts."""
        import numpy as np

        from sbertkit.training.examples import Examples
        from sbertkit.training.pretraining.pieces import Pieces

        assert isinstance(table, Pieces)  # noqa: S101  # which the run has made for this task
        numbers = table.read(row[0] for row in data.rows)
        self.check_pieces(table)
        return Examples(numbers[:, None], np.zeros(len(numbers)), numbers)

    def check_base(self, encoder: "Encoder") -> None:
        """Nothing, if the task suits the encoder.

        Raises:
            InputError: It does not.
        """

    def check_pieces(self, pieces: "Pieces") -> None:
        """Nothing, if there is something to learn from.

        Raises:
            InputError: There is not.
        """

    def prepared(self, encoder: "Encoder", pieces: "Pieces") -> "PretrainingTask":
        """The same with what it has to know of an encoder that is not trained yet."""
        return self

    def task_head(self, encoder: "Encoder") -> "nn.ModuleDict":
        """What is trained above the encoder, by the names of its files.

        A part that the base's files have begins with their weights.
        """
        raise NotImplementedError

    def batch(self, pieces: "Pieces", numbers: "Int64", draws: "Draws") -> "dict[str, Tensor]":
        """The tensors of a batch.

        Args:
            pieces: The texts.
            numbers: The pieces of the batch, (B,).
            draws: Where random numbers come from.
        """
        raise NotImplementedError

    def token_loss(
        self, network: "nn.Module", batch: "dict[str, Any]", head: "nn.Module"
    ) -> TaskLoss:
        """The loss of a batch.

        Args:
            network: The encoder's; its `transformer` gives token vectors.
            batch: What `batch` gave, on the device.
            head: What `task_head` gave.
        """
        raise NotImplementedError
