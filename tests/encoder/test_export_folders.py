"""Exported folders that others made: hashes that are right, and all else wrong."""

import hashlib
import json
import os
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from sbertkit.encoder import Encoder
from sbertkit.errors import InputError

TEXTS = ["A kettle sings.", "two goats"]
BACKENDS = ["onnx", *(["openvino"] if find_spec("openvino") else [])]

Change = Callable[[onnx.ModelProto], None]


@pytest.fixture(scope="module")
def made(tiny_bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "export"
    Encoder.load(tiny_bert, pooling="mean", device="cpu").export(folder)
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    copied = tmp_path / "export"
    copied.mkdir()
    for file in made.iterdir():
        (copied / file.name).write_bytes(file.read_bytes())
    return copied


def seal(folder: Path, **changes: Any) -> None:
    """Changes what the folder says of itself, and makes all hashes right."""
    content = {**json.loads((folder / "export.json").read_text()), **changes}
    del content["sha256"]
    if "files" not in changes:
        content["files"] = {
            name: hashlib.sha256((folder / name).read_bytes()).hexdigest()
            for name in ("encoder.onnx", "tokenizer.json")
        }
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
    content["sha256"] = hashlib.sha256(canonical).hexdigest()
    (folder / "export.json").write_text(json.dumps(content, indent=2) + "\n")


def refusal(folder: Path, **options: str) -> str:
    with pytest.raises(InputError) as refused:
        Encoder.load(folder, **options).encode(TEXTS)  # type: ignore[arg-type]
    message = str(refused.value)
    assert "\n" not in message
    assert str(folder) in message
    return message


# --- what it says of itself

WRONG: dict[str, list[Any]] = {
    "fingerprint": ["", "x" * 64],
    "precision": ["fp64", "\x1b[31m"],
    "pooling": ["median"],
    "dim": [-1, 0, 16, 31, 33, 65_536, 10**12, 10**30],
    "max_tokens": [-5, 0, 1, 2],
    "prompts": [{"evil": "x"}, {"query": None}, {"query": 5}],
    "padding_side": ["top"],
    "truncation_side": ["top"],
    "pad_id": [-1, 10**6, 2**31, 2**32, 10**30],
    "fallback_token_id": [-1, 10**6, 2**32 - 1],
    "min_cosine": [2, -(10**9)],
    "files": [{}, {"encoder.onnx": "0" * 64}, {"../encoder.onnx": "0" * 64}, {"/dev/zero": "0"}],
    "format": [0, -1, 1.5, "1", None, True],
}
FIELDS = [
    "fingerprint", "precision", "model", "pooling", "normalizes", "dim", "max_tokens", "prompts",
    "padding_side", "pad_id", "fallback_token_id", "uses_token_types", "truncation_side",
    "min_cosine", "versions", "files", "format",
]  # fmt: skip
TYPES: dict[str, list[Any]] = {name: [[], [1], {"a": []}, -1.5] for name in FIELDS}
TYPES["min_cosine"].pop()
for _name in set(FIELDS) - {"max_tokens"}:
    TYPES[_name].append(None)
for _name in set(FIELDS) - {"model", "pooling", "precision", "fingerprint", "padding_side"}:
    TYPES[_name].append("x")


@pytest.mark.parametrize("field", FIELDS)
def test_each_field_is_checked_before_it_is_used(folder: Path, field: str) -> None:
    for value in [*TYPES[field], *WRONG.get(field, [])]:
        seal(folder, **{field: value})
        message = refusal(folder)
        assert "export the encoder again" in message, value
        assert field in message or "vectors of shape" in message or "format" in message, value
    seal(folder)
    content = json.loads((folder / "export.json").read_text())
    assert set(content) == {*FIELDS, "sha256"}
    del content[field]
    (folder / "export.json").write_text(json.dumps(content))
    refusal(folder)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"[]",
        b"null",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"format": 1, "sha256": NaN}',
        b'{"format": ' + b"9" * 10_000 + b"}",
    ],
    ids=["empty", "list", "null", "bytes", "deep list", "deep object", "NaN", "digits"],
)
def test_what_is_no_record_is_refused(folder: Path, raw: bytes) -> None:
    (folder / "export.json").write_bytes(raw)
    assert "export.json" in refusal(folder)


def test_a_name_too_long_for_a_path_is_no_export() -> None:
    for name in ("x" * 5_000, "nul\0byte"):
        with pytest.raises(InputError):
            Encoder.load(name)


# --- its files


