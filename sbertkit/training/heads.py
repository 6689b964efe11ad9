"""The head beside a model: the files of the weights that an objective trains on top."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from sbertkit.arguments import whole_number
from sbertkit.errors import InputError
from sbertkit.training.objectives import OBJECTIVES, Objective
from sbertkit.training.pretraining.heads import load_task_heads, write_task_heads
from sbertkit.training.pretraining.tasks import PretrainingTask

FOLDER = "head"
FOLDER_OF_SETS = "heads"
"""Has a folder with a head for each of several sets."""
_CONFIG, _WEIGHTS = "config.json", "model.safetensors"


class Head(NamedTuple):
    """A head that was read, the objective it was trained with, and the size of its vectors."""

    module: nn.Module
    objective: Objective
    dim: int


def write_heads(head: nn.Module, objective: Objective, dim: int, folder: Path) -> None:
    """Writes the head of an objective, or of each set, into a model folder where it has weights."""
    if isinstance(objective, PretrainingTask):
        write_task_heads(head, folder)
    for one in objective.heads(head):
        _write(one.module, one.objective, dim, _place(folder, one.name))


def load_heads(head: nn.Module, objective: Objective, folder: Path) -> None:
    """Takes the weights of the heads of a model folder that `write_heads` wrote.

    Raises:
        InputError: See `read_head`.
    """
    if isinstance(objective, PretrainingTask):
        load_task_heads(head, folder)
    for one in objective.heads(head):
        known = read_head(folder, one.name)
        if known is not None:
            one.module.load_state_dict(known.module.state_dict())


def sets_with_head(folder: Path) -> list[str]:
    """The names of the sets whose heads a model folder has; an empty name for the only head."""
    if (folder / FOLDER).is_dir():
        return [""]
    return sorted(path.name for path in (folder / FOLDER_OF_SETS).glob("*/"))


def _place(folder: Path, name: str) -> Path:
    return folder / FOLDER_OF_SETS / name if name else folder / FOLDER


def _write(head: nn.Module, objective: Objective, dim: int, place: Path) -> None:
    weights = {name: tensor.detach().cpu() for name, tensor in head.state_dict().items()}
    if not weights:
        return
    place.mkdir(parents=True)
    config = {
        "objective": objective.name,
        "options": objective.options,
        "labels": list(objective.labels),
        "dim": dim,
    }
    (place / _CONFIG).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    save_file({name: tensor.contiguous() for name, tensor in weights.items()}, place / _WEIGHTS)


def read_head(folder: Path, name: str = "") -> Head | None:
    """The head of a model folder, in evaluation mode; None where it has none.

    Args:
        folder: Of the model.
        name: The set that it was trained on, where there were several.

    Raises:
        InputError: Its files are damaged, or it has other labels than this version.
    """
    place = _place(folder, name)
    if not place.is_dir():
        return None
    try:
        return _read(place)
    except (OSError, ValueError, KeyError, TypeError, RuntimeError, SafetensorError) as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"{place}: the head cannot be read: {reason}") from error


def _read(place: Path) -> Head:
    config = json.loads((place / _CONFIG).read_bytes())
    objective = OBJECTIVES[config["objective"]](**config["options"])
    dim, labels = whole_number("dim", config["dim"]), objective.labels
    if tuple(config["labels"]) != labels:
        raise ValueError(f"expected the labels {', '.join(labels)}, found {config['labels']}")
    weights = load_file(place / _WEIGHTS)
    with torch.device("meta"):  # no memory is taken before the shapes are known to be right
        module = objective.make_head(dim)
    expected, found = _shapes(module.state_dict()), _shapes(weights)
    if found != expected:
        raise ValueError(f"expected weights of the shapes {expected}, found {found}")
    if not all(tensor.isfinite().all() for tensor in weights.values()):
        raise ValueError("weights that are not finite")
    module.load_state_dict(weights, assign=True)
    return Head(module.eval(), objective, dim)


def _shapes(weights: Mapping[str, Tensor]) -> dict[str, Any]:
    return {name: tuple(tensor.shape) for name, tensor in sorted(weights.items())}
