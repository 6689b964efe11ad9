"""transformers' Trainer with our batches, our loss and checkpoints that survive.

It overrides private methods of the Trainer: setup.py has an upper bound of the version for them.
"""

import math
from collections import defaultdict
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from accelerate.data_loader import prepare_data_loader
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset
from transformers import (
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainerState,
    TrainingArguments,
)

from sbertkit.errors import TrainingStopped
from sbertkit.storage import writer_errors
from sbertkit.training.batches import BatchOrder, Collator
from sbertkit.training.pretraining.training import Pretrainer, TaskCollator
from sbertkit.training.run.checkpoint_state import (
    OPTIMIZER,
    SCHEDULER,
    STATE_FILE,
    check_schedule,
    checked_optimizer,
    loading,
)
from sbertkit.training.run.checkpoints import CheckpointStore
from sbertkit.training.run.collective import average_gradients
from sbertkit.training.run.cpu_functions import CpuFunctions
from sbertkit.training.run.monitor import Monitor
from sbertkit.training.run.moving import Moving
from sbertkit.training.run.siamese import Siamese
from sbertkit.training.set_order import SetOrder


class _RowNumbers(Dataset[int]):
    """Rows stand for themselves; the collator knows what is in them."""

    def __init__(self, rows: int) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return self._rows

    def __getitem__(self, row: int) -> int:
        return row


class _Unfreezing(TrainerCallback):  # type: ignore[misc]  # no types there
    """Lets those parts move that do so in the epoch of each step."""

    def __init__(self, moving: Moving) -> None:
        self._moving = moving

    def on_step_begin(self, args: Any, state: TrainerState, control: Any, **_: Any) -> None:
        self._moving.at_step(state.global_step)


