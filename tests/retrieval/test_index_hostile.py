"""Index folders that are prepared, with hashes made right, are refused in one line."""

import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import pytest
from index_cases import KINDS, documents, write_manifest

from sbertkit import Encoder, SearchIndex
from sbertkit.errors import DamagedIndex, InputError

CORPUS = documents(600)
VALUES: tuple[Any, ...] = (
    10**12,
    -1,
    0,
    None,
    True,
    1.5,
    "",
    "../x",
    "/etc/passwd",
    "\0",
    [],
    {},
    [[]],
    {"a": 1},
)


@pytest.fixture(scope="module")
def built(tiny_encoder: Encoder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Indexes of all kinds with a deleted document each."""
    root = tmp_path_factory.mktemp("hostile")
    for kind in KINDS:
        with SearchIndex.build(
            CORPUS, tiny_encoder, root / kind, kind=kind, with_encoder=kind == "flat"
        ) as index:
            index.delete(["d7"])
    return root


@pytest.fixture
def folder(built: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(built, tmp_path / "built"))


def put(index: Path, name: str, content: bytes) -> None:
    """Writes a file of an index, and makes the manifest name it as it is now."""
    (path,) = index.rglob(name)
    path.write_bytes(content)
    manifest = json.loads((index / "manifest.json").read_text())
    entries = [entry for segment in manifest["segments"] for entry in segment["files"]]
    for entry in (*entries, manifest["tombstones"]):
        if index / entry["path"] == path:
            entry.update(bytes=len(content), sha256=hashlib.sha256(content).hexdigest())
    write_manifest(index, manifest)


def assert_refused(index: Path, encoder: Encoder) -> None:
    with pytest.raises(InputError) as caught:
        SearchIndex.open(index, encoder)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 2_000


def places(content: Any) -> Iterator[tuple[Any, Any]]:
    """Every container and key of a JSON document."""
    for key in content if isinstance(content, dict) else range(len(content)):
        yield content, key
        if isinstance(content[key], dict | list):
            yield from places(content[key])


def used(index: Path, encoder: Encoder) -> None:
    """Opens an index and searches it; refused or not, it raises nothing else."""
    try:
        with SearchIndex.open(index, encoder) as opened:
            assert len(opened.search("anything", k=3)) == 3
    except InputError as error:
        assert "\n" not in str(error)  # noqa: PT017  # what is let through must be searched


def test_any_value_in_any_field_of_a_manifest_is_refused_or_does_no_harm(
    folder: Path, tiny_encoder: Encoder
) -> None:
    index = folder / "flat"
    content = json.loads((index / "manifest.json").read_text())
    for holder, key in places(content):
        old = holder[key]
        for value in VALUES:
            holder[key] = value
            write_manifest(index, content)
            used(index, tiny_encoder)
        holder[key] = old


@pytest.mark.parametrize("version", [0, -1, "1", None, True, 1.0, [], 10**12])
def test_a_format_that_never_was_is_refused(
    folder: Path, tiny_encoder: Encoder, version: object
) -> None:
    content = json.loads((folder / "flat" / "manifest.json").read_text())
    write_manifest(folder / "flat", {**content, "format": version})
    assert_refused(folder / "flat", tiny_encoder)


@pytest.mark.parametrize("name", ["manifest.json", "build.json"])
@pytest.mark.parametrize("value", [b"NaN", b"1e999", b"[" * 100_000, b"9" * 5_000, b"\xff"])
def test_what_is_no_json_is_refused_in_every_field(
    folder: Path, tiny_encoder: Encoder, name: str, value: bytes
) -> None:
    index = folder / "hnsw"
    (path,) = index.rglob(name)
    content = json.loads(path.read_bytes())
    for holder, key in [*places({"all": content})][1:]:
        old, holder[key] = holder[key], "@@"
        raw = json.dumps(content).encode().replace(b'"@@"', value)
        holder[key] = old
        if name == "manifest.json":
            path.write_bytes(raw)
        else:
            put(index, name, raw)
        assert_refused(index, tiny_encoder)


@pytest.mark.parametrize("kind", KINDS)
def test_any_value_in_build_json_is_refused_or_does_no_harm(
    folder: Path, tiny_encoder: Encoder, kind: str
) -> None:
    index = folder / kind
    content = json.loads(next(index.rglob("build.json")).read_text())
    for holder, key in [*places({"all": content})]:
        old = holder[key]
        for value in (*VALUES, *KINDS):
            holder[key] = value
            put(index, "build.json", json.dumps(content).encode())
            if value != old and (key == "kind" or holder is content.get("parameters")):
                assert_refused(index, tiny_encoder)
            else:
                used(index, tiny_encoder)
        holder[key] = old


TOMBSTONES = {
    "row beyond": np.array([[0, 600]]),
    "negative row": np.array([[0, -1]]),
    "segment beyond": np.array([[1, 7]]),
    "two": np.array([[0, 7], [0, 8]]),
    "none": np.empty((0, 2), np.int64),
    "flat": np.array([0, 7]),
    "columns": np.array([[0, 7, 1]]),
    "floats": np.array([[0.0, 7.0]]),
    "objects": np.array([[0, None]]),
    "other order": np.array([[0, 7]], ">i8"),
}


@pytest.mark.parametrize("name", TOMBSTONES)
def test_tombstones_that_do_not_fit_are_refused(
    folder: Path, tiny_encoder: Encoder, name: str
) -> None:
    index = folder / "flat"
    np.save(folder / "x.npy", TOMBSTONES[name], allow_pickle=True)
    put(index, "000002.npy", (folder / "x.npy").read_bytes())
    assert_refused(index, tiny_encoder)


def test_tombstones_that_announce_more_than_is_there_take_no_memory(
    folder: Path, tiny_encoder: Encoder
) -> None:
    index = folder / "flat"
    content = next(index.rglob("000002.npy")).read_bytes()
    for other in (
        content.replace(b"(1, 2), }           ", b"(1000000000000, 2), }"[:20]),
        content[:-1],
        content + b"\0",
        content[:10] + b"(" * (len(content) - 10),
        b"",
    ):
        assert other != content
        put(index, "000002.npy", other)
        assert_refused(index, tiny_encoder)


def faiss_files(rows: int, dim: int, elsewhere: Path) -> dict[str, bytes]:
    """Files of indexes over the same number of vectors that sbertkit does not write."""
    flat = faiss.IndexFlatIP(dim)
    on_disk = faiss.IndexIVFFlat(faiss.IndexFlatIP(dim), dim, 4, faiss.METRIC_INNER_PRODUCT)
    on_disk.cp.min_points_per_centroid = 1
    vectors = np.random.default_rng(0).normal(size=(rows, dim)).astype(np.float32)
    on_disk.train(vectors)
    lists = faiss.OnDiskInvertedLists(4, on_disk.code_size, str(elsewhere))
    on_disk.replace_invlists(lists)
    l2 = faiss.IndexHNSWFlat(dim, 8)
    made = {
        "numbered": faiss.IndexIDMap(flat),
        "lsh": faiss.IndexLSH(dim, 32),
        "flat": faiss.IndexFlatIP(dim),
        "other metric": l2,
        "other links": faiss.IndexHNSWFlat(dim, 8, faiss.METRIC_INNER_PRODUCT),
        "on disk": on_disk,
    }
    for name, index in made.items():
        if name == "numbered":
            index.add_with_ids(vectors, np.arange(rows) + 10**6)
        else:
            index.add(vectors)
    return {name: faiss.serialize_index(index).tobytes() for name, index in made.items()}


@pytest.mark.parametrize("kind", ["hnsw", "ivf"])
def test_faiss_reads_only_what_the_kind_is_written_as(
    folder: Path, tiny_encoder: Encoder, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    contents = faiss_files(600, tiny_encoder.dim, folder / "lists")
    whole = next((folder / kind).rglob("index.faiss")).read_bytes()
    contents.update(cut=whole[:-1], empty=b"", half=whole[: len(whole) // 2])
    monkeypatch.setattr(faiss, "read_index", lambda *_: pytest.fail("faiss has read it"))
    for content in contents.values():
        put(folder / kind, "index.faiss", content)
        with pytest.raises(DamagedIndex, match=r"index\.faiss is no faiss index: expected"):
            SearchIndex.open(folder / kind, tiny_encoder)


@pytest.mark.parametrize("kind", ["hnsw", "ivf"])
def test_changed_faiss_files_are_refused_or_do_no_harm(
    folder: Path, tiny_encoder: Encoder, kind: str
) -> None:
    source = np.random.default_rng(3)
    content = next((folder / kind).rglob("index.faiss")).read_bytes()
    for turn in range(60):
        changed = bytearray(content)
        end = 200 if turn % 2 else len(content)
        for place in source.integers(end, size=3):
            changed[place] = source.integers(256)
        put(folder / kind, "index.faiss", bytes(changed))
        used(folder / kind, tiny_encoder)


def test_changed_words_are_refused_or_do_no_harm(folder: Path, tiny_encoder: Encoder) -> None:
    source = np.random.default_rng(5)
    index = folder / "flat"
    content = next(index.rglob("words.bin")).read_bytes()
    text = CORPUS[3][1]
    for turn in range(150):
        changed = bytearray(content)
        for place in source.integers(64 if turn % 3 else len(content), size=3):
            changed[place] = source.choice((0, 1, 127, 255))
        put(index, "words.bin", bytes(changed))
        try:
            with SearchIndex.open(index, mode="lexical") as opened:
                for query in (text, f'"{text}" {CORPUS[4][1]}', f"{text} -d"):
                    assert len(opened.search(query, k=3, mode="lexical")) <= 3
        except InputError as error:
            assert "\n" not in str(error)  # noqa: PT017  # what is let through must be searched
    put(index, "words.bin", content)
    with SearchIndex.open(index, mode="lexical") as opened:
        assert opened.search(text, k=1, mode="lexical")[0].id == CORPUS[3][0]
