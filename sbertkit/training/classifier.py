"""The classification head beside a model: its files, and pairs classified by it."""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from sbertkit.arguments import path_text, whole_number
from sbertkit.data.nli import NLI_LABELS
from sbertkit.encoder import Encoder
from sbertkit.encoder.resolve import resolve_model
from sbertkit.errors import InputError, InputTypeError
from sbertkit.training.config import FEATURES
from sbertkit.training.objectives import Objective, Softmax

FOLDER = "classifier"
_CONFIG, _WEIGHTS = "config.json", "model.safetensors"


class ClassifiedPair(NamedTuple):
    """The likeliest label of a pair, and the probability of each."""

    label: str
    probabilities: dict[str, float]


def write_head(objective: Objective, folder: Path) -> None:
    """Writes the head into a model folder, where the objective has one."""
    if not isinstance(objective, Softmax):
        return
    place = folder / FOLDER
    place.mkdir()
    config = {
        "objective": "softmax",
        "features": list(objective.features),
        "labels": list(NLI_LABELS),
        "dim": objective.dim,
    }
    text = json.dumps(config, indent=2) + "\n"
    (place / _CONFIG).write_text(text, encoding="utf-8")
    weights = {
        name: tensor.detach().cpu().contiguous() for name, tensor in objective.state_dict().items()
    }
    save_file(weights, place / _WEIGHTS)


def read_head(folder: Path) -> Softmax | None:
    """The head of a model folder; None where it has none.

    Raises:
        InputError: Its files are damaged, or it has other labels than this version.
    """
    place = folder / FOLDER
    if not place.is_dir():
        return None
    try:
        config = json.loads((place / _CONFIG).read_bytes())
        features, labels = config["features"], config["labels"]
        dim = whole_number("dim", config["dim"])
        shape = (len(NLI_LABELS), len(features) * dim)
        if tuple(labels) != NLI_LABELS or not set(features) <= set(FEATURES):
            raise ValueError(
                f"expected the labels {', '.join(NLI_LABELS)} and known features, found {labels} "
                f"and {features}"
            )
        weights = load_file(place / _WEIGHTS)
        if tuple(weights["head.weight"].shape) != shape:  # before memory for so many is taken
            raise ValueError(
                f"expected weights of shape {shape}, found {tuple(weights['head.weight'].shape)}"
            )
        head = Softmax(dim, features)
        if not all(tensor.isfinite().all() for tensor in weights.values()):
            raise ValueError("weights that are not finite")
        head.load_state_dict(weights)
    except (OSError, ValueError, KeyError, TypeError, RuntimeError, SafetensorError) as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"{place}: the classification head cannot be read: {reason}") from error
    return head.eval()


def classify_pairs(
    model: str | os.PathLike[str],
    pairs: Iterable[tuple[str, str]],
    *,
    device: str = "auto",
) -> list[ClassifiedPair]:
    """How each (premise, hypothesis) pair is labelled by a model trained with ``softmax``.

    Args:
        model: The folder that `train_nli` wrote.
        pairs: Premise and hypothesis.
        device: See `Encoder.load`.

    Raises:
        InputError: The model has no classification head.
        InputTypeError: A pair is not two strings.
    """
    head = read_head(resolve_model(path_text(model)))
    if head is None:
        raise InputError(
            f"{os.fspath(model)} has no classification head: expected a folder '{FOLDER}' in it; "
            "train one with train-nli --objective softmax"
        )
    if not isinstance(pairs, Iterable):
        raise InputTypeError(
            f"expected pairs of premise and hypothesis, found {type(pairs).__name__}"
        )
    rows = [_checked(row, pair) for row, pair in enumerate(pairs)]
    if not rows:
        return []
    encoder = Encoder.load(model, device=device)
    if encoder.dim != head.dim:
        raise InputError(
            f"{os.fspath(model)}: the classification head is one for vectors of size {head.dim}, "
            f"found {encoder.dim}; take the head that was trained with this model"
        )
    texts = list(dict.fromkeys(text for row in rows for text in row))
    vectors = dict(zip(texts, torch.from_numpy(encoder.encode(texts)), strict=True))
    u = torch.stack([vectors[premise] for premise, _ in rows])
    v = torch.stack([vectors[hypothesis] for _, hypothesis in rows])
    with torch.inference_mode():
        probabilities = head.logits(u, v).softmax(dim=1)
    return [
        ClassifiedPair(
            NLI_LABELS[int(row.argmax())], dict(zip(NLI_LABELS, row.tolist(), strict=True))
        )
        for row in probabilities
    ]


def _checked(row: int, pair: object) -> tuple[str, str]:
    match pair:
        case (str() as premise, str() as hypothesis):
            return premise, hypothesis
    raise InputTypeError(
        f"pair {row}: expected (premise, hypothesis), two str, found {type(pair).__name__}"
    )
