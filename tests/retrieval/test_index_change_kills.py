"""SIGKILL at random moments of changes: all that was committed is there, and nothing else."""

import logging
import os
import random
import time
from collections import Counter
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
from children import Child
from index_cases import assert_found_by_words, documents, mixed_documents

from sbertkit import Encoder, SearchIndex

pytestmark = pytest.mark.skipif(os.name == "nt", reason="POSIX signals")

State = dict[str, str]

TEXTS = [text for _, text in mixed_documents(300)]


def changing(pipe: Connection, model: str, path: Path, seed: int) -> None:
    """Changes an index again and again, telling before each change what it will be, and after."""
    encoder = Encoder.load(model, pooling="mean", device="cpu")
    encoder.encode(["warm"])
    source = random.Random(seed)
    with SearchIndex.open(path, encoder) as index:
        now = {one.id: one.text for one in index.documents()}
        pipe.send(("begun", now))
        while True:
            name = source.choice(("add", "upsert", "delete", "compact", "update"))
            new = {
                f"{seed}.{source.randrange(10**9)}": source.choice(TEXTS)
                for _ in range(source.randint(1, 40))
            }
            known = source.sample(sorted(now), min(len(now) // 3, 30))
            after, change = _planned(name, index, now, new, known)
            pipe.send((name, after))
            change()
            now = after
            pipe.send(("done", now))


def _planned(
    name: str, index: SearchIndex, now: State, new: State, known: list[str]
) -> tuple[State, Any]:
    """What the index holds after a change, and the change."""
    if name == "add":
        return now | new, lambda: index.add(new.items())
    if name == "upsert":
        given = new | {one: text + " again" for one, text in zip(known, TEXTS, strict=False)}
        return now | given, lambda: index.upsert(given.items())
    if name == "delete" and len(now) > 60:
        return {one: now[one] for one in now.keys() - set(known)}, lambda: index.delete(known)
    if name == "update":
        corpus = {one: now[one] for one in now.keys() - set(known[:10])} | new
        return corpus, lambda: index.update(corpus.items())
    return now, lambda: index.compact(lexical=True if len(new) % 2 else None)


def kill_repeatedly(model: str, encoder: Encoder, path: Path, kills: int) -> Counter[str]:
    """Kills so many times, each followed by a look at what is there; counts in what it was."""
    source = random.Random(kills)
    SearchIndex.build(documents(50), encoder, path).close()
    outcomes = Counter[str]()
    for turn in range(kills):
        with Child(changing, model, path, turn) as child:
            name, now = child.receive()
            time.sleep(source.uniform(0.0, 0.25))
            child.process.kill()
            child.process.join()
            possible = [now]
            while child.pipe.poll():
                try:
                    name, after = child.pipe.recv()
                except (EOFError, OSError):
                    break
                possible = [after] if name == "done" else [possible[-1], after]
        assert SearchIndex.verify_at(path) == ()
        with SearchIndex.open(path, encoder) as index:
            found = {one.id: one.text for one in index.documents()}
            assert found in possible, name
            assert {hit.id for hit in index.search("anything", 10**6)} == found.keys()
            assert_found_by_words(index)
        outcomes[name if len(possible) > 1 else "between"] += 1
        if turn % 10 == 9:
            with SearchIndex.open(path, encoder) as index:
                index.add([(f"check {turn}", "one more")])
                segments = index.info().segments
            assert len(list((path / "segments").iterdir())) == segments
            assert [left.name for left in path.parent.iterdir()] == [path.name]
    return outcomes


def test_killed_changes_are_whole_or_never_were(tiny_encoder: Encoder, tmp_path: Path) -> None:
    outcomes = kill_repeatedly(tiny_encoder.options.model, tiny_encoder, tmp_path / "index", 20)
    assert outcomes.total() == 20


@pytest.mark.slow
def test_five_hundred_killed_changes_are_whole_or_never_were(
    tiny_encoder: Encoder, tmp_path: Path
) -> None:
    outcomes = kill_repeatedly(tiny_encoder.options.model, tiny_encoder, tmp_path / "index", 500)
    logging.getLogger(__name__).info("%s", dict(outcomes))  # seen with --log-cli-level=INFO
    assert outcomes.keys() >= {"add", "upsert", "delete", "compact", "update"}


# --- readers beside a writer


def reading(pipe: Connection, model: str, path: Path, stop: Path) -> int:
    """Searches and refreshes until it is told to stop; the documents that stay are always found."""
    encoder = Encoder.load(model, pooling="mean", device="cpu")
    stays = documents(50)
    vectors = encoder.encode([text for _, text in stays])
    searches = 0
    pipe.send("begun")
    index = SearchIndex.open(path, encoder)
    while not stop.exists():
        if searches % 40 == 39:
            index.close()
            index = SearchIndex.open(path, encoder)
        else:
            index.refresh()
        hits = index.search_batch(vectors[searches % 45 : searches % 45 + 5], 3)
        for (one, text), found in zip(stays[searches % 45 : searches % 45 + 5], hits, strict=True):
            assert found[0].text == text, (found, one)
            assert found[0].id == one
            for hit in found:
                assert index.get(hit.id).text == hit.text
            assert index.search(text, 1, mode="lexical")[0].id == one
        count = len(index)
        everything = list(index.documents())
        assert len(everything) == len({hit.id for hit in everything}) == count
        searches += 1
    index.close()
    return searches


def beside_readers(model: str, encoder: Encoder, path: Path, seconds: float) -> tuple[int, int]:
    """Changes an index beside four readers; how many changes there were, and searches."""
    SearchIndex.build(documents(50), encoder, path).close()
    stop = path.parent / "stop"
    children = [Child(reading, model, path, stop) for _ in range(4)]
    try:
        assert [child.receive() for child in children] == ["begun"] * 4
        source = random.Random(0)
        there: list[str] = []
        changes = 0
        until = time.monotonic() + seconds
        with SearchIndex.open(path, encoder) as index:
            while time.monotonic() < until:
                if len(there) > 120 or (there and source.random() < 0.4):
                    gone = source.sample(there, min(len(there), 15))
                    index.delete(gone)
                    there = [one for one in there if one not in set(gone)]
                else:
                    new = [(f"n{changes}.{n}", source.choice(TEXTS[50:])) for n in range(10)]
                    index.add(new)
                    there += [one for one, _ in new]
                if source.random() < 0.05:
                    index.compact()
                changes += 1
            assert len(index) == 50 + len(there)
        stop.touch()
        return changes, sum(child.receive() for child in children)
    finally:
        stop.touch()
        for child in children:
            child.__exit__()


def test_readers_search_while_a_writer_changes(tiny_encoder: Encoder, tmp_path: Path) -> None:
    path = tmp_path / "index"
    changes, searches = beside_readers(tiny_encoder.options.model, tiny_encoder, path, 4)
    assert changes > 2  # few where cores are busy: four readers search meanwhile
    assert searches > 10


@pytest.mark.slow
def test_readers_search_for_a_minute_while_a_writer_changes(
    tiny_encoder: Encoder, tmp_path: Path
) -> None:
    path = tmp_path / "index"
    changes, searches = beside_readers(tiny_encoder.options.model, tiny_encoder, path, 60)
    assert changes > 2  # few where cores are busy: four readers search meanwhile0
    assert searches > 1_000
    logging.getLogger(__name__).info("%d changes beside %d searches", changes, searches)
