"""Exports: equal to torch, whole or refused, kept once, loaded without torch."""

import copy
import dataclasses
import json
import logging
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from test_pooling import POOLINGS

from sbertkit.encoder import Encoder, encoding, torch_runtime
from sbertkit.encoder.backends.libraries import import_library
from sbertkit.encoder.backends.openvino import OpenvinoBackend
from sbertkit.encoder.exports import auto_precision, probes
from sbertkit.encoder.exports.cache import _temporary_folder, cached_backend, cached_folder
from sbertkit.encoder.exports.chosen_precision import ChosenPrecision, keep_choice
from sbertkit.encoder.exports.manifest import MODEL_FILE, read_manifest, write_manifest
from sbertkit.encoder.whitening import post_processed
from sbertkit.errors import InputError, MissingDependency, NewerFormat, StorageError
from sbertkit.user_cache import is_private

EXPORT_BACKENDS = ["onnx", *(["openvino"] if find_spec("openvino") else [])]
needs_openvino = pytest.mark.skipif(
    find_spec("openvino") is None, reason="OpenVINO is not installed"
)

TEXTS = [
    "",
    "a",
    "The kettle on the stove sings.",
    *(f"number {number} " + "and one more " * (number % 7) for number in range(40)),
    "很短",
    "long " * 300,
]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    _temporary_folder.cache_clear()
    return tmp_path / "cache" / "sbertkit"


def damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))


# --- the same vectors


@pytest.mark.parametrize("pooling", POOLINGS)
def test_each_pooling_is_inside(tiny_bert: Path, tmp_path: Path, pooling: str) -> None:
    encoder = Encoder.load(tiny_bert, pooling=pooling, device="cpu")
    manifest = encoder.export(tmp_path / "export")
    assert manifest.min_cosine > 0.99999
    loaded = Encoder.load(tmp_path / "export")
    assert loaded.pooling == pooling
    assert loaded.fingerprint == encoder.fingerprint
    assert (loaded.dim, loaded.max_tokens) == (encoder.dim, encoder.max_tokens)
    expected = encoder.encode(TEXTS)
    np.testing.assert_allclose(loaded.encode(TEXTS), expected, atol=1e-5)
    np.testing.assert_allclose(loaded.encode(TEXTS, batch_tokens=64), expected, atol=1e-5)
    np.testing.assert_allclose(loaded.encode(TEXTS[2]), expected[2], atol=1e-5)


@pytest.mark.parametrize(
    "architecture", ["albert", "bert", "clip", "distilbert", "electra", "mpnet", "roberta", "t5"]
)
def test_families_that_are_exported(
    tiny_folder: Callable[[str], Path], tmp_path: Path, architecture: str
) -> None:
    encoder = Encoder.load(tiny_folder(architecture), pooling="mean", device="cpu")
    encoder.export(tmp_path / "export")
    for backend in EXPORT_BACKENDS:
        loaded = Encoder.load(tmp_path / "export", backend=backend)
        np.testing.assert_allclose(loaded.encode(TEXTS), encoder.encode(TEXTS), atol=1e-5)
        np.testing.assert_allclose(loaded.encode(TEXTS[4]), encoder.encode(TEXTS[4]), atol=1e-5)


def test_an_export_that_fails_is_no_export(
    tiny_folder: Callable[[str], Path], tmp_path: Path
) -> None:
    """Longformer lays its windows out by the length that was traced."""
    encoder = Encoder.load(tiny_folder("longformer"), pooling="mean", device="cpu")
    with pytest.raises(InputError, match="use backend torch"):
        encoder.export(tmp_path / "export")
    assert not (tmp_path / "export").exists()


