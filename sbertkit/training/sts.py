"""`train_sts`: from scored pairs of sentences to a trained sentence encoder."""

import os
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from sbertkit.arguments import Paths, path_list
from sbertkit.data.named import local_path
from sbertkit.data.sts import StsPair, StsSet, read_sts
from sbertkit.errors import InputError
from sbertkit.settings import Range
from sbertkit.training.config import TrainConfig
from sbertkit.training.data_forms import SCORED, DataSource, ScoredPair, TrainingData
from sbertkit.training.dev_set import DevSet, pairs_sha256
from sbertkit.training.objectives import Objective, find_objective
from sbertkit.training.recipe import Recipe
from sbertkit.training.start import train

if TYPE_CHECKING:
    from sbertkit.training.results import TrainResult


_DEFAULT = TrainConfig()
_SCALE = Range(0.0, 1.0)
_SPLITS = ("train",)


def train_sts(
    base: str | os.PathLike[str],
    data: Paths | StsSet,
    output: str | os.PathLike[str],
    *,
    pooling: str | None = "mean",
    objective: str | Objective | None = None,
    dev: str | os.PathLike[str] | DevSet | None = None,
    config: TrainConfig = _DEFAULT,
) -> "TrainResult":
    """Fine-tunes an encoder on scored pairs; the model is at `output` when it is done.

    The folder, checkpoints, resuming and the choice of the best checkpoint are as for `train_nli`.

    Args:
        base: A model folder or a hub name.
        data: Files or folders for `read_sts`, names of data sets, or what it read; of several
            splits ``train`` is used. The scores are on the scale of `config`, by default 0 to 1.
        output: A new folder for the trained model.
        pooling: See `Encoder.load`; None for what the base declares.
        objective: ``cosent``, the default, ``cosine`` or ``angle``; or one of
            `sbertkit.training.objectives` with options of its own, such as
            ``Cosent(temperature=0.1)``.
        dev: Scored sentence pairs, of which the split ``dev`` is used: a file or folder for
            `read_sts`, the name of a data set, or what `DevSet.read` gave; or a collection to
            search in, see `RetrievalDevSet.read`.
        config: All further settings.

    Raises:
        InputError: Data, base, output or settings are refused; nothing is written then.
        TrainingStopped: The guard ended the run; the last good checkpoint is kept.
        StorageError: Another run writes to the output, the disk is full or the like; the last
            checkpoint is complete.
        KeyboardInterrupt: Ctrl-C, after a checkpoint was saved.
    """
    recipe = sts_recipe(base, data, pooling=pooling, objective=objective, dev=dev, config=config)
    return train(recipe, output)


def sts_recipe(
    base: str | os.PathLike[str],
    data: Paths | StsSet,
    *,
    pooling: str | None,
    objective: str | Objective | None,
    dev: str | os.PathLike[str] | DevSet | None,
    config: TrainConfig,
) -> Recipe:
    """The recipe of `train_sts`, with its arguments and errors."""
    chosen = find_objective(objective, SCORED)
    return Recipe(base, SCORED, partial(read_data, data), pooling, chosen, dev, config)


def read_data(data: Paths | StsSet, config: TrainConfig) -> TrainingData:
    """The pairs of files and folders for `read_sts`, or of named data sets.

    Raises:
        InputError: They are refused, or scores are outside the scale.
    """
    scale = Range(*(config.scale or _SCALE))
    pairs: list[StsPair] = []
    sources: list[DataSource] = []
    if isinstance(data, StsSet):
        _check_scores(data, scale)
        pairs += data.pairs
    else:
        for path in path_list(data):
            place = local_path(os.fspath(path))
            found = read_sts(place, split=config.split, prefer=_SPLITS, scale=scale)
            sha256 = pairs_sha256(place, found.pairs)
            sources.append(DataSource(os.fspath(path), sha256, len(found.pairs)))
            pairs += found.pairs
    if not pairs:
        raise InputError("expected at least one file or folder of scored pairs, found none")
    return TrainingData(SCORED, _scored(pairs, scale), tuple(sources))


def _scored(pairs: Sequence[StsPair], scale: Range) -> list[ScoredPair]:
    """The pairs with scores from 0 to 1, each in the group above the mean score or not."""
    low, high = scale
    scores = [(pair.score - low) / (high - low) for pair in pairs]
    mean = sum(scores) / len(scores)
    return [
        ScoredPair(pair.first, pair.second, int(score <= mean), score)
        for pair, score in zip(pairs, scores, strict=True)
    ]


def _check_scores(data: StsSet, scale: Range) -> None:
    """Refuses scores that a caller made and that are not on the scale."""
    for number, pair in enumerate(data.pairs):
        if not scale.low <= pair.score <= scale.high:
            raise InputError(
                f"pair {number}: expected a score from {scale.low:g} to {scale.high:g}, found "
                f"{pair.score}; pass the right scale (--scale)"
            )
