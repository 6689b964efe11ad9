"""The head of a cross-encoder, in the place where an encoder of texts has its pooling."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sbertkit.encoder.pooling import Pooling

if TYPE_CHECKING:
    from torch import Tensor

    from sbertkit.encoder.transformer import Transformer

HEAD = "head"
"""What stands for the name of a pooling."""


@dataclass(frozen=True, slots=True)
class Head(Pooling):
    """The model's own head, which gives the score of a pair of texts."""

    name: str = HEAD

    def __post_init__(self) -> None:
        """Nothing to check."""

    @property
    def needs_end_token(self) -> bool:
        """The tokenizer's template for pairs is taken as it is."""
        return False

    def dim_of(self, transformer: "Transformer") -> int:
        """Number of scores."""
        return transformer.label_count

    def of_output(self, output: Any, mask: "Tensor") -> "Tensor":  # noqa: ARG002  # as for a pooling
        """Scores (B, labels)."""
        scores: Tensor = output.logits.float()
        return scores