def test_post_processing_prompts_and_limit_are_inside(tiny_bert: Path, tmp_path: Path) -> None:
    prompts = {"query": "find: ", "document": "read: "}
    encoder = Encoder.load(tiny_bert, pooling="mean", max_tokens=24, prompts=prompts, device="cpu")
    encoder = post_processed(encoder, "whiten", TEXTS)
    encoder.export(tmp_path / "export")
    loaded = Encoder.load(tmp_path / "export")
    np.testing.assert_allclose(loaded.encode(TEXTS), encoder.encode(TEXTS), atol=1e-4)
    query = loaded.encode(TEXTS[2:5], kind="query")
    np.testing.assert_allclose(query, encoder.encode(TEXTS[2:5], kind="query"), atol=1e-4)
    reports = [one.encode_with_report(TEXTS).report for one in (loaded, encoder)]
    assert reports[0].truncated == reports[1].truncated


def test_lower_precisions_are_near(tiny_bert: Path) -> None:
    exact = Encoder.load(tiny_bert, pooling="mean", device="cpu").encode(TEXTS)
    for backend, precision, lowest in (
        ("torch", "bf16", 0.99),
        *([("openvino", "bf16", 0.99)] if "openvino" in EXPORT_BACKENDS else []),
        *((backend, "int8", 0.97) for backend in ("auto", *EXPORT_BACKENDS)),
    ):
        encoder = Encoder.load(
            tiny_bert, pooling="mean", device="cpu", backend=backend, precision=precision
        )
        found = encoder.encode(TEXTS)
        cosines = (found * exact).sum(axis=1)
        assert lowest < cosines.min() < 1 - 1e-7
        assert encoder.precision == precision


def test_a_lower_precision_leaves_the_model_as_it_is(tiny_bert: Path, tmp_path: Path) -> None:
    exact = Encoder.load(tiny_bert, pooling="mean", device="cpu")
    lowered = Encoder.load(tiny_bert, pooling="mean", device="cpu", precision="bf16")
    lowered.encode(TEXTS)
    assert lowered.fingerprint == exact.fingerprint
    lowered.save(tmp_path / "saved")
    again = Encoder.load(tmp_path / "saved", device="cpu")
    np.testing.assert_array_equal(again.encode(TEXTS), exact.encode(TEXTS))


# --- the folder


@pytest.fixture
def exported(tiny_encoder: Encoder, tmp_path: Path) -> Path:
    tiny_encoder.export(tmp_path / "export")
    return tmp_path / "export"


@pytest.mark.parametrize("name", ["encoder.onnx", "tokenizer.json", "export.json"])
def test_a_damaged_or_lost_file_is_refused(exported: Path, name: str) -> None:
    whole = (exported / name).read_bytes()
    damage(exported / name)
    with pytest.raises(InputError, match="export the encoder again") as refusal:
        Encoder.load(exported)
    assert name in str(refusal.value)
    (exported / name).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="export the encoder again"):
        Encoder.load(exported)
    if name != "export.json":
        (exported / name).unlink()
        with pytest.raises(InputError, match="missing or damaged"):
            Encoder.load(exported)


