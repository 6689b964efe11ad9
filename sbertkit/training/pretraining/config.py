"""The settings of `adapt` beside those of all training."""

from dataclasses import dataclass

from sbertkit.arguments import refuses_unknown
from sbertkit.settings import setting
from sbertkit.training.config import TrainConfig


@refuses_unknown
@dataclass(frozen=True, slots=True)
class AdaptConfig(TrainConfig):
    """How a run of `adapt` trains, whatever its task."""

    held_out: float = setting(
        0.05,
        "Share of the texts that is not trained on, at most 1,000 texts: loss and accuracy are "
        "measured on them.",
        above=0,
        maximum=0.5,
    )
    pack: bool = setting(
        False,
        "Join texts, in their order, to examples of max_tokens tokens; by default each text is an "
        "example of its own.",
    )
