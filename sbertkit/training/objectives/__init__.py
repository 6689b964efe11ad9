"""What training optimizes; each objective is one module with its options, formula and source."""

from collections.abc import Mapping

from sbertkit.errors import InputError
from sbertkit.training.objectives.base import Objective
from sbertkit.training.objectives.contrastive import Contrastive
from sbertkit.training.objectives.ranking import BinaryCrossEntropy, MarginMse
from sbertkit.training.objectives.softmax import Softmax

__all__ = [
    "DEFAULT_OBJECTIVE",
    "OBJECTIVES",
    "RANKING_OBJECTIVES",
    "BinaryCrossEntropy",
    "Contrastive",
    "MarginMse",
    "Objective",
    "Softmax",
    "find_objective",
]

DEFAULT_OBJECTIVE = Contrastive.name
OBJECTIVES: dict[str, type[Objective]] = {kind.name: kind for kind in (Contrastive, Softmax)}
"""Of encoders of texts."""
RANKING_OBJECTIVES: dict[str, type[Objective]] = {
    kind.name: kind for kind in (BinaryCrossEntropy, MarginMse)
}
"""Of re-rankers."""


def find_objective(
    objective: str | Objective, known: Mapping[str, type[Objective]] = OBJECTIVES
) -> Objective:
    """The objective itself; one given by name has the default options.

    Args:
        objective: The objective, or its name.
        known: Those that there are for the task.

    Raises:
        InputError: There is none of that name.
    """
    if isinstance(objective, Objective):
        return objective
    if not isinstance(objective, str) or objective not in known:
        raise InputError(f"objective must be one of {', '.join(known)}, not {objective!r}")
    return known[objective]()
