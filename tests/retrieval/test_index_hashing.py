"""Opening an index: files are hashed by threads, and none is parsed before its hash is right."""

import shutil
import time
from io import BufferedReader
from pathlib import Path
from typing import Any

import pytest
from index_cases import documents

from sbertkit import Encoder, SearchIndex
from sbertkit.errors import DamagedIndex
from sbertkit.retrieval import bundled_encoder, opening
from sbertkit.sealed import SealedFile

NAMES = (
    *("build.json", "documents.db", "fields.db", "index.faiss", "vectors.npy", "words.bin"),
    *("encoder.onnx", "export.json", "tokenizer.json"),
)


@pytest.fixture(scope="module")
def built(tiny_encoder: Encoder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index that has every file."""
    path = tmp_path_factory.mktemp("built") / "index"
    rows = [{"id": one, "text": text, "year": 2000} for one, text in documents(300)]
    with SearchIndex.build(rows, tiny_encoder, path, kind="hnsw", with_encoder=True) as index:
        index.delete(["d1"])
    return path


@pytest.fixture(autouse=True)
def _threads_hash_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "_SMALL_BYTES", 0)


def open_files() -> int:
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.is_dir() else 0


@pytest.mark.parametrize("name", [*NAMES, "tombstones"])
def test_a_changed_file_is_refused_by_its_hash(built: Path, tmp_path: Path, name: str) -> None:
    path = shutil.copytree(built, tmp_path / "index")
    (file,) = path.glob("tombstones/*") if name == "tombstones" else path.rglob(name)
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    before = open_files()
    for _ in range(3):
        with pytest.raises(DamagedIndex, match="does not match its SHA-256") as caught:
            SearchIndex.open(path)
        assert file.name in str(caught.value)
        del caught
    assert open_files() <= before + 1
    assert [problem.file for problem in SearchIndex.verify_at(path)] == [
        file.relative_to(path).as_posix()
    ]


def test_nothing_is_parsed_before_it_is_hashed(
    built: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[tuple[str, str]] = []
    hash_fault = SealedFile.hash_fault

    def slow(entry: SealedFile, file: BufferedReader) -> str | None:
        time.sleep(0.05)
        fault = hash_fault(entry, file)
        events.append(("hashed", Path(entry.path).name))
        return fault

    def noted(owner: Any, attribute: str, *names: str) -> None:
        given = getattr(owner, attribute)

        def use(*arguments: Any, **options: Any) -> Any:
            events.extend(("parsed", name) for name in names)
            return given(*arguments, **options)

        monkeypatch.setattr(owner, attribute, use)

    monkeypatch.setattr(SealedFile, "hash_fault", slow)
    noted(opening.VectorSegment, "kind_at", "build.json", "index.faiss")
    noted(opening, "DocumentStore", "documents.db")
    noted(opening, "SegmentFields", "fields.db")
    noted(opening, "PostingsFile", "words.bin")
    noted(opening, "read_tombstones", next(built.glob("tombstones/*")).name)
    noted(bundled_encoder.Encoder, "load_export", *NAMES[-3:])
    with SearchIndex.open(built) as index:
        events.append(("parsed", "vectors.npy"))
        assert len(index.search("a query", 5)) == 5
    order = {event: place for place, event in reversed(list(enumerate(events)))}
    parsed = [name for what, name in events if what == "parsed"]
    assert {*NAMES} < {*parsed}
    assert [name for name in parsed if order["hashed", name] > order["parsed", name]] == []
