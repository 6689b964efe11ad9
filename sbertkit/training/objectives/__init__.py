"""What training optimizes; each objective is one module with its formula and source."""

from sbertkit.errors import InputError
from sbertkit.training.objectives import contrastive, softmax
from sbertkit.training.objectives.base import Objective, ObjectiveKind
from sbertkit.training.objectives.contrastive import Contrastive
from sbertkit.training.objectives.softmax import Softmax

__all__ = ["OBJECTIVES", "Contrastive", "Objective", "ObjectiveKind", "Softmax", "objective_kind"]

OBJECTIVES = {kind.name: kind for kind in (softmax.KIND, contrastive.KIND)}


def objective_kind(name: str) -> ObjectiveKind:
    """The objective of that name.

    Raises:
        InputError: There is none.
    """
    if not isinstance(name, str) or name not in OBJECTIVES:
        raise InputError(f"objective must be one of {', '.join(OBJECTIVES)}, not {name!r}")
    return OBJECTIVES[name]