class SiameseTrainer(Trainer):  # type: ignore[misc]  # no types there
    """Trains a `Siamese` or a `Pretrainer`.

    Args:
        model: On its device.
        args: Settings of the Trainer.
        order: Rows of each batch.
        collator: Makes a batch of rows.
        store: Where checkpoints go.
        monitor: Watches the run.
        moving: What of the model moves.
        functions: What each forward pass is in.
        write_model: Writes encoder and head as they are now into a folder.
        read_model: Takes the weights of encoder and head from such a folder.
    """

    def __init__(
        self,
        model: Siamese | Pretrainer,
        args: TrainingArguments,
        *,
        order: BatchOrder | SetOrder,
        collator: Collator | TaskCollator,
        store: CheckpointStore,
        monitor: Monitor,
        moving: Moving,
        functions: AbstractContextManager[Any],
        write_model: Callable[[Path], None],
        read_model: Callable[[Path], None],
    ) -> None:
        self._order = order
        self._collator = collator
        self._store = store
        self._monitor = monitor
        self._moving = moving
        self._functions = functions
        self._write_model = write_model
        self._read_model = read_model
        self._losses: dict[str, list[float]] = defaultdict(list)
        super().__init__(
            model=model,
            args=args,
            train_dataset=_RowNumbers(collator.rows),
            data_collator=collator,
            callbacks=[monitor, _Unfreezing(moving)],
        )
        self.remove_callback(PrinterCallback)
        monitor.report = self.log

    def create_optimizer(self, model: nn.Module | None = None) -> Any:
        """The optimizer, with a group for each part that has a rate of its own."""
        if not self._moving.has_rates:
            return super().create_optimizer(model)
        names = set(self.get_decay_parameter_names(self.model))
        decayed = {id(one) for name, one in self.model.named_parameters() if name in names}
        kind, settings = self.get_optimizer_cls_and_kwargs(self.args, self.model)
        self.optimizer = kind(self._moving.groups(decayed, self.args.weight_decay), **settings)
        return self.optimizer

    def get_train_dataloader(self) -> Any:
        """The batches, on the device of this process; all processes have the same ones."""
        loader: DataLoader[int] = DataLoader(
            self.train_dataset,
            batch_sampler=self._order,
            collate_fn=self._collator,
            generator=torch.Generator(),  # or else each epoch draws from the global one
        )
        device = self.accelerator.device
        return prepare_data_loader(
            loader, device, num_processes=1, process_index=0, put_on_device=True
        )

    def _wrap_model(self, model: nn.Module, *_: Any, **__: Any) -> nn.Module:
        """The model as it is, in its precision.

        Of several processes the gradients are averaged once per step, in `training_step`: DDP
        cannot do so where parts are frozen at times, or computed again as in gradient caching.
        """
        prepared: nn.Module = self.accelerator.prepare_model(model, evaluation_mode=True)
        prepared._is_accelerate_prepared = True  # type: ignore[assignment]
        return prepared

    def training_step(self, model: nn.Module, *arguments: Any, **more: Any) -> Tensor:
        """Forward and backward pass of a batch."""
        loss: Tensor = super().training_step(model, *arguments, **more)
        if self.accelerator.sync_gradients:
            average_gradients(model.parameters())
        return loss

    def compute_loss(
        self,
        model: nn.Module,
        inputs: dict[str, Any],
        return_outputs: bool = False,
        num_items_in_batch: Any = None,
    ) -> Any:
        """The loss of a batch.

        Raises:
            TrainingStopped: It is not finite.
        """
        loss: Tensor = model(inputs)
        if not math.isfinite(loss.item()):
            raise TrainingStopped(self._not_finite("the loss"))
        for name, value in self.model.named_losses(loss, inputs).items():
            self._losses[name].append(value)
        self._monitor.progress.examples += len(inputs["columns"])
        return (loss, {}) if return_outputs else loss

    def log(self, logs: dict[str, float], *arguments: Any) -> None:
        """Logs values, beside a loss those of its parts, each the mean since the last one."""
        if "loss" in logs:
            means = {f"loss {name}": fmean(found) for name, found in sorted(self._losses.items())}
            logs = {**logs, **means}
            self._losses.clear()
        super().log(logs, *arguments)

    def _clip_grad_norm(self, model: nn.Module) -> Any:
        if isinstance(self._functions, CpuFunctions):
            return self._functions.clip(model.parameters(), self.args.max_grad_norm)
        return super()._clip_grad_norm(model)

    def _get_grad_norm(self, model: nn.Module, grad_norm: Any = None) -> Any:
        norm = super()._get_grad_norm(model, grad_norm=grad_norm)
        # With fp16 the scaler meets infinite gradients now and then, and leaves such a step out.
        if self.accelerator.scaler is None and not math.isfinite(float(norm)):
            raise TrainingStopped(self._not_finite("the gradient"))
        return norm

    def _not_finite(self, what: str) -> str:
        return (
            f"{what} is no longer a finite number at step {self.state.global_step + 1}; lower the "
            "learning rate or lengthen the warm-up, train in fp32, or look for damaged base weights"
        )

    def _save_checkpoint(self, model: nn.Module, trial: Any) -> None:
        step = self.state.global_step
        staged = self._store.staging(step)
        if self.args.world_size > 1:
            if self.args.should_save:
                staged.mkdir(parents=True, exist_ok=True)
            self.accelerator.wait_for_everyone()
            self._save_rng_state(str(staged))
            self.accelerator.wait_for_everyone()
        if self.args.should_save:
            self._store.write(
                step, self._fill_checkpoint, self._monitor.state(), self._monitor.progress.best_step
            )

    def _fill_checkpoint(self, folder: Path) -> None:
        """Writes what a resumed run needs, with the Trainer's own functions where it has them."""
        (folder / "model").mkdir()
        self._write_model(folder / "model")
        with writer_errors(folder, RuntimeError):
            self._save_optimizer_and_scheduler(str(folder))
            self._save_scaler(str(folder))
            if self.args.world_size == 1:
                self._save_rng_state(str(folder))
        # The log has its rows already, and an infinite one is nothing for strict JSON.
        replace(self.state, log_history=[]).save_to_json(str(folder / STATE_FILE))

    def _load_from_checkpoint(self, checkpoint_path: str) -> None:
        self._read_model(Path(checkpoint_path) / "model")

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        if checkpoint is None:
            return
        folder = Path(checkpoint)
        check_schedule(folder / SCHEDULER, self.lr_scheduler)
        with checked_optimizer(
            folder / OPTIMIZER, self.optimizer, complete=not self._moving.is_progressive
        ):
            super()._load_optimizer_and_scheduler(checkpoint)

    def _load_scaler(self, checkpoint: str | None) -> None:
        if checkpoint is not None:
            with loading(Path(checkpoint) / "scaler.pt"):
                super()._load_scaler(checkpoint)

    def _load_rng_state(self, checkpoint: str | None) -> None:
        if checkpoint is not None:
            several = self.args.world_size > 1
            name = f"rng_state_{self.args.process_index}.pth" if several else "rng_state.pth"
            with loading(Path(checkpoint) / name):
                super()._load_rng_state(checkpoint)
