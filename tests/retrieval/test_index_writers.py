"""Several who may write one index: other mounts, other users, and locks that hold nobody back."""

import os
import threading
from collections.abc import Callable
from contextlib import nullcontext
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from children import Child, result_of
from index_cases import contents, documents, ids_of, state
from other_user import public_folder

from sbertkit import Encoder, SearchIndex
from sbertkit.errors import StorageError
from sbertkit.retrieval import changes

OLD, NEW = documents(12, "old"), documents(4, "new")

pytestmark = pytest.mark.skipif(os.name == "nt", reason="POSIX mounts and users")


def adding_slowly(pipe: Connection, model: str, path: Path) -> int:
    """Adds documents, and waits amid them for a signal to continue."""

    def corpus():
        yield NEW[0]
        pipe.send("begun")
        pipe.recv()
        yield from NEW[1:]

    with SearchIndex.open(path, Encoder.load(model, pooling="mean", device="cpu")) as index:
        return index.add(corpus()).added


def test_a_second_mount_of_an_index_meets_the_same_lock(
    tiny_encoder: Encoder, tmp_path: Path, mount: Callable[..., None]
) -> None:
    shared = tmp_path / "shared" / "index"
    SearchIndex.build(OLD, tiny_encoder, shared).close()
    first, second = (tmp_path / name / "index" for name in ("a", "b"))
    mount(first, shared)
    mount(second, shared)
    with Child(adding_slowly, tiny_encoder.options.model, first) as child:
        assert child.receive() == "begun"
        with (
            SearchIndex.open(second, tiny_encoder) as index,
            pytest.raises(StorageError, match=f"another process .*pid {child.process.pid} "),
        ):
            index.delete(["old1"])
        child.pipe.send("go on")
        assert child.receive() == len(NEW)
    with SearchIndex.open(second, tiny_encoder) as index:
        index.delete(["old1"])
    assert state(shared, tiny_encoder) == ids_of(OLD) - {"old1"} | ids_of(NEW)
    assert [path.name for path in second.parent.iterdir()] == ["index"]


@pytest.mark.parametrize("change", ["add", "delete"])
def test_where_no_lock_holds_the_later_commit_is_refused_and_loses_nothing(
    tiny_encoder: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    path = tmp_path / "index"
    SearchIndex.build(OLD, tiny_encoder, path).close()
    monkeypatch.setattr(changes, "index_lock", lambda _: nullcontext())
    begun = threading.Event()

    def overtaken():
        yield NEW[0]
        if not begun.is_set():
            begun.set()
            with SearchIndex.open(path, tiny_encoder) as other:
                if change == "add":
                    other.add(documents(3, "other"))
                else:
                    other.delete(["old1", "old2"])
        yield from NEW[1:]

    expected = {
        "add": ids_of(OLD) | ids_of(documents(3, "other")),
        "delete": ids_of(OLD) - {"old1", "old2"},
    }[change]
    with SearchIndex.open(path, tiny_encoder) as index:
        with pytest.raises(StorageError, match=r"another writer has changed .*: repeat it"):
            index.add(overtaken())
        assert state(path, tiny_encoder) == expected
        index.add(NEW)
    assert state(path, tiny_encoder) == expected | ids_of(NEW)
    with SearchIndex.open(path, tiny_encoder) as index:
        assert len(list((path / "segments").iterdir())) == index.info().segments


def changing(_pipe: Connection, model: str, path: Path, obey: Callable[[], None]) -> str:
    """Changes an index as one who may not write to the folder above."""
    encoder = Encoder.load(model, pooling="mean", device="cpu")
    obey()
    with SearchIndex.open(path, encoder) as index:
        index.add(NEW)
        index.delete(["old1"])
        index.compact()
    SearchIndex.build(NEW, encoder, path, with_encoder=False).close()
    with pytest.raises(PermissionError):
        (path.parent / "file").touch()
    return "changed"


def test_an_index_in_a_folder_that_may_not_be_written_to_is_changed(
    tiny_encoder: Encoder, obey_permissions: Callable[[], None]
) -> None:
    with public_folder() as folder:
        path = folder / "theirs" / "index"
        SearchIndex.build(OLD, tiny_encoder, path).close()
        path.parent.chmod(0o555)
        model = tiny_encoder.options.model
        assert result_of(changing, model, path, obey_permissions) == "changed"
        assert state(path, tiny_encoder) == ids_of(NEW)


def test_the_lock_is_no_part_of_an_index(tiny_encoder: Encoder, tmp_path: Path) -> None:
    path = tmp_path / "index"
    with SearchIndex.build(OLD, tiny_encoder, path) as index:
        (path / ".lock").write_text('{"pid": 1, "host": "gone"}')
        assert index.verify() == ()
        assert ".lock" not in (path / "manifest.json").read_text()
    (path / ".lock").unlink()  # as a copy may lack it
    assert state(path, tiny_encoder) == ids_of(OLD)
    assert not (path / ".lock").exists()
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / ".lock").touch()
    SearchIndex.build(OLD, tiny_encoder, tmp_path / "empty").close()
    assert set(contents(tmp_path / "empty")) > {".lock", "manifest.json"}
