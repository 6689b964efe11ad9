"""What the tasks have in common that classify pairs of segments."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from sbertkit.errors import InputError
from sbertkit.training.pretraining.tasks.base import PretrainingTask, TaskLoss

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor, nn

    from sbertkit.encoder import Encoder
    from sbertkit.encoder.batching import BatchCollator
    from sbertkit.training.pretraining.draws import Draws
    from sbertkit.training.pretraining.pieces import Example, Pieces
    from sbertkit.training.pretraining.segments import Pair, SegmentPairs

TRUE, FALSE = 0, 1
"""The classes of a pair, as the checkpoints of BERT and ALBERT number them."""


@dataclass(frozen=True, slots=True)
class SegmentTask(PretrainingTask):
    """A task that tells pairs of consecutive segments from others; a subclass makes the others.

    Half of the pairs are others, of few pairs too: a sequence that is spread evenly decides. Which
    ones, and where the first segment ends, differs from epoch to epoch.

    Attributes:
        head_name: That of its file.
    """

    head_name: ClassVar[str]
    documents: ClassVar[bool] = True
    other_families: ClassVar[dict[str, str]] = {
        "xlnet": "it was pretrained without pairs of segments, and its pairs do not begin with a "
        "token that could be classified",
    }

    def check_base(self, encoder: "Encoder") -> None:
        """Nothing, if every pair begins with a token of the tokenizer's own."""
        if not encoder.spec.tokenizer.probe_pair().before:
            raise InputError(
                f"the tokenizer of {encoder.options.model} puts no token before a pair, by which "
                f"the task {self.name} classifies it; choose another base (--base)"
            )

    def pieces(self, encoder: "Encoder", *, pack: bool) -> "Pieces":
        """An empty table of documents.

        Raises:
            InputError: `pack`, or the tokenizer has no form for pairs.
        """
        from sbertkit.training.pretraining.segments import SegmentPairs

        if pack:
            raise InputError(
                f"pack (--pack) is not for the task {self.name}, whose pairs are as long as the "
                "base reads; leave it out"
            )
        return SegmentPairs(encoder, self.pair)

    def pair(self, pairs: "SegmentPairs", number: int, draws: "Draws") -> "Pair":
        """The pair of a numbered run of sentences in an epoch."""
        raise NotImplementedError

    def check_pieces(self, pieces: "Pieces") -> None:
        """Nothing, if some document has two segments."""
        if not len(pieces.tokens):
            raise InputError(
                f"the task {self.name} needs documents of several sentences or lines, found none; "
                "take longer documents, which blank lines divide in a text file"
            )

    def task_head(self, encoder: "Encoder") -> "nn.ModuleDict":
        """The head that classifies pairs."""
        from torch import nn

        from sbertkit.training.pretraining.pair_head import pair_head

        return nn.ModuleDict({self.head_name: pair_head(encoder, self.head_name)})

    def tensors_of(
        self, examples: "Sequence[Example]", padder: "BatchCollator", draws: "Draws"
    ) -> "dict[str, Tensor]":
        """Padded pairs, and their ``labels``, (B,)."""
        from sbertkit.training.pretraining.pieces import padded

        return padded(examples, padder) | self.labels_of(examples)

    def labels_of(self, examples: "Sequence[Example]") -> "dict[str, Tensor]":
        """The ``labels`` of examples, (B,)."""
        import torch

        return {"labels": torch.tensor([one.label for one in examples])}

    def states_loss(
        self, states: "Tensor", network: "nn.Module", batch: "dict[str, Any]", head: "nn.Module"
    ) -> TaskLoss:
        """The mean cross-entropy of the pairs, by the vector of their first token."""
        import torch
        from torch.nn import functional

        mask, labels = batch["mask"], batch["labels"]
        first = torch.arange(len(mask), device=mask.device) * mask.shape[1] + mask.argmax(dim=1)
        scores = head.get_submodule(self.head_name)(states[first]).float()  # (B, 2)
        loss = functional.cross_entropy(scores, labels)
        return TaskLoss(loss, (scores.argmax(dim=1) == labels).sum(), len(labels))
