"""Masked language modeling: single tokens are predicted from those around them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from sbertkit.arguments import refuses_unknown
from sbertkit.training.pretraining.tasks.masking import MaskingTask, Unit

if TYPE_CHECKING:
    import numpy as np

    from sbertkit.training.examples import Int64


@refuses_unknown
@dataclass(frozen=True, slots=True)
class MaskedTokens(MaskingTask):
    """Single tokens are chosen, each with the same probability.

    The loss is ``mean over i in M of -log p(x_i; x~)`` over the chosen tokens M, where x~ is the
    text with what replaces them.

    Source: Devlin et al. 2019, BERT, section 3.1, task 1; other maskings in every epoch: Liu et
        al. 2019, RoBERTa, section 4.1.
    """

    name: ClassVar[str] = "mlm"
    summary: ClassVar[str] = (
        "a share of the tokens was replaced, and the encoder learned to predict them from the "
        "others"
    )
    formula: ClassVar[str] = "mean over i in M of -log p(x_i; x~)"
    source: ClassVar[str] = "Devlin et al. 2019, BERT, section 3.1"

    def units(self, words: "Int64", random: "np.random.Generator") -> list[Unit]:
        """Each chosen token is a unit."""
        import numpy as np

        places = random.permutation(np.flatnonzero(words >= 0))[: self.budget(words, random)]
        return [Unit(np.array([at]), at - 1, at + 1, at) for at in places]