@pytest.mark.parametrize("name", ["encoder.onnx", "tokenizer.json", "export.json"])
@pytest.mark.parametrize("kind", ["link", "fifo", "device", "folder"])
def test_only_regular_files_are_read(folder: Path, made: Path, name: str, kind: str) -> None:
    if name == "export.json" and kind != "link":
        pytest.skip("then it is no exported folder")
    (folder / name).unlink()
    if kind == "link":
        (folder / name).symlink_to(made / name)
    elif kind == "fifo":
        os.mkfifo(folder / name)
    elif kind == "device":
        (folder / name).symlink_to("/dev/zero")
    else:
        (folder / name).mkdir()
    assert name in refusal(folder)


def test_a_file_is_not_read_if_it_is_larger_than_any_can_be(folder: Path) -> None:
    for name, limit in (("encoder.onnx", 2**31), ("tokenizer.json", 2**28)):
        whole = (folder / name).read_bytes()
        os.truncate(folder / name, limit + 1)
        assert "bytes; expected at most" in refusal(folder)
        (folder / name).write_bytes(whole)
    Encoder.load(folder)


@pytest.mark.parametrize(
    "raw",
    [
        b"{}",
        b"\xff" * 100,
        b'{"version": "1.0", "model": {"type": "WordPiece"}}',
        b'{"version": "1.0", "added_tokens": [], "model": {"type": "WordLevel", "vocab": {}, '
        b'"unk_token": "a"}}',
        b"[" * 100_000,
    ],
)
def test_a_broken_tokenizer_is_refused(folder: Path, raw: bytes) -> None:
    (folder / "tokenizer.json").write_bytes(raw)
    seal(folder)
    refusal(folder)


def test_a_changed_byte_of_the_tokenizer_is_refused_or_harmless(folder: Path) -> None:
    whole = (folder / "tokenizer.json").read_bytes()
    generator = np.random.default_rng(0)
    for place in generator.integers(0, len(whole), 40):
        changed = bytearray(whole)
        changed[place] = generator.integers(0, 256)
        (folder / "tokenizer.json").write_bytes(bytes(changed))
        seal(folder)
        try:
            vectors = Encoder.load(folder).encode(TEXTS)
        except InputError:
            continue
        assert vectors.shape == (2, 32)


# --- the ONNX model


def change_model(folder: Path, change: Change) -> None:
    model = onnx.load(folder / "encoder.onnx")
    change(model)
    (folder / "encoder.onnx").write_bytes(model.SerializeToString())
    seal(folder)


def _end(model: onnx.ModelProto, node: onnx.NodeProto, kind: int = TensorProto.FLOAT) -> None:
    """Puts a node between the vectors and what the model gives."""
    name = model.graph.output[0].name
    for other in model.graph.node:
        for place, output in enumerate(other.output):
            if output == name:
                other.output[place] = "vectors"
    node.output[0] = name
    model.graph.node.append(node)
    del model.graph.output[:]
    model.graph.output.append(helper.make_tensor_value_info(name, kind, None))


def halved(model: onnx.ModelProto) -> None:
    for name, values in (("starts", [0]), ("ends", [16]), ("axes", [1])):
        model.graph.initializer.append(numpy_helper.from_array(np.array(values), name))
    _end(model, helper.make_node("Slice", ["vectors", "starts", "ends", "axes"], ["x"]))


def one_row(model: onnx.ModelProto) -> None:
    _end(model, helper.make_node("ReduceMean", ["vectors"], ["x"], axes=[0], keepdims=1))


def whole_numbers(model: onnx.ModelProto) -> None:
    _end(model, helper.make_node("Cast", ["vectors"], ["x"], to=TensorProto.INT64), 7)


def undefined(model: onnx.ModelProto) -> None:
    _end(model, helper.make_node("Log", ["negative"], ["x"]))
    model.graph.node.insert(
        len(model.graph.node) - 1, helper.make_node("Sub", ["vectors", "large"], ["negative"])
    )
    model.graph.initializer.append(numpy_helper.from_array(np.array(9, np.float32), "large"))


def another_input(model: onnx.ModelProto) -> None:
    model.graph.input.append(helper.make_tensor_value_info("evil", TensorProto.INT64, ["a", "b"]))


def second_output(model: onnx.ModelProto) -> None:
    model.graph.output.append(helper.make_tensor_value_info("evil", TensorProto.INT64, ["a", "b"]))
    model.graph.node.append(helper.make_node("Identity", ["input_ids"], ["evil"]))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("change", [halved, one_row, undefined, another_input, second_output])
def test_a_model_that_gives_something_else_is_refused(
    folder: Path, change: Change, backend: str
) -> None:
    change_model(folder, change)
    refusal(folder, backend=backend)


