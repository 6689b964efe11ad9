"""Folders that appear in one step, also in place of one that cannot be replaced."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from other_user import restricted

from sbertkit import Encoder
from sbertkit.errors import StorageError
from sbertkit.storage import is_fixed, publishing, staged_folder, storage_errors

Mount = Callable[..., None]


def write(path: Path, content: bytes, **options: object) -> None:
    with storage_errors(path), staged_folder(path, **options) as staged:  # type: ignore[arg-type]
        (staged / "inner").mkdir()
        for name in ("first", "inner/second"):
            (staged / name).write_bytes(content)


def names(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


WHOLE = ["first", "inner", "inner/second"]


def test_a_folder_that_is_replaced_is_there_at_every_moment(tmp_path: Path) -> None:
    if publishing._renameat2() is None:
        pytest.skip("this system changes no places in one step")
    path = tmp_path / "model"
    write(path, b"0")
    looks, missed = 0, 0
    ended = threading.Event()

    def look() -> None:
        nonlocal looks, missed
        while not ended.is_set():
            looks += 1
            missed += not os.access(path / "first", os.R_OK)

    reader = threading.Thread(target=look)
    reader.start()
    for number in range(60):
        write(path, b"%d" % number)
    ended.set()
    reader.join()
    assert missed == 0
    assert looks > 60
    assert names(tmp_path) == ["model", *(f"model/{name}" for name in WHOLE)]


@pytest.mark.parametrize("there_already", [False, True])
def test_where_no_places_are_changed_a_folder_is_replaced_by_two_moves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there_already: bool
) -> None:
    monkeypatch.setattr(publishing, "_exchange", lambda *_: False)
    path = tmp_path / "model"
    if there_already:
        write(path, b"old")
    write(path, b"new")
    assert (path / "first").read_bytes() == b"new"
    assert names(tmp_path) == ["model", *(f"model/{name}" for name in WHOLE)]


def test_what_a_kill_between_two_moves_left_stays_until_there_is_a_new_one(tmp_path: Path) -> None:
    path = tmp_path / "model"
    write(tmp_path / ".model.01234567.old", b"old")
    with pytest.raises(KeyboardInterrupt), staged_folder(path):
        raise KeyboardInterrupt
    assert "model" not in names(tmp_path)
    assert (tmp_path / ".model.01234567.old" / "first").read_bytes() == b"old"
    write(path, b"new")
    write(path, b"newer")
    assert names(tmp_path) == ["model", *(f"model/{name}" for name in WHOLE)]


def test_a_folder_that_is_mounted_is_filled(tmp_path: Path, mount: Mount) -> None:
    path = tmp_path / "data"
    mount(path)
    assert is_fixed(path)
    before = path.stat()
    write(path, b"new", last="first")
    assert names(path) == WHOLE
    assert (path.stat().st_dev, path.stat().st_ino) == (before.st_dev, before.st_ino)
    with pytest.raises(StorageError, match=r"data is mounted, .*and holds first; empty it, or"):
        write(path, b"newer")
    assert (path / "first").read_bytes() == b"new"
    assert names(tmp_path) == ["data", *(f"data/{name}" for name in WHOLE)]


def test_a_folder_of_the_same_file_system_that_is_mounted_is_filled(
    tmp_path: Path, mount: Mount
) -> None:
    (tmp_path / "volume").mkdir()
    path = tmp_path / "a folder"
    mount(path, tmp_path / "volume")
    assert not os.path.ismount(path)
    assert is_fixed(path)
    write(path, b"new")
    assert names(tmp_path / "volume") == WHOLE


def test_the_working_folder_is_filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here" / "deeper").mkdir(parents=True)
    for inside in ("here", "here/deeper"):
        monkeypatch.chdir(tmp_path / inside)
        assert is_fixed(tmp_path / "here")
    assert not is_fixed(tmp_path / "there")
    monkeypatch.chdir(tmp_path / "here" / "deeper")
    write(tmp_path / "here" / "deeper", b"new")
    assert Path.cwd() == tmp_path / "here" / "deeper"
    assert names(Path()) == WHOLE


def test_a_folder_in_one_that_may_not_be_written_to_is_filled(
    tmp_path: Path, obey_permissions: Callable[[], None]
) -> None:
    path = tmp_path / "theirs" / "mine"
    path.mkdir(parents=True)
    (tmp_path / "theirs").chmod(0o555)
    code = (
        "import sys; from pathlib import Path; from sbertkit.storage import staged_folder\n"
        "with staged_folder(Path(sys.argv[1])) as staged: (staged / 'file').touch()"
    )
    command = restricted(obey_permissions, sys.executable, "-c", code, str(path))
    try:
        subprocess.run(command, check=True, timeout=60)
        assert names(path) == ["file"]
    finally:
        (tmp_path / "theirs").chmod(0o755)


def test_the_file_that_makes_a_folder_valid_comes_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rename = Path.rename
    seen = []

    def note(old: Path, new: Path) -> Path:
        seen.append(new.name)
        return rename(old, new)

    monkeypatch.setattr(Path, "rename", note)
    write(tmp_path, b"new", last="first")
    assert seen == ["inner", "first"]


def test_a_failure_in_filling_a_folder_leaves_it_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(folder: Path) -> None:
        (folder / "first").touch()
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    with pytest.raises(KeyboardInterrupt), staged_folder(tmp_path) as staged:
        fail(staged)
    assert names(tmp_path) == []


def test_what_is_put_into_a_folder_while_it_is_made_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StorageError, match="holds letter"), staged_folder(tmp_path):
        (tmp_path / "letter").write_text("precious")
    assert names(tmp_path) == ["letter"]


@pytest.mark.parametrize("write_output", [Encoder.save, Encoder.export])
def test_models_and_exports_are_written_to_mounted_and_working_folders(
    tiny_encoder: Encoder,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    mount: Mount,
    write_output: Callable[[Encoder, Path], object],
) -> None:
    mount(tmp_path / "data")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for path in (tmp_path / "data", Path()):
        write_output(tiny_encoder, path)
        assert Encoder.load(path, device="cpu").dim == tiny_encoder.dim
        with pytest.raises(StorageError, match="it cannot be replaced in one step, and holds"):
            write_output(tiny_encoder, path)
    assert Path.cwd() == tmp_path / "here"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "here"]
