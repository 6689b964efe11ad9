"""What a run asks of a pretraining task."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from sbertkit.errors import InputError
from sbertkit.training.data_forms import UNLABELED, DataForm, TrainingData
from sbertkit.training.objectives.base import Objective, SetHead

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor, nn

    from sbertkit.encoder import Encoder
    from sbertkit.encoder.batching import BatchCollator
    from sbertkit.training.examples import Examples, Int64, TextTable
    from sbertkit.training.pretraining.draws import Draws
    from sbertkit.training.pretraining.pieces import Example, Pieces


class LossPart(NamedTuple):
    """One of several losses of a task.

    Attributes:
        name: As logs have it.
        loss: Its mean, a number.
        correct: How many predictions are right, a number.
        total: How many there are.
        weight: By which it counts.
    """

    name: str
    loss: "Tensor"
    correct: "Tensor"
    total: int
    weight: float = 1.0


class TaskLoss(NamedTuple):
    """What a task makes of a batch.

    Attributes:
        loss: The mean loss, a number.
        correct: How many predictions are right, a number.
        total: How many there are.
        parts: The losses whose sum it is, where there are several.
    """

    loss: "Tensor"
    correct: "Tensor"
    total: int
    parts: tuple[LossPart, ...] = ()

    @classmethod
    def summed(cls, *parts: LossPart) -> "TaskLoss":
        """The weighted sum of several losses; the predictions that count are the first one's."""
        first, *others = parts
        loss = first.weight * first.loss
        for part in others:
            loss = loss + part.weight * part.loss
        return cls(loss, first.correct, first.total, parts)


@dataclass(frozen=True, slots=True)
class PretrainingTask(Objective):
    """An objective that learns from texts without labels, by what it does to their tokens.

    A new task is a module with a subclass and an entry of `TASKS`. Its options are its fields. As
    of any objective, its module is loaded for the help of the command line.

    Attributes:
        shapes_vectors: Whether it trains text vectors, whose space is guarded then.
        documents: Whether it learns from whole documents, which blank lines divide in a text file.
        min_held_out: How many texts or documents it is measured on, at least.
        uses_dropout: Whether it needs dropout also where it is measured.
        other_families: Model types that it does not suit, and the reason.
    """

    data_forms: ClassVar[tuple[DataForm, ...]] = (UNLABELED,)
    normalize: ClassVar[bool | None] = None
    learning_rate: ClassVar[float] = 5e-5
    shapes_vectors: ClassVar[bool] = False
    documents: ClassVar[bool] = False
    min_held_out: ClassVar[int] = 1
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
        if reason := self.unsuited(kind):
            return InputError(
                f"the task {self.name} does not suit {encoder.options.model}, whose type is "
                f"{kind}: {reason}; choose another base (--base)"
            )
        try:
            self.check_base(encoder)
        except InputError as error:
            return error
        return None

    @classmethod
    def unsuited(cls, model_type: str) -> str:
        """Why it does not suit a type of models; empty where it does."""
        return cls.other_families.get(model_type, "")

    def pieces(self, encoder: "Encoder", *, pack: bool) -> "Pieces":
        """An empty table of texts as it learns from them.

        Args:
            encoder: Whose tokenizer applies.
            pack: See `AdaptConfig`.

        Raises:
            InputError: It cannot learn so from texts of this tokenizer.
        """
        from sbertkit.training.pretraining.pieces import Pieces

        return Pieces(encoder, pack=pack)

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
        nothing = np.zeros(len(numbers))
        return Examples(numbers[:, None], nothing, numbers, left_out=table.left_out)

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
        draws = self.repeated(draws)
        examples = [pieces.example(number, draws) for number in numbers]
        return self.tensors_of(examples, pieces.padder, draws)

    def repeated(self, draws: "Draws") -> "Draws":
        """The draws of an epoch, or those of an earlier one where they repeat."""
        return draws

    def tensors_of(
        self, examples: "Sequence[Example]", padder: "BatchCollator", draws: "Draws"
    ) -> "dict[str, Tensor]":
        """The tensors of a batch of examples.

        Args:
            examples: In their order.
            padder: Builds padded batches.
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
        from sbertkit.training.pretraining.heads import flat_states

        return self.states_loss(flat_states(network, batch), network, batch, head)

    def states_loss(
        self, states: "Tensor", network: "nn.Module", batch: "dict[str, Any]", head: "nn.Module"
    ) -> TaskLoss:
        """The loss of token vectors.

        Args:
            states: Those of the batch, one after another, (B × T, hidden).
            network: As `token_loss` takes it.
            batch: As `token_loss` takes it.
            head: As `token_loss` takes it.
        """
        raise NotImplementedError
