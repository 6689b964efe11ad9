"""Checkpoints: which are kept, that damage is found, and what a failed write leaves."""

import errno
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sbertkit.errors import InputError, StorageError
from sbertkit.sealed import seal
from sbertkit.training.run import checkpoints
from sbertkit.training.run.checkpoints import Checkpoint, CheckpointStore, write_json

STATE = {"guard": {"doubts": 0, "fault": None}, "progress": {"best_score": 0.5, "best_step": 2}}


def fill(folder: Path) -> None:
    (folder / "model" / "1_Pooling").mkdir(parents=True)
    (folder / "model" / "weights.bin").write_bytes(bytes(range(64)))
    (folder / "model" / "1_Pooling" / "config.json").write_text('{"mode": "mean"}')
    (folder / "optimizer.pt").write_bytes(b"moments")
    (folder / "empty").touch()


FILES = ("model/weights.bin", "model/1_Pooling/config.json", "optimizer.pt", "empty")


def written(store: CheckpointStore, *steps: int, best: int | None = None) -> list[int]:
    for step in steps:
        store.write(step, fill, STATE, best)
    return store.steps()


@pytest.fixture
def store(tmp_path: Path) -> CheckpointStore:
    return CheckpointStore(tmp_path / "run" / "checkpoints")


def names(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def content_of(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


# --- writing and reading


def test_what_was_written_is_read(store: CheckpointStore) -> None:
    path = store.write(7, fill, STATE, None)
    assert path == store.path(7) == store.folder / "step-00000007"
    found = store.read(7)
    assert found == Checkpoint(path, 7, STATE)
    assert found.model == path / "model"
    assert set(FILES) < set(names(path))
    assert (found.model / "weights.bin").read_bytes() == bytes(range(64))
    assert names(store.folder)[0] == "step-00000007"  # nothing half written beside it


def test_a_checkpoint_may_be_moved_with_its_run(store: CheckpointStore, tmp_path: Path) -> None:
    written(store, 3)
    shutil.move(store.folder.parent, tmp_path / "moved")
    assert CheckpointStore(tmp_path / "moved" / "checkpoints").read(3).step == 3


def test_steps_are_ascending_numbers_and_other_names_are_nothing(store: CheckpointStore) -> None:
    written(store, 1_000_000_000, 9)
    for name in ("step-best", "step-", "notes", ".step-00000004.tmp", "step-00000002.old"):
        (store.folder / name).mkdir()
    assert store.steps() == [9, 1_000_000_000]


def test_without_a_folder_there_are_no_steps(store: CheckpointStore) -> None:
    assert store.steps() == []
    store.sweep()
    store.drop_after(0)


def test_a_checkpoint_that_is_there_is_replaced(store: CheckpointStore) -> None:
    written(store, 4)
    store.write(4, lambda folder: (folder / "new").touch() or None, {"other": 1}, None)  # type: ignore[func-returns-value]
    assert store.read(4).state == {"other": 1}
    assert names(store.path(4)) == ["checkpoint.json", "new"]


# --- rotation


def test_the_last_two_and_the_best_are_kept(store: CheckpointStore) -> None:
    assert written(store, 1) == [1]
    assert written(store, 2) == [1, 2]
    assert written(store, 3) == [2, 3]
    assert written(store, 4, best=2) == [2, 3, 4]
    assert written(store, 5, best=2) == [2, 4, 5]
    assert written(store, 6, best=5) == [5, 6]
    assert written(store, 7, best=5) == [5, 6, 7]
    assert written(store, 8, best=8) == [7, 8]


def test_without_a_best_one_the_last_two_are_kept(store: CheckpointStore) -> None:
    assert written(store, *range(10, 200, 10)) == [180, 190]


def test_what_is_kept_is_whole(store: CheckpointStore) -> None:
    for step in written(store, 1, 2, 3, 4, best=1):
        assert store.read(step).step == step


def test_the_steps_after_one_can_be_dropped(store: CheckpointStore) -> None:
    written(store, 1, 2, 3, best=1)
    store.drop_after(3)
    assert store.steps() == [1, 2, 3]
    store.drop_after(1)
    assert store.steps() == [1]


# --- damage


def refused(store: CheckpointStore, step: int, *words: str) -> None:
    with pytest.raises(InputError) as caught:
        store.read(step)
    message = str(caught.value)
    assert "\n" not in message
    for word in (store.path(step).name, *words):
        assert word in message


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named(store: CheckpointStore, name: str) -> None:
    path = store.write(5, fill, STATE, None)
    (path / name).unlink()
    refused(store, 5, name, "missing")


@pytest.mark.parametrize("name", FILES[:3])
def test_a_file_cut_anywhere_is_named(store: CheckpointStore, name: str) -> None:
    path = store.write(5, fill, STATE, None) / name
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        refused(store, 5, name, f"expected {len(whole)} bytes, found {length}")
    path.write_bytes(whole + b"\0")
    refused(store, 5, name)


@pytest.mark.parametrize("name", FILES[:3])
def test_any_flipped_byte_is_found(store: CheckpointStore, name: str) -> None:
    path = store.write(5, fill, STATE, None) / name
    whole = path.read_bytes()
    for place in range(len(whole)):
        changed = bytearray(whole)
        changed[place] ^= 1 << place % 8
        path.write_bytes(changed)
        refused(store, 5, name)
    path.write_bytes(whole)
    assert store.read(5).state == STATE


def test_a_folder_in_the_place_of_a_file_is_named(store: CheckpointStore) -> None:
    path = store.write(5, fill, STATE, None)
    (path / "optimizer.pt").unlink()
    (path / "optimizer.pt").mkdir()
    refused(store, 5, "optimizer.pt")


def test_a_manifest_that_is_gone_or_cut_is_named(store: CheckpointStore) -> None:
    manifest = store.write(5, fill, STATE, None) / "checkpoint.json"
    whole = manifest.read_bytes()
    for length in range(0, len(whole.rstrip()), 3):
        manifest.write_bytes(whole[:length])
        refused(store, 5, "checkpoint.json")
    manifest.unlink()
    refused(store, 5, "checkpoint.json")


def test_any_flipped_byte_of_the_manifest_is_found_too(store: CheckpointStore) -> None:
    manifest = store.write(5, fill, STATE, None) / "checkpoint.json"
    whole = manifest.read_bytes()
    missed = []
    for place in range(len(whole)):
        changed = bytearray(whole)
        changed[place] ^= 1 << place % 7  # the text stays ASCII
        manifest.write_bytes(changed)
        try:
            if store.read(5) != Checkpoint(store.path(5), 5, STATE):
                missed.append(bytes(changed[max(0, place - 12) : place + 12]))
        except InputError:
            continue
    assert missed == []


@pytest.mark.parametrize(
    "content",
    [
        *([], "text", 3, None, {}, {"format": 1}),
        {"format": 1, "step": 5, "state": {}},
        {"format": 1, "step": 5, "state": {}, "files": "optimizer.pt"},
        {"format": 1, "step": 5, "state": {}, "files": None},
        {"format": 1, "step": 5, "state": {}, "files": {"optimizer.pt": 12}},
        {"format": 1, "step": 5, "state": {}, "files": ["optimizer.pt"]},
        {"format": 1, "step": 5, "state": {}, "files": [{"path": "optimizer.pt", "bytes": 12}]},
        {"format": 1, "step": 6, "state": {}, "files": []},
        {"format": 2, "step": 5, "state": {}, "files": []},
    ],
)
def test_a_manifest_of_something_else_is_refused(store: CheckpointStore, content: Any) -> None:
    manifest = store.write(5, fill, STATE, None) / "checkpoint.json"
    manifest.write_text(json.dumps(content))
    refused(store, 5)
    if isinstance(content, dict):
        manifest.write_bytes(seal(content))
        refused(store, 5)


def test_a_checkpoint_under_the_name_of_another_is_refused(store: CheckpointStore) -> None:
    written(store, 5)
    store.path(5).rename(store.path(6))
    refused(store, 6, "not that of step 6")


def test_a_step_that_is_not_there_is_refused(store: CheckpointStore) -> None:
    refused(store, 4, "checkpoint.json")


# --- failures


def fail_with(error: BaseException) -> Callable[[Path], None]:
    def write_half(folder: Path) -> None:
        fill(folder)
        raise error

    return write_half


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), StorageError),
        (StorageError("cannot write x: the disk is full"), StorageError),
        (KeyboardInterrupt(), KeyboardInterrupt),
        (RuntimeError("bug"), RuntimeError),
    ],
)
def test_a_write_that_fails_midway_leaves_the_earlier_ones(
    store: CheckpointStore, error: BaseException, told: type[BaseException]
) -> None:
    written(store, 1, 2)
    before = content_of(store.folder)
    with pytest.raises(told):
        store.write(3, fail_with(error), STATE, None)
    assert content_of(store.folder) == before
    assert [store.read(step).step for step in store.steps()] == [1, 2]


