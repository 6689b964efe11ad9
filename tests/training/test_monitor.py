"""The monitor of a run: its log, its plan, its scores, and when it saves and stops."""

import json
import math
import signal
import threading
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import TrainerControl

from sbertkit.data.nli import NliPair
from sbertkit.errors import InputError, StorageError
from sbertkit.schema import as_record
from sbertkit.training.data_forms import NLI, TrainingData
from sbertkit.training.dev_set import DevScore
from sbertkit.training.run.guard import Guard, ProbeSet
from sbertkit.training.run.metrics_log import RunLog
from sbertkit.training.run.monitor import Monitor, MonitorState, Plan, Progress, Tracked


def lines(path: Path) -> list[Any]:
    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    text = path.read_text(encoding="utf-8")
    assert text == "" or text.endswith("\n")
    return [json.loads(line, parse_constant=refuse) for line in text.splitlines()]


# --- log


def test_rows_are_appended_as_they_come(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    log = RunLog(path, 0)
    assert lines(path) == []
    log.add({"step": 1, "loss": 0.5})
    assert lines(path) == [{"step": 1, "loss": 0.5}]
    log.add({"step": 1, "dev_spearman": None})
    assert lines(path) == log.rows == [{"step": 1, "loss": 0.5}, {"step": 1, "dev_spearman": None}]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, np.float64("nan")])
def test_a_number_that_is_not_finite_becomes_null(tmp_path: Path, value: float) -> None:
    # with fp16 the norm of a gradient is infinite now and then
    path = tmp_path / "log.jsonl"
    for log in (RunLog(path, 0), RunLog(None, 0)):
        log.add({"step": 3, "loss": 1.0, "grad_norm": value})
        assert log.rows == [{"step": 3, "loss": 1.0, "grad_norm": None}]
    assert lines(path) == [{"step": 3, "loss": 1.0, "grad_norm": None}]


def test_a_log_without_a_file_keeps_its_rows() -> None:
    log = RunLog(None, 5)
    log.add({"step": 6, "loss": 1.0})
    assert log.rows == [{"step": 6, "loss": 1.0}]


