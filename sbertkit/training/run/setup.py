"""A run made ready: examples, order, steps and precision; all is checked, nothing is written."""

import logging
import math
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch
from transformers import TrainingArguments

from sbertkit.training.batches import BatchOrder, TokenOrder
from sbertkit.training.config import PROPORTIONAL
from sbertkit.training.examples import Examples, TextTable
from sbertkit.training.pretraining.tasks import PretrainingTask
from sbertkit.training.pretraining.training import HeldOut
from sbertkit.training.recipe import Task
from sbertkit.training.run.activations import checkpoint_activations
from sbertkit.training.run.collective import TIMEOUT
from sbertkit.training.run.cpu_functions import training_functions
from sbertkit.training.run.distributed import launch
from sbertkit.training.run.folder import RunFolder
from sbertkit.training.run.lora import LowRank
from sbertkit.training.run.monitor import Plan
from sbertkit.training.run.moving import Moving
from sbertkit.training.run.precision import choose_precision
from sbertkit.training.run.pretraining import table_of, with_held_out
from sbertkit.training.set_order import SetOrder

logger = logging.getLogger(__name__)

_CHECKPOINTS = 10
_MIN_INTERVAL = 100
"""Minimum of steps between checkpoints, or else a short run spends its time on dev scores."""
_LOG_ROWS = 200
"""Rows of the log that the loss makes, about."""


@dataclass(frozen=True, slots=True)
class Setup:
    """A task made ready to run.

    Attributes:
        task: What is trained, on what, and how.
        examples: Rows to train on.
        table: Their texts.
        order: Rows of each batch.
        plan: When what is done.
        moving: What of the encoder moves.
        warmup: Optimizer steps of the warm-up.
        precision: ``fp32``, ``bf16`` or ``fp16``.
        functions: What each forward pass is in.
        low_rank: The matrices of LoRA.
        held_out: Texts that a pretraining task is measured on.
    """

    task: Task
    examples: Examples
    table: TextTable
    order: BatchOrder | SetOrder
    plan: Plan
    moving: Moving
    warmup: int
    precision: str
    functions: AbstractContextManager[Any]
    low_rank: LowRank | None = None
    held_out: HeldOut | None = None

    @property
    def device(self) -> torch.device:
        """Where it trains."""
        return next(self.task.encoder.torch.network.parameters()).device


def set_up(task: Task) -> Setup:
    """The task, ready to run.

    Raises:
        InputError: Data, settings and device do not fit together.
        MissingDependency: A setting needs a package that is not installed.
    """
    encoder, config = task.encoder, task.config
    device = next(encoder.torch.network.parameters()).device
    precision = choose_precision(config.precision, device)
    # Of several processes gradients are averaged, and heads of adapt share embeddings.
    alone = launch().processes == 1 and not isinstance(task.objective, PretrainingTask)
    functions = training_functions(device, embeddings=alone)
    if config.gradient_checkpointing:
        checkpoint_activations(encoder, functions)
    low_rank = None if config.lora is None else LowRank(encoder, config)
    table = table_of(task)
    examples = task.objective.examples(task.data, table)
    table.tokenize()
    task, held_out = with_held_out(task, table)
    order = _order(examples, table, task)
    updates = -(-len(order) // config.accumulation)
    total = config.max_steps or max(1, math.ceil(config.epochs * updates))
    task.objective.check_batches(examples, islice(order, total * config.accumulation))
    warmup, shortened = warmup_steps(config.warmup, total)
    if shortened:
        logger.warning(
            "a warm-up of %g steps is as long as the run of %d: shortened to %d",
            config.warmup,
            total,
            warmup,
        )
    interval = config.checkpoint_steps or max(-(-total // _CHECKPOINTS), _MIN_INTERVAL)
    plan = Plan(total, interval, config.patience)
    moving = Moving(
        encoder,
        task.head,
        config,
        steps_per_epoch=updates,
        epochs=math.ceil(total / updates),
        low_rank=low_rank,
    )
    if moving.parts:
        logger.info("what moves: %s", moving)
    return Setup(
        task,
        examples,
        table,
        order,
        plan,
        moving,
        warmup,
        precision,
        functions,
        low_rank,
        held_out,
    )


def _order(examples: Examples, table: TextTable, task: Task) -> BatchOrder | SetOrder:
    """The batches, each of all processes together."""
    config, lengths = task.config, table.lengths
    size = config.batch_size * launch().processes
    if examples.parts:
        sampling = config.sampling or PROPORTIONAL
        return SetOrder(examples, lengths, size, sampling=sampling, seed=config.seed)
    if config.batch_tokens is not None:
        padded = lengths + -lengths % task.encoder.spec.collator.padded_to
        return TokenOrder(examples, padded, config.batch_tokens, seed=config.seed)
    return BatchOrder(examples, lengths, size, seed=config.seed)


def trainer_arguments(setup: Setup, folder: RunFolder) -> TrainingArguments:
    """The settings as the Trainer takes them."""
    config, plan = setup.task.config, setup.plan
    name = "constant_with_warmup" if config.schedule == "constant" else config.schedule
    on_cpu = setup.device.type == "cpu"
    arguments = TrainingArguments(
        output_dir=str(folder.work),
        max_steps=plan.total,
        per_device_train_batch_size=setup.order.batch_size,
        gradient_accumulation_steps=config.accumulation,
        learning_rate=config.learning_rate,
        lr_scheduler_type=name,
        warmup_steps=setup.warmup,
        weight_decay=config.weight_decay,
        max_grad_norm=config.max_grad_norm,
        optim="adamw_torch_fused" if setup.device.type in ("cpu", "cuda") else "adamw_torch",
        bf16=setup.precision == "bf16",
        fp16=setup.precision == "fp16",
        use_cpu=on_cpu,
        ddp_backend="gloo" if on_cpu and launch().processes > 1 else None,
        ddp_timeout=int(TIMEOUT.total_seconds()),
        seed=config.seed,
        logging_steps=max(1, plan.total // _LOG_ROWS),
        logging_nan_inf_filter=False,
        save_strategy="no",
        eval_strategy="no",
        report_to=list(config.report_to),
        prediction_loss_only=True,
        disable_tqdm=True,
        log_level="error",
        dataloader_pin_memory=False,
        remove_unused_columns=False,
    )
    # One process, one device: splitting a batch over all GPUs of a machine is torchrun's job.
    arguments._n_gpu = min(1, arguments.n_gpu)
    return arguments


def warmup_steps(warmup: float, total: int) -> tuple[int, bool]:
    """Optimizer steps of a warm-up in a run of `total` steps, and whether it had to be shortened.

    At least the last step trains at the full rate; a warm-up as long as the run becomes a tenth.
    """
    if warmup < 1:
        return min(int(warmup * total), total - 1), False
    if warmup < total:
        return int(warmup), False
    return total // 10, True
