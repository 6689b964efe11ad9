"""Hashes of files: always those of the content, and read no more often than need be."""

import hashlib
import os
import time
from pathlib import Path
from typing import Any

import pytest

from sbertkit.encoder import file_hashes
from sbertkit.encoder.file_hashes import LARGE_BYTES, file_sha256
from sbertkit.errors import InputError

LONG_AGO = 1_600_000_000


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "sbertkit" / "hashes"


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """A list that gets an entry whenever a file is read whole."""
    found: list[object] = []
    digest = hashlib.file_digest

    def counted(file: Any, name: str) -> Any:
        found.append(file)
        return digest(file, name)

    monkeypatch.setattr(file_hashes.hashlib, "file_digest", counted)
    return found


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets the clock run ahead of the files that a test writes."""
    now = time.time_ns
    monkeypatch.setattr(file_hashes.time, "time_ns", lambda: now() + 60 * 10**9)


def content(seed: int, size: int = LARGE_BYTES) -> bytes:
    return bytes((seed + place) % 251 for place in range(1_024)) * (size // 1_024)


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_large_file_is_read_once(tmp_path: Path, settled: None, reads: list[object]) -> None:
    path = tmp_path / "weights"
    path.write_bytes(content(0))
    assert [file_sha256(path) for _ in range(3)] == [sha256(path)] * 3
    assert len(reads) == 1
    assert file_sha256(path, remembered=False) == sha256(path)
    assert len(reads) == 2


def test_a_small_file_is_read_each_time(
    tmp_path: Path, settled: None, cache: Path, reads: list[object]
) -> None:
    path = tmp_path / "config.json"
    path.write_text("{}")
    assert [file_sha256(path) for _ in range(3)] == [sha256(path)] * 3
    assert len(reads) == 3
    assert not cache.exists()


def in_place(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(b"changed")


def moved_there(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(content(1))
    other.replace(path)


def times_restored(path: Path) -> None:
    path.write_bytes(content(1))
    os.utime(path, (LONG_AGO, LONG_AGO))


def longer(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"more")


@pytest.mark.parametrize("change", [in_place, moved_there, times_restored, longer])
def test_a_changed_file_has_another_hash(tmp_path: Path, settled: None, change: Any) -> None:
    path = tmp_path / "weights"
    path.write_bytes(content(0))
    os.utime(path, (LONG_AGO, LONG_AGO))
    before = file_sha256(path)
    change(path)
    assert before != file_sha256(path) == sha256(path)


def test_a_file_written_just_now_is_read_again(tmp_path: Path, reads: list[object]) -> None:
    """It could be written again before the clock of its file system ticks."""
    path = tmp_path / "weights"
    path.write_bytes(content(0))
    os.utime(path, (LONG_AGO, LONG_AGO))  # the time of its change is that of now
    file_sha256(path)
    file_sha256(path)
    assert len(reads) == 2


def test_a_file_changed_while_it_was_read_is_read_again(
    tmp_path: Path, settled: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "weights"
    path.write_bytes(content(0))
    digest = hashlib.file_digest

    def read_and_changed(file: Any, name: str) -> Any:
        found = digest(file, name)
        path.write_bytes(content(1))
        return found

    monkeypatch.setattr(file_hashes.hashlib, "file_digest", read_and_changed)
    file_sha256(path)
    monkeypatch.undo()
    assert file_sha256(path) == sha256(path)


def test_where_no_time_of_change_is_known_samples_tell_another_file(
    tmp_path: Path, settled: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_hashes, "_state", lambda _: (1, 2, 3, 4, 5))
    path = tmp_path / "weights"
    path.write_bytes(content(0))
    before = file_sha256(path)
    path.write_bytes(content(1))
    assert before != file_sha256(path) == sha256(path)


@pytest.mark.parametrize("damage", ["", "{}", "[" * 10_000, "other hash", "others may write"])
def test_what_is_remembered_counts_only_if_it_is_whole_and_private(
    tmp_path: Path, settled: None, cache: Path, reads: list[object], damage: str
) -> None:
    path = tmp_path / "weights"
    path.write_bytes(content(0))
    file_sha256(path)
    (kept,) = cache.iterdir()
    if damage == "others may write":
        kept.chmod(0o666)
    elif damage == "other hash":
        kept.write_text(kept.read_text().replace(sha256(path), "0" * 64))
    else:
        kept.write_text(damage)
    assert file_sha256(path) == sha256(path)
    assert len(reads) == 2 if os.name != "nt" or damage != "others may write" else 1


def test_without_a_cache_it_is_read_each_time(
    tmp_path: Path, settled: None, cache: Path, reads: list[object]
) -> None:
    cache.parent.parent.mkdir()
    cache.parent.write_text("a file where the folder should be")
    path = tmp_path / "weights"
    path.write_bytes(content(0))
    assert [file_sha256(path) for _ in range(2)] == [sha256(path)] * 2
    assert len(reads) == 2


def test_what_is_no_regular_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises((InputError, OSError)):
        file_sha256(tmp_path)
    with pytest.raises(FileNotFoundError):
        file_sha256(tmp_path / "nowhere")
