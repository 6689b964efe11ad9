"""Names beside an output: what others put there stays unused, what killed writers left goes."""

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sbertkit.errors import StorageError
from sbertkit.storage import clear_leftovers, owned_folder, replace_file, staged_file, staged_folder

pytestmark = pytest.mark.skipif(os.name == "nt", reason="POSIX links and owners")

_KILLED = """
import os, sys
from pathlib import Path
from sbertkit.storage import staged_file, staged_folder
with getattr(__import__("sbertkit.storage").storage, sys.argv[1])(Path(sys.argv[2])) as staged:
    print(staged.name, flush=True)
    os.kill(os.getpid(), 9)
"""


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def killed(writer: str, path: Path) -> str:
    """The name of what a killed writer has left."""
    command = [sys.executable, "-c", _KILLED, writer, str(path)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60).stdout.strip()


def write_file(path: Path) -> None:
    replace_file(path, b"new")


def write_folder(path: Path) -> None:
    with staged_folder(path) as staged:
        (staged / "inner").write_bytes(b"new")


@pytest.mark.parametrize(
    ("writer", "write"), [("staged_file", write_file), ("staged_folder", write_folder)]
)
@pytest.mark.parametrize("name", ["out", "out.v1.npy"])
def test_what_a_killed_writer_left_goes_with_the_next_of_the_same_output(
    tmp_path: Path, writer: str, write: Callable[[Path], None], name: str
) -> None:
    left = killed(writer, tmp_path / name)
    assert names(tmp_path) == [left]
    write(tmp_path / "other")
    assert names(tmp_path) == sorted([left, "other"])
    write(tmp_path / name)
    assert names(tmp_path) == sorted([name, "other"])


def test_what_a_living_writer_is_writing_stays(tmp_path: Path) -> None:
    for writer in (staged_file, staged_folder):
        path = tmp_path / writer.__name__
        with writer(path) as first, writer(path) as second:
            assert first != second
            clear_leftovers(path)
            assert first.exists()
            assert second.exists()
    assert names(tmp_path) == ["staged_file", "staged_folder"]


def test_names_cannot_be_foreseen(tmp_path: Path) -> None:
    seen = set()
    for _ in range(20):
        with staged_file(tmp_path / "out.json") as staged:
            seen.add(staged.name)
    assert len(seen) == 20
    assert not any(str(os.getpid()) in name for name in seen)


def test_what_is_not_ours_stays_under_our_names(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "precious").write_text("precious")
    (tmp_path / ".out.01234567.tmp").symlink_to(mine)
    (tmp_path / ".out.0123456789.tmp").mkdir()
    (tmp_path / ".out.1234.tmp").write_text("of another program")
    os.mkfifo(tmp_path / ".out.76543210.tmp")
    foreign = tmp_path / ".out.abcdef01.tmp"
    foreign.mkdir()
    if os.geteuid() == 0:
        os.chown(foreign, 12_345, 12_345)
    before = names(tmp_path)
    write_folder(tmp_path / "out")
    if os.geteuid() != 0:
        before.remove(foreign.name)
    assert names(tmp_path) == sorted([*before, "out"])
    assert (mine / "precious").read_text() == "precious"


def test_a_link_in_the_place_of_a_new_name_is_passed_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    words = iter(["01234567", "01234567", "76543210"])
    (tmp_path / ".out.01234567.tmp").symlink_to(victim)
    monkeypatch.setattr("secrets.token_hex", lambda _: next(words))
    replace_file(tmp_path / "out", b"new")
    assert victim.read_text() == "precious"
    assert (tmp_path / "out").read_bytes() == b"new"
    assert not (tmp_path / "out").is_symlink()


def _link(path: Path) -> None:
    path.symlink_to(path.parent / "elsewhere")


def _dangling_link(path: Path) -> None:
    path.symlink_to(path.parent / "nowhere")


def _of_another_user(path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root gives folders away")
    path.mkdir()
    os.chown(path, 12_345, 12_345)


def _open_to_all(path: Path) -> None:
    path.mkdir()
    path.chmod(0o777)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (_link, "is a link or a file, not a folder"),
        (_dangling_link, "is a link or a file, not a folder"),
        (Path.touch, "is a link or a file, not a folder"),
        (_of_another_user, r"belongs to another user \(id 12345\)"),
        (_open_to_all, "is writable by others"),
    ],
)
def test_unfinished_work_is_not_put_where_others_may_have_a_hand_in_it(
    tmp_path: Path, make: Callable[[Path], None], words: str
) -> None:
    (tmp_path / "elsewhere").mkdir()
    place = tmp_path / ".out.parts"
    make(place)
    before = place.lstat()
    with pytest.raises(StorageError, match=rf"\.out\.parts {words}.*: move it away"):
        owned_folder(place)
    assert (place.lstat().st_mode, place.lstat().st_uid) == (before.st_mode, before.st_uid)


def test_a_folder_that_the_umask_opens_to_others_is_ours(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        for _ in range(2):
            assert owned_folder(tmp_path / "parts").stat().st_mode & 0o777 == 0o777
    finally:
        os.umask(before)
    assert stat.S_ISDIR((tmp_path / "parts").lstat().st_mode)
