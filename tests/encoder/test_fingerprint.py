"""What an encoder's fingerprint depends on, and what not."""

import copy
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_models
import torch
from safetensors.torch import load_file, save_file

from sbertkit.encoder import Encoder, network
from sbertkit.encoder.fingerprint import fingerprint
from sbertkit.encoder.layers import with_layers
from sbertkit.encoder.pooling import Pooling

TENSORS = {"a": torch.tensor([1.0, 2.0]), "b": torch.tensor([[3.0]])}


def of(folder: Path, **options: Any) -> str:
    return Encoder.load(folder, **{"pooling": "mean", "device": "cpu", **options}).fingerprint


def change_weight(folder: Path, name: str, amount: float = 1e-3) -> None:
    path = folder / "model.safetensors"
    weights = load_file(path)
    weights[name] = weights[name].clone()
    weights[name].view(-1)[0] += amount
    save_file(weights, path, {"format": "pt"})


def test_it_is_a_sha_256() -> None:
    assert len(bytes.fromhex(fingerprint(TENSORS, "{}", {}))) == 32


def test_the_order_of_tensors_and_their_precision_do_not_matter() -> None:
    expected = fingerprint(TENSORS, "{}", {"x": 1})
    assert fingerprint(dict(reversed(TENSORS.items())), "{}", {"x": 1}) == expected
    half = {name: tensor.half() for name, tensor in TENSORS.items()}
    assert fingerprint(half, "{}", {"x": 1}) == expected


@pytest.mark.parametrize(
    "tensors",
    [
        {**TENSORS, "a": torch.tensor([1.0, 2.5])},
        {**TENSORS, "a": torch.tensor([[1.0, 2.0]])},
        {"a": TENSORS["a"], "c": TENSORS["b"]},
        {"a": TENSORS["a"]},
        {**TENSORS, "c": TENSORS["b"]},
    ],
)
def test_values_shapes_and_names_of_tensors_matter(tensors: dict[str, torch.Tensor]) -> None:
    assert fingerprint(tensors, "{}", {}) != fingerprint(TENSORS, "{}", {})


def test_tokenizer_and_settings_do_not_run_into_each_other() -> None:
    assert fingerprint({}, "ab", "c") != fingerprint({}, "a", "bc")


@pytest.mark.parametrize("architecture", tiny_models.ARCHITECTURES)
@pytest.mark.parametrize("pooling", ["eos", "first_last"])
def test_saving_and_loading_keep_it(
    tiny_folder: Callable[[str], Path], tmp_path: Path, architecture: str, pooling: str
) -> None:
    encoder = Encoder.load(tiny_folder(architecture), pooling=pooling, prompts={"query": "q: "})
    expected = encoder.fingerprint
    encoder.save(tmp_path / "one")
    again = Encoder.load(tmp_path / "one")
    again.save(tmp_path / "two")
    assert again.fingerprint == Encoder.load(tmp_path / "two").fingerprint == expected
    assert tiny_models.read_json(tmp_path / "one" / "sbertkit.json")["fingerprint"] == expected


def test_a_copy_under_another_name_keeps_it(tiny_bert: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny_bert, tmp_path / "elsewhere" / "another-name", dirs_exist_ok=True)
    assert of(folder) == of(tiny_bert)


def test_a_copy_in_memory_keeps_it(tiny_encoder: Encoder) -> None:
    assert copy.deepcopy(tiny_encoder).fingerprint == tiny_encoder.fingerprint
    pickled = pickle.loads(pickle.dumps(tiny_encoder))
    assert pickled.fingerprint == tiny_encoder.fingerprint


def test_transformers_calls_its_hooks_as_copies_know_them(tiny_bert: Path) -> None:
    encoder = Encoder.load(tiny_bert, pooling="first_last")
    encoder.encode("a text")
    modules = list(encoder.torch.network.modules())
    assert any(network.HOOKS_INSTALLED in module.__dict__ for module in modules)
    hooks = [hook for module in modules for hook in module._forward_hooks.values()]
    assert {hook.__module__ for hook in hooks} == {network.HOOKS_MODULE}


def test_an_encoder_that_gave_its_hidden_states_can_be_pickled(tiny_bert: Path) -> None:
    encoder = Encoder.load(tiny_bert, pooling="first_last", device="cpu", backend="torch")
    expected = encoder.encode(["a word"])
    pickled = pickle.loads(pickle.dumps(encoder))
    assert pickled.torch.transformer.model is pickled.torch.network.transformer
    np.testing.assert_array_equal(pickled.encode(["a word"]), expected)
    np.testing.assert_array_equal(encoder.encode(["a word"]), expected)


def test_files_that_reach_no_vector_do_not_matter(tiny_copy: Callable[..., Path]) -> None:
    folder = tiny_copy()
    expected = of(folder)
    change_weight(folder, "pooler.dense.weight")
    (folder / "README.md").write_text("A model.")
    tiny_models.edit_json(folder / "config.json", _name_or_path="elsewhere", architectures=None)
    assert of(folder) == expected
    path = folder / "model.safetensors"
    without = {name: t for name, t in load_file(path).items() if not name.startswith("pooler")}
    save_file(without, path, {"format": "pt"})
    assert of(folder) == expected


