"""One training run from a loaded encoder to a saved one: what every objective has in common."""

import json
import logging
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from transformers.integrations import integration_utils as trackers

from sbertkit.encoder import Encoder
from sbertkit.errors import InputError, MissingDependency, SbertkitError, TrainingStopped
from sbertkit.progress import say, track, under_way
from sbertkit.training.averages import average_into, kept_weights
from sbertkit.training.dev_set import MEASURES
from sbertkit.training.recipe import Recipe, Task
from sbertkit.training.results import Quality, TrainResult
from sbertkit.training.run.checkpoint_state import read_state
from sbertkit.training.run.checkpoints import Checkpoint
from sbertkit.training.run.collective import (
    check_same,
    join,
    peer_errors,
    use_own_gpu,
    wait_for_all,
)
from sbertkit.training.run.distributed import launch
from sbertkit.training.run.folder import RunFolder
from sbertkit.training.run.global_state import isolated_global_state
from sbertkit.training.run.guard import (
    SPACE_PAIRS,
    Guard,
    SpaceSnapshot,
    any_wrong_order,
    probe_of,
)
from sbertkit.training.run.lineage import environment, identity_of, record_of
from sbertkit.training.run.metrics_log import RunLog
from sbertkit.training.run.model_files import read_model, write_model, write_output
from sbertkit.training.run.monitor import Monitor, Tracked
from sbertkit.training.run.pretraining import collator_of, measured, model_of
from sbertkit.training.run.setup import Setup, set_up, trainer_arguments
from sbertkit.training.run.teaching import has_teacher_vectors, taught
from sbertkit.training.run.trainer import SiameseTrainer

logger = logging.getLogger(__name__)

_PROBE_PAIRS_BEFORE_AND_AFTER = 320


def run(recipe: Recipe, folder: RunFolder) -> TrainResult:
    """Trains by a recipe whose data is in memory, in a folder that is locked; see `train`."""
    use_own_gpu(recipe.config.device)
    with isolated_global_state():
        with under_way(f"loading {recipe.base}", shown=recipe.config.progress):
            task = recipe.load()
        _check_trackers(task.config.report_to)
        with _each_logged_once():
            return _run(task, folder)


def _run(task: Task, folder: RunFolder) -> TrainResult:
    config = task.config
    shown = config.progress
    with under_way(f"tokenizing the texts of {len(task.data.rows):,} rows", shown=shown):
        setup = set_up(task)
    if shown and setup.moving.parts:
        say(f"what moves: {setup.moving}")
    task = setup.task
    measure = measured(setup)
    with under_way("measuring the encoder before training", shown=shown):
        before = _quality(task, measure)
    if not task.encoder.spec.scores_pairs:  # whose head may be new
        _check_start(before.snapshot, task.encoder)
    if (
        config.guard
        and not task.encoder.spec.scores_pairs
        and (fault := any_wrong_order(before.snapshot, task.data.form.orders)) is not None
    ):
        raise TrainingStopped(
            f"stopped before training: {fault}; if they are right, since contradictions differ "
            "from premises by a word or so, pass guard=False (--no-guard)"
        )
    identity = identity_of(task)
    base = kept_weights(task.encoder.torch) if config.merge_base else {}
    checkpoint = folder.begin({**identity, "environment": environment()}, resume=config.resume)
    try:
        join(setup.device)
        step = 0 if checkpoint is None else checkpoint.step
        check_same(json.dumps({**identity, "step": step}, sort_keys=True), setup.device)
        setup = taught(setup, folder, begins=checkpoint is None)
        with peer_errors():
            monitor, log = _train(setup, folder, checkpoint, before)
        _check_end(monitor, folder)
        _take_best(setup, monitor, folder)
        after = trained = _quality(task, measure)
        # A fault first seen at the last step is confirmed, or not, by this larger snapshot.
        if monitor.guard is not None and monitor.guard.has_warning:
            monitor.verdict = monitor.guard.judge(after.snapshot, check_labels=True)
            _check_end(monitor, folder)
        if base:
            average_into(task.encoder.torch, base, config.merge_base or 0.0)
            after = _quality(task, measure)
        record = record_of(setup, identity, monitor, before.quality, after.quality)
        record["held_out"] = _held_out(task, before, after)
        record["unmerged"] = trained.quality.to_dict() if base else None
        result = TrainResult(
            folder.output, record["steps"], before.quality, after.quality, tuple(log.rows), record
        )
        wait_for_all()  # others may still read the checkpoints, which go now
        if launch().is_main:
            write_output(setup, folder, result)
    except BaseException as error:
        if not _is_of_use(folder, error):
            folder.discard()
        raise
    folder.discard()
    _warn_if_worse(result)
    return result


