"""The vectors of one segment on disk, and files that are not as they should be."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from segment_cases import ALL_KINDS, made, random_rows, unit, unit32

from sbertkit.errors import DamagedIndex, InputError, StorageError
from sbertkit.index.kinds.base import Part
from sbertkit.index.kinds.factory import Factory
from sbertkit.index.kinds.hnsw import Hnsw
from sbertkit.index.kinds.ivf import Ivf
from sbertkit.index.kinds.table import KINDS
from sbertkit.index.live_rows import LiveRows
from sbertkit.index.segment import VECTORS_FILE, VectorSegment, unit_chunk, write_vectors


def test_rows_of_any_length_are_stored_with_unit_length(tmp_path: Path) -> None:
    rows = random_rows(6)
    scaled = rows * np.array([[1e-30], [1e-20], [1], [1e10], [1e18], [3e37]], dtype=np.float32)
    chunks = (scaled[:2], scaled[2:2], scaled[2:])
    write_vectors(tmp_path / "v.npy", map(unit_chunk, chunks), 16)
    stored = np.load(tmp_path / "v.npy")
    np.testing.assert_allclose(stored, unit(rows), atol=1e-7)
    np.testing.assert_allclose(np.linalg.norm(stored.astype(np.float64), axis=1), 1, atol=1e-7)


@pytest.mark.parametrize("value", [0.0, np.nan, np.inf, -np.inf])
def test_a_row_without_direction_is_refused_by_its_number(value: float) -> None:
    rows = random_rows(4)
    rows[2] = value
    with pytest.raises(InputError, match=r"document 7 .*no direction"):
        unit_chunk(rows, first=4)


@pytest.mark.parametrize("name", ["build.json", VECTORS_FILE, "index.faiss"])
def test_files_that_cannot_be_written_are_a_storage_error(tmp_path: Path, name: str) -> None:
    rows = random_rows(4)
    (tmp_path / name).mkdir()
    with pytest.raises(StorageError, match=r"cannot write [^\n]*$"):
        made(tmp_path, rows, "hnsw")


@pytest.mark.parametrize("kind", ["hnsw", "ivf"])
def test_an_index_that_does_not_fit_the_vectors_is_damaged(tmp_path: Path, kind: str) -> None:
    made(tmp_path / "a", random_rows(50), kind)
    made(tmp_path / "b", random_rows(49), kind)
    (tmp_path / "b" / "index.faiss").replace(tmp_path / "a" / "index.faiss")
    with pytest.raises(DamagedIndex, match="is no faiss index: expected faiss index"):
        VectorSegment.open(tmp_path / "a", 50, 16)


@pytest.mark.parametrize(("rows", "dim"), [(6, 16), (4, 16), (5, 17), (0, 16), (10**9, 16)])
def test_another_number_or_size_of_vectors_than_the_file_has_is_damage(
    tmp_path: Path, rows: int, dim: int
) -> None:
    made(tmp_path, random_rows(5), "flat")
    with pytest.raises(DamagedIndex, match=f"does not hold an array of shape \\({rows}, {dim}\\)"):
        VectorSegment.open(tmp_path, rows, dim)


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY", b"\x93NUMPY\x02\x00" + bytes(500)])
def test_a_file_that_is_no_matrix_is_damage(tmp_path: Path, content: bytes) -> None:
    made(tmp_path, random_rows(5), "flat")
    (tmp_path / VECTORS_FILE).write_bytes(content)
    with pytest.raises(DamagedIndex, match="does not hold"):
        VectorSegment.open(tmp_path, 5, 16)


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"kind": "flat"}', '{"kind": "new", "parameters": {}}', "\x00"]
)
def test_build_settings_that_make_no_sense_are_damage(tmp_path: Path, content: str) -> None:
    made(tmp_path, random_rows(5), "flat")
    (tmp_path / "build.json").write_text(content)
    with pytest.raises(DamagedIndex, match=r"build\.json"):
        VectorSegment.open(tmp_path, 5, 16)


@dataclass(frozen=True, slots=True)
class _Wide(Hnsw):
    """A kind with more links, as another package may add it."""

    name: ClassVar[str] = "wide"
    links: int = 48


def test_a_kind_is_one_class_in_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KINDS, "wide", _Wide)
    rows = random_rows(500)
    search = made(tmp_path, rows, _Wide())
    assert search.segments[0].kind.name == "wide"
    assert json.loads((tmp_path / "build.json").read_text())["parameters"]["links"] == 48
    found = search.search(unit32(rows), 1)
    np.testing.assert_array_equal(found.rows[:, 0], np.arange(500))


def test_the_build_is_described_beside_the_vectors(tmp_path: Path) -> None:
    made(tmp_path, random_rows(100), "ivf", 7)
    content = json.loads((tmp_path / "build.json").read_text())
    assert content == {"kind": "ivf", "parameters": {"clusters": 7}}


def test_a_folder_whose_name_is_not_unicode_holds_an_index(tmp_path: Path) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
    try:
        folder.mkdir()
    except OSError:
        pytest.skip("this file system takes Unicode names alone")
    rows = random_rows(50)
    for kind in ALL_KINDS:
        search = made(folder / kind, rows, kind)
        assert search.search(unit32(rows), 1).rows[49, 0] == 49


@pytest.mark.parametrize("kind", ["flat", "hnsw"])
def test_an_index_is_never_written_into_the_files_of_an_older_segment(
    tmp_path: Path, kind: str
) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    made(old, random_rows(50), "hnsw")
    before = {file.name: file.read_bytes() for file in old.iterdir()}
    new.mkdir()
    for file in old.iterdir():
        os.link(file, new / file.name)
    VectorSegment.write(new, KINDS[kind].for_count(50), {})
    assert {file.name: file.read_bytes() for file in old.iterdir()} == before
    assert VectorSegment.open(new, 50, 16).kind.name == kind
    assert (new / "index.faiss").exists() == (kind == "hnsw")


def test_an_array_longer_than_its_file_is_never_allocated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import faiss

    kind = Factory("Flat")
    made(tmp_path, random_rows(50), "flat")
    VectorSegment.write(tmp_path, kind, {})
    path = tmp_path / "index.faiss"
    limits = []
    read = faiss.read_index

    def noting(*arguments: Any) -> Any:
        limits.append(faiss.get_deserialization_vector_byte_limit())
        return read(*arguments)

    before = faiss.get_deserialization_vector_byte_limit()
    monkeypatch.setattr(faiss, "read_index", noting)
    kind.open(tmp_path, 50, 16)
    content = path.read_bytes()
    numbers = (50 * 16).to_bytes(8, "little")
    assert content.count(numbers) == 1
    path.write_bytes(content.replace(numbers, (2**28).to_bytes(8, "little")))
    with pytest.raises(DamagedIndex, match="is no faiss index"):
        kind.open(tmp_path, 50, 16)
    assert limits == [len(content)] * 2
    assert faiss.get_deserialization_vector_byte_limit() == before


def test_rows_of_clusters_that_are_not_there_are_damage(tmp_path: Path) -> None:
    made(tmp_path, random_rows(50), "flat")
    kind = Ivf(1)
    VectorSegment.write(tmp_path, kind, {})
    path = tmp_path / "index.faiss"
    path.write_bytes(path.read_bytes()[:-8] + (10**6).to_bytes(8, "little"))
    searcher = kind.searcher(Part(kind.open(tmp_path, 50, 16), 50))
    some = LiveRows(np.arange(50) % 2 == 0)
    with pytest.raises(DamagedIndex, match="cluster 0 has rows beyond the 50 of the index"):
        searcher.search(random_rows(1), 1, 5, some)