def test_truncation_and_padding_in_the_tokenizer_file_do_not_matter(
    tiny_copy: Callable[..., Path],
) -> None:
    folder = tiny_copy()
    expected = of(folder)
    tiny_models.edit_json(
        folder / "tokenizer.json",
        truncation={"direction": "Right", "max_length": 5, "strategy": "LongestFirst", "stride": 0},
        padding={
            "strategy": {"Fixed": 5},
            "direction": "Right",
            "pad_to_multiple_of": None,
            "pad_id": 0,
            "pad_type_id": 0,
            "pad_token": "[PAD]",
        },
    )
    assert of(folder) == expected


@pytest.mark.parametrize(
    "name",
    [
        "embeddings.word_embeddings.weight",
        "embeddings.position_embeddings.weight",
        "encoder.layer.1.output.LayerNorm.bias",
    ],
)
def test_one_changed_weight_changes_it(tiny_copy: Callable[..., Path], name: str) -> None:
    folder = tiny_copy()
    before = of(folder)
    change_weight(folder, name)
    assert of(folder) != before


def test_one_changed_weight_of_a_step_changes_it(tiny_copy: Callable[..., Path]) -> None:
    folder = tiny_models.declare(tiny_copy(), "Dense", "Normalize")
    before = of(folder)
    path = folder / "2_Dense" / "model.safetensors"
    weights = load_file(path)
    weights["linear.bias"][3] += 0.5
    save_file(weights, path)
    assert of(folder) != before


@pytest.mark.parametrize(
    "options",
    [
        {"pooling": "cls"},
        {"pooling": "first_last"},
        {"normalize": False},
        {"max_tokens": 63},
        {"prompts": {"query": "q: "}},
        {"prompts": {"document": "q: "}},
    ],
)
def test_every_setting_changes_it(tiny_bert: Path, options: dict[str, Any]) -> None:
    assert of(tiny_bert, **options) != of(tiny_bert)


def test_a_setting_given_as_the_model_has_it_changes_nothing(tiny_bert: Path) -> None:
    spelled_out = of(tiny_bert, normalize=True, max_tokens=tiny_models.POSITIONS, prompts={})
    assert spelled_out == of(tiny_bert)


def test_another_vocabulary_changes_it(tiny_copy: Callable[..., Path]) -> None:
    folder = tiny_copy()
    before = of(folder)
    content = tiny_models.read_json(folder / "tokenizer.json")
    vocab = content["model"]["vocab"]
    vocab["a"], vocab["b"] = vocab["b"], vocab["a"]
    tiny_models.write_json(folder / "tokenizer.json", content)
    assert of(folder) != before


def test_the_side_on_which_texts_are_cut_changes_it(tiny_copy: Callable[..., Path]) -> None:
    folder = tiny_copy()
    before = of(folder)
    tiny_models.edit_json(folder / "tokenizer_config.json", truncation_side="left")
    assert of(folder) != before


def test_lower_casing_changes_it(tiny_copy: Callable[..., Path]) -> None:
    folder = tiny_models.declare(tiny_copy("roberta"))
    before = of(folder)
    tiny_models.edit_json(folder / "sentence_bert_config.json", do_lower_case=True)
    assert of(folder) != before


@pytest.mark.parametrize(
    "changes",
    [
        {"num_attention_heads": 4},
        {"hidden_act": "relu"},
        {"layer_norm_eps": 1e-3},
    ],
)
def test_what_a_network_does_with_the_same_weights_matters(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    folder = tiny_models.bert(tmp_path / "bert")
    before = of(folder)
    tiny_models.edit_json(folder / "config.json", **changes)
    assert of(folder) != before


def test_how_often_shared_layers_are_run_matters(tmp_path: Path) -> None:
    encoder = Encoder.load(tiny_models.albert(tmp_path / "albert"), pooling="mean", device="cpu")
    fewer = with_layers(encoder, 1)
    assert encoder.torch.transformer.layer_count > 1
    assert fewer.fingerprint != encoder.fingerprint
    fewer.save(tmp_path / "fewer")
    assert Encoder.load(tmp_path / "fewer", device="cpu").fingerprint == fewer.fingerprint


def test_a_variant_with_an_end_token_leaves_its_encoder_as_it_is(tmp_path: Path) -> None:
    folder = tiny_models.gpt2(tmp_path / "gpt2")
    encoder = Encoder.load(folder, pooling="mean", device="cpu")
    before = encoder.encode(["a text", "b"])
    last = encoder.variant(Pooling.named("eos", 0), [])
    assert last.tokenizer.canonical_json() != encoder.tokenizer.canonical_json()
    assert encoder.torch.compute_fingerprint() == of(folder)
    np.testing.assert_array_equal(encoder.encode(["a text", "b"]), before)
    encoder.save(tmp_path / "saved")
    assert of(tmp_path / "saved") == of(folder)
