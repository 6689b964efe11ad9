"""What the objectives of distillation have in common: a teacher."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import ClassVar

from sbertkit.arguments import refuses_unknown
from sbertkit.errors import InputError
from sbertkit.settings import setting
from sbertkit.training.config import TrainConfig
from sbertkit.training.objectives.base import Objective
from sbertkit.training.run.distributed import launch
from sbertkit.training.teachers import Teacher, teacher_of


@refuses_unknown
@dataclass(frozen=True, slots=True)
class Taught(Objective):
    """An objective that learns from an encoder, the teacher."""

    teacher: str | None = setting(None, "The encoder that is learned from.", option=False)
    known: Teacher | None = field(default=None, compare=False)

    model_option: ClassVar[str] = "teacher"

    def model_fingerprint(self) -> str:
        """That of the teacher."""
        return self.required.fingerprint

    @property
    def required(self) -> Teacher:
        """What is known of the teacher.

        Raises:
            InputError: There is none.
        """
        if self.known is None:
            raise InputError(f"the objective {self.name} needs a teacher; train with distill")
        return self.known

    def loaded(self, config: TrainConfig) -> "Objective":
        """The same, with what is known of its teacher.

        Raises:
            InputError: It cannot be loaded, or there are several processes.
        """
        if launch().processes > 1:
            raise InputError(
                f"distillation is for one process, found {launch().processes}; start one"
            )
        return replace(self, known=teacher_of(self.teacher, config)) if self.teacher else self


def numbered(texts: Iterable[str]) -> dict[str, int]:
    """Distinct texts in their order, with their numbers."""
    return {text: number for number, text in enumerate(dict.fromkeys(texts))}
