"""`train_nli`: from natural language inference data to a trained sentence encoder."""

import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sbertkit.data.named import find_named, named_data
from sbertkit.data.nli import NliSet, check_pairs, read_nli
from sbertkit.encoder import Encoder
from sbertkit.errors import InputError, InputTypeError
from sbertkit.training.classifier import read_head
from sbertkit.training.config import TrainConfig
from sbertkit.training.dev_set import DevSet
from sbertkit.training.objectives import Objective, ObjectiveKind, Softmax, objective_kind
from sbertkit.training.results import TrainResult
from sbertkit.training.run.distributed import launch
from sbertkit.training.run.folder import RunFolder
from sbertkit.training.run.global_state import own_surroundings
from sbertkit.training.run.runner import run_training
from sbertkit.training.run.setup import Task

logger = logging.getLogger(__name__)

DEFAULT_OBJECTIVE = "contrastive"
NAMED_SET = "all-nli"

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

_DEFAULT = TrainConfig()


def train_nli(
    base: str | os.PathLike[str],
    data: Paths | NliSet | None,
    output: str | os.PathLike[str],
    *,
    pooling: str | None = "mean",
    objective: str = DEFAULT_OBJECTIVE,
    dev: str | os.PathLike[str] | DevSet | None = None,
    config: TrainConfig = _DEFAULT,
) -> TrainResult:
    """Fine-tunes a pretrained encoder on labelled pairs; the model is at `output` when it is done.

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
        objective: ``contrastive`` or ``softmax``.
        dev: Scored sentence pairs, of which the split ``dev`` is used: a file or folder for
            `read_sts`, the name of a data set, or what `DevSet.read` gave.
        config: All further settings.

    Raises:
        InputError: Data, base, output or settings are refused; nothing is written then.
        TrainingStopped: The guard ended the run; the last good checkpoint is kept.
        StorageError: Another run writes to the output, the disk is full or the like; the last
            checkpoint is whole.
        KeyboardInterrupt: Ctrl-C, after a checkpoint was saved.
    """
    check_recipe(objective, dev, config)
    folder = RunFolder(output, main=launch().is_main)
    with own_surroundings(), folder.held():
        folder.check(resume=config.resume)
        prepared = prepare(base, data, pooling=pooling, objective=objective, dev=dev, config=config)
        return run_training(prepared.encoder, prepared.task, folder, prepared.config)


@dataclass(frozen=True, slots=True)
class Prepared:
    """What a run begins with.

    Attributes:
        encoder: The base, not trained yet.
        task: What it is trained on.
        config: How, with nothing left to the objective.
    """

    encoder: Encoder
    task: Task
    config: TrainConfig


def prepare(
    base: str | os.PathLike[str],
    data: Paths | NliSet | None,
    *,
    pooling: str | None,
    objective: str,
    dev: str | os.PathLike[str] | DevSet | None,
    config: TrainConfig,
) -> Prepared:
    """Reads data and base; arguments and errors are those of `train_nli`."""
    kind = objective_kind(objective)
    config = kind.settle(config)
    dev_set = read_dev(dev)
    nli = read_data(data, config)
    kept = _Kept(nli, 0) if dev_set is None else _without_overlap(nli, dev_set, config)
    encoder = Encoder.load(
        base,
        pooling=pooling,
        normalize=config.normalize,
        max_tokens=config.max_tokens,
        device=config.device,
        trust_remote_code=config.trust_remote_code,
    )
    task = Task(
        kind=kind,
        objective=_objective(kind, encoder, config),
        data=kept.data,
        dropped=kept.dropped,
        dev=dev_set,
    )
    return Prepared(encoder, task, config)


def check_recipe(objective: str, dev: object, config: TrainConfig) -> None:
    """Nothing, if the settings go together.

    Raises:
        InputError: They do not, or there is no such objective.
        InputTypeError: No `TrainConfig`.
    """
    objective_kind(objective)
    if not isinstance(config, TrainConfig):
        raise InputTypeError(f"config must be a TrainConfig, found {type(config).__name__}")
    if dev is None and config.patience is not None:
        raise InputError("patience (--patience) counts dev scores: give a dev set (--dev)")
    if dev is None and config.drop_overlap:
        raise InputError("drop_overlap (--drop-overlap) needs a dev set (--dev)")


@dataclass(frozen=True, slots=True)
class _Kept:
    data: NliSet
    dropped: int


def read_data(data: Paths | NliSet | None, config: TrainConfig) -> NliSet:
    """The labelled pairs that `train_nli` would train on; see there."""
    if isinstance(data, NliSet):
        check_pairs(data.pairs)
        return data
    labels = config.labels
    if data is None:
        named = find_named(NAMED_SET)
        labels = labels or named.labels
        data = named_data(named)
    return read_nli(data, labels=labels, split=config.split, progress=config.progress)


def read_dev(dev: str | os.PathLike[str] | DevSet | None) -> DevSet | None:
    """The dev set that `train_nli` would score; see there."""
    return dev if dev is None or isinstance(dev, DevSet) else DevSet.read(dev)


def _without_overlap(nli: NliSet, dev: DevSet, config: TrainConfig) -> _Kept:
    """The data without the pairs of the dev set, where that is wanted; else a warning."""
    overlap = dev.overlap(nli.pairs)
    if not overlap.rows:
        return _Kept(nli, 0)
    count = len(overlap.rows)
    found = (
        f"{count} of {len(nli.pairs)} training pairs are in the dev set too"
        f" ({overlap.shared} more share one sentence with it)"
    )
    if not config.drop_overlap:
        logger.warning(
            "%s: the dev score may flatter; leave them out with drop_overlap (--drop-overlap)",
            found,
        )
        return _Kept(nli, 0)
    logger.warning("%s: left out", found)
    drop = set(overlap.rows)
    pairs = tuple(pair for row, pair in enumerate(nli.pairs) if row not in drop)
    if not pairs:
        raise InputError("every training pair is in the dev set; train on other data")
    return _Kept(replace(nli, pairs=pairs), count)


def _objective(kind: ObjectiveKind, encoder: Encoder, config: TrainConfig) -> Objective:
    """The objective, with the head of the base where it goes on from one."""
    import torch

    from sbertkit.encoder.resolve import resolve_model

    torch.manual_seed(config.seed)
    objective: Any = kind.build(encoder.dim, config)
    if isinstance(objective, Softmax):
        head = read_head(resolve_model(encoder.options.model))
        if head is not None and (head.features, head.dim) == (objective.features, objective.dim):
            logger.info("going on with the classification head of %s", encoder.options.model)
            objective.load_state_dict(head.state_dict())
    return objective  # type: ignore[no-any-return]
