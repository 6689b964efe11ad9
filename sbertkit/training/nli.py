"""`train_nli`: from natural language inference data to a trained sentence encoder."""

import os
from functools import partial
from typing import TYPE_CHECKING

from sbertkit.arguments import Paths
from sbertkit.data.named import find_named, named_data
from sbertkit.data.nli import NliSet, check_pairs, read_nli
from sbertkit.training.config import TrainConfig
from sbertkit.training.data_forms import NLI, DataSource, TrainingData
from sbertkit.training.dev_set import DevSet
from sbertkit.training.objectives import Objective, find_objective
from sbertkit.training.recipe import Recipe
from sbertkit.training.start import train

if TYPE_CHECKING:
    from sbertkit.training.results import TrainResult

NAMED_SET = "all-nli"


_DEFAULT = TrainConfig()


def train_nli(
    base: str | os.PathLike[str],
    data: Paths | NliSet | None,
    output: str | os.PathLike[str],
    *,
    pooling: str | None = "mean",
    objective: str | Objective | None = None,
    dev: str | os.PathLike[str] | DevSet | None = None,
    config: TrainConfig = _DEFAULT,
) -> "TrainResult":
    """Fine-tunes a pretrained encoder on labeled pairs; the model is at `output` when it is done.

    The folder is one that `SentenceTransformer` loads, too, with a model card, training curves,
    the metrics log and, for ``softmax``, the classification head. While it trains, checkpoints are
    in a folder beside it, or in it where it is mounted or the working folder; from these an
    interrupted run is resumed to the same weights. Of several dev scores the best decides which
    checkpoint becomes the model.

    Args:
        base: A model folder or a hub name.
        data: Files or folders for `read_nli`, what it read, or None for the hub's ``all-nli``.
        output: A new folder for the trained model.
        pooling: See `Encoder.load`; None for what the base declares.
        objective: ``contrastive``, the default, or ``softmax``; or one of
            `sbertkit.training.objectives` with options of its own, such as
            ``Contrastive(temperature=0.1)``.
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
    recipe = nli_recipe(base, data, pooling=pooling, objective=objective, dev=dev, config=config)
    return train(recipe, output)


def nli_recipe(
    base: str | os.PathLike[str],
    data: Paths | NliSet | None,
    *,
    pooling: str | None,
    objective: str | Objective | None,
    dev: str | os.PathLike[str] | DevSet | None,
    config: TrainConfig,
) -> Recipe:
    """The recipe of `train_nli`, with its arguments and errors."""
    chosen = find_objective(objective, NLI)
    return Recipe(base, NLI, partial(read_data, data), pooling, chosen, dev, config)


def read_data(data: Paths | NliSet | None, config: TrainConfig) -> TrainingData:
    """The pairs of files and folders for `read_nli`, or of the hub's ``all-nli``.

    Raises:
        InputError: They are refused.
    """
    if isinstance(data, NliSet):
        check_pairs(data.pairs)
        nli = data
    else:
        labels = config.labels
        if data is None:
            named = find_named(NAMED_SET)
            data, labels = named_data(named), labels or named.labels
        nli = read_nli(data, labels=labels, split=config.split, progress=config.progress)
    sources = tuple(
        DataSource(one.source, one.sha256, one.rows, one.skipped, one.other_splits)
        for one in nli.sources
    )
    return TrainingData(NLI, nli.pairs, sources)
