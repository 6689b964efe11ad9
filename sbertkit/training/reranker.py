"""`train_reranker`: from queries with relevant documents and others to a trained cross-encoder."""

import os
from functools import partial
from typing import TYPE_CHECKING

from sbertkit.arguments import Paths
from sbertkit.data.ranking import RankingSet
from sbertkit.training.config import TrainConfig
from sbertkit.training.data_forms import RANKING
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


def train_reranker(
    base: str | os.PathLike[str],
    data: Paths | RankingSet,
    output: str | os.PathLike[str],
    *,
    objective: str | Objective | None = None,
    dev: str | os.PathLike[str] | DevSet | None = None,
    mine: SearchLike | None = None,
    mining: Mining = _MINING,
    config: TrainConfig = _DEFAULT,
) -> "TrainResult":
    """Fine-tunes an encoder, or a cross-encoder, to score how well documents answer a query.

    The folder is one that `CrossEncoder` loads, too, with a model card, training curves and the
    metrics log. Checkpoints, resuming and the choice of the best one are as for `train_nli`.

    Args:
        base: A model folder or a hub name; one without a head for one score gets a new one.
        data: Files or folders for `read_ranking`, or what it read.
        output: A new folder for the trained model.
        objective: ``bce``, the default, or ``margin-mse``; or one of
            `sbertkit.training.objectives` with options of its own, such as
            ``MarginMse(teacher="models/large")``.
        dev: Labeled pairs: a file or folder for `read_ranking`. The dev score is Spearman's
            correlation of scores with labels.
        mine: An index from which negatives of each query are mined, beside those of the data.
        mining: How many, and how deep.
        config: All further settings.

    Raises:
        InputError: Data, base, output or settings are refused; nothing is written then.
        TrainingStopped: The guard ended the run; the last good checkpoint is kept.
        StorageError: Another run writes to the output, the disk is full or the like; the last
            checkpoint is complete.
        KeyboardInterrupt: Ctrl-C, after a checkpoint was saved.
    """
    recipe = reranker_recipe(
        base, data, objective=objective, dev=dev, mine=mine, mining=mining, config=config
    )
    return train(recipe, output)


def reranker_recipe(
    base: str | os.PathLike[str],
    data: Paths | RankingSet,
    *,
    objective: str | Objective | None,
    dev: str | os.PathLike[str] | DevSet | None,
    mine: SearchLike | None,
    mining: Mining,
    config: TrainConfig,
) -> Recipe:
    """The recipe of `train_reranker`, with its arguments and errors."""
    chosen = find_objective(objective, RANKING)
    return Recipe(
        base, RANKING, partial(read_rows, RANKING, data, mine, mining), None, chosen, dev, config
    )
