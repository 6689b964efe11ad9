"""The settings of a training run, checked when they are made."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any

from sbertkit.arguments import refuses_unknown, whole_number
from sbertkit.data.nli_labels import NLI_LABELS
from sbertkit.errors import InputError, InputTypeError
from sbertkit.settings import check_settings, setting, settings_of

SCHEDULES = ("linear", "cosine", "constant")
PRECISIONS = ("auto", "fp32", "bf16", "fp16")
LORA_TARGETS = ("attention", "all")
PROPORTIONAL, ROUND_ROBIN = "proportional", "round-robin"

HEAD, ALL = "head", "all"
"""What may move beside a number of layers: what is above them, and everything."""

_EXCLUSIVE = (
    ("freeze_layers", "unfreeze"),
    ("lora", "freeze_layers"),
    ("lora", "unfreeze"),
    ("lora", "layer_decay"),
)

_MAX_SEED = 2**32 - 1
"""NumPy's old generator, which the Trainer seeds, takes no more."""


@refuses_unknown
@dataclass(frozen=True, slots=True)
class TrainConfig:
    """How a run trains, whatever its objective; the help text of each field says what it means."""

    epochs: float = setting(1.0, "Passes over the data, fractions allowed.", above=0)
    max_steps: int | None = setting(None, "Maximum of optimizer steps, in place of epochs.")
    batch_size: int = setting(64, "Examples per batch, of each process.")
    batch_tokens: int | None = setting(
        None,
        "Tokens per batch, padding included, in place of batch_size: many short texts or few long "
        "ones.",
    )
    mini_batch: int | None = setting(
        None,
        "Texts per forward pass, so that large batches fit into memory: gradients are cached, and "
        "each text is computed twice; by default all texts of a batch at once.",
    )
    gradient_checkpointing: bool = setting(
        False,
        "Keep only what goes into each layer for the gradient, and compute the rest again: less "
        "memory, more time, the same gradients.",
    )
    accumulation: int = setting(1, "Batches per optimizer step, whose gradients are added up.")
    learning_rate: float | None = setting(
        None, "Peak learning rate; by default that of the objective.", above=0, flags=("--lr",)
    )
    schedule: str = setting(
        "linear", "How the learning rate falls after the warm-up.", choices=SCHEDULES
    )
    warmup: float = setting(
        0.1, "Steps over which the rate rises; below 1 a share of the run.", minimum=0
    )
    weight_decay: float = setting(
        0.01, "Decoupled weight decay; none for biases and normalization layers.", minimum=0
    )
    max_grad_norm: float = setting(
        1.0, "Gradients are scaled down to this norm; 0 for no clipping.", minimum=0
    )
    freeze_layers: int | None = setting(
        None, "Embeddings and so many of the lowest layers do not move.", minimum=0
    )
    layer_decay: float | None = setting(
        None, "The rate of each layer is that of the next one, times this.", above=0, maximum=1
    )
    unfreeze: str | None = setting(
        None,
        "From which epoch on what moves: head, so many of the highest layers, or all.",
        metavar="0:head,1:2,2:5,3:all",
    )
    merge_base: float | None = setting(
        None,
        "After training the weights are averaged with those of the base, which count so much; "
        "against forgetting.",
        above=0,
        maximum=1,
    )
    lora: int | None = setting(
        None,
        "Train low-rank matrices of this rank beside the weights, which stay, and add them up at "
        "the end.",
        metavar="[RANK]",
        alone=16,
    )
    lora_alpha: float | None = setting(
        None,
        "Times the product of both matrices, divided by the rank; by default twice the rank.",
        above=0,
    )
    lora_dropout: float = setting(
        0.05, "Share of what goes into the matrices that is dropped.", minimum=0, maximum=0.9
    )
    lora_targets: str = setting(
        "attention",
        "Linear layers that get them: those of attention, or all of each layer.",
        choices=LORA_TARGETS,
    )
    precision: str = setting(
        "auto",
        "auto: bf16 where the device computes in it, else fp32; fp16 needs CUDA.",
        choices=PRECISIONS,
    )
    seed: int = setting(1, "Seed of data order, dropout and head.", minimum=0, maximum=_MAX_SEED)
    normalize: bool | None = setting(
        None, "Unit-length vectors in training; by default as the objective wants."
    )
    matryoshka: tuple[int, ...] | None = setting(
        None,
        "Sizes to which vectors are truncated; the loss is the sum of those of all sizes.",
        metavar="384,192,96",
    )
    max_tokens: int | None = setting(
        None,
        "Tokens per text, the rest is truncated; by default as the base declares.",
    )
    labels: Mapping[int, str] | None = setting(
        None, "Names of integer labels in the data: 0=entailment,1=...", metavar="LABELS"
    )
    scale: tuple[float, float] | None = setting(
        None, "Lowest and highest score of the data; by default 0-1.", metavar="LOW-HIGH"
    )
    sampling: str | None = setting(
        None,
        "How several sets take turns: by their sizes, the default, or one after the other until "
        "the smallest ends.",
        choices=(PROPORTIONAL, ROUND_ROBIN),
    )
    split: str | None = setting(
        None, "Split of the data, or all; by default train where it has splits.", metavar="NAME"
    )
    drop_overlap: bool = setting(False, "Leave out training pairs that are in the dev set.")
    checkpoint_steps: int | None = setting(
        None,
        "Steps between checkpoints, each with a dev score; by default a tenth of the run, and at "
        "least 100.",
    )
    patience: int | None = setting(None, "Dev scores without a new best after which the run ends.")
    guard: bool = setting(True, "Stop a run that goes wrong.")
    resume: bool = setting(False, "Resume the unfinished run at the output.", runtime=True)
    progress: bool = setting(False, "Show progress on standard error.", runtime=True, option=False)
    report_to: tuple[str, ...] = setting(
        (), "Trackers of transformers: tensorboard, wandb, ...", runtime=True
    )
    device: str = setting("auto", "auto, cpu, cuda, cuda:1 or mps.", metavar="DEVICE", runtime=True)
    trust_remote_code: bool = setting(
        False, "Run Python code that comes with the base.", runtime=True
    )

    def __post_init__(self) -> None:
        check_settings(self)
        if self.warmup >= 1 and self.warmup != int(self.warmup):
            raise InputError(
                f"warmup must be a share below 1 or a whole number of steps, not {self.warmup}"
            )
        self._check_together()
        _ = self.unfreezing
        if self.labels is not None:
            object.__setattr__(self, "labels", _labels(self.labels))

    def _check_together(self) -> None:
        """Refuses settings of which one makes the other void."""
        for first, second in _EXCLUSIVE:
            if getattr(self, first) is not None and getattr(self, second) is not None:
                raise InputError(f"{_named(first)} and {_named(second)} do not go together")
        for one in fields(self):
            void = self.batch_tokens is not None and one.name == "batch_size"
            if void and self.batch_size != one.default:
                raise InputError(
                    f"{_named('batch_tokens')} and {_named(one.name)} do not go together"
                )
            idle = self.lora is None and one.name.startswith("lora_")
            if idle and getattr(self, one.name) != one.default:
                raise InputError(f"{_named(one.name)} needs {_named('lora')}")

    @property
    def unfreezing(self) -> tuple[tuple[int, str], ...]:
        """The epochs of `unfreeze`, and what moves from each on.

        Raises:
            InputError: It is malformed, or a later entry moves less.
        """
        return () if self.unfreeze is None else _unfreezing(self.unfreeze)

    def identity(self) -> dict[str, Any]:
        """All that decides the weights, as JSON can hold it: what a resumed run must share."""
        settings = settings_of(self)
        content = {name: getattr(self, name) for name in settings if not settings[name].runtime}
        if self.labels is not None:
            content["labels"] = {str(number): name for number, name in self.labels.items()}
        return {key: list(v) if isinstance(v, tuple) else v for key, v in content.items()}


