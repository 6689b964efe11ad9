"""SIGKILL at random moments of a build: the old documents or the new, never anything else."""

import logging
import os
import random
import sys
import time
from collections import Counter
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from children import Child
from index_cases import documents, ids_of, mixed_documents, state

from sbertkit import Encoder, SearchIndex

pytestmark = pytest.mark.skipif(os.name == "nt", reason="POSIX signals")

OLD, NEW = mixed_documents(5, "old"), mixed_documents(800, "new")


def building(pipe: Connection, model: str, path: Path, new: bool) -> None:
    """Builds one of the two corpora, once it is told to."""
    encoder = Encoder.load(model, pooling="mean", device="cpu")
    encoder.encode(["warm"])
    _ = encoder.fingerprint
    pipe.send("ready")
    pipe.recv()
    SearchIndex.build(NEW if new else OLD, encoder, path, kind="hnsw").close()


def seconds_to_build(model: str, path: Path, new: bool) -> float:
    """How long the child takes from its start signal to its end."""
    with Child(building, model, path, new) as child:
        child.receive()
        started = time.perf_counter()
        child.pipe.send("go")
        assert child.receive() is None
        return time.perf_counter() - started


def kill_repeatedly(model: str, encoder: Encoder, path: Path, kills: int) -> Counter[str]:
    """Kills so many rebuilds, each followed by a check of what is there; counts what was found."""
    source = random.Random(kills)
    SearchIndex.build(OLD, encoder, path).close()
    duration = {new: seconds_to_build(model, path, new) for new in (True, False)}
    now, outcomes = ids_of(OLD), Counter[str]()
    while outcomes["killed"] < kills:
        new = now == ids_of(OLD)
        with Child(building, model, path, new) as child:
            child.receive()
            child.pipe.send("go")
            # Every second one near the end, where the commit is.
            earliest = 0.85 if outcomes["killed"] % 2 else 0.0
            time.sleep(source.uniform(earliest, 1.05) * duration[new])
            child.process.kill()
            child.process.join()
            outcomes["killed" if child.process.exitcode == -9 else "ended before"] += 1
        before, now = now, state(path, encoder)
        assert now in (ids_of(OLD), ids_of(NEW))
        outcomes["old one stayed" if now == before else "new one came"] += 1
    # The next build needs no cleaning up by hand, and leaves nothing of those before it.
    SearchIndex.build(NEW, encoder, path).close()
    assert state(path, encoder) == ids_of(NEW)
    assert [left.name for left in path.parent.iterdir()] == [path.name]
    left = sorted(left.name for left in path.iterdir())
    assert left == [".lock", "encoder", "manifest.json", "segments"]
    assert len(list((path / "segments").iterdir())) == 1
    assert len(list((path / "encoder").iterdir())) == 1
    return outcomes


def test_killed_rebuilds_leave_the_old_or_the_new(tiny_encoder: Encoder, tmp_path: Path) -> None:
    path = tmp_path / "index"
    outcomes = kill_repeatedly(tiny_encoder.options.model, tiny_encoder, path, 12)
    assert outcomes["killed"] == 12


@pytest.mark.slow
def test_a_hundred_killed_rebuilds_leave_the_old_or_the_new(
    tiny_encoder: Encoder, tmp_path: Path
) -> None:
    path = tmp_path / "index"
    outcomes = kill_repeatedly(tiny_encoder.options.model, tiny_encoder, path, 100)
    logging.getLogger(__name__).info("%s", dict(outcomes))  # seen with --log-cli-level=INFO
    assert outcomes["killed"] == 100
    assert outcomes["old one stayed"] > 10
    assert outcomes["new one came"] > 2


def test_killed_first_builds_leave_no_index_or_a_whole_one(
    tiny_encoder: Encoder, tmp_path: Path
) -> None:
    model, path = tiny_encoder.options.model, tmp_path / "index"
    duration = seconds_to_build(model, tmp_path / "other" / "index", new=True)
    for share in (0.1, 0.3, 0.5, 0.7, 0.9):
        with Child(building, model, path, True) as child:
            child.receive()
            child.pipe.send("go")
            time.sleep(share * duration)
            child.process.kill()
            child.process.join()
        if path.exists():
            assert state(path, tiny_encoder) == ids_of(NEW)
    SearchIndex.build(OLD, tiny_encoder, path).close()
    assert state(path, tiny_encoder) == ids_of(OLD)
    assert {left.name for left in tmp_path.iterdir()} == {"index", "other"}


def killed_at(pipe: Connection, model: str, path: Path, place: int) -> bool:
    """Kills itself at the n-th use of the file system below the parent of the index."""
    encoder = Encoder.load(model, pooling="mean", device="cpu")
    left = place

    def count(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal left
        if not event.startswith(("open", "os.", "sqlite3.", "shutil.")):
            return
        named = [os.fspath(a) for a in arguments if isinstance(a, str | os.PathLike)]
        if any(str(name).startswith(str(path.parent)) for name in named):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), 9)

    sys.addaudithook(count)
    SearchIndex.build(documents(30, "new"), encoder, path, kind="hnsw").close()
    return True


def test_a_kill_at_any_step_leaves_the_old_or_the_new(
    tiny_encoder: Encoder, tmp_path: Path
) -> None:
    outcomes: list[int] = []
    for place in range(1, 200, 3):
        path = tmp_path / str(place) / "index"
        SearchIndex.build(OLD, tiny_encoder, path).close()
        with Child(killed_at, tiny_encoder.options.model, path, place) as child:
            child.process.join()
            outcomes.append(len(state(path, tiny_encoder)))
            if child.process.exitcode == 0:
                break
    assert set(outcomes) == {5, 30}
    assert outcomes == sorted(outcomes)
    assert len(outcomes) > 10
