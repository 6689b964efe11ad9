"""Span masking: runs of whole words are predicted, also from the tokens at their ends alone."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from sbertkit.arguments import refuses_unknown
from sbertkit.errors import InputError
from sbertkit.settings import setting
from sbertkit.training.pretraining.tasks.base import TaskLoss
from sbertkit.training.pretraining.tasks.masking import LM_HEAD, MaskingTask, Unit

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor, nn

    from sbertkit.encoder import Encoder
    from sbertkit.training.examples import Int64

SPAN_HEAD = "span-boundary"


@refuses_unknown
@dataclass(frozen=True, slots=True)
class MaskedSpans(MaskingTask):
    """Spans of whole words, whose lengths follow a geometric distribution, until the share is met.

    The loss is ``mean over i in M of -log p(x_i; h_i) - log p(x_i; h[s-1], h[e+1], p[i-s+1])``
    over the chosen tokens: what `MaskedTokens` has, and the span boundary objective, which predicts
    a token of the span from s to e by the token vectors h before and after the span, and by its
    position p in it. The last span is shortened to what is left of the share. Between two spans a
    word is left, while there is room, so that the tokens beside them are not hidden.

    Source: Joshi et al. 2020, SpanBERT, section 3.1 (p = 0.2, at most 10 words, mean 3.8) and
        section 3.2.
    """

    span_p: float = setting(
        0.2, "Of the geometric distribution of words per span.", above=0, maximum=0.99
    )
    max_span: int = setting(10, "Maximum of words per span.", maximum=50)
    boundary: bool = setting(True, "Predict also from the tokens at both ends of the span.")

    name: ClassVar[str] = "span"
    summary: ClassVar[str] = (
        "spans of words were replaced, and the encoder learned to predict their tokens from the "
        "others and from the two tokens beside the span"
    )
    formula: ClassVar[str] = (
        "mean over i in M of -log p(x_i; h_i) - log p(x_i; h[s-1], h[e+1], p[i-s+1])"
    )
    source: ClassVar[str] = "Joshi et al. 2020, SpanBERT, sections 3.1 and 3.2"

    def check_base(self, encoder: "Encoder") -> None:
        """Nothing, if the encoder has a mask token, and tokens around every text."""
        MaskingTask.check_base(self, encoder)
        special = encoder.spec.tokenizer.special
        if self.boundary and not (special.before and special.after):
            raise InputError(
                f"the tokenizer of {encoder.options.model} puts no token before and after a text, "
                "beside which a span could be; leave the objective out with --no-boundary"
            )

    def lengths(self, random: "np.random.Generator", count: int) -> "Int64":
        """Words of so many spans, (count,): of the truncated geometric distribution."""
        import numpy as np

        words = np.arange(1, self.max_span + 1)
        weights = self.span_p * (1 - self.span_p) ** (words - 1)
        return random.choice(words, count, p=weights / weights.sum())

    def units(self, words: "Int64", random: "np.random.Generator") -> list[Unit]:
        """Each span is a unit."""
        import numpy as np

        left = self.budget(words, random)
        starts = np.flatnonzero((words >= 0) & np.r_[True, words[1:] != words[:-1]])
        sizes = np.bincount(words[words >= 0])[words[starts]] if len(starts) else starts
        free = np.ones(len(starts), np.bool_)
        apart = free.copy()  # neither chosen nor beside a span
        joined = np.r_[False, starts[1:] == starts[:-1] + sizes[:-1]]  # no special token between
        chosen = []
        while left > 0:
            length = int(self.lengths(random, 1)[0])
            begin, count = _place(apart if apart.any() else free, joined, length, random)
            free[begin : begin + count] = False
            apart[max(0, begin - 1) : begin + count + 1] = False
            taken = 0
            for size in sizes[begin : begin + count]:
                if taken + size > left:
                    taken += int(size) if random.random() * size < left - taken else 0
                    left = 0
                    break
                taken += int(size)
            left -= min(left, taken)
            if taken:
                first = int(starts[begin])
                places = np.arange(first, first + taken)
                chosen.append(Unit(places, first - 1, first + taken, first))
        return chosen

    def task_head(self, encoder: "Encoder") -> "nn.ModuleDict":
        """The head that predicts tokens, and that of the span boundary objective."""
        from sbertkit.training.pretraining.heads import span_head

        head = MaskingTask.task_head(self, encoder)
        if self.boundary:
            head[SPAN_HEAD] = span_head(encoder, self.max_span)
        return head

    def states_loss(
        self, states: "Tensor", network: "nn.Module", batch: "dict[str, Any]", head: "nn.Module"
    ) -> TaskLoss:
        """The sum of both losses; the predictions that count as right are those of the first."""
        from sbertkit.training.pretraining.heads import predicted

        targets = batch["targets"]
        found = predicted(head.get_submodule(LM_HEAD), states[batch["places"]], network, targets)
        if not self.boundary:
            return found
        before, after, position = batch["spans"].unbind(dim=1)
        boundary: Any = head.get_submodule(SPAN_HEAD)
        joined = boundary.joined(states[before], states[after], position)
        more = predicted(boundary, joined, network, targets)
        return found._replace(loss=found.loss + more.loss)


def _place(
    free: "Any", joined: "Any", count: int, random: "np.random.Generator"
) -> tuple[int, int]:
    """Where a span of so many words begins, and how many it has where there is less room.

    Args:
        free: Whether each word is not chosen yet, (n,); at least one is.
        joined: Whether each word follows the one before without a special token between, (n,).
        count: Words of the span.
        random: Where random numbers come from.
    """
    import numpy as np

    room = np.zeros(len(free), np.int64)  # free words from each one on, joined to it
    for word in range(len(free) - 1, -1, -1):
        if free[word]:
            follows = word + 1 < len(free) and joined[word + 1]
            room[word] = 1 + (room[word + 1] if follows else 0)
    count = min(count, int(room.max()))
    return int(random.choice(np.flatnonzero(room >= count))), count
