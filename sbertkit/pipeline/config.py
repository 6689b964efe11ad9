"""The settings of a recipe."""

from dataclasses import dataclass

from sbertkit.arguments import refuses_unknown
from sbertkit.settings import check_settings, setting
from sbertkit.training.pretraining.tasks import TASKS, find_task

NO_TASK = "none"
"""In place of a task: the step is left out."""


@refuses_unknown
@dataclass(frozen=True, slots=True)
class RecipeConfig:
    """What the steps of a recipe do; the help text of each field says what it means."""

    task: str = setting(
        "mlm",
        f"What adapt learns from the texts: {', '.join(TASKS)}, or one of them that masks with nsp "
        f"or sop (mlm,sop); {NO_TASK} leaves the step out.",
        metavar="TASK",
    )
    pooling: str = setting("mean", "The pooling that is trained, see train-nli.")
    adapt_steps: int | None = setting(
        None, "Maximum of steps of adapt; by default one pass over the texts."
    )
    nli_steps: int | None = setting(
        None, "Maximum of steps of train-nli; by default one pass over the data."
    )
    batch_size: int = setting(64, "Examples per batch of both trainings.")
    max_tokens: int | None = setting(
        None,
        "Tokens per text in both trainings, the rest is truncated; by default as the base "
        "declares.",
    )
    guard: bool = setting(True, "Watch the space of text vectors in training, see train-nli.")
    recall: float = setting(
        0.95, "The recall@10 that the index is tuned to reach.", above=0, maximum=1
    )
    sample: int = setting(
        2_000, "Maximum of texts that encoders are scored on.", minimum=100, maximum=20_000
    )
    seed: int = setting(0, "Of all random draws.", minimum=0)
    device: str = setting("auto", "auto, cpu, cuda, cuda:1, mps.", runtime=True)
    trust_remote_code: bool = setting(
        False, "Run Python code that comes with the base.", runtime=True
    )

    def __post_init__(self) -> None:
        check_settings(self)
        if self.task != NO_TASK:
            find_task(self.task)
