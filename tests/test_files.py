"""Files that others may have prepared."""

import os
from pathlib import Path

import pytest

from sbertkit.errors import InputError
from sbertkit.files import inside, open_regular, read_regular

pytestmark = pytest.mark.skipif(os.name == "nt", reason="POSIX files")


def test_a_regular_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"content")
    assert read_regular(tmp_path / "a", limit=7) == b"content"


def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "fifo", tmp_path / "folder", Path("/dev/zero")):
        with pytest.raises(InputError, match="expected a regular file"):
            read_regular(path)


def test_a_link_is_followed_on_request_alone(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"content")
    (tmp_path / "link").symlink_to("a")
    assert read_regular(tmp_path / "link", follow=True) == b"content"
    with pytest.raises(InputError, match="is a symbolic link"):
        open_regular(tmp_path / "link")


def test_a_file_above_the_limit_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"content")
    os.truncate(tmp_path / "a", 2**40)
    with pytest.raises(InputError, match="expected at most 100"):
        read_regular(tmp_path / "a", limit=100)


def test_a_missing_file_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_regular(tmp_path / "a")


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../x", "a/../../x", "/etc/passwd", "a//b", "a/", "./a", "a\0b"]
)
def test_a_name_that_is_no_plain_path_inside_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="inside the folder"):
        inside(tmp_path, name)


def test_a_name_that_leads_through_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "root" / "segments").symlink_to("../other")
    (tmp_path / "root" / "file").symlink_to("../other/file")
    for name in ("segments/1/vectors.npy", "file"):
        with pytest.raises(InputError, match="is a symbolic link"):
            inside(tmp_path / "root", name)


def test_the_folder_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "link").symlink_to("root")
    assert inside(tmp_path / "link", "a/b") == tmp_path / "link" / "a" / "b"
