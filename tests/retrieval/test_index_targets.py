"""Where an index may be built, what a refusal leaves, and one writer at a time."""

import os
import socket
import threading
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
from children import Child
from index_cases import contents, documents, ids_of, state

from sbertkit import BuildOptions, Encoder, SearchIndex, lock
from sbertkit.data import ReadOptions
from sbertkit.errors import DamagedIndex, InputError, StorageError
from sbertkit.lock import LOCK_FILE
from sbertkit.retrieval import default_index_path, journal
from sbertkit.retrieval.workspace import index_lock

CORPUS = documents(12)

REFUSED: dict[str, tuple[Any, dict[str, Any]]] = {
    "empty": ([], {}),
    "double id": ([*CORPUS, ("d3", "again")], {}),
    "no text": ([*CORPUS, {"id": "x"}], {}),
    "wrong type": ([*CORPUS, ("x", 3)], {}),
    "too many clusters": (CORPUS, {"options": BuildOptions(clusters=13)}),
}


def never() -> Encoder:
    pytest.fail("the encoder was loaded before the corpus was accepted")


@pytest.mark.parametrize(("corpus", "options"), REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("place", ["index", "a/b/index", "empty"])
def test_a_refused_build_leaves_no_trace(
    tmp_path: Path, corpus: Any, options: dict[str, Any], place: str
) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises((InputError, TypeError)):
        SearchIndex.build(corpus, never, tmp_path / place, **options)
    assert contents(tmp_path) == {"empty": "folder"}


@pytest.mark.parametrize(("corpus", "options"), REFUSED.values(), ids=REFUSED)
def test_a_refused_rebuild_leaves_the_old_index_byte_for_byte(
    tiny_encoder: Encoder, tmp_path: Path, corpus: Any, options: dict[str, Any]
) -> None:
    path = tmp_path / "index"
    SearchIndex.build(CORPUS, tiny_encoder, path).close()
    before = contents(tmp_path)
    with pytest.raises((InputError, TypeError)):
        SearchIndex.build(corpus, never, path, **options)
    assert contents(tmp_path) == before
    assert state(path, tiny_encoder) == ids_of(CORPUS)


@pytest.mark.parametrize("error", [InputError, MemoryError, KeyboardInterrupt, OSError, SystemExit])
@pytest.mark.parametrize("where", ["corpus", "encoder"])
def test_an_error_of_the_callers_own_code_stays_what_it_is_and_leaves_no_trace(
    tiny_encoder: Encoder, tmp_path: Path, error: type[BaseException], where: str
) -> None:
    def corpus():
        yield from CORPUS
        if where == "corpus":
            raise error("mine")

    def load() -> Encoder:
        if where == "encoder":
            raise error("mine")
        return tiny_encoder

    path = tmp_path / "index"
    for place in (path, path / "deeper" / "index"):
        with pytest.raises(error, match=r"^mine$"):
            SearchIndex.build(corpus(), load, place)
        assert contents(tmp_path) == {}
    SearchIndex.build(CORPUS, tiny_encoder, path).close()
    before = contents(tmp_path)
    with pytest.raises(error, match=r"^mine$"):
        SearchIndex.build(corpus(), load, path)
    assert contents(tmp_path) == before


def test_a_file_at_the_path_is_refused_and_left(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match="is a file; expected a folder"):
        SearchIndex.build(CORPUS, never, tmp_path / "file")
    with pytest.raises(StorageError, match="is a file, not a folder"):
        SearchIndex.build(CORPUS, never, tmp_path / "file" / "index")
    assert list(contents(tmp_path)) == ["file"]


@pytest.mark.parametrize(
    "names", [["notes.txt"], [".hidden"], ["sub/"], ["manifest.json"], ["segments/"]]
)
def test_a_folder_of_somebody_else_is_refused_and_left(tmp_path: Path, names: list[str]) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir()
    for name in names:
        (folder / name).mkdir() if name.endswith("/") else (folder / name).write_text("{}")
    before = contents(tmp_path)
    with pytest.raises(InputError, match="not an sbertkit index; it was not changed"):
        SearchIndex.build(CORPUS, never, folder)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("name", ["sub", "segments/mine"])
def test_an_index_inside_another_is_refused(
    tiny_encoder: Encoder, tmp_path: Path, name: str
) -> None:
    outer = tmp_path / "outer"
    SearchIndex.build(CORPUS, tiny_encoder, outer).close()
    with pytest.raises(InputError, match="is inside the index"):
        SearchIndex.build(CORPUS, never, outer / name)
    assert SearchIndex.verify_at(outer) == ()


def test_a_path_that_leads_through_no_folder_is_taken_as_it_is_resolved(
    tiny_encoder: Encoder, tmp_path: Path
) -> None:
    with SearchIndex.build(CORPUS, tiny_encoder, tmp_path / "none" / ".." / "index") as index:
        assert index.path == tmp_path / "index"


def test_a_name_that_is_too_long_is_reported(tmp_path: Path) -> None:
    for name in ("x" * 250, "x" * 300, "y" * 300 + "/index"):
        with pytest.raises(StorageError, match="too long; choose a shorter one"):
            SearchIndex.build(CORPUS, never, tmp_path / "a" / name)
    assert contents(tmp_path) == {}


def test_an_empty_folder_is_filled_and_stays_the_same_folder(
    tiny_encoder: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    folder.chmod(0o750)
    before = folder.stat()
    SearchIndex.build(CORPUS, tiny_encoder, folder).close()
    assert (folder.stat().st_ino, folder.stat().st_mode) == (before.st_ino, before.st_mode)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    SearchIndex.build(CORPUS, tiny_encoder, ".").close()
    assert state(Path(), tiny_encoder) == ids_of(CORPUS)


def test_a_link_to_an_index_is_that_index(tiny_encoder: Encoder, tmp_path: Path) -> None:
    for number, target in enumerate(["index", "new", "empty"]):
        (tmp_path / "empty").mkdir(exist_ok=True)
        link = tmp_path / f"link{number}"
        link.symlink_to(tmp_path / target)
        for count in (3, 5):
            SearchIndex.build(CORPUS[:count], tiny_encoder, link).close()
            assert link.is_symlink()
            assert state(tmp_path / target, tiny_encoder) == ids_of(CORPUS[:count])
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"index", "new", "empty", "link0", "link1", "link2"}


def test_other_files_in_an_index_folder_outlive_a_rebuild(
    tiny_encoder: Encoder, tmp_path: Path
) -> None:
    path = tmp_path / "index"
    SearchIndex.build(CORPUS, tiny_encoder, path).close()
    (path / "README").write_text("mine")
    SearchIndex.build(CORPUS[:3], tiny_encoder, path).close()
    assert (path / "README").read_text() == "mine"


def test_what_killed_builds_left_is_swept_by_the_next(
    tiny_encoder: Encoder, tmp_path: Path
) -> None:
    path = tmp_path / "index"
    half = tmp_path / ".index.building" / "segments" / "000001-01234567"
    half.mkdir(parents=True)
    (half / "documents.db").write_bytes(b"half")
    (tmp_path / ".index.building" / LOCK_FILE).write_text('{"pid": 1, "host": "other"}')
    SearchIndex.build(CORPUS, tiny_encoder, path).close()
    assert [left.name for left in tmp_path.iterdir()] == ["index"]
    journal.begin(path, 2)
    leftover = path / "segments" / "000002-01234567"
    leftover.mkdir()
    (leftover / "vectors.npy").write_bytes(b"half")
    half = path / "encoder" / "000002-01234567"
    half.mkdir()
    (half / "encoder.onnx").write_bytes(b"half")
    (path / ".manifest.0123abcd.tmp.json").write_bytes(b"half")
    with SearchIndex.build(CORPUS[:3], tiny_encoder, path) as index:
        assert index.info().generation == 3
    left = sorted(left.name for left in path.iterdir())
    assert left == [LOCK_FILE, "encoder", "manifest.json", "segments"]
    assert len(list((path / "segments").iterdir())) == 1
    assert len(list((path / "encoder").iterdir())) == 1


def test_a_first_build_that_was_killed_in_an_empty_folder_is_started_again(
    tiny_encoder: Encoder, tmp_path: Path
) -> None:
    half = tmp_path / "index" / "segments" / "000001-01234567"
    half.parent.parent.mkdir()
    journal.begin(tmp_path / "index", 1)
    half.mkdir(parents=True)
    (half / "documents.db").write_bytes(b"half")
    with pytest.raises(DamagedIndex, match="a build was not finished"):
        SearchIndex.open(tmp_path / "index", tiny_encoder)
    SearchIndex.build(CORPUS, tiny_encoder, tmp_path / "index").close()
    assert state(tmp_path / "index", tiny_encoder) == ids_of(CORPUS)
    assert len(list((tmp_path / "index" / "segments").iterdir())) == 1


def test_a_first_build_that_was_killed_before_its_first_file_is_started_again(
    tiny_encoder: Encoder, tmp_path: Path
) -> None:
    path = tmp_path / "index"
    path.mkdir()
    journal.begin(path, 1)
    (path / ".journal.0123abcd.tmp.json").write_bytes(b"half")
    SearchIndex.build(CORPUS, tiny_encoder, path).close()
    assert state(path, tiny_encoder) == ids_of(CORPUS)


def holding(pipe: Connection, path: Path) -> None:
    """Holds the lock of an index until it is killed."""
    with index_lock(path):
        pipe.send(os.getpid())
        pipe.recv()


@pytest.mark.parametrize("there_already", [False, True])
def test_a_second_build_is_refused_with_the_pid_of_the_first(
    tiny_encoder: Encoder, tmp_path: Path, there_already: bool
) -> None:
    path = tmp_path / "index"
    if there_already:
        SearchIndex.build(CORPUS, tiny_encoder, path).close()
    with Child(holding, path) as child:
        pid = child.receive()
        before = contents(tmp_path)
        for name in (path, tmp_path / "." / "index", tmp_path / "no" / ".." / "index"):
            with pytest.raises(StorageError, match=f"pid {pid} on {socket.gethostname()}; wait"):
                SearchIndex.build(CORPUS, never, name)
        assert contents(tmp_path) == before
        child.process.kill()
        child.process.join()
    # The killed holder's file is still there and holds up nobody.
    assert (path if there_already else tmp_path / ".index.building").joinpath(LOCK_FILE).exists()
    SearchIndex.build(CORPUS, tiny_encoder, path).close()
    assert [left.name for left in tmp_path.iterdir()] == ["index"]


def test_a_second_build_in_the_same_process_is_refused_too(
    tiny_encoder: Encoder, tmp_path: Path
) -> None:
    def corpus():
        with pytest.raises(StorageError, match=r"this thread is writing .* already"):
            SearchIndex.build(CORPUS, never, tmp_path / "index")
        yield from CORPUS

    SearchIndex.build(corpus(), tiny_encoder, tmp_path / "index").close()
    assert state(tmp_path / "index", tiny_encoder) == ids_of(CORPUS)


def test_of_many_writers_at_once_each_has_the_lock_alone(tmp_path: Path) -> None:
    holders: list[int] = []
    overlaps: list[int] = []
    taken = 0

    def work() -> None:
        nonlocal taken
        for _ in range(60):
            try:
                with index_lock(tmp_path / "index"):
                    holders.append(1)
                    overlaps.append(len(holders))
                    taken += 1
                    holders.pop()
            except StorageError:
                continue

    lock_wait = lock._OWNER_PAUSE
    lock._OWNER_PAUSE = 0.0
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lock._OWNER_PAUSE = lock_wait
    assert taken >= 60
    assert set(overlaps) == {1}
    assert not list(tmp_path.iterdir())


def test_the_lock_is_free_again_after_a_failure(tiny_encoder: Encoder, tmp_path: Path) -> None:
    with pytest.raises(KeyError), index_lock(tmp_path / "index"):
        raise KeyError
    with index_lock(tmp_path / "index"):
        assert [place.name for place in tmp_path.rglob("*")] == [".index.building", LOCK_FILE]
    assert not list(tmp_path.iterdir())


def test_a_lock_of_unknown_content_still_tells_of_another_process(tmp_path: Path) -> None:
    with index_lock(tmp_path / "index"):
        for content in ("", "{}", "[1]", "\x00"):
            (tmp_path / ".index.building" / LOCK_FILE).write_text(content)
            lock._forget_threads()  # as in another process
            expected = r"another process .*: unknown pid; wait"
            with pytest.raises(StorageError, match=expected), index_lock(tmp_path / "index"):
                pytest.fail("locked twice")


def test_a_folder_in_the_place_of_the_lock_is_reported(tmp_path: Path) -> None:
    (tmp_path / ".index.building" / LOCK_FILE).mkdir(parents=True)
    with pytest.raises(StorageError, match=r"index\.building.\.lock is a link, a folder or a file"):
        SearchIndex.build(CORPUS, never, tmp_path / "index")


def test_the_default_place_is_named_after_the_corpus(
    tiny_encoder: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.v1").mkdir()
    for corpus, name in {
        "corpus.txt": "corpus",
        "a/my corpus.jsonl.gz": "my corpus",
        "x.y.tsv": "x.y",
        "folder.v1": "folder.v1",
    }.items():
        if name != corpus:
            Path(corpus).parent.mkdir(exist_ok=True)
            Path(corpus).touch()
        assert default_index_path(corpus) == Path("indexes") / name


def test_the_default_place_is_named_after_a_link_wherever_it_leads(
    tiny_encoder: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("blob-1", "blob-2"):
        Path(name).write_text(f"one of {name}\n")
    Path("latest.jsonl").symlink_to("blob-1")
    Path("folder").mkdir()
    Path("newest").symlink_to("folder")
    assert default_index_path("newest/") == Path("indexes/newest")
    assert default_index_path("folder/../newest") == Path("indexes/newest")
    path = default_index_path("latest.jsonl")
    assert path == Path("indexes/latest")
    read = ReadOptions(format="txt")
    SearchIndex.build("latest.jsonl", tiny_encoder, path, read=read).close()
    Path("latest.jsonl").unlink()
    Path("latest.jsonl").symlink_to("blob-2")
    assert default_index_path("latest.jsonl") == path
    Path("again").mkdir()
    Path("again/latest.jsonl").symlink_to(tmp_path / "blob-2")
    assert default_index_path("again/latest.jsonl") == path  # the same corpus by another way
    Path("again/latest.jsonl").unlink()
    Path("again/latest.jsonl").write_text("another\n")
    with pytest.raises(InputError, match="holds an index of"):
        default_index_path("again/latest.jsonl")


@pytest.mark.skipif(os.name == "nt", reason="pipes by name")
def test_what_has_no_name_of_its_own_needs_a_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("corpus.txt")
    Path("link.txt").symlink_to("corpus.txt")
    read, write = os.pipe()
    try:
        for corpus in ("corpus.txt", "link.txt", f"/dev/fd/{read}", "/dev/null"):
            with pytest.raises(InputError, match=r"is a pipe or a device.* -o DIR$"):
                default_index_path(corpus)
    finally:
        os.close(read)
        os.close(write)


def test_the_default_place_of_another_corpus_is_refused_with_a_free_one(
    tiny_encoder: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("a", "b"):
        Path(folder).mkdir()
        Path(folder, "corpus.txt").write_text("one\n")
    path = default_index_path("a/corpus.txt")
    SearchIndex.build("a/corpus.txt", tiny_encoder, path).close()
    assert default_index_path("a/corpus.txt") == path
    Path("indexes/corpus-2").mkdir()
    with pytest.raises(
        InputError, match=r"an index of .*a.corpus\.txt; .*-o .*corpus-3, or replace"
    ):
        default_index_path("b/corpus.txt")
    manifest = path / "manifest.json"
    manifest.write_bytes(manifest.read_bytes()[:-5])
    with pytest.raises(
        InputError, match=r"damaged index .* -o indexes.corpus --replace, or .*corpus-3$"
    ):
        default_index_path("a/corpus.txt")
