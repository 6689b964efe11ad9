"""`merge`: two encoders of the same shape to one, whose weights are their average."""

import logging
import os
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from sbertkit.arguments import output_folder, path_text, real_number
from sbertkit.encoder import Encoder
from sbertkit.encoder.layout import read_model_folder
from sbertkit.encoder.model_files import MODULES_FILE
from sbertkit.encoder.resolve import resolve_model
from sbertkit.encoder.saving import lineage_name, write_model_files
from sbertkit.errors import InputError
from sbertkit.storage import clear_leftovers, staged_folder, storage_errors
from sbertkit.training.averages import average_into, check_alike, kept_weights
from sbertkit.training.heads import sets_with_head
from sbertkit.training.report.merged_card import merged_card

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Merged:
    """What was written.

    Attributes:
        folder: The merged encoder.
        fingerprint: Its fingerprint.
        record: How it came about, as in ``sbertkit.json``.
    """

    folder: Path
    fingerprint: str
    record: dict[str, Any]


def merge(
    a: str | os.PathLike[str],
    b: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    weight: float = 0.5,
    trust_remote_code: bool = False,
) -> Merged:
    """Averages the weights of two encoders: ``weight * A + (1 - weight) * B``.

    Both were trained from the same base, or one of them is that base: the average of an encoder and
    its base forgets less of what the base knew. The folder is like that of a training, without a
    classification head; limit and prompts are those of A.

    Args:
        a: A model folder or a hub name. A plain encoder is taken with the pooling and
            normalization of the other one.
        b: Another one.
        output: A new folder for the merged encoder.
        weight: What A counts, from 0 to 1.
        trust_remote_code: Run Python code that comes with the models.

    Raises:
        InputError: Shapes, architecture, tokenizer, pooling or normalization differ, or the output
            exists; nothing is written then.
        StorageError: The disk is full or the like; the output is then as it was.

    Source: Wortsman et al. 2022, Robust fine-tuning of zero-shot models (WiSE-FT), section 3.
    """
    share = _share(weight)
    folder = output_folder(output)
    names = path_text(a), path_text(b)
    _check_output(folder, names)
    first, second = _loaded(names, trust_remote_code=trust_remote_code)
    check_alike(first.torch, second.torch)
    _warn_of_differences(first, second)
    parts = [
        {"model": lineage_name(one.options.model), "fingerprint": one.fingerprint, "weight": part}
        for one, part in ((first, share), (second, round(1 - share, 9)))
    ]
    average_into(first.torch, kept_weights(second.torch), 1 - share)
    record = {
        "merged": parts,
        "dim": first.dim,
        "normalized": first.normalizes,
        "max_tokens": first.max_tokens,
        "pooling": first.pooling,
        "versions": {name: version(name) for name in ("sbertkit", "torch", "transformers")},
    }

    def add(place: Path) -> None:
        (place / "README.md").write_text(merged_card(record), encoding="utf-8")

    with storage_errors(folder):
        clear_leftovers(folder)
        with staged_folder(folder, replace=False, last=MODULES_FILE) as staged:
            write_model_files(first.torch, staged, lineage=record, add=add)
    return Merged(folder, first.fingerprint, record)


def _share(weight: float) -> float:
    """The weight of the first encoder.

    Raises:
        InputError: It is not from 0 to 1.
        InputTypeError: It is no number.
    """
    share = real_number("weight", weight)
    if not 0 <= share <= 1:
        raise InputError(f"weight (--weight) must be from 0 to 1, not {weight}")
    return share


def _check_output(folder: Path, names: tuple[str, str]) -> None:
    """Refuses an output that is there, or lies in one of the models.

    Raises:
        InputError: It does.
    """
    with storage_errors(folder):
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            what = "exists and is not empty" if folder.is_dir() else "is a file"
            raise InputError(f"{folder} {what}; choose a new folder for the merged encoder")
        for name in names:
            if Path(name).is_dir() and folder.is_relative_to(Path(name).resolve()):
                raise InputError(f"{folder} is in the model {name}; choose another folder")


def _loaded(names: tuple[str, str], *, trust_remote_code: bool) -> tuple[Encoder, Encoder]:
    """Both encoders; a plain one has the pooling and normalization that the other declares."""
    declares = [read_model_folder(resolve_model(name)).declares_modules for name in names]

    def load(name: str, like: Encoder | None = None) -> Encoder:
        return Encoder.load(
            name,
            pooling=None if like is None else like.pooling,
            normalize=None if like is None else like.normalizes,
            backend="torch",
            device="cpu",
            trust_remote_code=trust_remote_code,
        )

    if declares[0] or not declares[1]:
        first = load(names[0])
        return first, load(names[1], None if declares[1] else first)
    second = load(names[1])
    return load(names[0], second), second


def _warn_of_differences(first: Encoder, second: Encoder) -> None:
    """Reports what is taken of the first encoder, and what of both is left out."""
    for what, one, two in (
        ("token limit", first.max_tokens, second.max_tokens),
        ("prompts", first.prompts, second.prompts),
    ):
        if one != two:
            logger.warning("their %s differ: that of %s is kept", what, first.options.model)
    for model in (first.options.model, second.options.model):
        if sets_with_head(resolve_model(model)):
            logger.warning("the classification head of %s is left out", model)
