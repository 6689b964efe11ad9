"""Two processes that train one model, as torchrun starts them."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from training_cases import Job, far, rows, weight_bytes, weights, write_dev, write_nli
from training_children import (
    KILLED,
    Ended,
    Kill,
    batches,
    command,
    started,
    train,
    train_by_own_seed,
    train_with_nan,
)

from sbertkit.encoder import Encoder
from sbertkit.errors import InputError, TrainingStopped
from sbertkit.training.run.checkpoints import CheckpointStore

pytestmark = pytest.mark.skipif(os.name == "nt", reason="POSIX signals")

PROCESSES = 2


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port


def together(
    function: Callable[..., Any], *arguments: Any, kill: Kill | None = None
) -> list[Ended]:
    """How the processes end that run a function together; the first one may be killed."""
    shared = {
        "WORLD_SIZE": str(PROCESSES),
        "LOCAL_WORLD_SIZE": str(PROCESSES),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
    }
    with ExitStack() as stack:
        children = []
        for rank in range(PROCESSES):
            own = {"RANK": str(rank), "LOCAL_RANK": str(rank)}
            more = [kill] if kill is not None and rank == 0 else []
            children.append(
                stack.enter_context(started(function, *arguments, *more, **shared, **own))
            )
        return [child.wait() for child in children]


@pytest.fixture(scope="module")
def job(tiny_bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Job:
    """A run of 23 rows, which neither batches nor processes divide, over three epochs."""
    root = tmp_path_factory.mktemp("together")
    return Job(
        tiny_bert,
        write_nli(root / "pairs.jsonl", rows(8)[:-1]),
        root / "out",
        dev=write_dev(root / "dev.tsv"),
        settings={"epochs": 3, "checkpoint_steps": 2, "learning_rate": 2e-4},
    )


@pytest.fixture(scope="module")
def whole(job: Job) -> Job:
    """The run, done."""
    found = together(train, job)
    assert [ended[:2] for ended in found] == [(0, 9), (0, 9)]
    assert not any("Traceback" in ended.said for ended in found)
    return job


def test_two_processes_make_one_model(whole: Job) -> None:
    assert [path.name for path in whole.output.parent.iterdir() if path.name.startswith("out")] == [
        "out"
    ]
    trained = weights(whole.output)
    assert all(tensor.isfinite().all() for tensor in trained.values())
    base = weights(whole.base)
    assert sum(far(base[name], trained[name]) > 0 for name in base) > 30
    assert Encoder.load(whole.output, device="cpu").dim == 32


def test_each_epoch_has_every_row_once_in_another_order(job: Job) -> None:
    for number, count in enumerate((1, 2, 8, 23)):
        part = job._replace(
            data=write_nli(job.data.with_name(f"{count}.jsonl"), rows(8)[:count]),
            output=job.output.with_name(f"rows{number}") / "out",
            dev=None,
        )
        first, second = (ended.answer for ended in together(batches, part))
        assert first == second
        per_epoch = len(first) // 3
        epochs = [
            sorted(row for batch in first[start : start + per_epoch] for row in batch)
            for start in range(0, len(first), per_epoch)
        ]
        assert epochs == [list(range(count))] * 3
        assert max(map(len, first)) <= 4 * PROCESSES
        if count == 23:
            assert first[:per_epoch] != first[per_epoch : 2 * per_epoch]


@pytest.mark.parametrize("kill", [Kill("step", 5), Kill("saved", 6), Kill("saved", 9)])
def test_a_killed_run_goes_on_to_the_same_weights(whole: Job, kill: Kill) -> None:
    job = whole._replace(output=whole.output.with_name(f"{kill.moment}{kill.number}") / "out")
    killed, other = together(train, job, kill=kill)
    assert killed.status == KILLED
    assert isinstance(other.answer, TrainingStopped), other
    assert "another process of this run has ended" in str(other.answer)
    assert not job.output.exists()
    found = together(train, job, None, {"resume": True})
    assert [ended[:2] for ended in found] == [(0, 9), (0, 9)], found
    assert weight_bytes(job.output) == weight_bytes(whole.output)
    assert [path.name for path in job.output.parent.iterdir()] == ["out"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_one_stops_both_at_the_same_step(whole: Job, number: signal.Signals) -> None:
    job = whole._replace(output=whole.output.with_name(number.name) / "out")
    arguments = [
        "train-nli", str(job.data), "--base", str(job.base), "-o", str(job.output),
        "--objective", "softmax", "--dev", str(job.dev), "--epochs", "3", "--batch-size", "4",
        "--checkpoint-steps", "2", "--lr", "2e-4", "--precision", "fp32", "--device", "cpu",
        "--quiet",
    ]  # fmt: skip
    found = together(command, arguments, job.output, kill=Kill("step", 4, number))
    assert {ended.status for ended in found} == {128 + number}
    assert CheckpointStore(job.work / "checkpoints").steps()[-1] == 5
    found = together(command, [*arguments, "--resume"], job.output)
    assert {ended.status for ended in found} == {0}
    assert weight_bytes(job.output) == weight_bytes(whole.output)


def test_what_is_refused_is_refused_by_both(job: Job) -> None:
    one = write_nli(job.data.with_name("one.jsonl"), [("entailment", "same", "same")])
    part = job._replace(
        data=one, objective="contrastive", output=job.output.with_name("refused") / "out", dev=None
    )
    for ended in together(train, part):
        assert isinstance(ended.answer, InputError)
        assert "found none" in str(ended.answer)
    assert not part.output.parent.exists()


def test_processes_with_other_settings_are_refused(job: Job) -> None:
    part = job._replace(output=job.output.with_name("seeds") / "out", dev=None)
    for ended in together(train_by_own_seed, part):
        assert isinstance(ended.answer, InputError), ended
        assert "other bases, data, settings or checkpoints" in str(ended.answer)
    assert not part.output.parent.exists()


@pytest.mark.parametrize("rank", range(PROCESSES))
def test_nan_in_one_process_stops_both(job: Job, rank: int) -> None:
    part = job._replace(output=job.output.with_name(f"nan{rank}") / "out", dev=None)
    for ended in together(train_with_nan, part, rank):
        assert isinstance(ended.answer, TrainingStopped), ended
        assert "the loss is no longer a finite number at step" in str(ended.answer)
    assert not part.output.exists()


@pytest.mark.slow
def test_torchrun_trains_one_model(job: Job, whole: Job) -> None:
    output = job.output.with_name("torchrun") / "out"
    done = subprocess.run(
        [
            sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", str(PROCESSES),
            "--master_port", str(free_port()), "-m", "sbertkit", "train-nli", str(job.data),
            "--base", str(job.base), "-o", str(output), "--objective", "softmax", "--dev",
            str(job.dev), "--epochs", "3", "--batch-size", "4", "--checkpoint-steps", "2", "--lr",
            "2e-4", "--precision", "fp32", "--device", "cpu",
        ],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert weight_bytes(output) == weight_bytes(whole.output)
    assert [path.name for path in output.parent.iterdir()] == ["out"]
    assert done.stdout.count("model") == 1
    assert done.stderr.count("tokenizing the texts") <= 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "launcher",
    [
        ["torch.distributed.run", "--nproc_per_node", str(PROCESSES)],
        ["accelerate.commands.launch", "--multi_gpu", "--num_processes", str(PROCESSES)],
    ],
)
def test_a_launcher_gives_each_message_once(
    tiny_bert: Path, tmp_path: Path, launcher: list[str]
) -> None:
    data = write_nli(tmp_path / "pairs.jsonl", [*rows(6), *rows(1)])
    arguments = [
        sys.executable, "-m", *launcher, "--main_process_port" if "accelerate" in launcher[0] else
        "--master_port", str(free_port()), "-m", "sbertkit", "train-nli", str(data),
        "--base", str(tiny_bert), "-o", str(tmp_path / "out"), "--epochs", "1", "--batch-size", "4",
        "--precision", "fp32", "--device", "cpu", "--quiet",
    ]  # fmt: skip
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    for number, message in ((0, "warning: "), (1, "sbertkit: error: ")):
        done = subprocess.run(
            arguments, capture_output=True, text=True, timeout=300, check=False, env=environment
        )
        assert done.returncode == number, done.stderr
        lines = [line for line in done.stderr.splitlines() if line.startswith(message)]
        assert lines, done.stderr
        assert len(set(lines)) == len(lines), done.stderr
