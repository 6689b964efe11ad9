"""Readers beside a writer: each keeps the view it opened, and opens the old or the new."""

import os
import shutil
import threading
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from children import Child
from index_cases import KINDS, documents, ids_in, ids_of, mixed_documents, state

from sbertkit import Encoder, SearchIndex
from sbertkit.errors import DamagedIndex
from sbertkit.retrieval import opening
from sbertkit.retrieval.results import Problem
from sbertkit.sealed import SealedFile

OLD, NEW = mixed_documents(50, "old"), mixed_documents(150, "new")


@pytest.mark.parametrize("kind", KINDS)
def test_a_reader_keeps_its_view_through_rebuilds(
    tiny_encoder: Encoder, tmp_path: Path, kind: str
) -> None:
    path = tmp_path / "index"
    queries = [text for _, text in OLD[:10]]
    with SearchIndex.build(OLD, tiny_encoder, path, kind=kind) as reader:
        (segment,) = (path / "segments").iterdir()
        expected = reader.search_batch(queries, k=50)
        for corpus in (NEW, documents(7, "third"), NEW):
            SearchIndex.build(corpus, tiny_encoder, path, kind=kind).close()
            assert not segment.exists() or os.name == "nt"
            assert reader.search_batch(queries, k=50) == expected
            assert len(reader) == 50
            assert reader.get("old7").text == OLD[7][1]
            assert reader.info().generation == 1
            assert reader.verify() == ()
        assert state(path, tiny_encoder) == ids_of(NEW)


@pytest.mark.skipif(os.name == "nt", reason="open files cannot be removed there")
def test_a_reader_keeps_its_view_when_the_folder_goes(
    tiny_encoder: Encoder, tmp_path: Path
) -> None:
    with SearchIndex.build(OLD, tiny_encoder, tmp_path / "x", kind="ivf") as reader:
        shutil.rmtree(tmp_path / "x")
        assert ids_in(reader) == ids_of(OLD)


def rebuilding(pipe: Connection, model: str, path: Path, stop: Path) -> int:
    """Builds the one corpus and the other in turn until it is told to stop."""
    encoder = Encoder.load(model, pooling="mean", device="cpu")
    builds = 0
    while not stop.exists():
        corpus, kind = (OLD, "flat") if builds % 2 else (NEW, "hnsw")
        SearchIndex.build(corpus, encoder, path, kind=kind).close()
        builds += 1
        if builds == 1:
            pipe.send("begun")
    return builds


@pytest.mark.skipif(os.name == "nt", reason="open files cannot be replaced there")
def test_a_reader_that_opens_during_rebuilds_sees_the_old_or_the_new(
    tiny_encoder: Encoder, tmp_path: Path
) -> None:
    path, stop = tmp_path / "index", tmp_path / "stop"
    SearchIndex.build(OLD, tiny_encoder, path).close()
    wrong: list[object] = []
    seen: list[int] = []

    def read() -> None:
        try:
            while not stop.exists():
                with SearchIndex.open(path, tiny_encoder) as index:
                    ids = ids_in(index)
                    seen.append(len(ids))
                    if ids not in (ids_of(OLD), ids_of(NEW)) or len(ids) != len(index):
                        wrong.append(ids)
                wrong.extend(SearchIndex.verify_at(path))
        except Exception as error:  # a thread's own errors would pass unseen
            wrong.append(error)
            raise

    with Child(rebuilding, tiny_encoder.options.model, path, stop) as child:
        assert child.receive() == "begun"
        threads = [threading.Thread(target=read) for _ in range(2)]
        for thread in threads:
            thread.start()
        threading.Event().wait(4)
        stop.touch()
        for thread in threads:
            thread.join()
        assert child.receive() > 4
    assert not wrong
    assert set(seen) == {50, 150}
    assert {left.name for left in tmp_path.iterdir()} == {"index", "stop"}


def test_a_reader_overtaken_between_manifest_and_files_starts_again(
    tiny_encoder: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "index"
    SearchIndex.build(OLD, tiny_encoder, path).close()
    check_file = opening.check_file
    overtaken = 0

    def late(root: Path, entry: SealedFile, *, hashed: bool) -> Problem | None:
        nonlocal overtaken
        if overtaken < 3:
            overtaken += 1
            monkeypatch.setattr(opening, "check_file", check_file)
            SearchIndex.build(NEW, tiny_encoder, path).close()
            monkeypatch.setattr(opening, "check_file", late)
        return check_file(root, entry, hashed=hashed)

    monkeypatch.setattr(opening, "check_file", late)
    with SearchIndex.open(path, tiny_encoder) as index:
        assert ids_in(index) == ids_of(NEW)
        assert index.info().generation == 4
    assert overtaken == 3


def test_a_reader_that_is_overtaken_for_ever_gives_up(
    tiny_encoder: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "index"
    SearchIndex.build(OLD, tiny_encoder, path).close()
    check_file = opening.check_file

    def late(root: Path, entry: SealedFile, *, hashed: bool) -> Problem | None:
        monkeypatch.setattr(opening, "check_file", check_file)
        SearchIndex.build(OLD[:2], tiny_encoder, path).close()
        monkeypatch.setattr(opening, "check_file", late)
        return check_file(root, entry, hashed=hashed)

    monkeypatch.setattr(opening, "check_file", late)
    with pytest.raises(DamagedIndex, match="was rewritten 10 times"):
        SearchIndex.open(path, tiny_encoder)
