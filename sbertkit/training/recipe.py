"""What is trained, on what and how: the arguments of a run."""

import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from sbertkit.arguments import path_text
from sbertkit.encoder import Encoder
from sbertkit.encoder.resolve import resolve_model
from sbertkit.errors import InputError, InputTypeError
from sbertkit.training.config import TrainConfig
from sbertkit.training.data_forms import FORM_SETTINGS, DataForm, TrainingData
from sbertkit.training.dev_set import DevSet, RankingDevSet
from sbertkit.training.objectives import Objective
from sbertkit.training.pretraining.tasks import PretrainingTask
from sbertkit.training.retrieval_dev import read_dev

if TYPE_CHECKING:
    from torch import nn

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Task:
    """A recipe whose data and base are loaded.

    Attributes:
        encoder: The base, which is trained in place.
        objective: Gives the loss.
        head: The objective's own layer.
        data: Rows to train on.
        dev: The dev set, if any.
        config: All further settings, with nothing left to the objective.
        layers: The layers of the base that are trained, from 0; None for all.
    """

    encoder: Encoder
    objective: Objective
    head: "nn.Module"
    data: TrainingData
    dev: DevSet | None
    config: TrainConfig
    layers: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Recipe:
    """What is trained, on what, and how.

    Attributes:
        base: A model folder or a hub name.
        form: What a row of the data is.
        read: Reads the data.
        pooling: See `Encoder.load`; None for what the base declares.
        objective: What is optimized.
        dev: What `read_dev` takes or gave.
        config: All further settings.
        layers: See `with_layers`; None for all layers of the base.

    Raises:
        InputError: Settings that do not go together.
        InputTypeError: No `TrainConfig`.
    """

    base: str | os.PathLike[str]
    form: DataForm
    read: Callable[[TrainConfig], TrainingData]
    pooling: str | None
    objective: Objective
    dev: str | os.PathLike[str] | DevSet | None
    config: TrainConfig
    layers: int | Sequence[int] | None = None

    def __post_init__(self) -> None:
        config = self.config
        if not isinstance(config, TrainConfig):
            raise InputTypeError(f"config must be a TrainConfig, found {type(config).__name__}")
        for name in FORM_SETTINGS:
            if name not in self.form.settings and getattr(config, name) is not None:
                raise InputError(f"{name} is not for {self.form.name}; leave it out")
        if self.dev is None and config.patience is not None:
            raise InputError("patience (--patience) counts dev scores: pass dev (--dev)")
        if self.dev is None and config.drop_overlap:
            raise InputError("drop_overlap (--drop-overlap) needs dev (--dev)")

    def dev_set(self) -> DevSet | None:
        """The dev set, read where that has not been done."""
        dev = self.dev
        if dev is None or isinstance(dev, DevSet):
            return dev
        return RankingDevSet.read(dev) if self.form.task == "rerank" else read_dev(dev)

    def with_data(self) -> "Recipe":
        """The same with data and dev set in memory, for several runs."""
        dev, data = self.dev_set(), self.read(self.config)
        return replace(self, read=lambda _: data, dev=dev)

    def load(self) -> Task:
        """Reads data and base; nothing is written.

        Raises:
            InputError: Data, base or settings are refused.
        """
        loaded = self.with_data()
        objective = self.objective.loaded(self.config)
        config = objective.with_defaults(self.config)
        data, dev = loaded.read(config), loaded.dev_set()
        if dev is not None:
            data = _without_overlap(data, dev, config)
        base, layers = self._with_layers(self._base(config))
        encoder = objective.student(base)
        if encoder is not base and config.merge_base is not None:
            raise InputError(
                "merge_base (--merge-base) is not for a student that gets a new linear layer, of "
                "which its base has none; leave one of them out"
            )
        head = self._head(encoder)
        self.check_sizes(encoder.dim, head)
        return Task(encoder, objective, head, data, dev, config, layers)

    def _with_layers(self, base: Encoder) -> tuple[Encoder, tuple[int, ...] | None]:
        """The layers of the base that are wanted, and their numbers."""
        if self.layers is None:
            return base, None
        from sbertkit.encoder.layers import choose_layers, with_layers

        count = base.torch.transformer.layer_count
        chosen = choose_layers(self.layers, count, base.options.model)
        return with_layers(base, chosen), chosen

    def check_sizes(self, dim: int, head: "nn.Module") -> None:
        """Nothing, if vectors can be truncated in training to the sizes that are asked for.

        Args:
            dim: That of the vectors.
            head: That of the objective.

        Raises:
            InputError: They cannot.
        """
        sizes = self.config.matryoshka
        if sizes is None:
            return
        named = [
            one.objective.name for one in self.objective.heads(head) if one.module.state_dict()
        ]
        if named:
            raise InputError(
                f"matryoshka (--matryoshka) is not for the objective {named[0]}, whose "
                "head takes vectors of one size; choose another objective (--objective)"
            )
        if max(sizes) > dim:
            raise InputError(
                f"matryoshka (--matryoshka) must be sizes up to that of the vectors, {dim}, found "
                f"{max(sizes)}"
            )

    def _base(self, config: TrainConfig) -> Encoder:
        """The base; for a re-ranker, with a head, which is new where it has none."""
        if self.form.task == "embed":
            return Encoder.load(
                self.base,
                pooling=self.pooling,
                normalize=config.normalize,
                max_tokens=config.max_tokens,
                device=config.device,
                trust_remote_code=config.trust_remote_code,
            )
        import torch

        from sbertkit.encoder.backends.torch import choose_device
        from sbertkit.encoder.options import LoadOptions
        from sbertkit.encoder.torch_model import load_torch_model
        from sbertkit.encoder.torch_runtime import TorchRuntime

        options = LoadOptions(
            path_text(self.base), max_tokens=config.max_tokens, device=config.device, task="rerank"
        )
        torch.manual_seed(config.seed)
        model = load_torch_model(
            options,
            choose_device(config.device),
            new_head=True,
            trust_remote_code=config.trust_remote_code,
        )
        return Encoder(TorchRuntime(model))

    def _head(self, encoder: Encoder) -> "nn.Module":
        """The head of the base, where it was trained in the same way, or a new one."""
        import torch  # once the data is known to be right

        from sbertkit.training.heads import read_head

        torch.manual_seed(self.config.seed)
        folder = resolve_model(encoder.options.model)
        if isinstance(self.objective, PretrainingTask):
            return self._task_head(self.objective, encoder, folder)
        head = self.objective.make_head(encoder.dim)
        for one in self.objective.heads(head):
            known = None
            if one.module.state_dict():
                known = read_head(folder, one.name) or read_head(folder)
            if known is not None and (known.objective, known.dim) == (one.objective, encoder.dim):
                logger.info("continuing from the head of %s", encoder.options.model)
                one.module.load_state_dict(known.module.state_dict())
        return head

    def _task_head(self, task: PretrainingTask, encoder: Encoder, folder: Path) -> "nn.ModuleDict":
        """The heads of a pretraining task, which continue those of the base."""
        from sbertkit.training.pretraining.heads import load_task_heads

        head = task.task_head(encoder)
        for name in load_task_heads(head, folder):
            logger.info("continuing from the head %s of %s", name, encoder.options.model)
        return head


def _without_overlap(data: TrainingData, dev: DevSet, config: TrainConfig) -> TrainingData:
    """The data without the pairs of the dev set, where that is wanted; else a warning."""
    overlap = dev.overlap(data.rows)
    if not overlap.rows:
        return data
    found = (
        f"{len(overlap.rows)} of {len(data.rows)} training pairs are in the dev set too"
        f" ({overlap.shared} more share one sentence with it)"
    )
    if not config.drop_overlap:
        logger.warning(
            "%s: the dev score may flatter; leave them out with drop_overlap (--drop-overlap)",
            found,
        )
        return data
    logger.warning("%s: left out", found)
    drop = set(overlap.rows)
    kept = tuple(one for row, one in enumerate(data.rows) if row not in drop)
    if not kept:
        raise InputError("every training pair is in the dev set; train on other data")
    return replace(data, rows=kept, overlapping=len(drop))
