"""Runs that are killed, interrupted or out of disk, and go on to the very same weights."""

import json
import os
import random
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from other_user import public_folder
from training_cases import (
    Job,
    contents,
    quick_runs,
    rows,
    weight_bytes,
    write_dev,
    write_nli,
)
from training_children import (
    KILLED,
    Ended,
    Kill,
    command,
    ended,
    started,
    train,
    train_unprivileged,
    uses,
)

from sbertkit.encoder import Encoder
from sbertkit.errors import InputError
from sbertkit.lock import LOCK_FILE
from sbertkit.training.run.checkpoints import CheckpointStore

pytestmark = pytest.mark.skipif(os.name == "nt", reason="POSIX signals")

STEPS = {"softmax": 13, "contrastive": 12}
"""Of the whole run; that of softmax ends in the middle of an epoch."""
RESUME = {"resume": True}


class Whole(NamedTuple):
    """A run that nothing interrupts: its job, and what it comes to."""

    job: Job
    files: dict[str, bytes]
    log: str

    def beside(self, name: str) -> Job:
        """The same run with another output."""
        return self.job._replace(output=self.job.output.with_name(name) / "out")

    def assert_same(self, job: Job) -> None:
        """That a run came to the same weights by the same way, and left nothing else."""
        assert weight_bytes(job.output) == self.files
        assert (job.output / "log.jsonl").read_text(encoding="utf-8") == self.log
        assert [path.name for path in job.output.parent.iterdir()] == [job.output.name]
        record = json.loads((job.output / "sbertkit.json").read_bytes())["lineage"]
        assert record["steps"] == STEPS[job.objective]


@pytest.fixture(scope="module")
def whole(tiny_bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Whole]:
    """Gives the uninterrupted run of an objective in a precision."""
    made: dict[tuple[str, str], Whole] = {}

    def run(objective: str = "softmax", precision: str = "fp32") -> Whole:
        if (objective, precision) not in made:
            root = tmp_path_factory.mktemp("whole")
            settings = {
                "epochs": 4,
                "max_steps": STEPS[objective],
                "accumulation": 2,
                "batch_size": 8 if objective == "softmax" else 4,
                "checkpoint_steps": 4,
                "learning_rate": 2e-4,
                "precision": precision,
            }
            data = write_nli(root / "pairs.jsonl", rows(24))
            dev = write_dev(root / "dev.tsv")
            job = Job(tiny_bert, data, root / "whole" / "out", objective, dev, settings=settings)
            assert ended(train, job) == Ended(0, STEPS[objective], "")
            log = (job.output / "log.jsonl").read_text(encoding="utf-8")
            made[objective, precision] = Whole(job, weight_bytes(job.output), log)
        return made[objective, precision]

    return run


def killed(job: Job, kill: Kill, **settings: Any) -> Job:
    """A run that was killed."""
    assert ended(train, job, kill, settings).status == KILLED
    return job


def steps_of(job: Job) -> list[int]:
    return CheckpointStore(job.work / "checkpoints").steps()


@pytest.mark.parametrize(
    ("kills", "kept"),
    [
        ([Kill("step", 1)], []),
        ([Kill("step", 7)], [4]),
        ([Kill("step", 12)], [4, 8]),
        ([Kill("saving", 8)], [4]),
        ([Kill("saved", 8)], [4, 8]),
        ([Kill("step", 6), Kill("step", 11)], [4, 8]),
        ([Kill("saved", 4), Kill("saved", 8), Kill("saving", 12)], [4, 8]),
        ([Kill("saved", 13)], [12, 13]),
        ([Kill("output", 0)], [12, 13]),
        ([Kill("output", 0), Kill("output", 0)], [12, 13]),
    ],
)
def test_a_run_killed_anywhere_comes_to_the_same_weights(
    whole: Callable[..., Whole], kills: list[Kill], kept: list[int]
) -> None:
    same = whole()
    job = same.beside("-".join(f"{kill.moment}{kill.number}" for kill in kills))
    for number, kill in enumerate(kills):
        killed(job, kill, resume=number > 0)
    assert [step for step in steps_of(job) if step in kept] == kept
    assert not job.output.exists()
    said = f"there is no checkpoint of the run at {job.work}: it begins again at step 0\n"
    assert ended(train, job, None, RESUME) == Ended(0, 13, "" if kept else said)
    same.assert_same(job)