def _is_of_use(folder: RunFolder, error: BaseException) -> bool:
    """Whether there is anything to resume from after an error.

    An interrupted run may have encoded for hours for its teacher.
    """
    interrupted = not isinstance(error, SbertkitError)
    return bool(folder.store.steps()) or (interrupted and has_teacher_vectors(folder))


def _warn_if_worse(result: TrainResult) -> None:
    """Reports a model that is worse than its base."""
    if result.gain is not None and result.gain < 0:
        logger.warning(
            "the trained %s is worse than its base on the dev set: %s %.2f, before %.2f",
            "re-ranker" if result.record["task"] == "rerank" else "encoder",
            result.after.measure,
            100 * (result.after.dev_score or 0.0),
            100 * (result.before.dev_score or 0.0),
        )


def _check_start(snapshot: SpaceSnapshot, encoder: Encoder) -> None:
    """Refuses a base or data from which nothing can be learned."""
    if snapshot.random_cosine is None:
        raise InputError(
            f"expected texts to which {encoder.options.model} gives different vectors, found zero "
            "vectors alone, or a single text in all rows; check the base and the data"
        )


@contextmanager
def _each_logged_once() -> Iterator[None]:
    """Logs once what each snapshot and dev score warns of the same texts, such as truncation.

    Unknown tokens have one kind of message there and where training texts are tokenized.
    """
    names = ("sbertkit.encoder.encoding", "sbertkit.training.examples")
    sources = [logging.getLogger(name) for name in names]
    logged = set()

    def first(record: logging.LogRecord) -> bool:
        known = record.msg in logged
        logged.add(record.msg)
        return not known

    for source in sources:
        source.addFilter(first)
    try:
        yield
    finally:
        for source in sources:
            source.removeFilter(first)


def _take_best(setup: Setup, monitor: Monitor, folder: RunFolder) -> None:
    """Goes back to the weights of the best dev score, and merges the matrices of LoRA."""
    best = monitor.progress.best_step
    if best is not None and best != monitor.steps:
        try:
            checkpoint = folder.store.read(best)
        except InputError as error:
            logger.warning("the best weights are lost, taking the last ones: %s", error)
        else:
            read_model(setup, checkpoint.model)
    if setup.low_rank is not None:
        setup.low_rank.merge()


def _check_trackers(names: tuple[str, ...]) -> None:
    """Refuses what the Trainer would fail on when the run has begun."""
    known, installed = (
        sorted(trackers.INTEGRATION_TO_CALLBACK),
        trackers.get_available_reporting_integrations(),
    )
    for name in names:
        if name not in known:
            raise InputError(f"report_to must be of {', '.join(known)}, not {name!r}")
        if name not in installed:
            raise MissingDependency(
                f"report_to {name} needs a package that is not installed: pip install {name}"
            )


@dataclass(frozen=True, slots=True)
class _Measured:
    quality: Quality
    snapshot: SpaceSnapshot
    held_out: dict[str, float]

    def row(self) -> dict[str, float | None]:
        """The values by name, as the log has them."""
        scores = {f"dev_{measure}": getattr(self.quality, measure) for measure in MEASURES}
        known = {name: score for name, score in scores.items() if score is not None}
        return self.snapshot.row() | known | self.held_out


