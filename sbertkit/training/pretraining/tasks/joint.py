"""Two tasks at once: the tokens of pairs of segments are masked, and the pairs classified."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from sbertkit.arguments import refuses_unknown
from sbertkit.training.pretraining.tasks.base import LossPart, PretrainingTask, TaskLoss
from sbertkit.training.pretraining.tasks.masking import MaskingTask
from sbertkit.training.pretraining.tasks.segments import SegmentTask

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor, nn

    from sbertkit.encoder import Encoder
    from sbertkit.encoder.batching import BatchCollator
    from sbertkit.training.pretraining.draws import Draws
    from sbertkit.training.pretraining.pieces import Example, Pieces


@refuses_unknown
@dataclass(frozen=True, slots=True)
class JointTask(PretrainingTask):
    """The loss is the sum of both losses, of the same masked pairs.

    Source: Devlin et al. 2019, BERT, appendix A.2; Lan et al. 2020, ALBERT, section 3.1.

    Attributes:
        masking: Masks tokens.
        segments: Makes pairs of documents.
    """

    masking: MaskingTask
    segments: SegmentTask

    documents: ClassVar[bool] = True

    @property
    def name(self) -> str:  # type: ignore[override]  # of an instance, not of the class
        """The names of both."""
        return f"{self.masking.name},{self.segments.name}"

    @property
    def min_held_out(self) -> int:  # type: ignore[override]
        """That of the task of documents."""
        return self.segments.min_held_out

    @property
    def options(self) -> dict[str, Any]:
        """Those of both."""
        return {**self.masking.options, **self.segments.options}

    def student(self, encoder: "Encoder") -> "Encoder":
        """The base itself.

        Raises:
            InputError: One of the tasks does not suit it.
        """
        return self.segments.student(self.masking.student(encoder))

    def pieces(self, encoder: "Encoder", *, pack: bool) -> "Pieces":
        """An empty table of documents; see `SegmentTask.pieces`."""
        return self.segments.pieces(encoder, pack=pack)

    def check_pieces(self, pieces: "Pieces") -> None:
        """Nothing, if both tasks have something to learn from."""
        self.segments.check_pieces(pieces)
        self.masking.check_pieces(pieces)

    def prepared(self, encoder: "Encoder", pieces: "Pieces") -> "JointTask":
        """The same with what has to be known of an encoder that is not trained yet."""
        return replace(self, masking=self.masking.prepared(encoder, pieces))

    def task_head(self, encoder: "Encoder") -> "nn.ModuleDict":
        """The heads of both."""
        from torch import nn

        heads = (part.task_head(encoder) for part in (self.masking, self.segments))
        return nn.ModuleDict({name: head for part in heads for name, head in part.items()})

    def repeated(self, draws: "Draws") -> "Draws":
        """As the masking has it: a masking that repeats is one of the same pair."""
        return self.masking.repeated(draws)

    def tensors_of(
        self, examples: "Sequence[Example]", padder: "BatchCollator", draws: "Draws"
    ) -> "dict[str, Tensor]":
        """Masked pairs with the tensors of both tasks."""
        return self.masking.tensors_of(examples, padder, draws) | self.segments.labels_of(examples)

    def states_loss(
        self, states: "Tensor", network: "nn.Module", batch: "dict[str, Any]", head: "nn.Module"
    ) -> TaskLoss:
        """The sum of both losses; the predictions that count as right are those of tokens."""
        return TaskLoss.summed(
            *(
                LossPart(part.name, found.loss, found.correct, found.total)
                for part in (self.masking, self.segments)
                for found in [part.states_loss(states, network, batch, head)]
            )
        )
