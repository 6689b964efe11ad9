"""Next-sentence prediction: does a segment follow another one, or is it of another document?"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from sbertkit.arguments import refuses_unknown
from sbertkit.training.pretraining.tasks.segments import FALSE, TRUE, SegmentTask

if TYPE_CHECKING:
    from sbertkit.training.pretraining.draws import Draws
    from sbertkit.training.pretraining.segments import Pair, SegmentPairs


@refuses_unknown
@dataclass(frozen=True, slots=True)
class NextSegment(SegmentTask):
    """Half of the pairs are two consecutive segments, half have a second one of another document.

    The loss is ``mean over pairs of -log p(y; h[CLS])``, where p is a softmax of two classes above
    ``tanh(W h[CLS] + b)``. A second segment that truly follows somewhere is never the other one.

    Source: Devlin et al. 2019, BERT, section 3.1, task 2, and appendix A.2.
    """

    name: ClassVar[str] = "nsp"
    head_name: ClassVar[str] = "next-segment"
    min_held_out: ClassVar[int] = 2
    summary: ClassVar[str] = (
        "the encoder learned whether the second of two segments follows the first one, or is of "
        "another document"
    )
    formula: ClassVar[str] = "mean over pairs of -log p(y; h[CLS])"
    source: ClassVar[str] = "Devlin et al. 2019, BERT, section 3.1, task 2"

    def pair(self, pairs: "SegmentPairs", number: int, draws: "Draws") -> "Pair":
        """The pair of a numbered run of sentences in an epoch."""
        from sbertkit.training.pretraining.segments import Pair

        if draws.even(number) >= 0.5:
            random = pairs.random(number, draws)
            first, other = pairs.divided_by_other(number, random)
            if other is not None:
                return Pair(first, other, FALSE)
        return Pair(*pairs.divided(number, pairs.random(number, draws)), TRUE)