@pytest.mark.parametrize(
    ("objective", "precision"),
    [("softmax", "bf16"), ("contrastive", "fp32"), ("contrastive", "bf16")],
)
def test_each_objective_and_precision_goes_on_to_the_same_weights(
    whole: Callable[..., Whole], objective: str, precision: str
) -> None:
    same = whole(objective, precision)
    source = random.Random(f"{objective} {precision}")
    for number in range(2):
        first, second = sorted(source.sample(range(5, STEPS[objective]), 2))
        job = killed(same.beside(f"random{number}"), Kill("step", first))
        killed(job, Kill("step", second), resume=True)
        assert ended(train, job, None, RESUME) == Ended(0, STEPS[objective], "")
        same.assert_same(job)


def test_the_precisions_and_objectives_are_different_runs(whole: Callable[..., Whole]) -> None:
    """Else the tests above would say less than they seem to."""
    made = [
        whole(objective, precision).files["model.safetensors"]
        for objective in ("softmax", "contrastive")
        for precision in ("fp32", "bf16")
    ]
    assert len(set(made)) == 4


def kill_at_uses(same: Whole, places: range) -> dict[str, int]:
    """Kills a run at those uses of the file system, and ends it; counts what was found."""
    found = {"output": 0, "run": 0, "nothing": 0}
    for place in places:
        job = killed(same.beside(f"use{place}"), Kill("file", place))
        if job.output.exists():  # all but what is of no more use had been done
            found["output"] += 1
            shutil.rmtree(job.work, ignore_errors=True)
        else:
            state = "run" if (job.work / "run.json").is_file() else "nothing"
            found[state] += 1
            assert ended(train, job, None, {"resume": state == "run"}).answer == 13
        same.assert_same(job)
    return found