def _held_out(task: Task, before: _Measured, after: _Measured) -> dict[str, Any] | None:
    """What is recorded of the texts that are held out."""
    if not before.held_out:
        return None
    return {"texts": len(task.data.held_out), "before": before.held_out, "after": after.held_out}


def _quality(task: Task, measure: Callable[[], dict[str, float]]) -> _Measured:
    """The encoder as it is now, over more pairs than the guard reads."""
    encoder = task.encoder
    encoder.torch.network.eval()
    encoder.torch.weights_changed()
    probe = probe_of(encoder, task.data, _PROBE_PAIRS_BEFORE_AND_AFTER, task.config.seed)
    snapshot = probe.snapshot(encoder)
    if snapshot is None:
        raise InputError(
            f"{encoder.options.model} gives NaN or infinite values; its weights are damaged"
        )
    score = None if task.dev is None else task.dev.score(encoder, interval=True)
    name = "spearman" if task.dev is None else task.dev.measure
    return _Measured(Quality.of(score, snapshot, name), snapshot, measure())


def _train(
    setup: Setup, folder: RunFolder, checkpoint: Checkpoint | None, before: "_Measured"
) -> tuple[Monitor, RunLog]:
    task = setup.task
    config, encoder = task.config, task.encoder
    step = 0 if checkpoint is None else checkpoint.step
    log = RunLog(folder.log if launch().is_main else None, step)
    if checkpoint is None and not log.rows:  # else it was killed before its first checkpoint
        log.add({"step": 0, **before.row()})
    guard = probe = None
    if config.guard:
        probe = probe_of(encoder, task.data, SPACE_PAIRS, config.seed)
        first = probe.snapshot(encoder)
        guard = None if first is None else Guard(first, task.data.form.orders)
    with track("training", setup.plan.total, shown=config.progress, note=log.note) as advance:
        advance(step)
        tracked = Tracked(encoder, probe, task.dev, measured(setup))
        monitor = Monitor(tracked, setup.plan, guard, log, advance)
        if checkpoint is not None:
            monitor.steps = checkpoint.step
            monitor.restore(read_state(checkpoint))
        if checkpoint is not None and monitor.is_done:  # killed between last step and end
            read_model(setup, checkpoint.model)
            return monitor, log
        encoder.torch.make_trainable()
        setup.moving.start()
        trainer = SiameseTrainer(
            model_of(setup),
            trainer_arguments(setup, folder),
            order=setup.order,
            collator=collator_of(setup),
            store=folder.store,
            monitor=monitor,
            moving=setup.moving,
            functions=setup.functions,
            write_model=lambda place: write_model(setup, place),
            read_model=lambda place: read_model(setup, place),
        )
        if launch().rank:  # dropout of its own
            torch.manual_seed(config.seed + launch().rank)
        try:
            with monitor.signals():
                trainer.train(None if checkpoint is None else str(checkpoint.folder))
        except TrainingStopped as stopped:
            monitor.verdict = str(stopped)
    return monitor, log


def _check_end(monitor: Monitor, folder: RunFolder) -> None:
    """Raises what a run that did not come to its end is to raise."""
    steps = folder.store.steps()
    kept = (
        f"the last good checkpoint is {folder.store.path(steps[-1]) / 'model'}"
        if steps
        else "no checkpoint had been made yet"
    )
    if monitor.verdict is not None:
        raise TrainingStopped(f"training stopped: {monitor.verdict}; {kept}")
    if monitor.interrupted is not None:
        if steps:
            logger.warning("stopped at step %d; continue with resume (--resume)", steps[-1])
        if monitor.interrupted == signal.SIGINT:
            raise KeyboardInterrupt
        sys.exit(128 + monitor.interrupted)