def test_a_newer_format_is_refused_by_name(exported: Path) -> None:
    path = exported / "export.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 9}))
    with pytest.raises(NewerFormat, match="format 9; this sbertkit reads format 1"):
        Encoder.load(exported)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("pooling", "cls"),
        ("normalize", False),
        ("max_tokens", 7),
        ("backend", "torch"),
        ("precision", "int8"),
        ("prompts", {"query": "q: "}),
    ],
)
def test_an_export_is_what_it_is(exported: Path, name: str, value: object) -> None:
    with pytest.raises(InputError, match=f"exported encoder, whose {name}"):
        Encoder.load(exported, **{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("backend", EXPORT_BACKENDS)
def test_copies_in_memory_give_the_same_vectors(exported: Path, backend: str) -> None:
    loaded = Encoder.load(exported, backend=backend)
    expected = loaded.encode(TEXTS)
    for copied in (pickle.loads(pickle.dumps(loaded)), copy.deepcopy(loaded)):
        assert copied.fingerprint == loaded.fingerprint
        np.testing.assert_array_equal(copied.encode(TEXTS), expected)


def test_what_needs_torch_is_refused(exported: Path, tmp_path: Path) -> None:
    loaded = Encoder.load(exported)
    for ask in (
        lambda: loaded.save(tmp_path / "saved"),
        lambda: loaded.torch.postprocessors,
        lambda: loaded.torch.make_trainable(),
        lambda: loaded.export(tmp_path / "again"),
    ):
        with pytest.raises(InputError, match="is an exported encoder"):
            ask()
    assert not (tmp_path / "saved").exists()
    assert not (tmp_path / "again").exists()


def test_a_folder_with_something_else_is_left_alone(tiny_encoder: Encoder, exported: Path) -> None:
    tiny_encoder.export(exported, precision="int8")
    assert read_manifest(exported).precision == "int8"
    (exported / "letter.txt").write_text("mine")
    before = (exported / MODEL_FILE).read_bytes()
    with pytest.raises(InputError, match=r"holds letter\.txt"):
        tiny_encoder.export(exported)
    assert (exported / MODEL_FILE).read_bytes() == before
    with pytest.raises(InputError, match="is a file"):
        tiny_encoder.export(exported / "letter.txt")


def test_the_ranges_of_8_bits_come_from_the_texts_that_are_given(
    tiny_encoder: Encoder, tmp_path: Path
) -> None:
    exact = tiny_encoder.encode(TEXTS[2:40])

    def error(name: str, calibrate: list[str] | None) -> float:
        tiny_encoder.export(tmp_path / name, precision="int8", calibrate=calibrate)
        return float(np.abs(Encoder.load(tmp_path / name).encode(TEXTS[2:40]) - exact).mean())

    assert error("theirs", TEXTS[2:40]) < error("others", ["一二三"])
    assert error("default", None) < 0.05
    with pytest.raises(InputError, match="calibrate is for precision int8, not for fp32"):
        tiny_encoder.export(tmp_path / "x", calibrate=["a"])
    with pytest.raises(InputError, match="corpus with texts"):
        tiny_encoder.export(tmp_path / "x", precision="int8", calibrate=[" "])
    assert not (tmp_path / "x").exists()


@needs_openvino
def test_8_bits_are_left_to_onnxruntime_where_openvino_computes_something_else(
    tiny_bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        OpenvinoBackend,
        "embed",
        lambda _, batch: np.ones((len(batch.attention_mask), 32), np.float32),
    )
    encoder = Encoder.load(tiny_bert, pooling="mean", device="cpu", precision="int8")
    encoder.encode(TEXTS)
    assert type(encoder._runtime.backend(1)).__name__ == "OnnxBackend"
    asked = Encoder.load(
        tiny_bert, pooling="mean", device="cpu", precision="int8", backend="openvino"
    )
    with pytest.raises(InputError, match=r"something else than torch[^\n]*use precision bf16"):
        asked.encode(TEXTS)


def test_8_bits_that_change_too_much_are_refused(
    tiny_encoder: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(probes.MIN_COSINE, "int8", 0.99999999)
    with pytest.raises(InputError, match=r"lowest cosine 0\.9[^\n]*use precision bf16 or fp32"):
        tiny_encoder.export(tmp_path / "x", precision="int8")
    assert not (tmp_path / "x").exists()


def test_neither_torch_nor_transformers_is_loaded(exported: Path) -> None:
    script = (
        "import sys\n"
        "from sbertkit import Encoder\n"
        f"print(Encoder.load({str(exported)!r}).encode(['a kettle', 'a goat']).shape)\n"
        "heavy = ('torch', 'transformers', 'sentence_transformers', 'scipy', 'huggingface_hub')\n"
        "print(sorted(set(heavy) & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["(2, 32)", "[]"]


# --- exports in the cache and what auto takes


def exports(cache: Path) -> list[Path]:
    return sorted((cache / "exports").glob("*")) if (cache / "exports").exists() else []


def test_an_export_is_made_once(
    tiny_bert: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Encoder.load(tiny_bert, pooling="mean", device="cpu", backend="onnx")
    expected = first.encode(TEXTS)
    (made,) = exports(cache)
    monkeypatch.setattr("sbertkit.encoder.exports.cache.write_export", pytest.fail)
    again = Encoder.load(tiny_bert, pooling="mean", device="cpu", backend="onnx")
    np.testing.assert_array_equal(again.encode(TEXTS), expected)
    assert exports(cache) == [made]


def test_a_damaged_export_is_made_again(tiny_encoder: Encoder, cache: Path) -> None:
    cached_backend(tiny_encoder.torch, "fp32")
    (made,) = exports(cache)
    damage(made / MODEL_FILE)
    cached_backend(tiny_encoder.torch, "fp32")
    assert read_manifest(made).fingerprint == tiny_encoder.fingerprint


@pytest.fixture
def other_encoder(tiny_folder: Callable[[str], Path]) -> Encoder:
    return Encoder.load(tiny_folder("electra"), pooling="mean", device="cpu")


def forged(cache: Path, encoder: Encoder, other: Encoder, **claims: object) -> Path:
    """Puts another encoder's export at an encoder's place in the cache."""
    place = cached_folder(encoder.torch, "fp32")
    shutil.rmtree(place)
    other.export(place)
    if claims:
        manifest = dataclasses.replace(read_manifest(place), **claims)  # type: ignore[arg-type]
        write_manifest(place, manifest)
    assert exports(cache) == [place]
    return place


@pytest.mark.parametrize("backend", EXPORT_BACKENDS)
@pytest.mark.parametrize("is_forged", [False, True])
def test_the_export_of_another_encoder_is_not_taken(
    tiny_bert: Path, cache: Path, other_encoder: Encoder, backend: str, is_forged: bool
) -> None:
    encoder = Encoder.load(tiny_bert, pooling="mean", device="cpu", backend=backend)
    claims = {"fingerprint": encoder.fingerprint, "dim": encoder.dim} if is_forged else {}
    place = forged(cache, encoder, other_encoder, **claims)
    exact = Encoder.load(tiny_bert, pooling="mean", device="cpu", backend="torch")
    np.testing.assert_allclose(encoder.encode(TEXTS), exact.encode(TEXTS), atol=1e-5)
    assert read_manifest(place).fingerprint == encoder.fingerprint
    assert exports(cache) == [place]


@pytest.mark.skipif(os.name == "nt", reason="POSIX permissions")
@pytest.mark.parametrize("name", ["", "encoder.onnx", "tokenizer.json", "export.json"])
def test_what_others_may_write_to_is_made_again(
    tiny_encoder: Encoder, cache: Path, name: str, caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(logging.getLogger("sbertkit"), "propagate", True)
    place = cached_folder(tiny_encoder.torch, "fp32")
    (place / name).chmod(0o777)
    (place / "planted").touch()
    assert cached_folder(tiny_encoder.torch, "fp32") == place
    assert not (place / "planted").exists()
    assert all(is_private(path) for path in (place, *place.iterdir()))
    assert [record.message for record in caplog.records] == [
        f"the export in {place} may have been written by others, or not whole; it is made again"
    ]
    assert cached_folder(tiny_encoder.torch, "fp32") == place
    assert len(caplog.records) == 1


def test_a_link_at_its_place_is_left_alone(
    tiny_encoder: Encoder, cache: Path, tmp_path: Path
) -> None:
    place = cached_folder(tiny_encoder.torch, "fp32")
    place.rename(tmp_path / "elsewhere")
    place.symlink_to(tmp_path / "elsewhere")
    folder = cached_folder(tiny_encoder.torch, "fp32")
    assert folder.parent != cache / "exports"
    assert read_manifest(folder).fingerprint == tiny_encoder.fingerprint
    assert place.is_symlink()
    assert len(list((tmp_path / "elsewhere").iterdir())) == 3


@pytest.mark.skipif(os.name == "nt", reason="POSIX permissions")
@pytest.mark.parametrize("umask", [0o000, 0o002, 0o022])
def test_an_export_in_the_cache_serves_whatever_the_umask(
    tiny_encoder: Encoder, umask: int
) -> None:
    before = os.umask(umask)
    try:
        place = cached_folder(tiny_encoder.torch, "fp32")
        inode = (place / "encoder.onnx").stat().st_ino
        assert cached_folder(tiny_encoder.torch, "fp32") == place
        assert (place / "encoder.onnx").stat().st_ino == inode
    finally:
        os.umask(before)


@pytest.mark.parametrize(
    "content",
    [
        "[" * 100_000,
        '{"precision": "\\u001b[31mevil", "speed": 2.0, "cosine": 1.0}',
        '{"precision": "fp16", "speed": 2.0, "cosine": 1.0}',
        '{"precision": 5, "speed": "x", "cosine": []}',
        '{"precision": "bf16", "speed": -1, "cosine": 1.0}',
        '{"precision": "bf16", "speed": 2.0, "cosine": 0.5}',
        '{"precision": "bf16", "speed": NaN, "cosine": 1.0}',
        "[]",
        "",
    ],
)
def test_a_kept_precision_that_cannot_be_is_measured_again(
    tiny_bert: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    found = ChosenPrecision("fp32", 1.0, 1.0)
    monkeypatch.setattr(auto_precision, "_measure", lambda *_: found)

    def chosen() -> str:
        return Encoder.load(tiny_bert, pooling="mean", device="cpu", precision="auto").precision

    assert chosen() == "fp32"
    (kept,) = (cache / "precisions").glob("*.json")
    kept.write_text(content)
    assert chosen() == "fp32"
    found = ChosenPrecision("bf16", 2.0, 1.0)
    kept.chmod(0o666)
    assert chosen() == ("bf16" if os.name != "nt" else "fp32")


@pytest.mark.parametrize(
    ("backend", "possible"),
    [("torch", {"fp32", "bf16"}), ("onnx", {"fp32", "int8"})],
)
def test_the_kept_precision_is_one_of_the_backend_that_is_asked_for(
    tiny_bert: Path, cache: Path, backend: str, possible: set[str]
) -> None:
    loaded = Encoder.load(tiny_bert, pooling="mean", device="cpu")
    for precision in ("int8", "bf16"):
        found = ChosenPrecision(precision, 2.0, 1.0)
        keep_choice(found, loaded.fingerprint, "cpu", "auto")
        encoder = Encoder.load(
            tiny_bert, pooling="mean", device="cpu", precision="auto", backend=backend
        )
        assert encoder.precision in possible
        assert encoder.backend in (backend, "auto")


def test_auto_makes_no_export_for_a_small_job(
    tiny_bert: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch_runtime, "EXPORT_FROM", 30)
    encoder = Encoder.load(tiny_bert, pooling="mean", device="cpu")
    expected = encoder.encode(TEXTS[:29])
    assert not exports(cache)
    found = encoder.encode(TEXTS)
    assert len(exports(cache)) == 1
    np.testing.assert_allclose(found[:29], expected, atol=1e-5)
    by_torch = Encoder.load(tiny_bert, pooling="mean", device="cpu", backend="torch")
    np.testing.assert_allclose(found, by_torch.encode(TEXTS), atol=1e-5)


@needs_openvino
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_auto_takes_the_fastest_library_that_runs_the_export(
    tiny_bert: Path, monkeypatch: pytest.MonkeyPatch, precision: str
) -> None:
    monkeypatch.setattr(torch_runtime, "EXPORT_FROM", 30)

    def backend_of_a_job() -> str:
        encoder = Encoder.load(tiny_bert, pooling="mean", device="cpu", precision=precision)
        encoder.encode(TEXTS)
        return type(encoder._runtime.backend(1)).__name__

    assert backend_of_a_job() == "OpenvinoBackend"

    def broken(*_: object) -> None:
        raise InputError("OpenVINO cannot run this")

    monkeypatch.setattr(OpenvinoBackend, "_compile", broken)
    others = {"fp32": "OnnxBackend", "bf16": "TorchBackend"}
    assert backend_of_a_job() == others[precision]
    monkeypatch.undo()
    monkeypatch.setattr(torch_runtime, "EXPORT_FROM", 30)
    monkeypatch.setattr(
        OpenvinoBackend,
        "embed",
        lambda _, batch: np.ones((len(batch.attention_mask), 32), np.float32),
    )
    assert backend_of_a_job() == others[precision]  # which computes what torch computes


_SIGNAL_AFTER_TWO = """
import faulthandler, signal, sys
from pathlib import Path
from sbertkit.encoder.backends.openvino import OpenvinoBackend

faulthandler.enable()
first, second = (OpenvinoBackend(Path(sys.argv[1]), "fp32") for _ in range(2))
del first
del second
signal.signal(signal.SIGINT, lambda *_: print("handled"))
signal.raise_signal(signal.SIGINT)
"""


@needs_openvino
def test_signals_are_handled_when_several_models_have_come_and_gone(
    tiny_bert: Path, tmp_path: Path
) -> None:
    Encoder.load(tiny_bert, pooling="mean", device="cpu").export(tmp_path / "export")
    model_file = str(tmp_path / "export" / "encoder.onnx")
    ended = subprocess.run(
        [sys.executable, "-c", _SIGNAL_AFTER_TWO, model_file],
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout == "handled\n"


@needs_openvino
def test_auto_reads_for_a_middling_job_an_export_of_a_model_that_is_never_known(
    tiny_bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch_runtime, "CACHED_FROM", 20)

    def backend_for(texts: int) -> str:
        encoder = Encoder.load(tiny_bert, pooling="mean", device="cpu", trust_remote_code=True)
        return type(encoder._runtime.backend(texts)).__name__

    assert backend_for(25) == "TorchBackend"
    Encoder.load(tiny_bert, pooling="mean", device="cpu").export_folder()
    assert backend_for(19) == "TorchBackend"
    assert backend_for(20) == "OpenvinoBackend"


def test_the_backend_is_chosen_by_two_chunks_where_the_number_of_texts_is_not_known(
    tiny_bert: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that all chunks of a long job are run by one backend, whatever is in the cache."""
    monkeypatch.setattr(torch_runtime, "EXPORT_FROM", 30)
    monkeypatch.setattr(encoding, "_CHUNK_TEXTS", 20)
    encoder = Encoder.load(tiny_bert, pooling="mean", device="cpu")
    (first, *_) = encoder.start_run().vectors(text for text in TEXTS)
    assert exports(cache)
    shutil.rmtree(cache / "models")
    again = Encoder.load(tiny_bert, pooling="mean", device="cpu")
    (same, *_) = again.start_run().vectors(text for text in TEXTS)
    np.testing.assert_array_equal(first, same)


@pytest.mark.parametrize("kind", [InputError, StorageError])
def test_where_no_export_can_be_made_or_kept_auto_uses_torch(
    tiny_bert: Path, monkeypatch: pytest.MonkeyPatch, kind: type[Exception]
) -> None:
    def refuse(*_: object) -> None:
        raise kind("no export")

    monkeypatch.setattr(torch_runtime, "EXPORT_FROM", 1)
    monkeypatch.setattr("sbertkit.encoder.exports.cache.write_export", refuse)
    encoder = Encoder.load(tiny_bert, pooling="mean", device="cpu")
    assert encoder.encode(TEXTS).shape == (len(TEXTS), encoder.dim)
    asked = Encoder.load(tiny_bert, pooling="mean", device="cpu", backend="onnx")
    with pytest.raises(kind, match="no export"):
        asked.encode(TEXTS)


def test_changed_weights_are_not_run_from_an_old_export(
    tiny_bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    monkeypatch.setattr(torch_runtime, "EXPORT_FROM", 1)
    encoder = Encoder.load(tiny_bert, pooling="mean", device="cpu")
    before = encoder.encode(TEXTS)
    with torch.no_grad():
        for tensor in encoder.torch.network.parameters():
            tensor.add_(
                0.01 * torch.randn(tensor.shape, generator=torch.Generator().manual_seed(0))
            )
    encoder.torch.weights_changed()
    after = encoder.encode(TEXTS)
    assert np.abs(after - before).max() > 1e-3


def test_precision_auto_is_measured_once_and_logged(
    tiny_bert: Path, cache: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("sbertkit"), "propagate", True)
    encoder = Encoder.load(tiny_bert, pooling="mean", device="cpu", precision="auto")
    vectors = encoder.encode(TEXTS)
    (kept,) = (cache / "precisions").glob("*.json")
    found = json.loads(kept.read_text())
    assert encoder.precision == found["precision"]
    assert found["cosine"] >= 0.9995
    logged = [
        record.getMessage() for record in caplog.records if "precision auto" in record.message
    ]
    assert len(logged) == 1
    assert found["precision"] in logged[0]
    exact = Encoder.load(tiny_bert, pooling="mean", device="cpu").encode(TEXTS)
    assert (vectors * exact).sum(axis=1).min() > 0.995
    monkeypatch.setattr("sbertkit.encoder.exports.auto_precision._measure", pytest.fail)
    again = Encoder.load(tiny_bert, pooling="mean", device="cpu", precision="auto")
    assert again.precision == found["precision"]


def test_precision_auto_serves_where_nothing_can_be_kept(
    tiny_bert: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.parent.mkdir(parents=True)
    cache.write_text("a file where the folder should be")
    encoder = Encoder.load(tiny_bert, pooling="mean", device="cpu", precision="auto")
    assert encoder.encode(TEXTS).shape == (len(TEXTS), encoder.dim)
    assert encoder.precision in ("fp32", "bf16")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"backend": "torch", "precision": "int8"}, "fp32, bf16 or fp16, not in int8"),
        ({"backend": "openvino", "precision": "fp16"}, "fp32, bf16 or int8, not in fp16"),
        ({"backend": "onnx", "precision": "bf16"}, "fp32 or int8, not in bf16"),
        ({"precision": "fp16"}, "fp16 needs a GPU"),
        ({"backend": "tensorrt"}, "backend must be one of auto, torch, onnx, openvino"),
        ({"precision": "fp8"}, "precision must be one of fp32, bf16, fp16, int8, auto"),
    ],
)
def test_what_does_not_go_together_is_refused(
    tiny_bert: Path, options: dict[str, str], reason: str
) -> None:
    with pytest.raises(InputError, match=reason):
        Encoder.load(tiny_bert, pooling="mean", device="cpu", **options)  # type: ignore[arg-type]


def test_an_interruption_during_the_import_is_not_taken_for_a_missing_library(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Whatever arrives while an extension module is made comes out of it as the cause of this.
    def interrupted(_: str) -> None:
        raise ImportError("initialization failed") from SystemExit(143)

    monkeypatch.setattr("sbertkit.encoder.backends.libraries.import_module", interrupted)
    for name in ("onnx", "openvino"):
        with pytest.raises(SystemExit, match="143"):
            import_library(name)


@pytest.mark.parametrize("name", ["onnxruntime", "openvino"])
def test_a_library_that_is_missing_is_named_with_what_installs_it(
    tiny_bert: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    encoder = Encoder.load(
        tiny_bert, pooling="mean", device="cpu", backend=name.removesuffix("runtime")
    )
    encoder.export_folder()
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingDependency, match=rf"needs {name}: pip install .sbertkit\["):
        encoder.encode(TEXTS)
