"""Several who may write one index: other mounts, other users, and locks that hold nobody back."""

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, nullcontext
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
from children import Child, result_of
from command_line import Run
from index_cases import contents, documents, ids_of, state
from other_user import public_folder

from sbertkit import Encoder, SearchIndex
from sbertkit.errors import InputError, InputTypeError, StorageError
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


# --- writers that wait for each other


@pytest.mark.parametrize("count", [10, pytest.param(50, marks=pytest.mark.slow)])
def test_threads_of_a_process_queue_and_nothing_is_lost(
    tiny_encoder: Encoder, tmp_path: Path, count: int
) -> None:
    path = tmp_path / "index"
    with SearchIndex.build(OLD, tiny_encoder, path) as index:

        def write(writer: int) -> int:
            """Upserts so many documents, one by one, through the shared index or one of its own."""
            with SearchIndex.open(path, tiny_encoder) as own:
                chosen = own if writer % 2 else index
                found = [
                    chosen.upsert([(f"{writer}-{row}", f"text {row} of {writer}")]).added
                    for row in range(count)
                ]
                assert len(chosen) >= len(OLD) + count
                return sum(found)

        with ThreadPoolExecutor(8) as threads:
            assert list(threads.map(write, range(8))) == [count] * 8
        index.refresh()  # the last of them may be of an index of its own
        assert len(index) == len(OLD) + 8 * count
        assert index.get("7-9").text == "text 9 of 7"
        index.delete(f"{writer}-{row}" for writer in range(8) for row in range(count))
    assert state(path, tiny_encoder) == ids_of(OLD)
    assert SearchIndex.verify_at(path) == ()


def adding_many(pipe: Connection, model: str, path: Path, writer: int) -> int:
    """Adds ten documents, one by one, each as soon as no other process writes."""
    encoder = Encoder.load(model, pooling="mean", device="cpu")
    pipe.send("ready")
    pipe.recv()
    with SearchIndex.open(path, encoder) as index:
        return sum(index.add([(f"{writer}-{row}", "x")], timeout=120).added for row in range(10))


def test_processes_wait_for_each_other_as_long_as_they_are_told(
    tiny_encoder: Encoder, tmp_path: Path, run: Run
) -> None:
    path, model = tmp_path / "index", tiny_encoder.options.model
    SearchIndex.build(OLD, tiny_encoder, path).close()
    with ExitStack() as stack:
        children = [stack.enter_context(Child(adding_many, model, path, n)) for n in range(4)]
        for child in children:
            assert child.receive() == "ready"
        for child in children:
            child.pipe.send("go on")
        assert [child.receive() for child in children] == [10] * 4
    assert len(state(path, tiny_encoder)) == len(OLD) + 40
    with Child(adding_slowly, model, path) as child:
        assert child.receive() == "begun"
        ran = run("delete", path, "old1", "--wait", "0.1")
        assert (ran.status, ran.out) == (1, "")
        assert f"is writing {path} after 0.1 seconds: pid {child.process.pid} on" in ran.err
        assert f"waiting for pid {child.process.pid}" in ran.err
        threading.Timer(0.5, child.pipe.send, ["go on"]).start()
        ran = run("delete", path, "old1", "--wait", "120")
        assert ran.status == 0, ran.err
        assert child.receive() == len(NEW)
    assert state(path, tiny_encoder) == ids_of(OLD) - {"old1"} | ids_of(NEW) | {
        f"{writer}-{row}" for writer in range(4) for row in range(10)
    }


def test_a_thread_that_waits_does_so_until_the_other_has_failed(
    tiny_encoder: Encoder, tmp_path: Path
) -> None:
    with SearchIndex.build(OLD, tiny_encoder, tmp_path / "index") as index:
        begun, failed = threading.Event(), threading.Event()

        def failing():
            yield NEW[0]
            begun.set()
            assert failed.wait(60)
            raise TimeoutError("gone")

        with ThreadPoolExecutor(2) as threads:
            first = threads.submit(index.add, failing())
            assert begun.wait(60)
            second = threads.submit(index.add, NEW)
            failed.set()
            with pytest.raises(TimeoutError, match="gone"):
                first.result()
            assert second.result().added == len(NEW)


@pytest.mark.parametrize("timeout", [-1, float("nan"), float("inf"), "1", True])
def test_a_timeout_must_be_a_number_of_seconds(
    tiny_encoder: Encoder, tmp_path: Path, timeout: Any
) -> None:
    with (
        SearchIndex.build(OLD, tiny_encoder, tmp_path / "index") as index,
        pytest.raises((InputError, InputTypeError), match="timeout must be"),
    ):
        index.add(NEW, timeout=timeout)


def test_whole_numbers_are_ids_everywhere(tiny_encoder: Encoder, tmp_path: Path) -> None:
    corpus = [{"id": 7, "text": "seven"}, {"id": 8, "text": "eight"}]
    with SearchIndex.build(corpus, tiny_encoder, tmp_path / "index") as index:
        assert index.get(7) == index.get("7")
        assert index.delete([8]).deleted == 1
        with pytest.raises(InputTypeError, match="an id must be a str or int"):
            index.get(7.0)  # type: ignore[arg-type]
