"""What training optimizes; each objective is one module with its options, formula and source."""

from sbertkit.errors import InputError
from sbertkit.training.data_forms import DataForm
from sbertkit.training.objectives.angle import Angle
from sbertkit.training.objectives.base import Objective
from sbertkit.training.objectives.bce import BinaryCrossEntropy
from sbertkit.training.objectives.contrastive import Contrastive
from sbertkit.training.objectives.cosent import Cosent
from sbertkit.training.objectives.cosine import Cosine
from sbertkit.training.objectives.margin_mse import MarginMse
from sbertkit.training.objectives.several import Several
from sbertkit.training.objectives.softmax import Softmax
from sbertkit.training.objectives.teacher_scores import TeacherScores
from sbertkit.training.objectives.teacher_vectors import TeacherVectors
from sbertkit.training.objectives.triplet import Triplet

__all__ = [
    "OBJECTIVES",
    "Angle",
    "BinaryCrossEntropy",
    "Contrastive",
    "Cosent",
    "Cosine",
    "MarginMse",
    "Objective",
    "Several",
    "Softmax",
    "TeacherScores",
    "TeacherVectors",
    "Triplet",
    "find_objective",
    "objectives_of",
]

_KINDS = (
    *(Contrastive, Softmax, Cosent, Cosine, Angle, Triplet, BinaryCrossEntropy, MarginMse),
    *(TeacherVectors, TeacherScores, Several),
)
OBJECTIVES: dict[str, type[Objective]] = {kind.name: kind for kind in _KINDS}
"""All, by name; of those for a form of data the first is its default."""


def objectives_of(*forms: DataForm) -> dict[str, type[Objective]]:
    """The objectives that are trained on one of some forms, by name; the default comes first."""
    return {
        name: kind
        for name, kind in OBJECTIVES.items()
        if any(form in kind.data_forms for form in forms)
    }


def find_objective(objective: str | Objective | None, form: DataForm) -> Objective:
    """The objective itself; one given by name has the default options, None is the default.

    Args:
        objective: The objective, or its name.
        form: What it is to be trained on.

    Raises:
        InputError: It is none, or one of other data.
    """
    if isinstance(objective, Objective):
        if form not in objective.data_forms:
            names = " or ".join(one.name for one in objective.data_forms)
            raise InputError(
                f"the objective {objective.name} is trained on {names}, not on {form.name}"
            )
        return objective
    known = objectives_of(form)
    if objective is None:
        return next(iter(known.values()))()
    if not isinstance(objective, str) or objective not in known:
        raise InputError(f"objective must be one of {', '.join(known)}, not {objective!r}")
    return known[objective]()
