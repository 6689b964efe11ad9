"""Modes: new files follow the umask, whoever writes them, and replaced ones keep theirs."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from sbertkit import Encoder, SearchIndex
from sbertkit.data.vector_files import open_vector_writer
from sbertkit.storage import copy_tree, replace_file, staged_file, staged_folder
from sbertkit.storage.modes import umask

pytestmark = pytest.mark.skipif(os.name == "nt", reason="POSIX modes")


@pytest.fixture
def masked() -> Iterator[Callable[[int], int]]:
    """Sets the umask until the test ends."""
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


def modes(folder: Path) -> set[tuple[str, int]]:
    """The modes of folders and of files that are in a folder, itself included."""
    return {
        ("folder" if path.is_dir() else "file", path.stat().st_mode & 0o777)
        for path in (folder, *folder.rglob("*"))
    }


def write_vectors(path: Path) -> None:
    with open_vector_writer(path, 2) as writer:
        writer.write(["a"], ["text"], np.zeros((1, 2), np.float32))


@pytest.mark.parametrize("mask", [0o000, 0o002, 0o022, 0o027, 0o077])
def test_the_umask_is_read_and_not_changed(masked: Callable[[int], int], mask: int) -> None:
    masked(mask)
    assert umask() == mask
    assert os.umask(mask) == mask


@pytest.mark.parametrize("mask", [0o002, 0o022, 0o077])
def test_all_that_is_written_follows_the_umask(
    tiny_encoder: Encoder, tmp_path: Path, masked: Callable[[int], int], mask: int
) -> None:
    masked(0o022)
    tiny_encoder.export_folder()  # which is copied from the cache
    masked(mask)
    tiny_encoder.save(tmp_path / "model")
    tiny_encoder.export(tmp_path / "export")
    SearchIndex.build([("a", "some text")], tiny_encoder, tmp_path / "index").close()
    for name in ("vectors.npy", "vectors.parquet"):
        write_vectors(tmp_path / name)
    replace_file(tmp_path / "report.json", b"{}")
    expected = {("folder", 0o777 & ~mask), ("file", 0o666 & ~mask)}
    for path in tmp_path.iterdir():
        assert modes(path) <= expected, path.name


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_a_file_that_is_replaced_keeps_its_mode(
    tmp_path: Path, masked: Callable[[int], int], mode: int
) -> None:
    writers: dict[str, Callable[[Path], object]] = {
        "report.json": lambda path: replace_file(path, b"{}"),
        "vectors.npy": write_vectors,
        "vectors.parquet": write_vectors,
    }
    for name, write in writers.items():
        (tmp_path / name).touch()
        (tmp_path / name).chmod(mode)
        write(tmp_path / name)
        assert (tmp_path / name).stat().st_size > 0
        assert modes(tmp_path / name) == {("file", mode)}


def test_what_replaces_a_private_file_is_private_from_the_start(
    tmp_path: Path, masked: Callable[[int], int]
) -> None:
    (tmp_path / "secret").touch(mode=0o600)
    (tmp_path / "secrets").mkdir(mode=0o700)
    with staged_folder(tmp_path / "secrets") as folder:
        assert modes(folder) == {("folder", 0o700)}


def test_a_folder_that_is_replaced_keeps_its_modes_and_those_of_its_files(
    tiny_encoder: Encoder, tmp_path: Path, masked: Callable[[int], int]
) -> None:
    path = tmp_path / "model"
    tiny_encoder.save(path)
    for place in (path, *path.rglob("*")):
        place.chmod(0o700 if place.is_dir() else 0o600)
    tiny_encoder.save(path)
    assert modes(path) == {("folder", 0o700), ("file", 0o600)}


def test_a_copy_has_the_modes_of_new_files(tmp_path: Path, masked: Callable[[int], int]) -> None:
    (tmp_path / "source" / "inner").mkdir(parents=True)
    (tmp_path / "source" / "inner" / "file").write_bytes(b"content")
    for place in (tmp_path / "source").rglob("*"):
        place.chmod(0o777)
    copy_tree(tmp_path / "source", tmp_path / "copy")
    assert modes(tmp_path / "copy") == {("folder", 0o755), ("file", 0o644)}
    assert (tmp_path / "copy" / "inner" / "file").read_bytes() == b"content"


def test_what_must_be_private_is_so_whatever_was_there(
    tmp_path: Path, masked: Callable[[int], int]
) -> None:
    masked(0)
    for _ in range(2):
        with staged_file(tmp_path / "file", private=True) as file:
            file.touch()
        with staged_folder(tmp_path / "folder", private=True) as folder:
            (folder / "inner").touch()
        assert modes(tmp_path / "file") == {("file", 0o644)}
        assert modes(tmp_path / "folder") == {("folder", 0o755), ("file", 0o644)}
        for place in tmp_path.rglob("*"):
            place.chmod(0o777 if place.is_dir() else 0o666)
