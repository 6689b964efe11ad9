"""The settings of a training run, checked when they are made."""

import math
import numbers
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
        learning_rate: Peak learning rate; None for what suits the objective.
        schedule: How it falls after the warm-up: ``linear``, ``cosine`` or ``constant``.
        warmup: Optimizer steps over which the rate rises; below 1 a share of the run.
        weight_decay: Decoupled weight decay; biases and normalization layers have none.
        max_grad_norm: Gradients are scaled down to this length; 0 for no clipping.
        precision: ``auto`` (bf16 where the device computes in it, else fp32), ``fp32``, ``bf16``
            or ``fp16`` (CUDA alone).
        seed: Seed of the data order, dropout and a new head.
        normalize: Whether vectors get unit length; None for what suits the objective.
        max_tokens: Where texts are cut; None for what the base declares.
        features: What the head of ``softmax`` sees, of ``u``, ``v``, ``abs_diff``, ``product``.
        temperature: What ``contrastive`` divides cosines by.
        labels: Names of integer labels in the data.
        split: The split of the data that is trained on, or ``all``; None for ``train`` where there
            are several, see `read_nli`.
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
    learning_rate: float | None = None
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
    split: str | None = None
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
        self._set("features", _features(self.features))
        for name in _FLAGS:
            _check_flag(name, getattr(self, name))
        if self.normalize is not None:
            _check_flag("normalize", self.normalize)
        if self.labels is not None:
            self._set("labels", _labels(self.labels))
        if self.split is not None and not isinstance(self.split, str):
            raise InputTypeError(f"split must be a str such as train, found {self.split!r}")
        self._set("report_to", _names("report_to", self.report_to))
        if not isinstance(self.device, str):
            raise InputTypeError(f"device must be a str such as cpu, found {self.device!r}")

    def _check_numbers(self) -> None:
        for name in ("batch_size", "accumulation"):
            self._set(name, whole_number(name, getattr(self, name)))
        for name in ("max_steps", "max_tokens", "checkpoint_steps", "patience"):
            if getattr(self, name) is not None:
                self._set(name, whole_number(name, getattr(self, name)))
        self._set("seed", whole_number("seed", self.seed, least=0))
        if self.seed > _LARGEST_SEED:
            raise InputError(f"seed must be at most {_LARGEST_SEED}, not {self.seed}")
        self._check_above_zero("epochs", "temperature")
        if self.learning_rate is not None:
            self._check_above_zero("learning_rate")
        for name in ("warmup", "weight_decay", "max_grad_norm"):
            self._set(name, _number(name, getattr(self, name)))
            if getattr(self, name) < 0:
                raise InputError(f"{name} must be at least 0, not {getattr(self, name)}")
        if self.warmup >= 1 and self.warmup != int(self.warmup):
            raise InputError(
                f"warmup must be a share below 1 or a whole number of steps, not {self.warmup}"
            )

    def _check_above_zero(self, *names: str) -> None:
        for name in names:
            self._set(name, _number(name, getattr(self, name)))
            if getattr(self, name) <= 0:
                raise InputError(f"{name} must be above 0, not {getattr(self, name)}")

    def _set(self, name: str, value: object) -> None:
        """Keeps a checked value as plain Python's, since libraries and JSON want no NumPy's."""
        object.__setattr__(self, name, value)

    def identity(self) -> dict[str, Any]:
        """All that decides the weights, as JSON can hold it: what a resumed run must share."""
        content = {
            field.name: getattr(self, field.name)
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
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InputTypeError(f"{name} must be a number, not {value!r}")
    try:
        number = float(value)
    except OverflowError:  # a whole number beyond all floats
        number = math.inf
    if not math.isfinite(number):
        raise InputError(f"{name} must be a finite number, not {value}")
    return number


def _check_flag(name: str, value: object) -> None:
    if not isinstance(value, bool):
        raise InputTypeError(f"{name} must be True or False, not {value!r}")


def _choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise InputError(f"{name} must be one of {', '.join(choices)}, not {value!r}")


def _labels(labels: object) -> dict[int, str]:
    if not isinstance(labels, Mapping):
        raise InputTypeError(f"labels must map numbers to names, found {labels!r}")
    checked = {}
    for number, label in labels.items():
        _choice("a name in labels", label, NLI_LABELS)
        checked[whole_number("a number in labels", number, least=-(2**63))] = label
    return checked


def _names(name: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, tuple | list) or not all(isinstance(one, str) for one in value):
        raise InputTypeError(f"{name} must be a tuple of names, found {value!r}")
    return tuple(value)


def _features(features: object) -> tuple[str, ...]:
    if isinstance(features, str) or not features:
        raise InputError(f"features must be a tuple of {', '.join(FEATURES)}, not {features!r}")
    checked = _names("features", features)
    for name in checked:
        _choice("features", name, FEATURES)
    if len(set(checked)) < len(checked):
        raise InputError(f"features must be distinct, found {', '.join(checked)}")
    return checked