def test_a_write_that_fails_leaves_the_checkpoint_of_the_same_step(store: CheckpointStore) -> None:
    written(store, 2)
    before = content_of(store.folder)
    with pytest.raises(StorageError, match="disk is full"):
        store.write(2, fail_with(OSError(errno.ENOSPC, "x")), STATE, None)
    assert content_of(store.folder) == before


@pytest.mark.parametrize("name", ["sync_tree", "follow_modes"])
def test_a_disk_that_fails_after_the_files_leaves_the_earlier_ones(
    store: CheckpointStore, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    written(store, 1, 2)
    before = content_of(store.folder)

    def fail(path: Path) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(checkpoints, name, fail)
    with pytest.raises(StorageError, match="cannot write"):
        store.write(3, fill, STATE, None)
    assert content_of(store.folder) == before


def test_a_state_that_json_cannot_hold_writes_nothing(store: CheckpointStore) -> None:
    written(store, 1)
    with pytest.raises(ValueError, match="JSON"):
        store.write(2, fill, {"score": float("nan")}, None)
    assert store.steps() == [1]
    assert not list(store.folder.glob(".*"))


def test_a_folder_that_cannot_be_made_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="is a file"):
        CheckpointStore(tmp_path / "file" / "checkpoints").write(1, fill, STATE, None)


def test_leftovers_of_a_killed_process_are_swept_and_nothing_else(store: CheckpointStore) -> None:
    written(store, 1, 2)
    before = content_of(store.folder)
    for step in (3, 12):
        store.staging(step).mkdir()
        fill(store.staging(step))
    assert store.steps() == [1, 2]
    store.sweep()
    assert content_of(store.folder) == before


def test_json_is_written_in_one_step_and_readably(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    write_json(path, {"name": "Zürich"})
    with pytest.raises(ValueError, match="JSON"):
        write_json(path, {"value": np.inf})
    assert path.read_text(encoding="utf-8") == '{\n  "name": "Zürich"\n}\n'
    assert names(tmp_path) == ["run.json"]
