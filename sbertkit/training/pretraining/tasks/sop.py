"""Sentence-order prediction: are two consecutive segments in their order?"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from sbertkit.arguments import refuses_unknown
from sbertkit.training.pretraining.tasks.segments import FALSE, TRUE, SegmentTask

if TYPE_CHECKING:
    from sbertkit.training.pretraining.draws import Draws
    from sbertkit.training.pretraining.segments import Pair, SegmentPairs


@refuses_unknown
@dataclass(frozen=True, slots=True)
class SegmentOrder(SegmentTask):
    """All pairs are two consecutive segments of a document, half of them swapped.

    The loss is ``mean over pairs of -log p(y; h[CLS])``, where p is a softmax of two classes above
    ``tanh(W h[CLS] + b)``. Segments that are the same in both orders are never swapped.

    Source: Lan et al. 2020, ALBERT, section 3.1, inter-sentence coherence loss.
    """

    name: ClassVar[str] = "sop"
    head_name: ClassVar[str] = "segment-order"
    summary: ClassVar[str] = (
        "the encoder learned whether two consecutive segments are in their order"
    )
    formula: ClassVar[str] = "mean over pairs of -log p(y; h[CLS])"
    source: ClassVar[str] = "Lan et al. 2020, ALBERT, section 3.1"

    def pair(self, pairs: "SegmentPairs", number: int, draws: "Draws") -> "Pair":
        """The pair of a numbered run of sentences in an epoch."""
        from sbertkit.training.pretraining.segments import Pair

        first, second = pairs.divided(number, pairs.random(number, draws))
        one, two = first.ids.tolist(), second.ids.tolist()
        if draws.even(number) < 0.5 or one + two == two + one:
            return Pair(first, second, TRUE)
        return Pair(second, first, FALSE)
