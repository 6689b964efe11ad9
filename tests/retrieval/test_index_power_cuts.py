"""Power cuts: every prefix of what a change does to the disk opens as the old index or the new.

A kill alone shows nothing of what is lost with the caches. So the calls that change names or put
bytes on the disk are recorded with what the folder holds at that moment, and from them are made all
folders that a machine may come up with: with everything, with nothing but what was synchronized,
and with names that came to the disk sooner than the bytes behind them, or went sooner.
"""

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from index_cases import assert_found_by_words, ids_of, mixed_documents

from sbertkit import Encoder, SearchIndex
from sbertkit.retrieval import merge_policy

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")

OLD, NEW = mixed_documents(12, "old"), mixed_documents(6, "new")

Names = dict[str, int]
"""The files and folders of a folder, by name, as inode numbers."""


class Disk:
    """What a folder holds, and what of it has come to the disk; all by inode numbers."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._handles: dict[int, int] = {}  # kept open, so that no number is used again
        self._live: dict[int, Names] = {}
        self._now: dict[int, bytes] = {}
        self.states: dict[str, dict[str, bytes | None]] = {}
        self._look()
        self._folders = {number: dict(names) for number, names in self._live.items()}
        self._bytes = dict(self._now)

    def close(self) -> None:
        """Frees the handles."""
        for handle in self._handles.values():
            os.close(handle)

    def synchronized(self, path: Path) -> None:
        """A file or folder was put on the disk."""
        if path != self._root and self._root not in path.parents:
            return
        self._look()
        number = path.stat().st_ino
        if path.is_dir():
            self._folders[number] = dict(self._live[number])
        else:
            self._bytes[number] = self._now[number]
        self.record()

    def record(self) -> None:
        """Keeps the folders that may be found when the power goes now."""
        self._look()
        numbers = self._folders.keys() | self._live.keys()
        sooner = {one: self._folders.get(one, {}) | self._live.get(one, {}) for one in numbers}
        gone_sooner = {
            number: {
                name: one for name, one in names.items() if name in self._live.get(number, names)
            }
            for number, names in self._folders.items()
        }
        for names, contents in (
            (self._live, self._now),
            (self._live, self._bytes),
            (self._folders, self._bytes),
            (sooner, self._bytes),
            (gone_sooner, self._bytes),
        ):
            state = dict(self._tree(names, contents, ".", self._root.stat().st_ino))
            content = repr(sorted((path, value or b"") for path, value in state.items()))
            self.states[hashlib.sha256(content.encode()).hexdigest()] = state

    def _tree(
        self, folders: dict[int, Names], contents: dict[int, bytes], at: str, of: int
    ) -> Iterator[tuple[str, bytes | None]]:
        yield at, None
        for name, number in folders.get(of, {}).items():
            path = os.path.normpath(f"{at}/{name}")
            if number in self._folders or number in self._live:
                yield from self._tree(folders, contents, path, number)
            else:
                yield path, contents.get(number, b"")

    def _look(self) -> None:
        self._live, self._now = {}, {}
        for folder, _, _ in os.walk(self._root):
            names: Names = {}
            for entry in os.scandir(folder):
                number = entry.inode()
                names[entry.name] = number
                if number not in self._handles:
                    self._handles[number] = os.open(entry.path, os.O_RDONLY)
                if entry.is_file():
                    self._now[number] = Path(entry.path).read_bytes()
            self._live[Path(folder).stat().st_ino] = names


@contextmanager
def recorded(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    """A disk that hears of every change below a folder within the block."""
    disk = Disk(root)
    busy = False

    def hearing(name: str) -> None:
        original: Callable[..., Any] = getattr(os, name)

        def heard(*arguments: Any, **named: Any) -> Any:
            nonlocal busy
            if busy:
                return original(*arguments, **named)
            busy = True
            try:
                disk.record()
                result = original(*arguments, **named)
                if name == "fsync":
                    disk.synchronized(Path(f"/proc/self/fd/{arguments[0]}").readlink())
                else:
                    disk.record()
            finally:
                busy = False
            return result

        monkeypatch.setattr(os, name, heard)

    with monkeypatch.context():
        for name in ("fsync", "replace", "rename", "mkdir", "unlink", "rmdir"):
            hearing(name)
        yield disk
    monkeypatch.undo()
    disk.record()
    disk.close()


def put(state: dict[str, bytes | None], root: Path) -> None:
    """Makes a folder of a state."""
    for name, content in sorted(state.items(), key=lambda item: item[0]):
        path = root / name
        if content is None:
            path.mkdir(parents=True, exist_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def deleted(index: SearchIndex) -> None:
    index.delete(["old1", "old5"])


CHANGES: dict[str, Callable[[SearchIndex], Any]] = {
    "add": lambda index: index.add(NEW),
    "upsert": lambda index: index.upsert([*NEW, ("old3", "changed")]),
    "update": lambda index: index.update([*OLD[2:9], *NEW]),
    "delete": deleted,
    "compact": lambda index: index.compact(),
    "words": lambda index: index.compact(lexical=True),
    "no words": lambda index: index.compact(lexical=False),
    "rebuild": lambda index: SearchIndex.build(
        NEW, index.encoder, index.path, kind="hnsw", with_encoder=False
    ).close(),
}


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("cheap", [0, 20_000])
def test_any_prefix_of_a_change_is_the_old_or_the_new(
    tiny_encoder: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, cheap: int
) -> None:
    path = tmp_path / "disk" / "index"
    with SearchIndex.build(OLD[:8], tiny_encoder, path, kind="hnsw", with_encoder=False) as index:
        with monkeypatch.context() as patch:
            patch.setattr(merge_policy, "CHEAP", 0)
            index.add(OLD[8:])
            index.delete(["old2"])
        old = {(one.id, one.text) for one in index.documents()}
        monkeypatch.setattr(merge_policy, "CHEAP", cheap)
        with recorded(path.parent, monkeypatch) as disk:
            CHANGES[name](index)
    with SearchIndex.open(path, tiny_encoder) as index:
        new = {(one.id, one.text) for one in index.documents()}
    assert (new == old) == (name in ("compact", "words", "no words"))
    check_states(disk, tiny_encoder, tmp_path / "found", [old, new])


def test_any_prefix_of_a_first_build_is_nothing_or_the_index(
    tiny_encoder: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "disk"
    root.mkdir()
    with recorded(root, monkeypatch) as disk:
        SearchIndex.build(OLD, tiny_encoder, root / "index", with_encoder=False).close()
    whole = set(OLD)
    found = 0
    for number, state in enumerate(disk.states.values()):
        place = tmp_path / "found" / str(number)
        put(state, place)
        if (place / "index").exists():
            found += 1
            with SearchIndex.open(place / "index", tiny_encoder) as index:
                assert {(one.id, one.text) for one in index.documents()} == whole
        else:
            SearchIndex.build(NEW, tiny_encoder, place / "index", with_encoder=False).close()
            assert [left.name for left in place.iterdir()] == ["index"]
    assert 0 < found < len(disk.states)


@pytest.mark.parametrize("name", ["index.faiss", "words.bin"])
def test_any_prefix_of_a_repair_is_damaged_or_whole(
    tiny_encoder: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    path = tmp_path / "disk" / "index"
    SearchIndex.build(OLD, tiny_encoder, path, kind="hnsw", with_encoder=False).close()
    (damaged,) = path.rglob(name)
    damaged.write_bytes(b"")
    with recorded(path.parent, monkeypatch) as disk:
        SearchIndex.repair_at(path)
    outcomes = set()
    for number, state in enumerate(disk.states.values()):
        place = tmp_path / "found" / str(number)
        put(state, place)
        SearchIndex.repair_at(place / "index")
        assert SearchIndex.verify_at(place / "index") == ()
        with SearchIndex.open(place / "index", tiny_encoder) as index:
            assert {one.id for one in index.documents()} == ids_of(OLD)
            assert_found_by_words(index)
            outcomes.add(index.info().generation)
        shutil.rmtree(place)
    assert outcomes >= {2, 3} or outcomes == {2}


def check_states(
    disk: Disk, encoder: Encoder, place: Path, expected: list[set[tuple[str, str]]]
) -> None:
    """Opens every state: it is one of those expected, whole, and can be changed."""
    met: list[bool] = [False] * len(expected)
    assert len(disk.states) > 4
    for number, state in enumerate(disk.states.values()):
        root = place / str(number)
        put(state, root)
        path = root / "index"
        with SearchIndex.open(path, encoder) as index:
            found = {(one.id, one.text) for one in index.documents()}
            assert found in expected
            met[expected.index(found)] = True
            assert index.verify() == ()
            assert_found_by_words(index)
            index.add([("another", "one more")])
            assert len(index) == len(found) + 1
            assert index.verify() == ()
        named = {entry.name for entry in (path / "segments").iterdir()}
        assert len(named) == SearchIndex.open(path, encoder).info().segments
        assert [left.name for left in root.iterdir()] == ["index"]
        shutil.rmtree(root)
    assert met[0]
    assert met[-1] or expected[0] == expected[-1]
