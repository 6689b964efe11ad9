"""What a run takes from a checkpoint, checked before it is used.

The files of a checkpoint have the right hashes, but whoever made it may have been anybody.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch
from torch.optim import Optimizer
from transformers import TrainerState

from sbertkit.errors import InputError
from sbertkit.files import read_regular
from sbertkit.schema import Count, Positive, as_record, parse_json
from sbertkit.training.run.checkpoints import MANIFEST, Checkpoint, Scalar
from sbertkit.training.run.monitor import MonitorState

STATE_FILE = "trainer_state.json"
OPTIMIZER, SCHEDULER = "optimizer.pt", "scheduler.pt"


@dataclass(frozen=True, slots=True)
class _TrainerState:
    """The Trainer's own state, as it writes it."""

    epoch: float
    global_step: Positive
    max_steps: Positive
    logging_steps: Positive
    eval_steps: Positive
    save_steps: Positive
    train_batch_size: Positive
    num_train_epochs: Count
    num_input_tokens_seen: Count
    total_flos: float
    log_history: list[dict[str, Scalar]]
    best_metric: float | None
    best_global_step: Count | None
    best_model_checkpoint: str | None
    is_local_process_zero: bool
    is_world_process_zero: bool
    is_hyper_param_search: bool
    trial_name: str | None
    trial_params: None
    stateful_callbacks: dict[str, dict[str, dict[str, Scalar]]]


def read_state(checkpoint: Checkpoint) -> MonitorState:
    """What the monitor knew, once the Trainer's own state is known to be that of the checkpoint.

    Raises:
        InputError: A field of one of them is missing, unknown, or of another type.
    """
    path = checkpoint.folder / STATE_FILE
    try:
        content = parse_json(read_regular(path), path)
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}); start a new run") from error
    step = as_record(content, _TrainerState, path).global_step
    unknown = sorted(content.keys() - {field.name for field in fields(TrainerState)})
    if unknown:
        raise InputError(f"{path} has a field {unknown[0]!r}; expected those of the Trainer alone")
    if step != checkpoint.step:
        raise InputError(f"{path} is of step {step}; expected step {checkpoint.step}")
    for name in (OPTIMIZER, SCHEDULER):
        if not (checkpoint.folder / name).is_file():
            raise InputError(f"{checkpoint.folder} has no {name}; start a new run")
    return as_record(checkpoint.state, MonitorState, checkpoint.folder / MANIFEST)


@contextmanager
def loading(path: Path) -> Iterator[None]:
    """Turns whatever torch raises at a file of a checkpoint into one error that names it.

    Raises:
        InputError: The file cannot be loaded without running what is in it, or does not fit.
    """
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # pickles, archives and states of any kind
        raise _unfit(path, " ".join(str(error).split())[:200]) from error


def check_schedule(path: Path, scheduler: Any) -> None:
    """Nothing, if the scheduler can continue from the state in that file.

    Raises:
        InputError: A field is missing, unknown, or of another type, and would be set as it is.
    """
    with loading(path):
        found = torch.load(path, map_location="cpu", weights_only=True)
    if not _is_same_kind(scheduler.state_dict(), found):
        raise _unfit(path, "its fields are not those of this schedule")


@contextmanager
def checked_optimizer(path: Path, optimizer: Optimizer, *, complete: bool = True) -> Iterator[None]:
    """Lets the block load the optimizer's state from that file, which must fit the weights.

    Args:
        path: The file.
        optimizer: As it is before any step.
        complete: Whether all weights have moved; else some may have no moments yet.

    Raises:
        InputError: A setting or moment has another name, type or shape, which the first step
            would fail on.
    """
    settings = _settings(optimizer)
    with loading(path):
        yield
    if not _is_same_kind(settings, _settings(optimizer)):
        raise _unfit(path, "its settings are of other names or types")
    for parameter in (one for group in optimizer.param_groups for one in group["params"]):
        state = optimizer.state[parameter]
        shapes = {name: getattr(value, "shape", None) for name, value in state.items()}
        like = parameter.shape
        if not (complete or shapes):
            continue
        if shapes != {"step": torch.Size(), "exp_avg": like, "exp_avg_sq": like}:
            raise _unfit(path, f"found {shapes} for weights of shape {like}")


def _settings(optimizer: Optimizer) -> list[dict[str, Any]]:
    return [
        {name: value for name, value in group.items() if name != "params"}
        for group in optimizer.param_groups
    ]


def _is_same_kind(known: Any, found: Any) -> bool:
    """Whether two states differ in nothing but numbers and texts."""
    if isinstance(known, dict) and isinstance(found, dict):
        return known.keys() == found.keys() and all(
            _is_same_kind(known[name], found[name]) for name in known
        )
    if isinstance(known, list | tuple) and isinstance(found, list | tuple):
        return len(known) == len(found) and all(map(_is_same_kind, known, found))
    if type(known) in (int, float):
        return type(found) in (int, float)
    return type(known) is type(found)


def _unfit(path: Path, reason: str) -> InputError:
    return InputError(f"{path} cannot be loaded ({reason}); start a new run")
