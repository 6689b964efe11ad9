"""Durable writing, and what is left when it fails."""

import errno
import hashlib
import os
import re
import sqlite3
from pathlib import Path

import pytest

from sbertkit.errors import InputError, StorageError
from sbertkit.storage import (
    caller_errors,
    caller_items,
    made_parents,
    replace_file,
    sha256_file,
    staged_file,
    staged_folder,
    storage_errors,
    sync_folder,
)
from sbertkit.storage.publishing import swap_folder


def names(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def write_half(path: Path) -> None:
    path.write_bytes(b"half")
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "disk is full"),
        (errno.EDQUOT, "quota"),
        (errno.EFBIG, "larger than allowed"),
        (errno.EACCES, "permission denied"),
        (errno.EPERM, "permission denied"),
        (errno.EROFS, "read-only"),
        (errno.ENOTDIR, "not a folder"),
        (errno.ENAMETOOLONG, "too long"),
        (errno.EIO, "nput/output error"),
    ],
)
def test_a_write_error_says_path_reason_and_remedy_on_one_line(number: int, words: str) -> None:
    with pytest.raises(StorageError, match=words) as caught, storage_errors("some/place"):
        raise OSError(number, os.strerror(number))
    message = str(caught.value)
    assert message.startswith("cannot write some/place: ")
    assert "choose" in message
    assert "\n" not in message
    assert isinstance(caught.value, OSError)


def test_an_error_of_sqlite_or_without_a_number_is_one_line_too() -> None:
    for error in (sqlite3.OperationalError("disk I/O\nerror"), OSError("strange\nthing")):
        expected = r"^cannot write x: [^\n]*choose[^\n]*$"
        with pytest.raises(StorageError, match=expected), storage_errors("x"):
            raise error


@pytest.mark.parametrize("error", [InputError("refused"), ValueError("bug"), KeyboardInterrupt()])
def test_other_errors_pass_as_they_are(error: BaseException) -> None:
    with pytest.raises(type(error)) as caught, storage_errors("x"):
        raise error
    assert caught.value is error


@pytest.mark.parametrize(
    "error",
    [ConnectionError("no answer"), PermissionError(13, "no"), sqlite3.OperationalError("x")],
)
def test_errors_of_the_callers_own_code_are_not_blamed_on_the_disk(error: Exception) -> None:
    def items():
        yield 1
        raise error

    drawn: list[int] = []
    with pytest.raises(type(error)) as caught, storage_errors("x"):
        drawn.extend(caller_items(items()))
    assert caught.value is error
    with pytest.raises(type(error)) as caught, storage_errors("x"), caller_errors():
        raise error
    assert caught.value is error


def test_parents_are_made_and_stay_when_all_went_well(tmp_path: Path) -> None:
    with made_parents(tmp_path / "a" / "b" / "file"):
        (tmp_path / "a" / "b" / "file").touch()
    assert names(tmp_path) == ["a", "a/b", "a/b/file"]


