"""What training optimizes; each objective is one module with its formula and source."""

from collections.abc import Callable
from dataclasses import dataclass

from sbertkit.errors import InputError
from sbertkit.training.config import TrainConfig
from sbertkit.training.objectives.base import Objective
from sbertkit.training.objectives.contrastive import Contrastive
from sbertkit.training.objectives.softmax import Softmax

__all__ = ["OBJECTIVES", "Contrastive", "Objective", "ObjectiveKind", "Softmax", "objective_kind"]


@dataclass(frozen=True, slots=True)
class ObjectiveKind:
    """An objective by name.

    Attributes:
        name: As users write it.
        build: Makes it for vectors of a size, with a new head where it has one.
        normalize: Whether it is best trained on vectors of unit length.
        unit: What one of its examples is called.
    """

    name: str
    build: Callable[[int, TrainConfig], Objective]
    normalize: bool
    unit: str


OBJECTIVES: dict[str, ObjectiveKind] = {
    kind.name: kind
    for kind in (
        ObjectiveKind(
            "softmax", lambda dim, config: Softmax(dim, config.features), False, "labelled pairs"
        ),
        ObjectiveKind(
            "contrastive", lambda _, config: Contrastive(config.temperature), True, "triplets"
        ),
    )
}


def objective_kind(name: str) -> ObjectiveKind:
    """The objective of that name.

    Raises:
        InputError: There is none.
    """
    if not isinstance(name, str) or name not in OBJECTIVES:
        raise InputError(f"objective must be one of {', '.join(OBJECTIVES)}, not {name!r}")
    return OBJECTIVES[name]
