"""Models whose export is found by the hashes of their files: the same vectors, or torch."""

import copy
import json
import logging
import os
import pickle
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sbertkit.encoder import Encoder, cached_runtime, torch_runtime
from sbertkit.encoder.cached_runtime import CachedRuntime
from sbertkit.encoder.exports import auto_precision, known
from sbertkit.encoder.exports.cache import _temporary_folder
from sbertkit.encoder.exports.chosen_precision import ChosenPrecision
from sbertkit.encoder.exports.manifest import EXPORT_FILES
from sbertkit.encoder.model_files import files_sha256
from sbertkit.encoder.whitening import post_processed
from sbertkit.errors import InputError, StorageError

TEXTS = ["", "a", "the kettle on the stove sings", *(f"number {row}" for row in range(40))]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    _temporary_folder.cache_clear()
    return tmp_path / "cache" / "sbertkit"


@pytest.fixture
def folder(tiny_encoder: Encoder, tmp_path: Path) -> Path:
    """A model folder with weights in two modules, whose export is in the cache."""
    post_processed(tiny_encoder, "center", TEXTS).save(tmp_path / "model")
    load(tmp_path / "model").export_folder()
    return tmp_path / "model"


def load(model: Path, **options: Any) -> Encoder:
    return Encoder.load(model, **{"device": "cpu", **options})


def is_known(model: Path, **options: Any) -> bool:
    return isinstance(load(model, **options)._runtime, CachedRuntime)


def by_torch(model: Path, **options: Any) -> np.ndarray[Any, Any]:
    return load(model, backend="torch", **options).encode(TEXTS)


def flip_weight(path: Path) -> None:
    """Changes the first number of a safetensors file."""
    content = bytearray(path.read_bytes())
    start = 8 + int.from_bytes(content[:8], "little")
    content[start : start + 4] = struct.pack("<f", 0.5)
    path.write_bytes(bytes(content))


def flip(path: Path, place: int) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(bytes(content))


def test_its_export_is_taken_for_a_job_of_any_size(folder: Path) -> None:
    encoder = load(folder)
    exact = load(folder, backend="torch")
    for size in (0, 1, len(TEXTS)):
        found, expected = encoder.encode(TEXTS[:size]), exact.encode(TEXTS[:size])
        np.testing.assert_allclose(found, expected, atol=1e-5)
    query = encoder.encode("a query", kind="query")
    np.testing.assert_allclose(query, exact.encode("a query", kind="query"), atol=1e-5)
    assert isinstance(encoder._runtime, CachedRuntime)
    assert encoder._runtime._torch is None
    for name in ("fingerprint", "dim", "max_tokens", "pooling", "prompts", "device", "precision"):
        assert getattr(encoder, name) == getattr(exact, name), name
    assert encoder.options == load(folder, backend="auto").options


_WITHOUT_TORCH = """
import sys
from sbertkit import Encoder
encoder = Encoder.load(sys.argv[1])
print(encoder.encode(["a boat"]).shape, encoder.fingerprint)
print([name for name in ("torch", "transformers", "sentence_transformers") if name in sys.modules])
"""


def test_it_needs_no_torch(folder: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", _WITHOUT_TORCH, str(folder)],
        capture_output=True,
        text=True,
        check=True,
    )
    encoder = load(folder)
    assert ran.stdout.splitlines() == [f"(1, {encoder.dim}) {encoder.fingerprint}", "[]"]
    assert ran.stderr == ""


def test_it_is_known_wherever_the_folder_lies(folder: Path, tmp_path: Path) -> None:
    place = tmp_path / "elsewhere" / folder.name
    shutil.copytree(folder, place)
    assert is_known(place)
    assert load(place).options.model == str(place)


@pytest.mark.parametrize(
    "name",
    [
        *("model.safetensors", "config.json", "tokenizer.json", "tokenizer_config.json"),
        *("modules.json", "sentence_bert_config.json", "config_sentence_transformers.json"),
        *("1_Pooling/config.json", "2_Dense/config.json", "2_Dense/model.safetensors"),
        "sbertkit.json",
    ],
)
def test_another_content_of_any_file_makes_it_another_model(folder: Path, name: str) -> None:
    path = folder / name
    if path.suffix == ".json":
        content = path.read_text()
        path.write_text(f" {content}")
        assert not is_known(folder)
        path.write_text(content)
        assert is_known(folder)
    else:
        before = by_torch(folder)
        times = path.stat()
        flip_weight(path)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        assert not is_known(folder)
        found = load(folder).encode(TEXTS)
        np.testing.assert_allclose(found, by_torch(folder), atol=1e-5)
        assert np.abs(found - before).max() > 1e-5


@pytest.mark.parametrize("name", ["added_tokens.json", "vocab.txt", "spiece.model", "code.py"])
def test_another_file_makes_it_another_model(folder: Path, name: str) -> None:
    (folder / name).write_text("{}")
    assert not is_known(folder)


def test_files_that_no_loader_reads_make_no_difference(folder: Path) -> None:
    (folder / "README.md").write_text("about it")
    (folder / "pytorch_model.bin").write_bytes(b"others")
    (folder / ".gitattributes").write_text("*")
    (folder / "onnx").mkdir()
    assert is_known(folder)


