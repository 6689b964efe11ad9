"""Model folders that are damaged or made to do harm: each loads, or is one refusal in one line."""

import json
import os
import resource
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import tiny_models
import torch
from safetensors.torch import load_file, save_file

from sbertkit.encoder import Encoder
from sbertkit.errors import InputError

WRONG: tuple[Any, ...] = (
    *(None, -1, 0, 1.5, True, 20_000, 10**12, 10**30, float("nan")),
    *("x", "../x", "\0", "y" * 5_000, [], [1, "a"], {"a": {"b": 1}}),
)
NO_DOCUMENTS = ("", "{", "null", "[]", '"x"', "1" * 5_000, "[" * 100_000, '{"a":' * 100_000, "\xff")
DELETED = object()


def places(content: Any, *before: str | int) -> Iterator[tuple[str | int, ...]]:
    """Where the values of a JSON document are, but for the tokens of a vocabulary."""
    found = content.items() if isinstance(content, dict) else enumerate(content[:1])
    for key, value in found:
        yield (*before, key)
        if isinstance(value, dict | list) and key not in ("vocab", "merges", "added_tokens"):
            yield from places(value, *before, key)


def changed(content: Any, place: tuple[str | int, ...], value: Any) -> Any:
    """A copy of a document with another value in one place."""
    copy = json.loads(json.dumps(content))
    parent = copy
    for key in place[:-1]:
        parent = parent[key]
    if value is DELETED:
        del parent[place[-1]]
    else:
        parent[place[-1]] = value
    return copy


def refusal_of(folder: Path) -> str | None:
    """Why a folder is refused; ``None`` if it gives vectors."""
    try:
        Encoder.load(folder, device="cpu").encode(["two bakers", "İ"])
    except InputError as no:
        return str(no)
    return None


def assert_loads_or_refuses(folder: Path) -> None:
    reason = refusal_of(folder)
    if reason is not None:
        assert "\n" not in reason
        assert folder.name in reason or "the model's" in reason


@pytest.fixture(scope="module")
def whole(tiny_folder: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of every kind of module, to be left as it is."""
    folder = shutil.copytree(tiny_folder("bert"), tmp_path_factory.mktemp("whole") / "bert")
    prompts = {"query": "q: ", "document": "d: "}
    modules = ("Dense", "LayerNorm", "Normalize")
    tiny_models.declare(folder, *modules, prompts=prompts, default_prompt_name="query")
    tiny_models.edit_json(folder / "config_sentence_transformers.json", similarity_fn_name="cosine")
    return folder


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    return shutil.copytree(whole, tmp_path / "bert")


@pytest.fixture
def little_memory() -> Iterator[None]:
    """Lets this process take a gigabyte more of address space, not tens of them."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + 2**30, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize(
    "name",
    [
        "modules.json",
        "config_sentence_transformers.json",
        "sentence_bert_config.json",
        "1_Pooling/config.json",
        "2_Dense/config.json",
        "3_LayerNorm/config.json",
        pytest.param("tokenizer_config.json", marks=pytest.mark.slow),
        pytest.param("config.json", marks=pytest.mark.slow),
        pytest.param("tokenizer.json", marks=pytest.mark.slow),
    ],
)
def test_a_wrong_value_in_any_field_is_no_traceback_and_takes_no_memory(
    folder: Path, name: str
) -> None:
    path = folder / name
    content = tiny_models.read_json(path)
    for place in places(content):
        for value in (*WRONG, DELETED):
            tiny_models.write_json(path, changed(content, place, value))
            assert_loads_or_refuses(folder)


@pytest.mark.parametrize("text", NO_DOCUMENTS)
def test_a_file_that_is_no_document_is_named(folder: Path, text: str) -> None:
    for path in sorted(folder.rglob("*.json")):
        content = path.read_bytes()
        path.write_bytes(text.encode("latin-1"))
        assert_loads_or_refuses(folder)
        path.write_bytes(content)


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("config.json", {"num_hidden_layers": 10**9}, "num_hidden_layers is 1,000,000,000"),
        ("config.json", {"num_hidden_layers": 900}, "asks for a model of more than .* tensors"),
        ("config.json", {"vocab_size": 10**10}, "asks for a model"),
        ("config.json", {"intermediate_size": 10**12}, "asks for a model"),
        ("config.json", {"num_labels": 10**12}, "num_labels is 1,000,000,000,000"),
        ("config.json", {"pad_token_id": 10**12}, "Padding_idx"),
        ("config.json", {"num_attention_heads": 0}, "ZeroDivisionError"),
        ("config.json", {"type_vocab_size": 0}, "the BertModel of .*bert gives no vector"),
        ("config.json", {"quantization_config": {"quant_method": "mxfp4"}}, "quantized weights"),
        ("config.json", {"_attn_implementation": "a/kernel"}, "for the library's own use"),
        ("tokenizer_config.json", {"tokenizer_class": "AutoModel"}, "cannot be loaded|tokenizer"),
        ("tokenizer_config.json", {"tokenizer_class": "RagTokenizer"}, "tokenizer_class"),
        ("2_Dense/config.json", {"out_features": 10**8}, "do not fit its settings in .*2_Dense"),
        ("2_Dense/config.json", {"in_features": -1}, "2_Dense.config.json: .*in_features"),
        ("3_LayerNorm/config.json", {"dimension": 10**11}, "do not fit its settings"),
        ("1_Pooling/config.json", {"pooling_mode": "attention"}, "1_Pooling.*unknown pooling"),
    ],
)
def test_settings_that_ask_for_what_the_files_do_not_have_are_refused(
    folder: Path, name: str, changes: dict[str, Any], message: str
) -> None:
    tiny_models.edit_json(folder / name, **changes)
    with pytest.raises(InputError, match=message) as no:
        Encoder.load(folder)
    assert "\n" not in str(no.value)


