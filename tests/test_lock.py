"""One writer at a time, by whatever name or mount it reaches what it writes."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sbertkit.errors import StorageError
from sbertkit.lock import LOCK_FILE, writer_lock

pytestmark = pytest.mark.skipif(os.name == "nt", reason="POSIX locks")


def lock_in(folder: Path):
    return writer_lock(folder, lambda: folder)


@pytest.mark.parametrize(
    "content", [b"", b"{", b'{"pid": 12', b'{"pid": 1, "host": "a"}', b"\0" * 40, b"  \n", b"\0\n"]
)
def test_a_lock_file_that_a_crash_has_torn_is_taken_over(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "other").touch()
    (tmp_path / LOCK_FILE).write_bytes(content)
    with lock_in(tmp_path):
        assert str(os.getpid()).encode() in (tmp_path / LOCK_FILE).read_bytes()
    assert (tmp_path / LOCK_FILE).read_bytes() == b""


def _foreign_file(path: Path) -> None:
    path.write_bytes(b"[[package]]\n")


def _long_file(path: Path) -> None:
    path.write_bytes(b"\0" * 5_000)


def _link(path: Path) -> None:
    (path.parent / "target").touch()
    path.symlink_to("target")


def _dangling_link(path: Path) -> None:
    path.symlink_to("nowhere")


def _device(path: Path) -> None:
    path.symlink_to("/dev/full")


@pytest.mark.parametrize(
    "make", [_foreign_file, _long_file, _link, _dangling_link, _device, Path.mkdir, os.mkfifo]
)
def test_what_others_gave_the_name_of_the_lock_is_left_alone(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    make(tmp_path / LOCK_FILE)
    before = sorted(path.name for path in tmp_path.iterdir())
    found = (tmp_path / LOCK_FILE).lstat()
    with pytest.raises(StorageError, match=r"\.lock is a link, a folder or a file of another"):
        lock_in(tmp_path).__enter__()
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    now = (tmp_path / LOCK_FILE).lstat()
    assert (now.st_mode, now.st_size, now.st_mtime_ns) == (
        found.st_mode,
        found.st_size,
        found.st_mtime_ns,
    )


def test_a_folder_that_was_empty_is_empty_again_and_one_made_for_the_lock_goes(
    tmp_path: Path,
) -> None:
    with lock_in(tmp_path), writer_lock(tmp_path / "file", lambda: tmp_path / "parts"):
        assert (tmp_path / "parts" / LOCK_FILE).exists()
    assert list(tmp_path.iterdir()) == []


def test_what_is_left_for_later_keeps_its_folder(tmp_path: Path) -> None:
    with writer_lock(tmp_path / "file", lambda: tmp_path / "parts"):
        (tmp_path / "parts" / "vectors").touch()
    assert (tmp_path / "parts" / "vectors").exists()


def test_a_lock_moves_with_its_folder(tmp_path: Path) -> None:
    path, building = tmp_path / "index", tmp_path / "building"

    def place() -> Path:
        return path if path.is_dir() else building

    with writer_lock(path, place):
        (building / "file").touch()
        building.rename(path)
        with pytest.raises(StorageError, match=f"another process is writing .*pid {os.getpid()} "):
            writer_lock(path, place).__enter__()
    with writer_lock(path, place):
        pass
    assert sorted(left.name for left in tmp_path.rglob("*")) == [LOCK_FILE, "file", "index"]


def test_two_mounts_of_a_folder_have_one_lock(tmp_path: Path, mount: Callable[..., None]) -> None:
    shared = tmp_path / "shared" / "index"
    shared.mkdir(parents=True)
    (shared / "file").touch()
    for name in ("a", "b"):
        mount(tmp_path / name / "index", shared)
    with lock_in(tmp_path / "a" / "index"):
        for other in (tmp_path / "b" / "index", shared):
            with pytest.raises(StorageError, match="another process is writing"):
                lock_in(other).__enter__()
    with lock_in(tmp_path / "b" / "index"):
        pass


def test_a_child_that_was_forked_meanwhile_does_not_keep_the_lock(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with subprocess.Popen(
        [sys.executable, "-c", _FORKING, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        with lock_in(tmp_path):
            os.kill(child, 9)
        assert process.wait(60) == 0


_FORKING = """
import os, sys, time
from pathlib import Path
from sbertkit.lock import writer_lock
folder = Path(sys.argv[1])
with writer_lock(folder, lambda: folder):
    child = os.fork()
    if child == 0:
        time.sleep(60)
        os._exit(0)
print(child, flush=True)
os.waitpid(child, 0)
"""


def test_a_target_that_is_not_there_is_no_endless_wait(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    with (
        pytest.raises(StorageError, match="make the folder first"),
        writer_lock(gone, lambda: gone),
    ):
        pass
    assert not gone.exists()
