"""What training optimizes; each objective is one module with its options, formula and source."""

from sbertkit.errors import InputError
from sbertkit.training.objectives.base import Objective
from sbertkit.training.objectives.contrastive import Contrastive
from sbertkit.training.objectives.softmax import Softmax

__all__ = [
    "DEFAULT_OBJECTIVE",
    "OBJECTIVES",
    "Contrastive",
    "Objective",
    "Softmax",
    "find_objective",
]

DEFAULT_OBJECTIVE = Contrastive.name
OBJECTIVES: dict[str, type[Objective]] = {kind.name: kind for kind in (Contrastive, Softmax)}


def find_objective(objective: str | Objective) -> Objective:
    """The objective itself; one given by name has the default options.

    Raises:
        InputError: There is none of that name.
    """
    if isinstance(objective, Objective):
        return objective
    if not isinstance(objective, str) or objective not in OBJECTIVES:
        raise InputError(f"objective must be one of {', '.join(OBJECTIVES)}, not {objective!r}")
    return OBJECTIVES[objective]()