def test_an_attention_that_would_be_fetched_is_not_taken(folder: Path) -> None:
    expected = Encoder.load(folder).encode(["salt"])
    tiny_models.edit_json(folder / "config.json", attn_implementation="someone/kernel")
    assert abs(Encoder.load(folder).encode(["salt"]) - expected).max() <= 1e-6


def test_ids_without_an_embedding_are_refused(folder: Path) -> None:
    content = tiny_models.read_json(folder / "tokenizer.json")
    content["model"]["vocab"]["zebra"] = 2**32 - 3
    tiny_models.write_json(folder / "tokenizer.json", content)
    with pytest.raises(InputError, match="has ids up to 4294967293"):
        Encoder.load(folder)


def test_a_tokenizer_without_token_for_a_text_is_an_error_of_ours(folder: Path) -> None:
    content = tiny_models.read_json(folder / "tokenizer.json")
    content["model"]["unk_token"] = "absent"
    tiny_models.write_json(folder / "tokenizer.json", content)
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": "[PAD]"}
    tiny_models.write_json(folder / "tokenizer_config.json", config)
    with pytest.raises(InputError, match=r"(?i)unk"):
        Encoder.load(folder).encode(["\U0001f980"])


@pytest.mark.parametrize("name", ["modules.json", "config.json", "1_Pooling/config.json"])
def test_a_file_of_gigabytes_is_refused_unread(folder: Path, name: str) -> None:
    with (folder / name).open("r+b") as file:
        file.truncate(2**40)
    with pytest.raises(InputError, match="expected at most"):
        Encoder.load(folder)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFO here")
@pytest.mark.parametrize(
    "name", ["modules.json", "1_Pooling/config.json", "2_Dense/model.safetensors", "config.json"]
)
def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(folder: Path, name: str) -> None:
    (folder / name).unlink()
    os.mkfifo(folder / name)
    assert_loads_or_refuses(folder)


def sharded(folder: Path, **places: str) -> None:
    """Makes the weights an index with one file, of whose tensors some are said to be elsewhere."""
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").rename(folder / "model-1.safetensors")
    tiny_models.write_json(
        folder / "model.safetensors.index.json",
        {"metadata": {}, "weight_map": {**dict.fromkeys(weights, "model-1.safetensors"), **places}},
    )


@pytest.mark.parametrize("name", ["w.bin", "../w.safetensors", "a/w.safetensors", "{outside}", ""])
def test_an_index_of_weights_names_safetensors_of_its_folder_alone(
    folder: Path, tmp_path: Path, name: str
) -> None:
    weights = load_file(folder / "model.safetensors")
    outside = tmp_path / "w.safetensors"
    save_file(weights, outside)
    torch.save(weights, folder / "w.bin")
    sharded(folder, **{"embeddings.word_embeddings.weight": name.format(outside=outside)})
    with pytest.raises(InputError, match=r"expected \*\.safetensors files of the same folder"):
        Encoder.load(folder)


def test_a_shard_may_be_a_link_into_the_cache_of_the_hub_and_nowhere_else(
    folder: Path, tmp_path: Path
) -> None:
    expected = Encoder.load(folder).fingerprint
    sharded(folder)
    snapshot = tmp_path / "models--a--b" / "snapshots" / "0123"
    blob = tmp_path / "models--a--b" / "blobs" / "abcd"
    for place in (snapshot, blob):
        place.parent.mkdir(parents=True)
    folder.rename(snapshot)
    shard = snapshot / "model-1.safetensors"
    shard.rename(blob)
    shard.symlink_to(Path("..") / ".." / "blobs" / "abcd")
    assert Encoder.load(snapshot).fingerprint == expected
    blob.rename(tmp_path / "elsewhere")
    shard.unlink()
    shard.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="is a symbolic link out of its folder"):
        Encoder.load(snapshot)


def test_an_adapter_is_refused(folder: Path) -> None:
    tiny_models.write_json(folder / "adapter_config.json", {"base_model_name_or_path": "/other"})
    with pytest.raises(InputError, match="merge it into the model"):
        Encoder.load(folder)