def test_a_log_that_is_begun_anew_is_empty(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    RunLog(path, 0).add({"step": 1, "loss": 2.0})
    assert RunLog(path, 0).rows == []
    assert lines(path) == []


def test_rows_after_the_step_of_a_resumed_run_are_dropped(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    first = RunLog(path, 0)
    for step in (1, 2, 2, 3, 4):
        first.add({"step": step, "loss": float(step)})
    log = RunLog(path, 2)
    assert [row["step"] for row in log.rows] == [1, 2, 2]
    log.add({"step": 3, "loss": 9.0})
    expected = [(1, 1.0), (2, 2.0), (2, 2.0), (3, 9.0)]
    assert [(row["step"], row["loss"]) for row in lines(path)] == expected


def test_a_last_line_cut_anywhere_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    log = RunLog(path, 0)
    for step in (1, 2):
        log.add({"step": step, "loss": 0.25})
    whole = path.read_bytes()
    first = whole.index(b"\n") + 1
    for length in range(first, len(whole)):
        path.write_bytes(whole[:length])
        kept = RunLog(path, 9).rows
        complete = length == len(whole) - 1  # but for the end of the line
        assert kept == log.rows[: 2 if complete else 1]
        assert lines(path) == kept


@pytest.mark.parametrize("junk", [b"\0\0\0\0", b"3\n", b"null\n", b"[1]\n", b"{}\n", b"\xff\xfe\n"])
def test_what_a_crash_made_of_a_line_is_dropped(tmp_path: Path, junk: bytes) -> None:
    path = tmp_path / "log.jsonl"
    RunLog(path, 0).add({"step": 1, "loss": 0.25})
    path.write_bytes(path.read_bytes() + junk)
    assert RunLog(path, 9).rows == [{"step": 1, "loss": 0.25}]
    assert lines(path) == [{"step": 1, "loss": 0.25}]


def test_a_log_that_cannot_be_written_is_a_storage_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot write"):
        RunLog(Path("/dev/null/log.jsonl"), 0)
    log = RunLog(tmp_path / "log.jsonl", 0)
    (tmp_path / "log.jsonl").unlink()
    (tmp_path / "log.jsonl").mkdir()
    with pytest.raises(StorageError, match="cannot write"):
        log.add({"step": 1})


# --- plan


@pytest.mark.parametrize(
    ("total", "every", "checkpoints", "probes"),
    [
        (10, 4, [4, 8, 10], [2, 4, 6, 8, 10]),
        (10, 100, [10], [8, 10]),
        (5, 100, [5], [5]),
        (1, 1, [1], [1]),
        (3, 1, [1, 2, 3], [1, 2, 3]),
        (7, 3, [3, 6, 7], [1, 2, 3, 4, 5, 6, 7]),
        (100, 100, [100], [8, 16, 32, 50, 100]),
        (250, 100, [100, 200, 250], [8, 16, 32, 50, 100, 150, 200, 250]),
        (300, 150, [150, 300], [8, 16, 32, 64, 75, 150, 225, 300]),
    ],
)
def test_checkpoints_and_probes_come_at_those_steps(
    total: int, every: int, checkpoints: list[int], probes: list[int]
) -> None:
    plan = Plan(total, every, None)
    steps = range(1, total + 1)
    assert [step for step in steps if plan.is_checkpoint(step)] == checkpoints
    assert [step for step in steps if plan.is_probe(step)] == probes


@given(st.integers(1, 400), st.integers(1, 400))
def test_the_last_step_is_saved_and_what_is_saved_was_looked_at(total: int, every: int) -> None:
    plan = Plan(total, every, None)
    assert plan.is_checkpoint(total)
    for step in range(1, total + 1):
        assert plan.is_probe(step) or not plan.is_checkpoint(step)


# --- monitor


class Angles:
    """An encoder whose texts stand as many degrees apart as `spread` says, or is broken."""

    def __init__(self) -> None:
        self.network = torch.nn.Identity()
        self.spread = 90.0

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        if math.isnan(self.spread):
            raise InputError("row 0: the model gave a vector with NaN or infinite values")
        angles = np.radians(np.linspace(0, self.spread, len(texts)))
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


class Scores:
    """A dev set that gives those scores in turn, NaN where vectors are not finite."""

    measure = "spearman"

    def __init__(self, *scores: float | None) -> None:
        self.scores = list(scores)

    def score(self, encoder: Any, *, interval: bool = False) -> DevScore:
        found = self.scores.pop(0)
        if found is not None and math.isnan(found):
            raise InputError("row 0: the model gave a vector with NaN or infinite values")
        return DevScore(found, None)


class Run:
    """A monitored run without training.

    Args:
        plan: When what is done.
        scores: Dev scores; None for no dev set.
        guarded: Whether there is a guard.
    """

    def __init__(
        self, plan: Plan, scores: Sequence[float | None] | None = None, *, guarded: bool = True
    ) -> None:
        self.angles = Angles()
        encoder: Any = self.angles
        pairs = [NliPair(f"p{n}", f"h{n}", 1) for n in range(4)]
        probe = ProbeSet(TrainingData(NLI, pairs), 4, 1)
        first = probe.snapshot(encoder)
        assert first is not None
        dev: Any = None if scores is None else Scores(*scores)
        tracked = Tracked(encoder, probe if guarded else None, dev)
        self.log = RunLog(None, 0)
        self.done: list[int] = []
        self.monitor = Monitor(
            tracked, plan, Guard(first, NLI.orders) if guarded else None, self.log, self.done.append
        )
        self.step = 0
        self.args: Any = SimpleNamespace(device=torch.device("cpu"))
        self.monitor.report = self.report  # as the Trainer's own log does
        self.monitor.on_train_begin(self.args, self.state, TrainerControl())

    @property
    def state(self) -> Any:
        return SimpleNamespace(global_step=self.step)

    def report(self, row: dict[str, Any]) -> None:
        self.monitor.on_log(self.args, self.state, TrainerControl(), logs={**row, "epoch": 0.5})

    def steps(self, count: int = 1) -> TrainerControl:
        """Takes so many steps; what the last one decided."""
        for _ in range(count):
            self.step += 1
            control = TrainerControl()
            self.monitor.on_step_end(self.args, self.state, control)
        return control

    def decisions(self, count: int) -> list[tuple[bool, bool]]:
        """Whether each of the steps saves, and whether it stops."""
        made = []
        for _ in range(count):
            control = self.steps()
            made.append((control.should_save, control.should_training_stop))
        return made


SAVE, GO, STOP = (True, False), (False, False), (False, True)


def test_a_healthy_run_saves_at_its_checkpoints_and_goes_on() -> None:
    run = Run(Plan(5, 2, None), [0.1, 0.2, 0.3])
    assert run.decisions(5) == [GO, SAVE, GO, SAVE, SAVE]
    assert run.monitor.verdict is None
    assert run.monitor.steps == 5
    assert run.done == [1] * 5
    assert run.monitor.progress.seconds > 0


def test_the_best_score_is_remembered_with_its_step() -> None:
    run = Run(Plan(6, 1, None), [0.3, 0.5, 0.4, None, 0.5, 0.6])
    seen = []
    for _ in range(6):
        run.steps()
        progress = run.monitor.progress
        seen.append((progress.best_step, progress.best_score, progress.since_best))
    assert seen == [(1, 0.3, 0), (2, 0.5, 0), (2, 0.5, 1), (2, 0.5, 2), (2, 0.5, 3), (6, 0.6, 0)]


def test_negative_scores_have_a_best_one_too() -> None:
    run = Run(Plan(2, 1, None), [-0.5, -0.2])
    run.steps(2)
    assert run.monitor.progress.best_step == 2


def test_a_run_ends_after_so_many_scores_without_a_new_best_and_is_saved() -> None:
    run = Run(Plan(9, 1, 2), [0.5, 0.4, 0.6, 0.6, None])
    assert run.decisions(5) == [SAVE, SAVE, SAVE, SAVE, (True, True)]
    assert run.monitor.verdict is None


def test_without_patience_or_dev_set_no_run_ends_early() -> None:
    assert Run(Plan(9, 1, None), [0.5] * 4).decisions(4) == [SAVE] * 4
    run = Run(Plan(9, 1, 1), None)
    assert run.decisions(4) == [SAVE] * 4
    assert run.monitor.progress == Progress(seconds=run.monitor.progress.seconds)


def test_a_run_is_done_when_no_step_or_no_patience_is_left() -> None:
    run = Run(Plan(4, 1, 2), [0.5, 0.6, 0.6, 0.7])
    seen = []
    for _ in range(4):
        run.steps()
        seen.append(run.monitor.is_done)
    assert seen == [False, False, False, True]
    run = Run(Plan(9, 1, 2), [0.5, 0.4, 0.4])
    run.steps(2)
    assert not run.monitor.is_done
    run.steps()
    assert run.monitor.is_done


def test_scores_and_readings_are_logged_with_their_step() -> None:
    run = Run(Plan(4, 2, None), [0.25, None])
    run.steps(4)
    steps = {(row["step"], key) for row in run.log.rows for key in row if key != "step"}
    keys = ("random_cosine", "uniformity", "effective_rank", "neutral")
    assert steps == {
        *((step, key) for step in (1, 2, 3, 4) for key in keys),
        *((2, "dev_spearman"), (4, "dev_spearman")),
    }
    assert [row["dev_spearman"] for row in run.log.rows if "dev_spearman" in row] == [0.25, None]


def test_the_trainers_own_figures_are_logged_without_its_summary() -> None:
    run = Run(Plan(4, 2, None))
    run.step = 3
    run.report({"loss": 1.5, "learning_rate": 1e-5, "step": 17})
    run.report({"train_runtime": 3.0, "train_loss": 1.0})
    run.report({})
    run.monitor.on_log(run.args, run.state, TrainerControl(), logs=None)
    assert run.log.rows == [{"step": 3, "loss": 1.5, "learning_rate": 1e-5}]


def test_our_own_rows_do_not_put_off_the_trainers() -> None:
    run = Run(Plan(4, 2, None), [0.5, 0.5])
    for due in (True, False):
        control = TrainerControl(should_log=due)
        run.monitor.report = lambda row, control=control: setattr(control, "should_log", False)  # type: ignore[misc]
        run.step = 2
        run.monitor.on_step_end(run.args, run.state, control)
        assert control.should_log == due


def test_a_collapse_is_not_saved_and_stops_at_the_second_look() -> None:
    run = Run(Plan(9, 1, None), [0.5] * 9)
    assert run.decisions(2) == [SAVE, SAVE]
    run.angles.spread = 1.0
    assert run.decisions(2) == [GO, STOP]
    assert "collapse" in str(run.monitor.verdict)


def test_a_space_that_recovers_is_saved_again() -> None:
    run = Run(Plan(9, 1, None), [0.5] * 9)
    run.angles.spread = 1.0
    assert run.decisions(1) == [GO]
    run.angles.spread = 90.0
    assert run.decisions(2) == [SAVE, SAVE]


def test_the_best_step_is_always_one_that_was_saved() -> None:
    run = Run(Plan(9, 1, None), [0.9, 0.5, 0.6])
    run.angles.spread = 1.0  # looks like a collapse once
    assert run.decisions(1) == [GO]
    run.angles.spread = 90.0
    assert run.decisions(2) == [SAVE, SAVE]
    assert run.monitor.progress.best_step == 3
    assert run.monitor.progress.best_score == 0.6


def test_vectors_that_are_not_finite_stop_at_once_without_a_save_or_a_score() -> None:
    run = Run(Plan(9, 1, None), [0.5])
    run.angles.spread = math.nan
    assert run.decisions(1) == [STOP]
    assert "no longer finite" in str(run.monitor.verdict)
    assert run.monitor.progress.best_step is None
    assert run.log.rows == []


def test_without_a_guard_nothing_is_looked_at() -> None:
    run = Run(Plan(9, 2, None), [0.5, 0.5], guarded=False)
    run.angles.spread = 1.0
    assert run.decisions(4) == [GO, SAVE, GO, SAVE]
    assert {key for row in run.log.rows for key in row} == {"step", "dev_spearman"}


def test_without_a_guard_too_vectors_that_are_not_finite_stop_a_run() -> None:
    run = Run(Plan(9, 1, None), [0.5, math.nan], guarded=False)
    assert run.decisions(2) == [SAVE, STOP]
    assert "no longer finite" in str(run.monitor.verdict)
    assert run.monitor.progress.best_step == 1


def test_the_order_of_labels_counts_after_a_fifth_of_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    checked: list[bool] = []

    def judge(guard: Guard, reading: Any, **given: bool) -> None:
        checked.append(given["check_labels"])

    monkeypatch.setattr(Guard, "judge", judge)
    Run(Plan(10, 1, None)).steps(4)
    assert checked == [False, True, True, True]


# --- signals


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_first_signal_saves_and_stops_after_the_step(number: signal.Signals) -> None:
    run = Run(Plan(9, 5, None), [0.5])
    before = signal.getsignal(number)
    with run.monitor.signals():
        assert run.decisions(1) == [GO]
        signal.raise_signal(number)
        assert run.monitor.interrupted == number
        assert signal.getsignal(number) == before  # a second one ends at once
        assert run.decisions(1) == [(True, True)]
    assert signal.getsignal(number) == before
    assert run.monitor.verdict is None
    assert run.monitor.progress.best_step is None


def test_a_space_under_suspicion_is_not_saved_when_a_signal_comes() -> None:
    run = Run(Plan(9, 1, None), [0.5] * 9)
    run.angles.spread = 1.0
    with run.monitor.signals():
        signal.raise_signal(signal.SIGTERM)
        assert run.decisions(1) == [STOP]


def test_handlers_are_put_back_after_an_error() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    monitor = Run(Plan(2, 1, None)).monitor
    with pytest.raises(RuntimeError, match="bug"), monitor.signals():
        raise RuntimeError("bug")
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
    assert monitor.interrupted is None


def test_outside_the_main_thread_signals_are_left_alone() -> None:
    monitor = Run(Plan(2, 1, None)).monitor
    seen: list[Any] = []

    def work() -> None:
        with monitor.signals():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.getsignal(signal.SIGTERM)]


# --- state


def test_a_resumed_monitor_knows_what_the_first_one_knew() -> None:
    first = Run(Plan(9, 1, 3), [0.5, 0.7, 0.6])
    first.steps(3)
    first.monitor.progress.examples = 96
    state = json.loads(json.dumps(first.monitor.state(), allow_nan=False))
    second = Run(Plan(9, 1, 3), [0.1, 0.1])
    second.monitor.restore(as_record(state, MonitorState, "state"))
    second.step = 3
    assert second.monitor.progress == first.monitor.progress
    assert second.monitor.guard == first.monitor.guard
    assert second.decisions(2) == [SAVE, (True, True)]


def test_a_collapse_before_and_after_a_resumption_is_one() -> None:
    first = Run(Plan(9, 1, None))
    first.angles.spread = 1.0
    first.steps()
    state = json.loads(json.dumps(first.monitor.state()))
    second = Run(Plan(9, 1, None))
    second.monitor.restore(as_record(state, MonitorState, "state"))
    second.angles.spread = 1.0
    assert second.decisions(1) == [STOP]


def test_a_state_without_a_guard_is_restored() -> None:
    first = Run(Plan(9, 1, None), [0.5], guarded=False)
    first.steps()
    state = json.loads(json.dumps(first.monitor.state()))
    assert state["guard"] is None
    for guarded in (True, False):
        second = Run(Plan(9, 1, None), guarded=guarded)
        second.monitor.restore(as_record(state, MonitorState, "state"))
        assert second.monitor.progress.best_score == 0.5


def test_saving_and_looking_are_no_training_time(monkeypatch: pytest.MonkeyPatch) -> None:
    from sbertkit.training.run import monitor as module

    now = [100.0]
    monkeypatch.setattr(module.time, "perf_counter", lambda: now[0])
    run = Run(Plan(9, 1, None), [0.5] * 9)
    for _ in range(3):
        now[0] += 2  # a training step
        run.steps()
        now[0] += 50  # a save
        run.monitor.on_save(run.args, run.state, TrainerControl())
    assert run.monitor.progress.seconds == 6