def test_a_kill_at_any_use_of_the_disk_does_no_harm(whole: Callable[..., Whole]) -> None:
    same = whole()
    count = ended(uses, same.beside("counted")).answer
    assert count > 200
    found = kill_at_uses(same, range(3, count, count // 6))
    assert found["run"] >= 4


@pytest.mark.slow
def test_a_hundred_kills_do_no_harm(whole: Callable[..., Whole]) -> None:
    same = whole()
    count = ended(uses, same.beside("counted")).answer
    found = kill_at_uses(same, range(1, count, count // 100))
    assert found["run"] > 80
    assert found["output"] > 0


@pytest.fixture
def half(whole: Callable[..., Whole], tmp_path: Path) -> Job:
    """A run that was killed at its second checkpoint."""
    job = killed(whole().job._replace(output=tmp_path / "models" / "out"), Kill("saved", 8))
    (job.work / LOCK_FILE).write_bytes(b"")  # or else the next run would, and more had changed
    return job


@pytest.fixture
def same_as_whole(whole: Callable[..., Whole]) -> Whole:
    return whole()


CHANGES: dict[str, tuple[dict[str, Any], str]] = {
    "rate": ({"learning_rate": 3e-4}, "learning_rate was 0.0002, is 0.0003"),
    "seed": ({"seed": 2}, "seed was 1, is 2"),
    "batch": ({"batch_size": 7, "accumulation": 1}, "accumulation was 2, is 1; batch_size was 8"),
    "steps": ({"max_steps": 14}, "max_steps was 13, is 14"),
    "epochs": ({"epochs": 5.0}, "epochs was 4.0, is 5.0"),
    "features": ({"features": ("u", "v")}, "features was"),
    "limit": ({"max_tokens": 20}, "base was .*max_tokens was null, is 20"),
    "length": ({"normalize": True}, "base was .*normalize was false, is true"),
    "guard": ({"guard": False}, "guard was true, is false"),
    "labels": ({"labels": {0: "entailment"}}, "labels was null"),
    "precision": ({"precision": "bf16"}, 'precision was "fp32", is "bf16"'),
}


def refused(job: Job, **settings: Any) -> str:
    """Why a run is not resumed; nothing is touched."""
    before = contents(job.output.parent)
    with quick_runs(), pytest.raises(InputError, match=r"^[^\n]+$") as caught:
        job.run(resume=True, **settings)
    assert contents(job.output.parent) == before
    return str(caught.value)


def test_other_settings_are_refused_by_name(half: Job) -> None:
    for settings, reason in CHANGES.values():
        message = refused(half, **settings)
        assert re.search(reason, message), message
        assert "was begun with other data or settings" in message


def test_other_data_are_refused_by_name(
    half: Job, tmp_path: Path, tiny_copy: Callable[..., Path]
) -> None:
    data = tmp_path / "pairs.jsonl"
    data.write_bytes(half.data.read_bytes().replace(b"home", b"dome", 1))
    assert 'data 1.sha256 was "' in refused(half._replace(data=data))
    dev = tmp_path / "dev.tsv"
    assert half.dev is not None
    dev.write_bytes(half.dev.read_bytes().replace(b"4.5", b"4.4", 1))
    assert 'dev was "' in refused(half._replace(dev=dev))
    assert "is null" in refused(half._replace(dev=None))
    assert 'objective was "softmax", is "contrastive"' in refused(
        half._replace(objective="contrastive")
    )
    assert 'pooling was "mean", is "max"' in refused(half._replace(pooling="max"))
    from safetensors.torch import load_file, save_file

    base = tiny_copy()
    tensors = load_file(base / "model.safetensors")
    tensors["embeddings.LayerNorm.bias"][0] += 1e-6
    save_file(tensors, base / "model.safetensors", metadata={"format": "pt"})
    assert 'base was "' in refused(half._replace(base=base))


def test_a_copy_elsewhere_of_all_that_was_given_will_do(
    half: Job, same_as_whole: Whole, tmp_path: Path, tiny_copy: Callable[..., Path]
) -> None:
    assert half.dev is not None
    moved = half._replace(
        base=tiny_copy(),
        data=Path(shutil.copy(half.data, tmp_path / half.data.name)),
        dev=Path(shutil.copy(half.dev, tmp_path / "other name.tsv")),
        output=tmp_path / "moved" / "other",
    )
    moved.output.parent.mkdir()
    half.work.rename(moved.work)
    assert ended(train, moved, None, RESUME) == Ended(0, 13, "")
    same_as_whole.assert_same(moved)


def test_a_run_is_not_begun_over_an_unfinished_one(half: Job) -> None:
    before = contents(half.output.parent)
    with pytest.raises(InputError, match="an unfinished run is at"):
        half.run()
    assert contents(half.output.parent) == before


@pytest.mark.parametrize(
    "name",
    ["model/model.safetensors", "optimizer.pt", "rng_state.pth", "trainer_state.json"],
)
def test_a_cut_checkpoint_is_passed_over(half: Job, same_as_whole: Whole, name: str) -> None:
    path = half.work / "checkpoints" / "step-00000008" / name
    path.write_bytes(path.read_bytes()[:-1])
    found = ended(train, half, None, RESUME)
    assert (found.status, found.answer) == (0, 13)
    (line,) = found.said.splitlines()
    assert f"step-00000008/{name}: expected" in line
    assert line.endswith("continuing from step 4")
    same_as_whole.assert_same(half)


def test_without_a_whole_checkpoint_nothing_is_resumed(half: Job) -> None:
    for path in half.work.rglob("scheduler.pt"):
        path.write_bytes(path.read_bytes()[1:])
    assert re.search("no checkpoint of the run at .* is complete", refused(half))


def test_another_count_of_threads_is_only_warned_of(half: Job, same_as_whole: Whole) -> None:
    settings = json.loads((half.work / "run.json").read_bytes())
    settings["environment"]["threads"] += 7
    (half.work / "run.json").write_text(json.dumps(settings), encoding="utf-8")
    found = ended(train, half, None, RESUME)
    assert (found.status, found.answer) == (0, 13)
    (line,) = found.said.splitlines()
    assert re.search("threads was 8, is 1.*: weights may differ in their last bits", line)
    same_as_whole.assert_same(half)


def test_what_changes_no_weight_may_change(half: Job, same_as_whole: Whole) -> None:
    found = ended(train, half, None, {**RESUME, "progress": True, "device": "auto"})
    assert (found.status, found.answer) == (0, 13)
    same_as_whole.assert_same(half)


def options(job: Job, *more: str) -> list[str]:
    """The command line of the whole run of softmax."""
    return [
        "train-nli", str(job.data), "--base", str(job.base), "-o", str(job.output),
        "--objective", job.objective, "--dev", str(job.dev), "--epochs", "4",
        "--max-steps", "13", "--accumulation", "2", "--batch-size", "8",
        "--checkpoint-steps", "4", "--lr", "2e-4", "--precision", "fp32", "--device", "cpu",
        "--quiet", *more,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("number", "status", "said"),
    [(signal.SIGINT, 130, ["sbertkit: interrupted"]), (signal.SIGTERM, 143, [])],
)
@pytest.mark.parametrize(("moment", "place", "stop"), [("step", 6, 7), ("saving", 8, 9)])
def test_a_signal_saves_and_ends_the_command(
    whole: Callable[..., Whole],
    number: signal.Signals,
    status: int,
    said: list[str],
    moment: str,
    place: int,
    stop: int,
) -> None:
    same = whole()
    job = same.beside(f"{moment}-{number.name}")
    found = ended(command, options(job), job.output, Kill(moment, place, number))
    assert found.status == status
    expected = f"warning: stopped at step {stop}; continue with --resume"
    # click breaks the line in which a terminal shows ^C.
    assert list(filter(None, found.said.splitlines())) == [expected, *said]
    assert steps_of(job)[-1] == stop
    assert not job.output.exists()
    found = ended(command, options(job, "--resume"), job.output)
    assert (found.status, found.said) == (0, "")
    same.assert_same(job)


def test_a_signal_from_outside_ends_the_command_at_once_or_after_a_step(
    whole: Callable[..., Whole],
) -> None:
    same = whole()
    job = same.beside("outside")
    arguments = options(job, "--max-steps", "100000")
    with started(command, arguments, job.output) as child:
        while not steps_of(job):
            assert child.process.is_alive()
            child.process.join(0.05)
        os.kill(child.process.pid or 0, signal.SIGINT)
        found = child.wait()
    assert found.status == 130
    assert found.said.split("\n")[1:] == ["", "sbertkit: interrupted", ""]
    assert not job.output.exists()
    CheckpointStore(job.work / "checkpoints").read(steps_of(job)[-1])


def test_a_run_into_a_mounted_folder_has_all_in_it_and_is_resumed(
    whole: Callable[..., Whole], tmp_path: Path, mount: Callable[..., None]
) -> None:
    same = whole()
    job = same.job._replace(output=tmp_path / "volume" / "out")
    mount(job.output)
    killed(job, Kill("saved", 8))
    assert contents(job.output).keys() > {"out.run", "out.run/run.json"}
    assert [path.name for path in job.output.parent.iterdir()] == ["out"]
    assert ended(train, job, None, RESUME) == Ended(0, 13, "")
    same.assert_same(job)
    assert not (job.output / "out.run").exists()
    assert Encoder.load(job.output, device="cpu").dim == 32


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system with room for the base's checkpoint two times, but not three times."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, timeout=10)
    except OSError:
        pytest.skip("no mount command")
    if done.returncode != 0:
        pytest.skip("mounting is not permitted")
    yield folder
    subprocess.run(["umount", str(folder)], check=True, timeout=10)


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_a_full_disk_ends_the_command_and_loses_nothing(
    whole: Callable[..., Whole], small_disk: Path, half: Job
) -> None:
    same = whole()
    one = size_of(half.work / "checkpoints" / "step-00000008")
    job = same.job._replace(output=small_disk / "out")
    for count in (0.3, 0.8, 1.4, 2.6, 3.2):  # room for so many checkpoints
        size = int(one * count)
        resize = ["mount", "-o", f"remount,size={size}", str(small_disk)]
        subprocess.run(resize, check=True, timeout=10)
        more = ["--resume"] if job.work.exists() else []
        found = ended(command, options(job, *more), job.output)
        if found.status == 0:
            break
        assert found.status == 1, (count, found)
        (line,) = found.said.splitlines()
        assert line.startswith("sbertkit: error: cannot write "), line
        assert re.search("full|free space|No space", line), line
        store = CheckpointStore(job.work / "checkpoints")
        assert all(store.read(step).step == step for step in store.steps())
        assert not list(store.folder.glob(".*"))
        assert (count > 1) == bool(store.steps())
        if not store.steps():
            assert contents(small_disk) == {}
    subprocess.run(["mount", "-o", "remount,size=20m", str(small_disk)], check=True, timeout=10)
    if not job.output.exists():
        found = ended(command, options(job, "--resume"), job.output)
    assert (found.status, found.said) == (0, "")
    same.assert_same(job)


def test_a_file_that_may_not_grow_ends_the_command_with_one_line(
    whole: Callable[..., Whole], half: Job
) -> None:
    same = whole()
    checkpoint = half.work / "checkpoints" / "step-00000008"
    model = (checkpoint / "model" / "model.safetensors").stat().st_size
    optimizer = (checkpoint / "optimizer.pt").stat().st_size
    for limit in (0, 200, 2_000, 20_000, model - 1, model, optimizer - 1):
        job = same.beside(f"limit{limit}")
        found = ended(command, options(job), job.output, None, limit)
        assert found.status == 1
        (line,) = found.said.splitlines()
        assert line.startswith("sbertkit: error: cannot write "), line
        assert not job.output.exists()
        assert not job.work.exists()
    job = same.beside("limit")
    assert ended(command, options(job), job.output, None, optimizer).status == 0
    same.assert_same(job)


def test_a_place_that_may_not_be_written_to_is_told_and_left(
    whole: Callable[..., Whole], obey_permissions: Callable[[], None]
) -> None:
    given = whole().job
    assert given.dev is not None
    with public_folder() as folder:
        job = Job(
            Path(shutil.copytree(given.base, folder / "base")),
            Path(shutil.copy(given.data, folder)),
            folder / "warm" / "out",
            dev=Path(shutil.copy(given.dev, folder)),
            settings={"max_steps": 2},
        )
        for name, mode in (("warm", 0o755), ("locked", 0o555), ("open", 0o777)):
            (folder / name).mkdir()
            (folder / name).chmod(mode)
        outputs = [folder / place / "out" for place in ("locked", "locked/deep", "open")]
        found = ended(train_unprivileged, obey_permissions, job, outputs)
        assert found.status == 0, found
        for outcome in found.answer[:2]:
            assert re.match(r"StorageError: cannot write [^\n]*permission denied[^\n]*$", outcome)
        assert contents(folder / "locked") == {}
        assert found.answer[2] == "2 steps"
        assert Encoder.load(folder / "open" / "out", device="cpu").dim == 32
