"""Documents to index, and ways to look at index folders."""

import hashlib
import json
import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from sbertkit import Encoder, Hit, SearchIndex

KINDS = ("flat", "hnsw", "ivf", "ivfpq")

_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def documents(count: int, prefix: str = "d", seed: int = 0) -> list[tuple[str, str]]:
    """Pairs of id and text; no two texts are equal and none is longer than the tiny model reads."""
    source = random.Random(f"{prefix}{seed}")
    texts: dict[str, None] = {}
    while len(texts) < count:
        words = ("".join(source.choices(_LETTERS, k=source.randint(2, 9))) for _ in range(5))
        texts[" ".join(words)] = None
    return [(f"{prefix}{number}", text) for number, text in enumerate(texts)]


def mixed_documents(count: int, prefix: str = "d", seed: int = 0) -> list[tuple[str, str]]:
    """As `documents`, but every third text is several times as long as the tiny model reads."""
    pairs = documents(count, prefix, seed)
    further = [text for _, text in documents(20 * count, prefix, seed + 1)]
    return [
        (one, text if number % 3 else ". ".join([text, *further[20 * number : 20 * number + 20]]))
        for number, (one, text) in enumerate(pairs)
    ]


def contents(folder: Path) -> dict[str, str]:
    """Every path under a folder with the hash of its bytes; hidden ones too."""
    return {
        path.relative_to(folder).as_posix(): (
            "folder" if path.is_dir() else hashlib.sha256(path.read_bytes()).hexdigest()
        )
        for path in folder.rglob("*")
    }


def write_manifest(folder: Path, content: dict[str, Any]) -> None:
    """Puts a manifest into an index folder that is whole, whatever it says."""
    said = {name: value for name, value in content.items() if name != "sha256"}
    canonical = json.dumps(said, sort_keys=True, separators=(",", ":"))
    said["sha256"] = hashlib.sha256(canonical.encode()).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(said, indent=2) + "\n")


def assert_alike(found: Sequence[Sequence[Hit]], expected: Sequence[Sequence[Hit]]) -> None:
    """Asserts that hits are the same, but for the last digits of vectors that were made twice."""
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        scores = [hit.score for hit in theirs]
        assert [hit.score for hit in ours] == pytest.approx(scores, abs=1e-5)
        sure = min(scores, default=0.0) + 2e-5
        assert {hit.id for hit in ours if hit.score > sure} <= {hit.id for hit in theirs}
        texts = {hit.id: (hit.text, hit.metadata) for hit in theirs}
        assert all(texts.get(hit.id, hit[2:]) == hit[2:] for hit in ours)


def ids_in(index: SearchIndex) -> set[str]:
    """The ids of all documents, found by searching for the text of any."""
    return {hit.id for hit in index.search("anything", k=10**9)}


def state(path: Path, encoder: Encoder) -> set[str]:
    """The ids that an index holds; its files are checked, and each id is there once."""
    with SearchIndex.open(path, encoder) as index:
        hits = index.search("anything", k=10**9)
        ids = {hit.id for hit in hits}
        assert len(ids) == len(hits) == len(index)
        assert index.verify() == ()
        assert_found_by_words(index)
        return ids


def assert_found_by_words(index: SearchIndex) -> None:
    """Asserts that the first and last documents are found by their words, if any are."""
    if index.info().lexical is None:
        return
    documents = list(index.documents())
    for document in (*documents[:2], *documents[-1:]):
        found = {hit.id for hit in index.search(document.text, k=len(index), mode="lexical")}
        assert document.id in found <= {one.id for one in documents}


def ids_of(pairs: Iterable[tuple[str, str]]) -> set[str]:
    """The ids of documents."""
    return {identifier for identifier, _ in pairs}
