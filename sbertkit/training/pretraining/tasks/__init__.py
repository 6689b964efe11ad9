"""The pretraining tasks; each is one module with its options, formula and source."""

from collections.abc import Sequence

from sbertkit.errors import InputError
from sbertkit.training.pretraining.tasks.base import PretrainingTask
from sbertkit.training.pretraining.tasks.joint import JointTask
from sbertkit.training.pretraining.tasks.masking import MaskingTask
from sbertkit.training.pretraining.tasks.mlm import MaskedTokens
from sbertkit.training.pretraining.tasks.nsp import NextSegment
from sbertkit.training.pretraining.tasks.plm import PermutedTokens
from sbertkit.training.pretraining.tasks.retromae import MaskedAutoencoder
from sbertkit.training.pretraining.tasks.rtd import ReplacedTokens
from sbertkit.training.pretraining.tasks.segments import SegmentTask
from sbertkit.training.pretraining.tasks.simcse import DropoutPairs
from sbertkit.training.pretraining.tasks.sop import SegmentOrder
from sbertkit.training.pretraining.tasks.span import MaskedSpans
from sbertkit.training.pretraining.tasks.tsdae import DeletedWords
from sbertkit.training.pretraining.tasks.wwm import MaskedWords

__all__ = [
    "TASKS",
    "DeletedWords",
    "DropoutPairs",
    "JointTask",
    "MaskedAutoencoder",
    "MaskedSpans",
    "MaskedTokens",
    "MaskedWords",
    "NextSegment",
    "PermutedTokens",
    "PretrainingTask",
    "ReplacedTokens",
    "SegmentOrder",
    "find_task",
]

_KINDS: tuple[type[PretrainingTask], ...] = (
    *(MaskedTokens, MaskedWords, MaskedSpans, NextSegment, SegmentOrder),
    *(ReplacedTokens, PermutedTokens, DropoutPairs, DeletedWords, MaskedAutoencoder),
)
TASKS: dict[str, type[PretrainingTask]] = {kind.name: kind for kind in _KINDS}
"""All, by name; the first is the default."""
_MASKING = [one.name for one in _KINDS if issubclass(one, MaskingTask) and one.with_segments]
_SEGMENTS = [one.name for one in _KINDS if issubclass(one, SegmentTask)]
"""Of which one each go together."""


def find_task(task: str | PretrainingTask | Sequence[str | PretrainingTask]) -> PretrainingTask:
    """The task itself, or several as one; a task given by name has the default options.

    Raises:
        InputError: It is none, or there are several that do not go together.
    """
    given = [task] if isinstance(task, str | PretrainingTask) else list(task)
    parts = ([one] if isinstance(one, PretrainingTask) else one.split(",") for one in given)
    names: list[str | PretrainingTask] = [one for part in parts for one in part]
    tasks = [_named(one) if isinstance(one, str) else one for one in names]
    if len(tasks) == 1:
        return tasks[0]
    masking = [one for one in tasks if isinstance(one, MaskingTask) and one.with_segments]
    segments = [one for one in tasks if isinstance(one, SegmentTask)]
    if len(tasks) == 2 and masking and segments:
        return JointTask(masking[0], segments[0])
    raise InputError(
        f"expected one task of {', '.join(TASKS)}, or one of {', '.join(_MASKING)} with one of "
        f"{', '.join(_SEGMENTS)}, found {', '.join(one.name for one in tasks) or 'none'}; choose "
        "(--task), and train with the others afterwards, from what comes out"
    )


def _named(name: str) -> PretrainingTask:
    if name not in TASKS:
        raise InputError(f"task must be one of {', '.join(TASKS)}, not {name!r}")
    return TASKS[name]()
