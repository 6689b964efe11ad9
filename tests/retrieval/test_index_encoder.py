"""The bundled encoder of an index: added or refused before encoding, read only if listed."""

import hashlib
import json
import logging
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from command_line import Run
from index_cases import documents, write_manifest

from sbertkit import Encoder, SearchIndex
from sbertkit.errors import DamagedIndex, InputError, InputTypeError, StorageError
from sbertkit.retrieval.build import IndexBuild
from sbertkit.retrieval.encoded_vectors import EncodedVectors

CORPUS = documents(20)


@pytest.fixture(scope="module")
def made(tiny_bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("made") / "index"
    encoder = Encoder.load(tiny_bert, pooling="mean", device="cpu")
    SearchIndex.build(CORPUS, encoder, path, with_encoder=True).close()
    return path


@pytest.fixture
def built(made: Path, tmp_path: Path) -> Path:
    return shutil.copytree(made, tmp_path / "index")


@pytest.fixture
def warnings(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], list[str]]:
    monkeypatch.setattr(logging.getLogger("sbertkit"), "propagate", True)
    return lambda: [record.getMessage() for record in caplog.records]


# --- putting it in


@pytest.mark.parametrize("kind", [InputError, StorageError])
def test_what_cannot_be_exported_is_indexed_with_a_warning(
    tiny_encoder: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    kind: type[Exception], warnings: Callable[[], list[str]],
) -> None:  # fmt: skip
    def refused(_: Encoder) -> Path:
        raise kind("it cannot be exported")

    monkeypatch.setattr(Encoder, "export_folder", refused)
    SearchIndex.build(CORPUS, tiny_encoder, tmp_path / "index").close()
    assert not (tmp_path / "index" / "encoder").exists()
    assert warnings() == ["the index is built without its encoder: it cannot be exported"]
    assert SearchIndex.open(tmp_path / "index").search(CORPUS[3][1])[0].id == "d3"


def test_an_encoder_that_was_asked_for_and_cannot_be_had_is_refused_before_encoding(
    tiny_folder: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    monkeypatch.setattr(EncodedVectors, "write", pytest.fail)
    model = tiny_folder("byte_t5")
    with pytest.raises(InputError, match="written in Python and cannot be exported"):
        SearchIndex.build(
            CORPUS, Encoder.load(model, device="cpu"), tmp_path / "index", with_encoder=True
        )
    (tmp_path / "corpus.txt").write_text("one\ntwo\n")
    arguments = [tmp_path / "corpus.txt", "-o", tmp_path / "index", "--model", model]
    done = run("index", *arguments, "--with-encoder", "--device", "cpu")
    assert done.status == 1
    assert "cannot be exported" in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["corpus.txt"]


def test_whether_it_is_put_in_is_yes_no_or_nothing() -> None:
    with pytest.raises(InputTypeError, match="with_encoder must be True, False or None"):
        IndexBuild(with_encoder="yes")  # type: ignore[arg-type]


@pytest.mark.skipif(os.name == "nt", reason="POSIX permissions")
@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o002, 0o664), (0o077, 0o600)])
def test_its_files_follow_the_umask(
    tiny_encoder: Encoder, tmp_path: Path, umask: int, mode: int
) -> None:
    before = os.umask(umask)
    try:
        SearchIndex.build(CORPUS, tiny_encoder, tmp_path / "index").close()
    finally:
        os.umask(before)
    files = [path for path in (tmp_path / "index" / "encoder").rglob("*") if path.is_file()]
    assert len(files) == 3
    assert {path.stat().st_mode & 0o777 for path in files} == {mode}


# --- reading it


def test_a_file_of_it_that_the_manifest_does_not_list_is_refused(built: Path) -> None:
    content = json.loads((built / "manifest.json").read_text())
    files = content["exported"]["files"]
    for left in range(3):
        content["exported"]["files"] = [one for place, one in enumerate(files) if place != left]
        write_manifest(built, content)
        with pytest.raises(DamagedIndex, match=r"in the manifest, found|missing|expected"):
            SearchIndex.open(built)


def test_tensors_beside_it_that_no_hash_covers_are_not_used(
    built: Path, warnings: Callable[[], list[str]]
) -> None:
    (folder,) = (built / "encoder").iterdir()
    model = onnx.load(folder / "encoder.onnx")
    tensor = max(model.graph.initializer, key=lambda one: len(one.raw_data))
    (folder / "weights").write_bytes(bytes(len(tensor.raw_data)))
    onnx.external_data_helper.set_external_data(tensor, "weights", 0, len(tensor.raw_data))
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    (folder / "encoder.onnx").write_bytes(model.SerializeToString())
    entry = json.loads((folder / "export.json").read_text())
    del entry["sha256"]
    entry["files"]["encoder.onnx"] = _hash(folder / "encoder.onnx")
    canonical = json.dumps(entry, sort_keys=True, separators=(",", ":")).encode()
    entry["sha256"] = hashlib.sha256(canonical).hexdigest()
    (folder / "export.json").write_text(json.dumps(entry, indent=2) + "\n")
    _list_again(built)
    with SearchIndex.open(built) as index:
        assert index.encoder.torch.network is not None
    assert any("tensors in other files" in warning for warning in warnings())


def test_another_file_beside_it_does_no_harm(built: Path) -> None:
    (folder,) = (built / "encoder").iterdir()
    (folder / ".DS_Store").write_bytes(b"\0")
    with SearchIndex.open(built) as index:
        assert index.search(CORPUS[3][1])[0].id == "d3"
        with pytest.raises(InputError, match="is an exported encoder"):
            index.encoder.torch.network  # noqa: B018
    assert len(SearchIndex.verify_at(built)) == 1


def test_an_encoder_of_another_size_than_the_index_is_refused(
    built: Path, tiny_copy: Callable[..., Path], tmp_path: Path
) -> None:
    import tiny_models

    other = Encoder.load(tiny_models.declare(tiny_copy(), "Dense"), device="cpu")
    (folder,) = (built / "encoder").iterdir()
    shutil.rmtree(folder)
    other.export(folder)
    _list_again(built)
    with pytest.raises(DamagedIndex, match="vectors of size 16, the index has 32"):
        SearchIndex.open(built)


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _list_again(index: Path) -> None:
    """Puts the sizes and hashes of the encoder's files as they are now into the manifest."""
    content = json.loads((index / "manifest.json").read_text())
    for entry in content["exported"]["files"]:
        entry["bytes"] = (index / entry["path"]).stat().st_size
        entry["sha256"] = _hash(index / entry["path"])
    write_manifest(index, content)
