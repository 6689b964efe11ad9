"""`adapt`: pretraining of an encoder on one's own texts, which need no labels."""

import os
import zlib
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from sbertkit.arguments import Paths, path_text
from sbertkit.data import ReadOptions
from sbertkit.errors import InputError, InputTypeError
from sbertkit.training.config import TrainConfig
from sbertkit.training.data_forms import UNLABELED, TrainingData
from sbertkit.training.dev_set import DevSet
from sbertkit.training.pretraining.config import AdaptConfig
from sbertkit.training.pretraining.from_scratch import FromScratch
from sbertkit.training.pretraining.tasks import PretrainingTask, find_task
from sbertkit.training.recipe import Recipe
from sbertkit.training.run.distributed import launch
from sbertkit.training.run.folder import RunFolder
from sbertkit.training.start import train
from sbertkit.training.texts import given_paths, read_texts

if TYPE_CHECKING:
    from sbertkit.training.results import TrainResult

_DEFAULT = AdaptConfig()
_READ = ReadOptions()
SCRATCH_RATE = 5e-4
"""Peak learning rate of a new encoder where none is given.

Source: Clark et al. 2020, ELECTRA, table 6, the small model.
"""
MAX_HELD_OUT = 1_000
"""Texts that loss and accuracy are measured on, at most."""


def adapt(
    base: str | os.PathLike[str] | FromScratch,
    corpus: Paths,
    output: str | os.PathLike[str],
    *,
    task: str | PretrainingTask | Sequence[str | PretrainingTask] = "mlm",
    pooling: str | None = None,
    dev: str | os.PathLike[str] | DevSet | None = None,
    read: ReadOptions = _READ,
    config: AdaptConfig = _DEFAULT,
) -> "TrainResult":
    """Pretrains an encoder further on texts without labels.

    The folder, checkpoints and resuming are as for `train_nli`. The heads that predict tokens are
    in the folder ``pretraining`` of the output: a later run continues from them. They begin as the
    base's own head where its checkpoint has one.

    Args:
        base: A model folder or a hub name; or what a new encoder is made of.
        corpus: Corpora for `read_corpus`, one or several.
        output: A new folder for the trained encoder.
        task: A name in `sbertkit.training.pretraining.tasks.TASKS`, or a task with options of its
            own, such as ``MaskedWords(mask=0.2)``; or one that masks with ``nsp`` or ``sop``, such
            as ``("mlm", "sop")``.
        pooling: See `Encoder.load`; None for what the base declares.
        dev: Scored sentence pairs, as `train_nli` takes them.
        read: How corpora are read.
        config: All further settings.

    Raises:
        InputError: Corpus, base, output or settings are refused; nothing is written then.
        InputTypeError: No `AdaptConfig`.
        TrainingStopped: The guard ended the run, or the loss is no longer finite; the last good
            checkpoint is kept.
        StorageError: Another run writes to the output, the disk is full or the like; the last
            checkpoint is complete.
        KeyboardInterrupt: Ctrl-C, after a checkpoint was saved.
    """
    recipe = adapt_recipe(
        base, corpus, task=task, pooling=pooling, dev=dev, read=read, config=config
    )
    if not isinstance(base, FromScratch):
        return train(recipe, output)
    RunFolder(output).check(resume=config.resume)
    data = recipe.read(recipe.config)
    texts = [row[0] for row in data.rows]
    with base.written(texts, seed=config.seed, progress=config.progress) as folder:
        return train(replace(recipe, base=folder, read=lambda _: data), output)


def adapt_recipe(
    base: str | os.PathLike[str] | FromScratch,
    corpus: Paths,
    *,
    task: str | PretrainingTask | Sequence[str | PretrainingTask],
    pooling: str | None,
    dev: str | os.PathLike[str] | DevSet | None,
    read: ReadOptions,
    config: AdaptConfig,
) -> Recipe:
    """The recipe of `adapt`, with its arguments and errors."""
    if not isinstance(config, AdaptConfig):
        raise InputTypeError(f"config must be an AdaptConfig, found {type(config).__name__}")
    chosen = find_task(task)
    if config.mini_batch is not None:
        raise InputError(
            "mini_batch (--mini-batch) caches gradients of text vectors, which adapt has none of; "
            "take a smaller batch_size (--batch-size) with accumulation (--accumulation)"
        )
    if launch().processes > 1:
        raise InputError(f"adapt is for one process, found {launch().processes}; start one")
    paths = given_paths(corpus)
    if not paths:
        raise InputError("expected a corpus to train on, found none")
    # Predicting tokens may narrow the cone of text vectors, which later training widens again; that
    # of random weights is narrow before.
    guarded = chosen.shapes_vectors and not isinstance(base, FromScratch)
    config = replace(config, guard=config.guard and guarded)
    name: str | os.PathLike[str] = base.config if isinstance(base, FromScratch) else base
    if isinstance(base, FromScratch) and config.learning_rate is None:
        config = replace(config, learning_rate=SCRATCH_RATE)
    return Recipe(
        path_text(name),
        UNLABELED,
        partial(_read, paths, read, chosen),
        pooling,
        chosen,
        dev,
        config,
    )


def _read(
    paths: Sequence[str], read: ReadOptions, task: PretrainingTask, config: TrainConfig
) -> TrainingData:
    """The texts, some of which are held out."""
    if config.split is not None:
        raise InputError(f"split (--split) is not for {UNLABELED.name}; leave it out")
    data = read_texts(UNLABELED, paths, read, documents=task.documents)
    share = config.held_out if isinstance(config, AdaptConfig) else 0.0
    distinct = list(dict.fromkeys(row[0] for row in data.rows))
    _check_count(len(distinct), task, paths[0])
    held_out = set(_held_out(distinct, share, config.seed, task.min_held_out))
    return replace(
        data,
        rows=[row for row in data.rows if row[0] not in held_out],
        held_out=[row for row in dict.fromkeys(data.rows) if row[0] in held_out],
    )


def _check_count(count: int, task: PretrainingTask, path: str) -> None:
    """Nothing, if there are enough different texts to train on some and hold out others.

    Raises:
        InputError: There are not.
    """
    minimum = 2 * task.min_held_out
    if count >= minimum:
        return
    if task.documents:
        raise InputError(
            f"{path}: expected at least {minimum} different documents for the task {task.name}, of "
            f"which some are held out, found {count}; divide documents by blank lines, give them "
            "as records, or add some"
        )
    raise InputError(
        f"{path}: expected several different texts, of which some are held out, found one; "
        "split it into records or lines, or add texts"
    )


def _held_out(texts: Sequence[str], share: float, seed: int, minimum: int) -> list[str]:
    """Some of distinct texts, the same for the same seed, whatever their order."""
    count = min(MAX_HELD_OUT, max(minimum, round(share * len(texts))))
    return sorted(
        texts, key=lambda text: (zlib.crc32(f"{seed} {text}".encode(errors="replace")), text)
    )[:count]
