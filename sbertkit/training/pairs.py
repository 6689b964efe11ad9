"""`train_pairs`: from anchors with positives and hard negatives to a trained sentence encoder."""

import os
from functools import partial
from typing import TYPE_CHECKING

from sbertkit.arguments import Paths
from sbertkit.data.ranking import RankingSet
from sbertkit.training.config import TrainConfig
from sbertkit.training.data_forms import PAIRS
from sbertkit.training.dev_set import DevSet
from sbertkit.training.mining import Mining, SearchLike
from sbertkit.training.objectives import Objective, find_objective
from sbertkit.training.ranking_rows import read_rows
from sbertkit.training.recipe import Recipe
from sbertkit.training.start import train

if TYPE_CHECKING:
    from sbertkit.training.results import TrainResult

_DEFAULT = TrainConfig()
_MINING = Mining()


def train_pairs(
    base: str | os.PathLike[str],
    data: Paths | RankingSet,
    output: str | os.PathLike[str],
    *,
    pooling: str | None = "mean",
    objective: str | Objective | None = None,
    dev: str | os.PathLike[str] | DevSet | None = None,
    mine: SearchLike | None = None,
    mining: Mining = _MINING,
    config: TrainConfig = _DEFAULT,
) -> "TrainResult":
    """Fine-tunes an encoder on pairs and triplets; the model is at `output` when it is done.

    The folder, checkpoints, resuming and the choice of the best checkpoint are as for `train_nli`.
    Anchors are encoded as queries, where the base has a prompt for them, and the others as
    documents.

    Args:
        base: A model folder or a hub name.
        data: Files or folders for `read_ranking`, or what it read: the documents of a query are
            its positives and negatives.
        output: A new folder for the trained model.
        pooling: See `Encoder.load`; None for what the base declares.
        objective: ``contrastive``, the default, ``triplet`` or ``margin-mse``; or one of
            `sbertkit.training.objectives` with options of its own, such as
            ``Triplet(margin=0.3)``.
        dev: Scored sentence pairs, of which the split ``dev`` is used: a file or folder for
            `read_sts`, the name of a data set, or what `DevSet.read` gave; or a collection to
            search in, see `RetrievalDevSet.read`.
        mine: An index from which negatives of each anchor are mined, beside those of the data.
        mining: How many, and how deep.
        config: All further settings.

    Raises:
        InputError: Data, base, output or settings are refused; nothing is written then.
        TrainingStopped: The guard ended the run; the last good checkpoint is kept.
        StorageError: Another run writes to the output, the disk is full or the like; the last
            checkpoint is complete.
        KeyboardInterrupt: Ctrl-C, after a checkpoint was saved.
    """
    recipe = pairs_recipe(
        base,
        data,
        pooling=pooling,
        objective=objective,
        dev=dev,
        mine=mine,
        mining=mining,
        config=config,
    )
    return train(recipe, output)


def pairs_recipe(
    base: str | os.PathLike[str],
    data: Paths | RankingSet,
    *,
    pooling: str | None,
    objective: str | Objective | None,
    dev: str | os.PathLike[str] | DevSet | None,
    mine: SearchLike | None,
    mining: Mining,
    config: TrainConfig,
) -> Recipe:
    """The recipe of `train_pairs`, with its arguments and errors."""
    chosen = find_objective(objective, PAIRS)
    read = partial(read_rows, PAIRS, data, mine, mining)
    return Recipe(base, PAIRS, read, pooling, chosen, dev, config)