def test_made_parents_go_again_after_a_failure_and_others_stay(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    with pytest.raises(KeyboardInterrupt), made_parents(tmp_path / "old" / "a" / "b" / "file"):
        raise KeyboardInterrupt
    assert names(tmp_path) == ["old"]


def test_a_made_parent_that_somebody_uses_stays(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), made_parents(tmp_path / "a" / "b" / "file"):
        write_half(tmp_path / "a" / "other")
    assert names(tmp_path) == ["a", "a/other"]


@pytest.mark.parametrize("part", ["x" * 300, "file/deeper"])
def test_parents_that_cannot_be_made_leave_none_behind(tmp_path: Path, part: str) -> None:
    (tmp_path / "file").touch()
    path = tmp_path / "a" / ".." / part / "b" / "c"
    with pytest.raises(StorageError, match="cannot write"), made_parents(path):
        pytest.fail("never reached")
    assert names(tmp_path) == ["file"]


def test_replacing_a_file_leaves_only_the_new_bytes(tmp_path: Path) -> None:
    path = tmp_path / "state"
    for content in (b"one", b"", b"two" * 10_000):
        replace_file(path, content)
        assert path.read_bytes() == content
        assert names(tmp_path) == ["state"]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failed_replacement_leaves_the_old_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def fail(*_args: object) -> None:
        raise OSError(errno.EIO, "no")

    path = tmp_path / "state"
    replace_file(path, b"old")
    monkeypatch.setattr(os if step == "fsync" else Path, step, fail)
    with pytest.raises(OSError, match="no"):
        replace_file(path, b"new")
    monkeypatch.undo()
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["state"]


def test_bytes_are_on_the_disk_before_the_name_and_the_name_before_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    fsync, replace = os.fsync, Path.replace

    def note_sync(handle: int) -> None:
        steps.append("sync " + Path(f"/proc/self/fd/{handle}").readlink().name)
        fsync(handle)

    def note_replace(old: Path, new: Path) -> Path:
        steps.append("replace")
        return replace(old, new)

    if not Path("/proc/self/fd").is_dir():
        pytest.skip("needs /proc to tell which file was synced")
    monkeypatch.setattr(os, "fsync", note_sync)
    monkeypatch.setattr(Path, "replace", note_replace)
    replace_file(tmp_path / "state", b"x")
    (staged,) = {step for step in steps if ".tmp" in step}
    assert re.fullmatch(r"sync \.state\.[0-9a-f]{8}\.tmp", staged)
    assert steps == [staged, "replace", f"sync {tmp_path.name}"]
    steps.clear()
    with staged_folder(tmp_path / "model") as folder:
        (folder / "inner").mkdir()
        (folder / "inner" / "file").touch()
    (staged,) = {step for step in steps if ".tmp" in step}
    assert set(steps[:3]) == {"sync inner", "sync file", staged}
    assert steps[3:] == [f"sync {tmp_path.name}"]


def test_a_staged_file_appears_at_the_end_and_keeps_its_suffix(tmp_path: Path) -> None:
    path = tmp_path / "new" / "vectors.npy"
    with staged_file(path) as staged:
        assert staged.suffix == ".npy"
        staged.write_bytes(b"x")
        assert not path.exists()
    assert names(tmp_path) == ["new", "new/vectors.npy"]


def test_a_failed_staged_file_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "vectors.npy"
    path.write_bytes(b"old")
    for place in (path, tmp_path / "new" / "vectors.npy"):
        with pytest.raises(KeyboardInterrupt), staged_file(place) as staged:
            write_half(staged)
    assert names(tmp_path) == ["vectors.npy"]
    assert path.read_bytes() == b"old"


def test_a_staged_folder_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "a" / "model"
    for name in ("first", "second"):
        with staged_folder(path) as folder:
            (folder / name).touch()
        assert names(tmp_path) == ["a", "a/model", f"a/model/{name}"]


def test_a_failed_staged_folder_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "model"
    with staged_folder(path) as folder:
        (folder / "old").touch()
    for place in (path, tmp_path / "a" / "other"):
        with pytest.raises(KeyboardInterrupt), staged_folder(place) as folder:
            write_half(folder / "new")
    assert names(tmp_path) == ["model", "model/old"]


@pytest.mark.parametrize("empty", [True, False])
def test_a_staged_folder_may_be_told_to_replace_nothing(tmp_path: Path, empty: bool) -> None:
    path = tmp_path / "a" / "model"
    if empty:
        path.mkdir(parents=True)
    with staged_folder(path, replace=False) as folder:
        (folder / "first").touch()
    assert names(tmp_path) == ["a", "a/model", "a/model/first"]
    with (
        pytest.raises(StorageError, match="something else has been put there meanwhile"),
        storage_errors(path),
        staged_folder(path, replace=False) as folder,
    ):
        (folder / "second").touch()
    assert names(tmp_path) == ["a", "a/model", "a/model/first"]


def test_a_swap_that_fails_half_way_puts_the_old_folder_back(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "old").touch()
    with pytest.raises(FileNotFoundError):
        swap_folder(tmp_path / "missing", tmp_path / "model")
    assert names(tmp_path) == ["model", "model/old"]


def test_a_file_system_without_folder_syncs_is_accepted_and_a_broken_disk_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(number: int):
        def fail(_handle: int) -> None:
            raise OSError(number, "no")

        return fail

    monkeypatch.setattr(os, "fsync", failing(errno.EINVAL))
    sync_folder(tmp_path)
    monkeypatch.setattr(os, "fsync", failing(errno.EIO))
    with pytest.raises(OSError, match="no"):
        sync_folder(tmp_path)


def test_the_hash_of_a_file_is_its_sha256(tmp_path: Path) -> None:
    for content in (b"", b"abc", b"\0" * 3_000_000):
        (tmp_path / "file").write_bytes(content)
        assert sha256_file(tmp_path / "file") == hashlib.sha256(content).hexdigest()