def test_numbers_of_another_kind_are_refused(folder: Path) -> None:
    change_model(folder, whole_numbers)
    assert "int64" in refusal(folder, backend="onnx")


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("place", ["weights.bin", "sub/weights.bin", "../weights.bin", "/dev/zero"])
def test_tensors_in_files_that_nobody_hashed_are_refused(
    folder: Path, backend: str, place: str
) -> None:
    def move_out(model: onnx.ModelProto) -> None:
        tensor = max(model.graph.initializer, key=lambda one: len(one.raw_data))
        if not place.startswith("/"):
            (folder / place).parent.mkdir(exist_ok=True)
            (folder / place).write_bytes(tensor.raw_data)
        size = len(tensor.raw_data)
        onnx.external_data_helper.set_external_data(tensor, place, 0, size)
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL

    change_model(folder, move_out)
    assert "tensors in other files" in refusal(folder, backend=backend)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("is_nested", [False, True])
def test_an_operator_that_may_run_for_ever_is_refused(
    folder: Path, backend: str, is_nested: bool
) -> None:
    """Some libraries run it while they load the model."""

    def add_loop(model: onnx.ModelProto) -> None:
        body = helper.make_graph(
            [helper.make_node("Identity", ["go"], ["on"])],
            "body",
            [
                helper.make_tensor_value_info("i", TensorProto.INT64, []),
                helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            ],
            [helper.make_tensor_value_info("on", TensorProto.BOOL, [])],
        )
        loop = helper.make_node("Loop", ["times", "yes"], [], body=body)
        if is_nested:
            branch = helper.make_graph([loop], "branch", [], [])
            loop = helper.make_node("If", ["yes"], [], then_branch=branch, else_branch=branch)
        model.graph.node.append(loop)
        for name, value in (("times", np.array(2**62)), ("yes", np.array(True))):
            model.graph.initializer.append(numpy_helper.from_array(value, name))

    change_model(folder, add_loop)
    assert "a loop" in refusal(folder, backend=backend)


def test_what_is_refused_is_found_however_it_is_written() -> None:
    from sbertkit.encoder.exports.manifest import _refused

    for key in (b"\x0a\x08", b"\x8a\x00\x08", b"\x0a\x88\x00", b"\x8a\x80\x00\x88\x80\x80\x00"):
        for before in (0, 1, 30):
            found = _refused(b"x" * before + key + b"location\x12\x01w")
            assert found is not None
            assert "tensors in other files" in found
    for key in (b"\x22\x04Loop", b"\x22\x04Scan", b"\xa2\x80\x00\x84\x00Loop"):
        assert _refused(b"xyz" + key + b"2") is not None
    for other in (b"\x0a\x12/embed/location_ids", b"location", b"\x0a\x0aallocation", b""):
        assert _refused(other) is None
    for other in (b"\x22\x05Loops", b"Loop", b"\x0a\x04Loop", b"Scanner"):
        assert _refused(other) is None


def test_a_name_with_the_word_is_no_tensor_elsewhere(folder: Path) -> None:
    expected = Encoder.load(folder).encode(TEXTS)

    def rename(model: onnx.ModelProto) -> None:
        model.graph.node[0].name = "/embeddings/location_of/location"

    change_model(folder, rename)
    np.testing.assert_array_equal(Encoder.load(folder).encode(TEXTS), expected)


# --- where it lies


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_folders_name_need_not_be_valid_unicode(folder: Path, backend: str) -> None:
    expected = Encoder.load(folder, backend=backend).encode(TEXTS)
    other = folder.with_name(os.fsdecode(b"caf\xe9"))
    try:
        folder.rename(other)
    except OSError:
        pytest.skip("the file system takes Unicode alone")
    np.testing.assert_array_equal(Encoder.load(other, backend=backend).encode(TEXTS), expected)


def test_a_model_in_such_a_folder_is_exported(
    tiny_copy: Callable[..., Path], tmp_path: Path
) -> None:
    encoder = Encoder.load(tiny_copy(), pooling="mean", device="cpu")
    object.__setattr__(encoder.options, "model", str(tmp_path / os.fsdecode(b"caf\xe9")))
    encoder.export(tmp_path / "export")
    np.testing.assert_allclose(
        Encoder.load(tmp_path / "export").encode(TEXTS), encoder.encode(TEXTS), atol=1e-5
    )


def test_an_export_tells_of_no_folders_of_this_machine(tiny_bert: Path, tmp_path: Path) -> None:
    Encoder.load(tiny_bert, pooling="mean").export(tmp_path / "x")
    entry = json.loads((tmp_path / "x" / "export.json").read_text())
    assert entry["model"] == tiny_bert.name
    assert str(tiny_bert.parent) not in json.dumps(entry)
