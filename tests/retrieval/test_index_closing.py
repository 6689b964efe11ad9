"""Indexes that are closed, forked or overwritten while they are searched."""

import os
import shutil
import signal
import threading
from collections import Counter
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
from children import result_of
from index_cases import documents

from sbertkit import Encoder, SearchIndex
from sbertkit.errors import DamagedIndex, InputError

CORPUS = documents(1_500)
TEXTS = [text for _, text in CORPUS[:64]]
THREADS = 6


@pytest.fixture(scope="module", params=["flat", "hnsw"])
def built(
    request: pytest.FixtureRequest, tiny_encoder: Encoder, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    path = tmp_path_factory.mktemp("closing") / "index"
    SearchIndex.build(CORPUS, tiny_encoder, path, kind=request.param).close()
    return path


def use_until_refused(use: Callable[[], object]) -> str:
    """Uses an index again and again; the error that ends it."""
    try:
        while True:
            use()
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def closed_by_another(_pipe: Connection, model: str, path: Path, closes: int) -> Counter[str]:
    """Closes an index so many times while threads use it; counts the errors of the threads."""
    encoder = Encoder.load(model, pooling="mean", device="cpu")
    vectors = encoder.encode(TEXTS)
    outcomes = Counter[str]()
    for _ in range(closes):
        index = SearchIndex.open(path, encoder)
        uses: list[Callable[[], object]] = [
            lambda index=index: index.search_batch(vectors[:4], 10),  # type: ignore[misc]
            lambda index=index: index.get("d7"),  # type: ignore[misc]
            lambda index=index: list(index.documents()),  # type: ignore[misc]
        ]
        ready = threading.Barrier(THREADS + 1)

        def run(use: Callable[[], object], ready: threading.Barrier = ready) -> None:
            use()
            ready.wait()
            outcomes[use_until_refused(use)] += 1

        threads = [threading.Thread(target=run, args=(uses[n % 3],)) for n in range(THREADS)]
        for thread in threads:
            thread.start()
        ready.wait()
        index.close()
        for thread in threads:
            thread.join()
    return outcomes


def test_threads_that_search_when_the_index_is_closed_are_refused(
    built: Path, tiny_encoder: Encoder
) -> None:
    for _ in range(3):
        outcomes = result_of(closed_by_another, tiny_encoder.options.model, built, 5)
        assert outcomes == {f"InputError: the index {built} was closed; open it again": 30}


def test_what_was_begun_before_an_index_is_closed_is_refused_after(
    built: Path, tiny_encoder: Encoder
) -> None:
    index = SearchIndex.open(built, tiny_encoder)
    begun = index.documents()
    assert next(begun).id == "d0"
    index.close()
    uses: tuple[Callable[[], Any], ...] = (
        lambda: list(begun),
        index.documents,
        index.refresh,
        lambda: index.sample(3),
        lambda: index.delete(["d1"]),
    )
    for use in uses:
        with pytest.raises(InputError, match="was closed; open it again"):
            use()
    index.close()
    assert index.info().documents == len(index) == len(CORPUS)


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="no list of open files")
def test_closing_frees_the_files(built: Path, tiny_encoder: Encoder) -> None:
    def opened() -> list[str]:
        places = (os.path.realpath(place) for place in Path("/proc/self/fd").iterdir())
        mapped = Path("/proc/self/maps").read_text().split()
        return [name for name in (*places, *mapped) if name.startswith(f"{built}/")]

    index = SearchIndex.open(built, tiny_encoder)
    index.search(TEXTS[0])
    assert opened()
    index.close()
    assert opened() == []


def forked_while_searched(_pipe: Connection, model: str, path: Path, forks: int) -> list[int]:
    """Forks children that search while threads search; gives how they ended."""
    encoder = Encoder.load(model, pooling="mean", device="cpu")
    index = SearchIndex.open(path, encoder)
    index.search_batch(TEXTS)
    over = threading.Event()

    def search() -> None:
        while not over.is_set():
            index.search_batch(TEXTS[:4], 10)

    threads = [threading.Thread(target=search) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    ends = []
    for number in range(forks):
        child = os.fork()
        if not child:
            signal.alarm(30)
            hits = index.search_batch(TEXTS[:4], 3)
            right = [found[0].id for found in hits] == ["d0", "d1", "d2", "d3"]
            if number == 0:
                right &= len(list(index.documents())) == len(CORPUS)
            index.close()
            os._exit(0 if right else 1)
        ends.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    over.set()
    for thread in threads:
        thread.join()
    index.close()
    return ends


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_children_forked_while_threads_search_search_and_end(
    built: Path, tiny_encoder: Encoder
) -> None:
    ends = result_of(forked_while_searched, tiny_encoder.options.model, built, 20)
    assert ends == [0] * 20


def searched_after(_pipe: Connection, model: str, path: Path, action: str) -> str:
    """Searches an open index in a forked child after something has happened to its files."""
    encoder = Encoder.load(model, pooling="mean", device="cpu")
    index = SearchIndex.open(path, encoder)
    expected = index.search(TEXTS[0], 3)
    if action == "removed":
        shutil.rmtree(path)
        assert index.search(TEXTS[0], 3) == expected  # what is open outlives its name
    reader, writer = os.pipe()
    if not os.fork():
        try:
            answer = "same" if index.search(TEXTS[0], 3) == expected else "other"
        except InputError as error:
            answer = str(error)
        os.write(writer, answer.encode())
        os._exit(0)
    return os.read(reader, 1_000).decode()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_opens_the_documents_again_and_tells_where_they_are_gone(
    built: Path, tiny_encoder: Encoder, tmp_path: Path
) -> None:
    path = shutil.copytree(built, tmp_path / "copy")
    assert result_of(searched_after, tiny_encoder.options.model, path, "nothing") == "same"
    answer = result_of(searched_after, tiny_encoder.options.model, path, "removed")
    assert "was removed since this process was forked; open the index again" in answer


@pytest.mark.parametrize("name", ["vectors.npy", "documents.db"])
@pytest.mark.parametrize("how", ["truncated", "emptied", "rewritten"])
def test_a_file_that_is_overwritten_while_it_is_open_is_reported(
    built: Path, tiny_encoder: Encoder, tmp_path: Path, name: str, how: str
) -> None:
    path = shutil.copytree(built, tmp_path / "copy")
    (file,) = path.rglob(name)
    with SearchIndex.open(path, tiny_encoder) as index:
        size = file.stat().st_size
        if how == "rewritten":
            with file.open("r+b") as opened:
                opened.write(bytes(size))
        else:
            os.truncate(file, size // 2 if how == "truncated" else 0)
        for use in (lambda: index.search(TEXTS[0]), lambda: index.sample(10)):
            with pytest.raises(DamagedIndex, match=rf"{name} was overwritten while the index was"):
                use()
