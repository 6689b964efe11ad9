"""A build that fails at any step leaves the old index or the new one, and nothing else."""

import errno
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from children import Child, result_of
from index_cases import KINDS, contents, documents, ids_of, state
from other_user import public_folder

from sbertkit import Encoder, SearchIndex
from sbertkit.errors import StorageError

OLD, NEW = documents(5, "old"), documents(40, "new")

pytestmark = pytest.mark.skipif(os.name == "nt", reason="POSIX signals and limits")


class Trap:
    """Calls a function at the n-th use of the file system below a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = os.fspath(folder)
        self._action: Callable[[str], None] | None = None
        self._left = 0
        self.seen: list[str] = []
        self.names: list[str] = []

    def arm(self, place: int, action: Callable[[str], None]) -> None:
        self._left, self._action = place, action
        self.seen.clear()

    def disarm(self) -> None:
        self._action = None

    def __call__(self, event: str, arguments: tuple[object, ...]) -> None:
        if self._action is None or not event.startswith(("open", "os.", "sqlite3.", "shutil.")):
            return
        named = [os.fspath(a) for a in arguments if isinstance(a, str | os.PathLike)]
        if not any(str(name).startswith(self._folder) for name in named):
            return
        self.seen.append(event)
        self.names.extend(str(name) for name in named)
        self._left -= 1
        if self._left == 0:
            action, self._action = self._action, None
            action(event)


@pytest.fixture
def trap(tmp_path: Path) -> Iterator[Trap]:
    made = Trap(tmp_path)
    sys.addaudithook(made)  # there is no way to take it off again
    yield made
    made.disarm()


def interrupt(_event: str) -> None:
    raise KeyboardInterrupt


def disk_full(_event: str) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def outcome(corpus: list[tuple[str, str]], encoder: Encoder, path: Path, kind: str) -> str:
    """``built``, or the message of the error."""
    try:
        SearchIndex.build(corpus, encoder, path, kind=kind).close()
    except StorageError as error:
        return str(error)
    return "built"


@pytest.mark.parametrize("action", [interrupt, disk_full])
@pytest.mark.parametrize("before", ["nothing", "empty", "index"])
def test_a_failure_at_any_step_leaves_the_old_or_the_new(
    tiny_encoder: Encoder, tmp_path: Path, trap: Trap, action: Callable[[str], None], before: str
) -> None:
    outcomes: set[str] = set()
    for place in range(1, 1_000):
        parent = tmp_path / str(place)
        parent.mkdir()
        path = parent / "index"
        if before == "empty":
            path.mkdir()
        elif before == "index":
            SearchIndex.build(OLD, tiny_encoder, path).close()
        bytes_before = contents(parent)
        trap.arm(place, action)
        failed: BaseException | None = None
        try:
            SearchIndex.build(NEW, tiny_encoder, path, kind="hnsw").close()
        except (KeyboardInterrupt, StorageError) as error:
            failed = error
        trap.disarm()
        if failed is not None and contents(parent) == bytes_before:
            outcomes.add("old")
        else:
            assert state(path, tiny_encoder) == ids_of(NEW), (place, trap.seen[-1], failed)
            outcomes.add("new")
            left = {name for name in contents(parent) if not name.startswith("index/")}
            assert left == {"index"}, (place, trap.seen[-1])
        if len(trap.seen) < place:
            break
        if failed is not None and place % 3 == 0:
            SearchIndex.build(NEW, tiny_encoder, path, kind="hnsw").close()
            assert state(path, tiny_encoder) == ids_of(NEW)
            assert len(list((path / "segments").iterdir())) == 1
    assert outcomes == {"old", "new"}
    assert place > 20


@pytest.mark.parametrize("before", ["nothing", "index"])
def test_a_sync_that_fails_is_reported_and_breaks_nothing(
    tiny_encoder: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    fsync = os.fsync
    left = 0

    def failing(handle: int) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", failing)
    for place in range(1, 100):
        path = tmp_path / str(place) / "a" / "index"
        if before == "index":
            left = 0
            SearchIndex.build(OLD, tiny_encoder, path).close()
        left = place
        message = outcome(NEW, tiny_encoder, path, "flat")
        if message == "built":
            break
        assert "nput/output error" in message
        if path.exists():
            assert state(path, tiny_encoder) in (ids_of(OLD), ids_of(NEW))
        else:
            assert not (tmp_path / str(place)).exists()
    assert place > 8


def limited(_pipe: Connection, model: str, parent: Path, limits: list[int]) -> list[str]:
    """Tries builds under limits of the size of a file; gives what came of each."""
    import resource

    encoder = Encoder.load(model, pooling="mean", device="cpu")
    free = resource.getrlimit(resource.RLIMIT_FSIZE)
    outcomes = []
    for number, limit in enumerate(limits):
        for kind in KINDS:
            for there_already in (False, True):
                path = parent / f"{number}-{kind}-{there_already}" / "index"
                if there_already:
                    SearchIndex.build(OLD, encoder, path).close()
                before = contents(parent)
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, free[1]))
                message = outcome(documents(700), encoder, path, kind)
                resource.setrlimit(resource.RLIMIT_FSIZE, free)
                if message == "built":
                    assert len(state(path, encoder)) == 700
                else:
                    assert message.startswith("cannot write ")
                    assert "\n" not in message
                    assert contents(parent) == before, limit
                outcomes.append(f"{kind} {'built' if message == 'built' else 'refused'}")
    return outcomes


def test_a_file_that_may_not_grow_is_reported_and_leaves_nothing(
    tiny_encoder: Encoder, tmp_path: Path
) -> None:
    SearchIndex.build(documents(700), tiny_encoder, tmp_path / "x", kind="hnsw").close()
    sizes = {path.name: path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()}
    # The last bytes of a file are those whose failure is easiest to miss.
    limits = [0, 100, 5_000, 50_000, 1 << 30]
    limits += [sizes["vectors.npy"] - 1, sizes["documents.db"] - 1, sizes["index.faiss"] - 1]
    outcomes = result_of(limited, tiny_encoder.options.model, tmp_path / "limited", limits)
    assert outcomes.count("flat built") >= 2
    assert outcomes.count("hnsw built") == 2  # only without a limit
    assert outcomes.count("hnsw refused") == 2 * len(limits) - 2


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, timeout=10)
    except OSError:
        pytest.skip("no mount command")
    if done.returncode != 0:
        pytest.skip("mounting is not permitted")
    yield folder
    subprocess.run(["umount", str(folder)], check=True, timeout=10)


@pytest.mark.parametrize("kind", KINDS)
def test_a_full_disk_is_reported_and_leaves_nothing(
    tiny_encoder: Encoder, small_disk: Path, kind: str
) -> None:
    for count in (900, 1_800, 2_500, 6_000):
        for there_already in (False, True):
            path = small_disk / "a" / "index"
            if there_already:
                SearchIndex.build(OLD, tiny_encoder, path).close()
            before = contents(small_disk)
            with pytest.raises(StorageError, match=r"^cannot write [^\n]*full[^\n]*$"):
                SearchIndex.build(_filling(count), tiny_encoder, path, kind=kind)
            assert contents(small_disk) == before
            if there_already:
                assert state(path, tiny_encoder) == ids_of(OLD)
                shutil.rmtree(small_disk / "a")


def _filling(count: int) -> list[tuple[str, str]]:
    """Documents that need more than a megabyte in all."""
    padding = "z " * max(8, 600_000 // count)
    return [(identifier, f"{text} {padding}") for identifier, text in documents(count)]


def interrupted_build(pipe: Connection, model: str, path: Path) -> str:
    """Builds until Ctrl-C comes, again and again."""
    encoder = Encoder.load(model, pooling="mean", device="cpu")
    signal.signal(signal.SIGINT, signal.default_int_handler)
    corpus = documents(2_000, "new")
    try:
        pipe.send("ready")
        for _ in range(1_000):
            SearchIndex.build(corpus, encoder, path, kind="hnsw").close()
    except KeyboardInterrupt:
        return "interrupted"
    return "never interrupted"


@pytest.mark.parametrize("there_already", [False, True])
@pytest.mark.parametrize("delay", [0.01, 0.05, 0.11, 0.17, 0.23])
def test_ctrl_c_leaves_nothing_half_written(
    tiny_encoder: Encoder, tmp_path: Path, there_already: bool, delay: float
) -> None:
    path = tmp_path / "index"
    if there_already:
        SearchIndex.build(OLD, tiny_encoder, path).close()
    with Child(interrupted_build, tiny_encoder.options.model, path) as child:
        assert child.receive() == "ready"
        threading.Event().wait(delay)
        os.kill(child.process.pid or 0, signal.SIGINT)
        assert child.receive() == "interrupted"
    names = {left.name for left in tmp_path.iterdir()}
    if path.exists():
        assert state(path, tiny_encoder) in (ids_of(OLD), ids_of(documents(2_000, "new")))
        assert names == {"index"}
    else:
        assert names == set()


def unprivileged(
    _pipe: Connection,
    give_up: Callable[[], None],
    model: str,
    folder: Path,
    calls: list[tuple[str, str]],
) -> list[str]:
    """Uses index folders without the rights of root; gives what came of each use."""
    give_up()
    encoder = Encoder.load(model, pooling="mean", device="cpu")
    uses: dict[str, Callable[[Path], object]] = {
        "build": lambda path: len(SearchIndex.build(NEW, encoder, path, kind="hnsw")),
        "search": lambda path: SearchIndex.open(path, encoder).search(OLD[2][1], k=1)[0].id,
        "verify": lambda path: SearchIndex.open(path, encoder).verify(),
    }
    outcomes = []
    for name, place in calls:
        try:
            outcomes.append(str(uses[name](folder / place)))
        except StorageError as error:
            outcomes.append(f"StorageError: {error}")
    return outcomes


def test_permissions_are_reported_and_a_read_only_index_is_searched(
    tiny_encoder: Encoder, obey_permissions: Callable[[], None]
) -> None:
    with public_folder() as folder:
        for name in ("whole", "shut", "hidden", "closed"):
            SearchIndex.build(OLD, tiny_encoder, folder / name, kind="hnsw").close()
        next((folder / "shut").rglob("documents.db")).chmod(0)
        (folder / "hidden" / "manifest.json").chmod(0)
        (folder / "closed").chmod(0)
        (folder / "writable").mkdir()
        for path in (folder / "whole", *(folder / "whole").rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)
        before = contents(folder) if os.geteuid() == 0 else None
        folder.chmod(0o555)
        calls = [
            ("search", "whole"),
            ("verify", "whole"),
            ("build", "whole"),
            ("build", "new"),
            ("build", "new/deeper/index"),
            ("search", "shut"),
            ("search", "hidden"),
            ("search", "closed"),
            ("build", "closed"),
            ("build", "closed/index"),
            ("build", "writable/index"),
        ]
        model = tiny_encoder.options.model
        outcomes = result_of(unprivileged, obey_permissions, model, folder, calls)
        answers = dict(zip(calls, outcomes, strict=True))
        assert answers.pop(("search", "whole")) == OLD[2][0]
        assert answers.pop(("verify", "whole")) == "()"
        assert answers.pop(("build", "writable/index")) == str(len(NEW))
        for call, answer in answers.items():
            assert answer.startswith("StorageError: "), call
            assert "ermission" in answer, call
            assert "\n" not in answer, call
        assert "documents.db" in answers["search", "shut"]
        assert "manifest.json" in answers["search", "hidden"]
        if before is not None:
            after = contents(folder)
            assert {name: after[name] for name in after if "writable/" not in name} == before


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="no telling which file was synced")
@pytest.mark.parametrize("there_already", [False, True])
def test_every_file_is_on_the_disk_before_the_manifest_names_it(
    tiny_encoder: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there_already: bool
) -> None:
    path = tmp_path / "a" / "index"
    if there_already:
        SearchIndex.build(OLD, tiny_encoder, path).close()
    tiny_encoder.export_folder()  # which is written, too, where it is not in the cache yet
    steps: list[str] = []
    fsync, replace = os.fsync, Path.replace

    def note_sync(handle: int) -> None:
        steps.append("sync " + Path(f"/proc/self/fd/{handle}").readlink().name)
        fsync(handle)

    def note_replace(old: Path, new: Path) -> Path:
        steps.append(f"name {new.name}")
        return replace(old, new)

    monkeypatch.setattr(os, "fsync", note_sync)
    monkeypatch.setattr(Path, "replace", note_replace)
    SearchIndex.build(NEW, tiny_encoder, path, kind="hnsw").close()
    committed = steps.index("name manifest.json")
    root = path if there_already else path.with_name(".index.building")
    written = [place for place in path.rglob("*") if place.name not in ("manifest.json", ".lock")]
    assert len(written) == 12  # three files of the encoder and five of the segment among them
    expected = {f"sync {place.name}" for place in (*written, root)}
    done_with = {"sync chunks.jsonl"}  # which vectors are there, while they are made
    expected |= done_with
    if there_already:  # what is made is written down before it is made
        begun = steps.index("name journal.json")
        assert re.fullmatch(r"sync \.journal\.[0-9a-f]{8}\.tmp\.json", steps[0])
        assert steps[1 : begun + 2] == ["name journal.json", "sync index"]
        del steps[: begun + 2]
        committed -= begun + 2
    *_, manifest = (step for step in steps[:committed] if ".tmp" in step)
    assert re.fullmatch(r"sync \.manifest\.[0-9a-f]{8}\.tmp\.json", manifest)
    assert expected | {manifest} == set(steps[:committed])
    if there_already:  # and what is removed is gone before that is forgotten
        assert steps[committed + 1 :] == ["sync index", "sync segments", "sync encoder"]
    else:
        # Then the folder gets its name, and the folder above that was made gets its own.
        after = ["sync .index.building", "name index", "sync a", f"sync {tmp_path.name}"]
        assert steps[committed + 1 :] == after