def _named(setting: str) -> str:
    return f"{setting} (--{setting.replace('_', '-')})"


def _unfreezing(text: str) -> tuple[tuple[int, str], ...]:
    entries = [re.fullmatch(rf"\s*(\d+):({HEAD}|{ALL}|\d+)\s*", one) for one in text.split(",")]
    found = [(int(one[1]), one[2]) for one in entries if one]
    epochs = [epoch for epoch, _ in found]
    named = {HEAD: 0.0, ALL: math.inf}
    sizes = [named[what] if what in named else float(what) for _, what in found]
    if len(found) < len(entries) or epochs[0] != 0 or not (_rises(epochs) and _rises(sizes)):
        raise InputError(
            "unfreeze (--unfreeze) must have epochs from 0 on with head, a number of the highest "
            "layers or all, each more than the one before, such as 0:head,1:2,3:all; found "
            f"{text!r}"
        )
    return tuple(found)


def _rises(numbers: Sequence[float]) -> bool:
    return all(one < two for one, two in pairwise(numbers))


def _labels(labels: object) -> dict[int, str]:
    if not isinstance(labels, Mapping):
        raise InputTypeError(f"labels must map numbers to names, found {labels!r}")
    checked = {}
    for number, label in labels.items():
        if label not in NLI_LABELS:
            names = ", ".join(NLI_LABELS)
            raise InputError(f"a name in labels must be one of {names}, not {label!r}")
        checked[whole_number("a number in labels", number, -(2**63))] = label
    return checked