def test_a_file_elsewhere_that_the_tokenizer_names_makes_a_difference(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    config = json.loads((folder / "tokenizer_config.json").read_text())
    for named in ("../vocabulary", "vocabulary", str(tmp_path / "vocabulary")):
        config["fast_tokenizer_files"] = [named]
        (folder / "tokenizer_config.json").write_text(json.dumps(config))
        (tmp_path / "vocabulary").write_text("one")
        before = files_sha256(folder)
        (tmp_path / "vocabulary").write_text("two")
        assert files_sha256(folder) != before


@pytest.mark.parametrize(
    "options",
    [
        {"pooling": "cls"},
        {"normalize": False},
        {"max_tokens": 16},
        {"dim": 5},
        {"prompts": {"query": "q: "}},
        {"backend": "torch"},
        {"precision": "int8"},
        {"trust_remote_code": True},
    ],
)
def test_other_options_make_it_another_model(folder: Path, options: dict[str, Any]) -> None:
    assert is_known(folder)
    assert not is_known(folder, **options)


@pytest.mark.parametrize(
    "options",
    [
        {"pooling": "cls"},
        {"max_tokens": 16},
        {"dim": 5},
        {"prompts": {"query": "q: "}},
        {"precision": "int8"},
    ],
)
def test_with_other_options_it_is_known_by_them(folder: Path, options: dict[str, Any]) -> None:
    first = load(folder, **options)
    first.export_folder("int8" if "precision" in options else "fp32")
    assert is_known(folder, **options)
    again = load(folder, **options)
    assert (again.fingerprint, again.precision) == (first.fingerprint, first.precision)
    tolerance = 1e-5 if "precision" not in options else 0.5
    np.testing.assert_allclose(again.encode(TEXTS), first.encode(TEXTS), atol=tolerance)


def test_precision_auto_is_known_once_it_was_measured(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not is_known(folder, precision="auto")
    chosen = ChosenPrecision("fp32", 1.0, 1.0)
    monkeypatch.setattr(auto_precision, "_measure", lambda _: chosen)
    first = load(folder, precision="auto")
    assert first.precision == "fp32"
    assert is_known(folder, precision="auto")
    again = load(folder, precision="auto")
    assert again.precision == "fp32"
    np.testing.assert_allclose(again.encode(TEXTS), first.encode(TEXTS), atol=1e-5)


def test_a_name_that_stands_for_prompts_makes_it_another_model(
    tiny_copy: Callable[..., Path],
) -> None:
    plain = tiny_copy("bert", "plain")
    load(plain).export_folder()
    named = plain.rename(plain.with_name("e5-small"))
    assert not is_known(named)
    assert load(named).prompts.query == "query: "


def test_what_was_logged_of_it_is_logged_again(
    tiny_copy: Callable[..., Path],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(logging.getLogger("sbertkit"), "propagate", True)
    model = tiny_copy("bert", "e5-small")
    load(model).export_folder()
    first = [record.getMessage() for record in caplog.records]
    caplog.clear()
    assert is_known(model)
    assert [record.getMessage() for record in caplog.records] == first
    assert len(first) == 2  # no pooling, known prompts


def test_a_gpu_that_may_be_there_is_left_to_torch(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cached_runtime, "may_have_gpu", lambda: True)
    assert not is_known(folder, device="auto")
    assert is_known(folder, device="cpu")


# --- what only torch can do


def test_what_only_torch_can_do_loads_it(folder: Path, tmp_path: Path) -> None:
    exact = load(folder, backend="torch")
    for work in (
        lambda encoder: encoder.torch,
        lambda encoder: encoder.save(tmp_path / "saved"),
        lambda encoder: encoder.export(tmp_path / "export"),
        lambda encoder: encoder.export_folder("int8"),
        lambda encoder: encoder.variant(encoder.torch.network.pooling, []),
    ):
        encoder = load(folder)
        work(encoder)
        assert encoder._runtime._torch is not None  # type: ignore[union-attr]
        assert encoder.fingerprint == exact.fingerprint
        np.testing.assert_allclose(encoder.encode(TEXTS), exact.encode(TEXTS), atol=1e-5)
    encoder = load(folder)
    encoder.max_tokens = exact.max_tokens = 8
    assert encoder.fingerprint == exact.fingerprint
    np.testing.assert_allclose(encoder.encode("many " * 99), exact.encode("many " * 99), atol=1e-5)


def test_weights_that_are_changed_in_place_change_its_vectors(folder: Path) -> None:
    import torch

    encoder = load(folder)
    before = encoder.encode(TEXTS)
    with torch.no_grad():
        for tensor in encoder.torch.network.transformer.parameters():
            tensor.add_(0.1 * torch.ones_like(tensor))
    encoder.torch.weights_changed()
    assert np.abs(encoder.encode(TEXTS) - before).max() > 1e-3
    assert encoder.fingerprint != load(folder).fingerprint


def test_a_model_that_changed_meanwhile_is_refused(folder: Path) -> None:
    encoder = load(folder)
    flip_weight(folder / "model.safetensors")
    with pytest.raises(InputError, match="was changed since it was loaded; load it again"):
        encoder.save(folder.with_name("saved"))


def test_a_copy_is_as_good(folder: Path) -> None:
    encoder = load(folder)
    expected = encoder.encode(TEXTS)
    for again in (copy.deepcopy(encoder), pickle.loads(pickle.dumps(encoder))):
        np.testing.assert_array_equal(again.encode(TEXTS), expected)
        assert again.torch.fingerprint == encoder.fingerprint


# --- what is in the cache


def test_a_small_job_makes_a_model_known_whose_export_is_there(folder: Path, cache: Path) -> None:
    shutil.rmtree(cache / "models")
    assert not is_known(folder)  # nothing was encoded
    found = load(folder).encode("one text")
    assert is_known(folder)
    np.testing.assert_allclose(load(folder).encode("one text"), found, atol=1e-5)


@pytest.mark.parametrize("place", ["exports/*/encoder.onnx", "exports/*/tokenizer.json",
                                   "exports/*/export.json", "models/*.json"])  # fmt: skip
@pytest.mark.parametrize("damage", ["flipped", "empty", "gone", "others may write", "a link"])
def test_whatever_is_damaged_is_made_again(
    folder: Path, cache: Path, place: str, damage: str
) -> None:
    (path,) = cache.glob(place)
    if damage == "flipped":
        flip(path, len(path.read_bytes()) // 2)
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "gone":
        path.unlink()
    elif damage == "others may write":
        path.chmod(0o666)
    else:
        path.rename(folder.parent / "elsewhere")
        path.symlink_to(folder.parent / "elsewhere")
    assert not is_known(folder)
    found = load(folder).encode(TEXTS)
    np.testing.assert_allclose(found, by_torch(folder), atol=1e-5)
    assert is_known(folder) or (place, damage) == ("models/*.json", "a link")


def test_another_file_beside_the_export_is_not_trusted(folder: Path, cache: Path) -> None:
    (export,) = (cache / "exports").iterdir()
    (export / "weights.data").write_bytes(b"outside")
    assert not is_known(folder)
    export_files = load(folder).export_folder()
    assert {path.name for path in export_files.iterdir()} == set(EXPORT_FILES)
    assert is_known(folder)


def test_an_export_that_gives_other_vectors_does_not_serve(
    folder: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(cache / "models")
    encoder = load(folder)
    monkeypatch.setattr(
        torch_runtime, "as_rows", lambda rows: known.as_rows(np.roll(rows, 1, axis=0))
    )
    encoder.export_folder()
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache.parent))
    assert not is_known(folder)


def test_weights_changed_in_silence_are_not_taken_for_those_of_the_files(
    folder: Path, cache: Path
) -> None:
    import torch

    shutil.rmtree(cache)
    encoder = load(folder)
    with torch.no_grad():
        next(encoder.torch.network.parameters()).mul_(2)
    encoder.export_folder()
    assert not is_known(folder)


def test_files_that_changed_while_they_were_loaded_are_not_taken_for_the_model(
    folder: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(cache)
    before = (folder / "model.safetensors").read_bytes()
    loaded = torch_runtime.load_torch_model

    def change_and_load(*arguments: Any, **options: Any) -> Any:
        flip_weight(folder / "model.safetensors")
        return loaded(*arguments, **options)

    monkeypatch.setattr(torch_runtime, "load_torch_model", change_and_load)
    load(folder).export_folder()
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache.parent))
    assert not is_known(folder)
    (folder / "model.safetensors").write_bytes(before)
    assert not is_known(folder)


@pytest.mark.parametrize("what", ["models", "hashes", "exports"])
def test_where_nothing_can_be_kept_torch_serves(
    folder: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    shutil.rmtree(cache)
    cache.mkdir()
    (cache / what).write_text("a file where the folder should be")
    encoder = load(folder)
    encoder.export_folder()
    assert is_known(folder) == (what == "hashes")
    np.testing.assert_allclose(load(folder).encode(TEXTS), by_torch(folder), atol=1e-5)


def test_a_full_disk_is_only_a_missed_speed_up(
    folder: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise StorageError("no space left on the disk")

    shutil.rmtree(cache / "models")
    for module in ("exports.known", "file_hashes"):
        monkeypatch.setattr(f"sbertkit.encoder.{module}.staged_file", full)
    np.testing.assert_allclose(load(folder).encode(TEXTS), by_torch(folder), atol=1e-5)


_FILL = """
import sys
from sbertkit import Encoder
print(Encoder.load(sys.argv[1], device="cpu").export_folder())
"""


def test_processes_may_fill_the_cache_at_once(folder: Path, cache: Path) -> None:
    shutil.rmtree(cache)
    command = [sys.executable, "-c", _FILL, str(folder)]
    processes = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    ended = [process.communicate(timeout=300) for process in processes]
    (export,) = (cache / "exports").iterdir()
    assert ended == [(f"{export}\n", "")] * 3
    assert is_known(folder)
