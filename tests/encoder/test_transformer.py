"""Checkpoints: whole ones are loaded, others refused in one line that says what to do."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tiny_models
import torch
from safetensors.torch import load_file, save_file

from sbertkit.encoder import Encoder
from sbertkit.encoder.transformer import load_transformer
from sbertkit.errors import InputError


def change_weights(folder: Path, change: Callable[[dict[str, torch.Tensor]], object]) -> None:
    path = folder / "model.safetensors"
    weights = load_file(path)
    change(weights)
    save_file(weights, path, {"format": "pt"})


def refusal_of(folder: Path) -> str:
    with pytest.raises(InputError) as no:
        Encoder.load(folder, pooling="mean")
    assert "\n" not in str(no.value)
    assert str(folder) in str(no.value)
    return str(no.value)


def test_weights_that_the_encoder_needs_may_not_be_missing(tiny_copy: Callable[..., Path]) -> None:
    folder = tiny_copy()
    change_weights(folder, lambda weights: weights.pop("encoder.layer.1.output.dense.weight"))
    assert "lack 1 tensors" in refusal_of(folder)
    assert "encoder.layer.1.output.dense.weight" in refusal_of(folder)


def test_weights_of_another_size_are_refused(tiny_copy: Callable[..., Path]) -> None:
    folder = tiny_copy()
    tiny_models.edit_json(folder / "config.json", intermediate_size=16)
    assert "in another size" in refusal_of(folder)


def test_a_checkpoint_with_fewer_layers_than_its_config_is_refused(
    tiny_copy: Callable[..., Path],
) -> None:
    folder = tiny_copy()
    tiny_models.edit_json(folder / "config.json", num_hidden_layers=3)
    assert "encoder.layer.2" in refusal_of(folder)


def test_a_missing_or_misfit_pooler_does_not_matter_and_is_not_saved(
    tiny_copy: Callable[..., Path], tmp_path: Path
) -> None:
    folder = tiny_copy()
    expected = Encoder.load(folder, pooling="mean")
    change_weights(folder, lambda weights: weights.pop("pooler.dense.bias"))
    change_weights(folder, lambda w: w.update({"pooler.dense.weight": torch.ones(2, 2)}))
    encoder = Encoder.load(folder, pooling="mean")
    assert encoder.fingerprint == expected.fingerprint
    encoder.save(tmp_path / "saved")
    saved = load_file(tmp_path / "saved" / "model.safetensors")
    assert not [name for name in saved if "pooler" in name]


def test_a_checkpoint_of_a_larger_model_with_a_head_is_read(
    tiny_copy: Callable[..., Path],
) -> None:
    folder = tiny_copy()
    expected = Encoder.load(folder, pooling="mean").encode(["salt"])

    def under_a_head(weights: dict[str, torch.Tensor]) -> None:
        for name in list(weights):
            weights[f"bert.{name}"] = weights.pop(name)
        weights["cls.predictions.bias"] = torch.zeros(3)

    change_weights(folder, under_a_head)
    assert abs(Encoder.load(folder, pooling="mean").encode(["salt"]) - expected).max() <= 1e-6


def test_a_folder_with_pickled_weights_alone_is_refused_unopened(
    tiny_copy: Callable[..., Path],
) -> None:
    folder = tiny_copy()
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    assert "no *.safetensors file" in refusal_of(folder)


def test_weights_in_several_files_are_read(tiny_copy: Callable[..., Path]) -> None:
    folder = tiny_copy()
    expected = Encoder.load(folder, pooling="mean").fingerprint
    weights = load_file(folder / "model.safetensors")
    names = sorted(weights)
    parts = {"model-1.safetensors": names[::2], "model-2.safetensors": names[1::2]}
    for file, part in parts.items():
        save_file({name: weights[name] for name in part}, folder / file, {"format": "pt"})
    places = {name: file for file, part in parts.items() for name in part}
    tiny_models.write_json(
        folder / "model.safetensors.index.json", {"metadata": {}, "weight_map": places}
    )
    (folder / "model.safetensors").unlink()
    assert Encoder.load(folder, pooling="mean").fingerprint == expected


@pytest.mark.parametrize("size", [0, 7, 100, 20_000])
def test_a_cut_weight_file_is_refused(tiny_copy: Callable[..., Path], size: int) -> None:
    folder = tiny_copy()
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:size])
    assert "cannot be loaded" in refusal_of(folder)


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("config.json", "{"),
        ("config.json", "[]"),
        ("config.json", "{}"),
        ("config.json", '{"model_type": "nonesuch"}'),
        ("config.json", '{"model_type": "bert", "hidden_size": "large"}'),
        ("config.json", '{"model_type": "bert", "hidden_size": 32, "num_attention_heads": 5}'),
        ("tokenizer.json", "{"),
        ("tokenizer.json", "{}"),
        ("tokenizer_config.json", "{"),
    ],
)
def test_broken_files_are_refused(tiny_copy: Callable[..., Path], file: str, content: str) -> None:
    folder = tiny_copy()
    (folder / file).write_text(content)
    assert str(folder) in refusal_of(folder)


def test_a_folder_without_config_is_no_model(
    tiny_copy: Callable[..., Path], tmp_path: Path
) -> None:
    folder = tiny_copy()
    (folder / "config.json").unlink()
    assert "is not a model folder: expected a config.json" in refusal_of(folder)
    (tmp_path / "empty").mkdir()
    assert "is not a model folder" in refusal_of(tmp_path / "empty")


@pytest.mark.parametrize("architecture", ["bert", "roberta", "xlnet", "t5", "clip", "llama"])
def test_a_folder_without_vocabulary_is_refused(
    tiny_copy: Callable[..., Path], architecture: str
) -> None:
    folder = tiny_copy(architecture)
    (folder / "tokenizer.json").unlink()
    assert str(folder) in refusal_of(folder)
    (folder / "tokenizer_config.json").unlink()
    assert str(folder) in refusal_of(folder)


def test_a_vocabulary_in_a_text_file_is_enough(tiny_copy: Callable[..., Path]) -> None:
    folder = tiny_copy()
    expected = Encoder.load(folder, pooling="mean").encode(["two bakers"])
    vocab = tiny_models.read_json(folder / "tokenizer.json")["model"]["vocab"]
    (folder / "tokenizer.json").unlink()
    (folder / "vocab.txt").write_text("\n".join(sorted(vocab, key=vocab.__getitem__)))
    assert abs(Encoder.load(folder, pooling="mean").encode(["two bakers"]) - expected).max() <= 1e-6


def test_code_of_the_model_is_not_run_unasked(tiny_copy: Callable[..., Path]) -> None:
    folder = tiny_copy()
    tiny_models.edit_json(
        folder / "config.json",
        model_type="mine",
        auto_map={"AutoConfig": "code.Config", "AutoModel": "code.Model"},
    )
    (folder / "code.py").write_text("raise SystemExit('this code was run')\n")
    assert "trust_remote_code=True" in refusal_of(folder)


@pytest.mark.parametrize(
    ("architecture", "takes_token_types", "left"),
    [
        ("bert", True, False),
        ("distilbert", False, False),
        ("xlnet", True, True),
        ("t5", False, False),
        ("gpt2", True, False),
        ("llama", False, False),  # its tokenizer says left, its table of positions says no
    ],
)
def test_what_a_model_takes_and_how_it_is_padded(
    tiny_folder: Callable[[str], Path], architecture: str, takes_token_types: bool, left: bool
) -> None:
    transformer = load_transformer(tiny_folder(architecture), pytest.fail)
    assert (transformer.takes_token_types, transformer.pads_left) == (takes_token_types, left)
    assert (transformer.layer_count, transformer.hidden_size) == (2, tiny_models.HIDDEN)


def test_the_librarys_own_verbosity_is_as_before(tiny_bert: Path) -> None:
    from transformers.utils import logging

    before = (logging.get_verbosity(), logging.is_progress_bar_enabled())
    load_transformer(tiny_bert, pytest.fail)
    with pytest.raises(InputError):
        load_transformer(tiny_bert.parent, pytest.fail)
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == before


def test_a_config_with_old_names_of_the_precision_is_read(tiny_copy: Callable[..., Path]) -> None:
    folder = tiny_copy()
    config: dict[str, Any] = json.loads((folder / "config.json").read_text())
    config.pop("dtype", None)
    tiny_models.write_json(folder / "config.json", {**config, "torch_dtype": "float16"})
    model = load_transformer(folder, pytest.fail).model
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
