"""The pretraining tasks; each is one module with its options, formula and source."""

from collections.abc import Sequence

from sbertkit.errors import InputError
from sbertkit.training.pretraining.tasks.base import PretrainingTask
from sbertkit.training.pretraining.tasks.mlm import MaskedTokens
from sbertkit.training.pretraining.tasks.retromae import MaskedAutoencoder
from sbertkit.training.pretraining.tasks.simcse import DropoutPairs
from sbertkit.training.pretraining.tasks.span import MaskedSpans
from sbertkit.training.pretraining.tasks.tsdae import DeletedWords
from sbertkit.training.pretraining.tasks.wwm import MaskedWords

__all__ = [
    "TASKS",
    "DeletedWords",
    "DropoutPairs",
    "MaskedAutoencoder",
    "MaskedSpans",
    "MaskedTokens",
    "MaskedWords",
    "PretrainingTask",
    "find_task",
]

_KINDS = (
    MaskedTokens,
    MaskedWords,
    MaskedSpans,
    DropoutPairs,
    DeletedWords,
    MaskedAutoencoder,
)
TASKS: dict[str, type[PretrainingTask]] = {kind.name: kind for kind in _KINDS}
"""All, by name; the first is the default."""


def find_task(task: str | PretrainingTask | Sequence[str | PretrainingTask]) -> PretrainingTask:
    """The task itself; one given by name has the default options.

    Raises:
        InputError: It is none, or there are several.
    """
    given = [task] if isinstance(task, str | PretrainingTask) else list(task)
    parts = ([one] if isinstance(one, PretrainingTask) else one.split(",") for one in given)
    names: list[str | PretrainingTask] = [one for part in parts for one in part]
    if len(names) != 1:
        found = ", ".join(one if isinstance(one, str) else one.name for one in names)
        raise InputError(
            f"expected one task of {', '.join(TASKS)}, found {found or 'none'}; choose one "
            "(--task), and train with the others afterwards, from what comes out"
        )
    (one,) = names
    if isinstance(one, PretrainingTask):
        return one
    if one not in TASKS:
        raise InputError(f"task must be one of {', '.join(TASKS)}, not {one!r}")
    return TASKS[one]()
