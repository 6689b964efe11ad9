"""Checkpoints and run folders whose hashes are right and whose contents are not."""

import copy
import json
import os
import pickle
import shutil
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from training_cases import Job, quick_runs, rows, weight_bytes, write_dev, write_nli

from sbertkit.errors import InputError
from sbertkit.sealed import SealedFile, seal
from sbertkit.training.run import runner
from sbertkit.training.run.checkpoint_state import read_state
from sbertkit.training.run.checkpoints import CheckpointStore
from sbertkit.training.run.folder import RunFolder

STEP = 4
BLOB = "\x00" * 1000
NESTED = "[" * 100_000 + "]" * 100_000
VALUES = [
    *("null", "true", '"x"', "-1", "1.5", "1e999", "NaN", "[]", "{}", "[[1]]", '{"a": {"b": []}}'),
    *("1000000000000", "1" + "0" * 400, "1" + "0" * 5000, json.dumps(BLOB), '"\\ud800"', NESTED),
]
"""JSON, for every field."""


@pytest.fixture(scope="module")
def cut(tiny_bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Job:
    """A run that was cut off after its last checkpoint, to be left as it is."""
    root = tmp_path_factory.mktemp("cut")
    data = write_nli(root / "pairs.jsonl", rows(12))
    settings = {"max_steps": 8, "checkpoint_steps": STEP}
    job = Job(tiny_bert, data, root / "out", dev=write_dev(root / "dev.tsv"), settings=settings)
    with quick_runs(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "write_output", _cut_off)
        with pytest.raises(KeyboardInterrupt):
            job.run()
    CheckpointStore(job.work / "checkpoints").drop_after(STEP)
    return job


def _cut_off(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.fixture
def job(cut: Job, tmp_path: Path) -> Job:
    """A copy of that run, to be changed at will."""
    shutil.copytree(cut.work, tmp_path / cut.work.name)
    return cut._replace(output=tmp_path / cut.output.name)


def checkpoint_of(job: Job) -> Path:
    return job.work / "checkpoints" / f"step-{STEP:08d}"


def rehash(folder: Path, change: Callable[[dict[str, Any]], None] = lambda _: None) -> None:
    """Writes the manifest of a checkpoint again with right sizes and hashes, as anybody can."""
    path = folder / "checkpoint.json"
    content = json.loads(path.read_bytes())
    content.pop("sha256")
    content["files"] = [
        asdict(SealedFile.of(folder, folder / file["path"])) for file in content["files"]
    ]
    change(content)
    path.write_bytes(seal(content))


def refused(call: Callable[[], object], name: str) -> None:
    """That a call ends well, or in one line that names the file."""
    error = None
    try:
        call()
    except InputError as found:
        error = str(found)
    assert error is None or (name in error and len(error.splitlines()) == 1), error


def fields_of(content: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The ways to all fields of a document, the whole of it first."""
    yield path
    items = content.items() if isinstance(content, dict) else ()
    for key, value in items if items else enumerate(content) if isinstance(content, list) else ():
        yield from fields_of(value, (*path, key))


def variants(text: str) -> Iterator[str]:
    """A document with each value in the place of each field, and without it, and with one more."""
    content = json.loads(text)
    for path in fields_of(content):
        for value in VALUES:
            yield _changed(content, path, value)
        if path and isinstance(path[-1], str):
            yield _changed(content, path, None)
            yield _changed(content, (*path[:-1], "evil"), "1")
    yield from (text[: len(text) // 2], "", "\ufeff{}", "nonsense")


def _changed(content: Any, path: tuple[Any, ...], value: str | None) -> str:
    """The document with a field changed to raw JSON, added, or gone."""
    if not path:
        return str(value)
    made = copy.deepcopy(content)
    place = made
    for key in path[:-1]:
        place = place[key]
    if value is None:
        del place[path[-1]]
        return json.dumps(made)
    place[path[-1]] = "@@"
    return json.dumps(made).replace('"@@"', value)


def test_any_field_of_the_trainers_state_is_read_or_refused(job: Job) -> None:
    path = checkpoint_of(job) / "trainer_state.json"
    checkpoint = CheckpointStore(job.work / "checkpoints").read(STEP)
    for text in variants(path.read_text()):
        path.write_text(text)
        refused(lambda: read_state(checkpoint), "trainer_state.json")


def test_any_field_of_a_checkpoints_manifest_is_read_or_refused(job: Job) -> None:
    path = checkpoint_of(job) / "checkpoint.json"
    store = CheckpointStore(job.work / "checkpoints")
    for text in variants(path.read_text()):
        path.write_text(text)
        refused(lambda: store.read(STEP), "checkpoint.json")


def test_any_field_of_a_checkpoints_state_is_read_or_refused(job: Job) -> None:
    checkpoint = CheckpointStore(job.work / "checkpoints").read(STEP)
    for text in variants(json.dumps(checkpoint.state)):
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            continue  # no JSON at all, as above
        refused(lambda: read_state(replace(checkpoint, state=found)), "checkpoint.json")  # noqa: B023


def test_any_field_of_the_record_of_a_run_is_read_or_refused(job: Job) -> None:
    path = job.work / "run.json"
    identity = json.loads(path.read_bytes())
    for text in variants(path.read_text()):
        path.write_text(text)
        refused(lambda: RunFolder(job.output).begin(identity, resume=True), "run")
    assert CheckpointStore(job.work / "checkpoints").steps() == [STEP]


@pytest.mark.parametrize("name", ["trainer_state.json", "checkpoint.json", "run.json", "log.jsonl"])
@pytest.mark.parametrize("kind", ["fifo", "link", "device"])
def test_what_is_no_regular_file_is_refused_and_not_waited_for(
    job: Job, tmp_path: Path, name: str, kind: str
) -> None:
    folder = job.work if (job.work / name).exists() else checkpoint_of(job)
    path = folder / name
    elsewhere = path.rename(tmp_path / "elsewhere")
    before = elsewhere.read_bytes()
    if kind == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to(elsewhere if kind == "link" else "/dev/zero")
    with quick_runs(), pytest.raises(InputError, match=rf"{name}|no unfinished run"):
        job.run(resume=True)
    assert elsewhere.read_bytes() == before


class Evil:
    """Leaves a trace where it is unpickled."""

    def __init__(self, trace: Path) -> None:
        self._trace = trace

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self._trace,))


NAMES = ["optimizer.pt", "scheduler.pt", "rng_state.pth"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["pickle", "torch", "junk", "other"])
def test_states_that_torch_cannot_take_are_refused_by_name_and_never_run(
    job: Job, tmp_path: Path, name: str, kind: str
) -> None:
    path, trace = checkpoint_of(job) / name, tmp_path / "trace"
    if kind == "pickle":
        path.write_bytes(pickle.dumps(Evil(trace)))
    elif kind == "junk":
        path.write_bytes(b"\x00PK\x03\x04" * 50)
    else:
        torch.save(Evil(trace) if kind == "torch" else {"a": [1]}, path)
    rehash(checkpoint_of(job))
    with quick_runs(), pytest.raises(InputError, match=rf"{name} cannot be loaded") as caught:
        job.run(resume=True)
    assert len(str(caught.value).splitlines()) == 1
    assert not trace.exists()
    assert not job.output.exists()
    assert checkpoint_of(job).is_dir()


def _wrong_optimizer(state: Any, kind: str) -> None:
    first = state["state"][0]
    if kind == "shape":
        first["exp_avg"] = torch.zeros(1).expand(10**12)
    elif kind == "moment":
        del first["exp_avg_sq"]
    elif kind == "number":
        first["exp_avg"] = 3.0
    elif kind == "group":
        state["param_groups"][0]["betas"] = "ab"
    else:
        state["state"].clear()


@pytest.mark.parametrize("kind", ["shape", "moment", "number", "group", "none"])
def test_an_optimizer_of_another_model_is_refused(job: Job, kind: str) -> None:
    path = checkpoint_of(job) / "optimizer.pt"
    state = torch.load(path, weights_only=True)
    _wrong_optimizer(state, kind)
    torch.save(state, path)
    rehash(checkpoint_of(job))
    with quick_runs(), pytest.raises(InputError, match=r"optimizer\.pt cannot be loaded"):
        job.run(resume=True)


@pytest.mark.parametrize("change", [{"last_epoch": "x"}, {"optimizer": 3}, {"base_lrs": [1.0] * 9}])
def test_a_schedule_of_another_run_is_refused(job: Job, change: dict[str, Any]) -> None:
    path = checkpoint_of(job) / "scheduler.pt"
    torch.save({**torch.load(path, weights_only=True), **change}, path)
    rehash(checkpoint_of(job))
    with quick_runs(), pytest.raises(InputError, match=r"scheduler\.pt cannot be loaded"):
        job.run(resume=True)


@pytest.mark.parametrize("name", ["optimizer.bin", "scaler.pt", "model/more.safetensors", "x/y"])
def test_a_file_that_the_manifest_does_not_name_is_not_used(job: Job, name: str) -> None:
    path = checkpoint_of(job) / name
    path.parent.mkdir(exist_ok=True)
    path.touch()
    with quick_runs(), pytest.raises(InputError, match=f"{name} is no file of this checkpoint"):
        job.run(resume=True)


@pytest.mark.parametrize("name", ["../elsewhere", "/etc/hostname", "model/../../../run.json", ""])
def test_a_checkpoint_names_no_file_outside_its_folder(job: Job, name: str) -> None:
    def change(content: dict[str, Any]) -> None:
        content["files"].append({"path": name, "bytes": 0, "sha256": "0" * 64})

    rehash(checkpoint_of(job), change)
    with pytest.raises(InputError, match="expected a path inside the folder"):
        CheckpointStore(job.work / "checkpoints").read(STEP)


def test_a_checkpoint_without_its_optimizer_is_refused(job: Job) -> None:
    (checkpoint_of(job) / "optimizer.pt").unlink()
    path = checkpoint_of(job) / "checkpoint.json"
    content = json.loads(path.read_bytes())
    content["files"] = [file for file in content["files"] if file["path"] != "optimizer.pt"]
    path.write_text(json.dumps(content))
    rehash(checkpoint_of(job))
    with quick_runs(), pytest.raises(InputError, match=r"has no optimizer\.pt"):
        job.run(resume=True)


def test_the_unchanged_run_is_resumed(job: Job, cut: Job, tmp_path: Path) -> None:
    """Else the tests above would say less than they seem to."""
    whole = cut._replace(output=tmp_path / "whole")
    with quick_runs():
        assert job.run(resume=True).steps == 8
        whole.run()
    assert weight_bytes(job.output) == weight_bytes(whole.output)
