"""The monitor: scores and logs a run step by step, and decides when to save or stop."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from types import FrameType
from typing import Any

import torch
import torch.distributed as dist
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from sbertkit.encoder import Encoder
from sbertkit.errors import InputError
from sbertkit.progress import Advance
from sbertkit.schema import Count
from sbertkit.training.dev_set import DevSet
from sbertkit.training.run.distributed import launch
from sbertkit.training.run.guard import NOT_FINITE, Guard, Probe
from sbertkit.training.run.metrics_log import RunLog

_FIRST_PROBE = 8
_LABELS_COUNT_FROM = 0.2
"""Share of a run from which on the order of the labels counts."""


@dataclass(frozen=True, slots=True)
class Plan:
    """When a run does what, in optimizer steps.

    Attributes:
        total: Steps of the whole run.
        checkpoint: Steps between checkpoints and dev scores.
        patience: Dev scores without a new best that end the run; None for no such end.
    """

    total: int
    checkpoint: int
    patience: int | None

    def is_checkpoint(self, step: int) -> bool:
        """Whether a checkpoint is due."""
        return step % self.checkpoint == 0 or step == self.total

    def is_probe(self, step: int) -> bool:
        """Whether the guard takes a snapshot: with each checkpoint, halfway, and early on."""
        often = max(1, self.checkpoint // 2)
        early = step < often and step >= _FIRST_PROBE and step & (step - 1) == 0
        return early or step % often == 0 or self.is_checkpoint(step)


@dataclass(slots=True)
class Progress:
    """What a run has come to, kept in every checkpoint.

    Attributes:
        best_step: Step of the best dev score.
        best_score: That score.
        since_best: Dev scores since then.
        seconds: Spent in training steps.
        examples: Trained on.
    """

    best_step: Count | None = None
    best_score: float | None = None
    since_best: Count = 0
    seconds: float = 0.0
    examples: Count = 0


@dataclass(frozen=True, slots=True)
class MonitorState:
    """What a checkpoint keeps of a monitor.

    Attributes:
        guard: The guard as it stood; None for no guard.
        progress: What the run had come to.
    """

    guard: Guard | None
    progress: Progress


@dataclass(slots=True)
class Tracked:
    """What the monitor reads.

    Attributes:
        encoder: In training.
        probe: Pairs for the guard; None for no guard.
        dev: The dev set, if any.
        measure: Gives the figures of texts that are held out, if there are any.
    """

    encoder: Encoder
    probe: Probe | None
    dev: DevSet | None
    measure: Callable[[], dict[str, float]] = dict


@dataclass(slots=True)
class _Clock:
    resumed: float = 0.0
    interrupted: int | None = field(default=None)


class Monitor(TrainerCallback):  # type: ignore[misc]  # transformers has no types here
    """Scores and judges a run after its steps.

    Attributes:
        verdict: Why the run was stopped, if it was.
        steps: Optimizer steps done.
        progress: Best score and so on.

    Args:
        tracked: Encoder, probe and dev set.
        plan: When to do what.
        guard: Judges the snapshots; None for no guard.
        log: Where metrics go.
        advance: Called with each step, for the progress bar.
    """

    def __init__(
        self, tracked: Tracked, plan: Plan, guard: Guard | None, log: RunLog, advance: Advance
    ) -> None:
        self.verdict: str | None = None
        self.steps = 0
        self.progress = Progress()
        self.plan = plan
        self.guard = guard
        self.report: Callable[[dict[str, Any]], None] = lambda _: None
        self._tracked = tracked
        self._log = log
        self._advance = advance
        self._clock = _Clock()

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return asdict(MonitorState(self.guard, self.progress))

    def restore(self, state: MonitorState) -> None:
        """Takes up what a checkpoint kept."""
        self.progress = state.progress
        if self.guard is not None and state.guard is not None:
            self.guard = state.guard

    @property
    def is_done(self) -> bool:
        """Whether no step is left: all are done, or the patience is at its end."""
        patience = self.plan.patience
        tired = patience is not None and self.progress.since_best >= patience
        return tired or self.steps >= self.plan.total

    @property
    def interrupted(self) -> int | None:
        """The signal that asked the run to end, if one did."""
        return self._clock.interrupted

    @contextmanager
    def signals(self) -> Iterator[None]:
        """Turns the first Ctrl-C or SIGTERM into a save after the current step."""

        def ask(number: int, _frame: FrameType | None) -> None:
            self._clock.interrupted = number
            signal.signal(number, before[number])  # a second one ends at once

        before: dict[int, Any] = {}
        try:
            for wanted in (signal.SIGINT, signal.SIGTERM):
                with suppress(ValueError):  # not in the main thread
                    before[wanted] = signal.signal(wanted, ask)
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Starts the clock."""
        self._clock.resumed = time.perf_counter()

    def on_save(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Starts the clock again: saving is no training."""
        self._clock.resumed = time.perf_counter()

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Assesses the run, and decides whether it is saved, and whether it continues."""
        self.progress.seconds += time.perf_counter() - self._clock.resumed
        self._advance(1)
        self.steps = state.global_step
        self._agree(args.device)
        due = control.should_log
        self._assess(state.global_step, control)
        control.should_log = due  # which our own rows have reset
        self._clock.resumed = time.perf_counter()

    def _agree(self, device: torch.device) -> None:
        """Shares a signal that one process got: all must stop at the same step."""
        if launch().processes == 1:
            return
        number = torch.tensor(self._clock.interrupted or 0, device=device)
        dist.all_reduce(number, dist.ReduceOp.MAX)
        self._clock.interrupted = int(number) or None

    def _assess(self, step: int, control: TrainerControl) -> None:
        if self._tracked.probe is not None and self.plan.is_probe(step):
            self._judge(step)
            if self.verdict is not None:
                control.should_training_stop = True
                return
        healthy = self.guard is None or not self.guard.has_warning
        if self.plan.is_checkpoint(step):
            if figures := self._tracked.measure():
                self.report(figures)
            if self._tracked.dev is not None:
                self._score(step, control, may_be_best=healthy)
            if self.verdict is not None:
                return
            control.should_save = healthy
        if self._clock.interrupted is not None:
            control.should_save = healthy
            control.should_training_stop = True

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, Any] | None = None,
        **_: Any,
    ) -> None:
        """Writes the Trainer's own figures, and ours that went through it, to the log."""
        row = {key: value for key, value in (logs or {}).items() if key not in ("epoch", "step")}
        if row and "train_runtime" not in row:
            self._log.add({"step": state.global_step, **row})

    def _judge(self, step: int) -> None:
        probe, guard = self._tracked.probe, self.guard
        if probe is None or guard is None:
            return
        snapshot = probe.snapshot(self._tracked.encoder)
        if snapshot is not None:
            self.report(snapshot.row())
        check_labels = step >= _LABELS_COUNT_FROM * self.plan.total
        self.verdict = guard.judge(snapshot, check_labels=check_labels)

    def _score(self, step: int, control: TrainerControl, *, may_be_best: bool) -> None:
        dev = self._tracked.dev
        if dev is None:
            return
        try:
            score = dev.score(self._tracked.encoder).value
        except InputError:  # not finite, which without a guard nobody has seen yet
            self.verdict = NOT_FINITE
            control.should_training_stop = True
            return
        self.report({f"dev_{dev.measure}": score})
        progress = self.progress
        better = score is not None and (progress.best_score is None or score > progress.best_score)
        if better and may_be_best:  # or else no checkpoint is made of it
            progress.best_step, progress.best_score, progress.since_best = step, score, 0
            return
        progress.since_best += 1
        control.should_training_stop |= self.is_done
