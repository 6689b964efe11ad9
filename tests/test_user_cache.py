"""The user's cache: private whatever the umask, and nothing more than a warning where it lacks."""

import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sbertkit import user_cache
from sbertkit.user_cache import cache_folder, is_private, make_private


@pytest.fixture(autouse=True)
def warnings(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> Callable[[], list[str]]:
    monkeypatch.setattr(user_cache, "_logged", user_cache.threading.Event())
    monkeypatch.setattr(logging.getLogger("sbertkit"), "propagate", True)
    return lambda: [record.getMessage() for record in caplog.records]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(params=[0o000, 0o022, 0o002, 0o077])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def test_it_is_where_the_user_wants_it(
    home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert cache_folder("vectors") == home / "sbertkit" / "vectors"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    assert cache_folder("vectors") == tmp_path / "me" / ".cache" / "sbertkit" / "vectors"


@pytest.mark.usefixtures("umask")
def test_nobody_else_may_write_to_it_whatever_the_umask(home: Path) -> None:
    folder = cache_folder("graphs")
    assert folder is not None
    assert is_private(folder)
    assert is_private(folder.parent)
    (folder / "file").write_text("x")
    make_private(folder / "file")
    assert is_private(folder / "file")
    folder.chmod(0o777)
    assert cache_folder("graphs") == folder
    assert is_private(folder)
    assert home.is_dir()


def test_a_link_or_a_file_in_its_place_is_left_alone(
    home: Path, tmp_path: Path, warnings: Callable[[], list[str]]
) -> None:
    (tmp_path / "elsewhere").mkdir()
    home.mkdir()
    (home / "sbertkit").symlink_to(tmp_path / "elsewhere")
    assert cache_folder("graphs") is None
    (home / "sbertkit").unlink()
    (home / "sbertkit").write_text("mine")
    assert cache_folder("graphs") is None
    assert (home / "sbertkit").read_text() == "mine"
    assert not any((tmp_path / "elsewhere").iterdir())
    assert len(warnings()) == 1
    assert str(home / "sbertkit") in warnings()[0]
    assert "XDG_CACHE_HOME" in warnings()[0]


def test_without_a_home_there_is_none_and_one_warning_says_so(
    monkeypatch: pytest.MonkeyPatch, warnings: Callable[[], list[str]]
) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", no_home)
    assert cache_folder("graphs") is None
    assert cache_folder("vectors") is None
    (warning,) = warnings()
    assert "no home folder" in warning
    assert "XDG_CACHE_HOME" in warning
