"""Pairs classified by the head that the objective softmax has trained."""

import os
from collections.abc import Iterable
from typing import NamedTuple

import torch

from sbertkit.arguments import path_text
from sbertkit.encoder import Encoder
from sbertkit.encoder.resolve import resolve_model
from sbertkit.errors import InputError, InputTypeError
from sbertkit.training.heads import FOLDER, Head, read_head, sets_with_head
from sbertkit.training.objectives import Softmax


class ClassifiedPair(NamedTuple):
    """The likeliest label of a pair, and the probability of each."""

    label: str
    probabilities: dict[str, float]


def classify_pairs(
    model: str | os.PathLike[str],
    pairs: Iterable[tuple[str, str]],
    *,
    device: str = "auto",
) -> list[ClassifiedPair]:
    """How each (premise, hypothesis) pair is labeled by a model trained with ``softmax``.

    Args:
        model: The folder that `train_nli` wrote.
        pairs: Premise and hypothesis.
        device: See `Encoder.load`.

    Raises:
        InputError: The model has no classification head.
        InputTypeError: A pair is not two strings.
    """
    head = _softmax_head(model)
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
    u, v = (torch.stack([vectors[row[side]] for row in rows]) for side in range(2))
    objective = head.objective
    assert isinstance(objective, Softmax)  # noqa: S101
    with torch.inference_mode():
        probabilities = objective.logits(u, v, head.module).softmax(dim=1)
    labels = objective.labels
    return [
        ClassifiedPair(labels[int(row.argmax())], dict(zip(labels, row.tolist(), strict=True)))
        for row in probabilities
    ]


def _softmax_head(model: str | os.PathLike[str]) -> Head:
    """The head of the model that was trained with ``softmax``.

    Raises:
        InputError: There is none, or one for each of several sets.
    """
    folder = resolve_model(path_text(model))
    found = [
        head
        for name in sets_with_head(folder)
        if (head := read_head(folder, name)) is not None and isinstance(head.objective, Softmax)
    ]
    if len(found) > 1:
        raise InputError(
            f"{os.fspath(model)} has {len(found)} classification heads, of several sets; expected "
            "one: train with one set of the objective softmax"
        )
    if not found:
        raise InputError(
            f"{os.fspath(model)} has no classification head: expected one of the objective softmax "
            f"in its folder '{FOLDER}'; train one with the objective softmax"
        )
    return found[0]


def _checked(row: int, pair: object) -> tuple[str, str]:
    match pair:
        case (str() as premise, str() as hypothesis):
            return premise, hypothesis
    raise InputTypeError(
        f"pair {row}: expected (premise, hypothesis), two str, found {type(pair).__name__}"
    )
