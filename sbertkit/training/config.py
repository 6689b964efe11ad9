"""The settings of a training run, checked when they are made."""

import operator
import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from sbertkit.arguments import whole_number
from sbertkit.data.nli import NLI_LABELS
from sbertkit.errors import InputError, InputTypeError

SCHEDULES = ("linear", "cosine", "constant")
PRECISIONS = ("auto", "fp32", "bf16", "fp16")
FEATURES = ("u", "v", "abs_diff", "product")

_HOW_IT_RUNS = ("resume", "progress", "report_to", "device", "trust_remote_code")
"""Settings that change nothing about the weights, so that a resumed run may have others."""


_FLAGS = ("drop_overlap", "guard", "resume", "progress", "trust_remote_code")
_LARGEST_SEED = 2**32 - 1
"""NumPy's old generator, which the Trainer seeds, takes no more."""


@dataclass(frozen=True, slots=True)
class TrainConfig:
    """How a run trains.

    Attributes:
        epochs: Passes over the data, fractions allowed.
        max_steps: Optimizer steps at most, in the place of `epochs`.
        batch_size: Examples a batch (on each device).
        accumulation: Batches whose gradients are added up for one optimizer step.
        learning_rate: Peak learning rate.
        schedule: How it falls after the warm-up: ``linear``, ``cosine`` or ``constant``.
        warmup: Optimizer steps over which the rate rises; below 1 a share of the run.
        weight_decay: Decoupled weight decay; biases and normalization layers have none.
        max_grad_norm: Gradients are scaled down to this length; 0 for no clipping.
        precision: ``auto`` (bf16 where the device computes in it, else fp32), ``fp32``, ``bf16``
            or ``fp16`` (CUDA alone).
        seed: Seed of the data order, dropout and a new head.
        normalize: Whether vectors get unit length; None for what the objective wants.
        max_tokens: Where texts are cut; None for what the base declares.
        features: What the head of ``softmax`` sees, of ``u``, ``v``, ``abs_diff``, ``product``.
        temperature: What ``contrastive`` divides cosines by.
        labels: Names of integer labels in the data.
        drop_overlap: Leave out training pairs that are in the dev set.
        checkpoint_steps: Optimizer steps between checkpoints, each with a dev score; None for a
            tenth of the run, and at least 100.
        patience: Dev scores without a new best after which the run ends; None for no early end.
        guard: Whether a run that goes wrong is stopped.
        resume: Continue the unfinished run at the output.
        progress: Show progress on standard error.
        report_to: Trackers of the transformers library, such as ``tensorboard`` or ``wandb``.
        device: ``auto``, ``cpu``, ``cuda``, ``cuda:1`` or ``mps``.
        trust_remote_code: Run Python code that comes with the base.
    """

    epochs: float = 1.0
    max_steps: int | None = None
    batch_size: int = 64
    accumulation: int = 1
    learning_rate: float = 5e-5
    schedule: str = "linear"
    warmup: float = 0.1
    weight_decay: float = 0.01
    max_grad_norm: float = 1.0
    precision: str = "auto"
    seed: int = 1
    normalize: bool | None = None
    max_tokens: int | None = None
    features: tuple[str, ...] = ("u", "v", "abs_diff")
    temperature: float = 0.05
    labels: Mapping[int, str] | None = None
    drop_overlap: bool = False
    checkpoint_steps: int | None = None
    patience: int | None = None
    guard: bool = True
    resume: bool = False
    progress: bool = False
    report_to: tuple[str, ...] = ()
    device: str = "auto"
    trust_remote_code: bool = False

    def __post_init__(self) -> None:
        self._check_numbers()
        _choice("schedule", self.schedule, SCHEDULES)
        _choice("precision", self.precision, PRECISIONS)
        _check_features(self.features)
        for name in _FLAGS:
            _check_flag(name, getattr(self, name))
        if self.normalize is not None:
            _check_flag("normalize", self.normalize)
        if not isinstance(self.labels, Mapping | None):
            raise InputTypeError(f"labels must map numbers to names, found {self.labels!r}")
        for number, label in (self.labels or {}).items():
            whole_number("a number in labels", number, least=-(2**63))
            _choice("a name in labels", label, NLI_LABELS)
        if not isinstance(self.report_to, tuple | list):
            raise InputTypeError(f"report_to must be a tuple of names, found {self.report_to!r}")

    def _check_numbers(self) -> None:
        for name in ("batch_size", "accumulation"):
            whole_number(name, getattr(self, name))
        for name in ("max_steps", "max_tokens", "checkpoint_steps", "patience"):
            if getattr(self, name) is not None:
                whole_number(name, getattr(self, name))
        if whole_number("seed", self.seed, least=0) > _LARGEST_SEED:
            raise InputError(f"seed must be at most {_LARGEST_SEED}, not {self.seed}")
        for name in ("epochs", "learning_rate", "temperature"):
            if _number(name, getattr(self, name)) <= 0:
                raise InputError(f"{name} must be above 0, not {getattr(self, name)}")
        for name in ("warmup", "weight_decay", "max_grad_norm"):
            if _number(name, getattr(self, name)) < 0:
                raise InputError(f"{name} must be at least 0, not {getattr(self, name)}")
        if self.warmup >= 1 and self.warmup != int(self.warmup):
            raise InputError(
                f"warmup must be a share below 1 or a whole number of steps, not {self.warmup}"
            )

    def identity(self) -> dict[str, Any]:
        """All that decides the weights, as JSON can hold it: what a resumed run must share."""
        content = {
            field.name: _plain(getattr(self, field.name))
            for field in fields(self)
            if field.name not in _HOW_IT_RUNS
        }
        content["features"] = list(self.features)
        if self.labels is not None:
            content["labels"] = {str(number): name for number, name in self.labels.items()}
        return content


def warmup_steps(warmup: float, total: int) -> tuple[int, bool]:
    """Optimizer steps of a warm-up in a run of `total` steps, and whether it had to be shortened.

    At least the last step trains at the full rate; a warm-up as long as the run becomes a tenth.
    """
    if warmup < 1:
        return min(int(warmup * total), total - 1), False
    if warmup < total:
        return int(warmup), False
    return total // 10, True


def _number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputTypeError(f"{name} must be a number, not {value!r}")
    if not abs(value) <= sys.float_info.max:  # NaN too, and whole numbers beyond all floats
        raise InputError(f"{name} must be a finite number, not {value}")
    return float(value)


def _check_flag(name: str, value: object) -> None:
    if not isinstance(value, bool):
        raise InputTypeError(f"{name} must be True or False, not {value!r}")


def _plain(value: Any) -> Any:
    """A whole number of NumPy as one of Python, since JSON knows those alone."""
    whole = hasattr(value, "__index__") and not isinstance(value, bool)
    return operator.index(value) if whole else value


def _choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise InputError(f"{name} must be one of {', '.join(choices)}, not {value!r}")


def _check_features(features: tuple[str, ...]) -> None:
    if features is not None and not isinstance(features, str | tuple | list):
        raise InputTypeError(f"features must be a tuple of {', '.join(FEATURES)}, not {features!r}")
    if isinstance(features, str) or not features:
        raise InputError(f"features must be a tuple of {', '.join(FEATURES)}, not {features!r}")
    for name in features:
        _choice("features", name, FEATURES)
    if len(set(features)) < len(features):
        raise InputError(f"features must be distinct, found {', '.join(features)}")
