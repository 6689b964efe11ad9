"""Model folders: what is read from them, and what is refused by name."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tiny_models
import torch
from safetensors.torch import save_file

from sbertkit.encoder import Encoder
from sbertkit.encoder.layout import pooling_flags, read_model_folder
from sbertkit.errors import InputError

FLAGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}


@pytest.fixture
def declared(tiny_copy: Callable[..., Path]) -> Path:
    return tiny_models.declare(tiny_copy())


def set_pooling(folder: Path, config: Any) -> None:
    tiny_models.write_json(folder / "1_Pooling" / "config.json", config)


def add_layers(folder: Path, weights: list[float], start: int = 0) -> None:
    """Puts a WeightedLayerPooling before the pooling."""
    entries = [("", "Transformer"), ("L", "WeightedLayerPooling"), ("1_Pooling", "Pooling")]
    tiny_models.write_modules(folder, entries)
    config = {"embedding_dimension": 32, "layer_start": start, "num_hidden_layers": 2}
    tiny_models.write_json(folder / "L" / "config.json", config)
    save_file({"layer_weights": torch.tensor(weights)}, folder / "L" / "model.safetensors")


def test_a_plain_folder_declares_nothing(tiny_bert: Path) -> None:
    model = read_model_folder(tiny_bert)
    assert (model.transformer, model.declares_modules, model.pooling_mode) == (
        tiny_bert,
        False,
        None,
    )


@pytest.mark.parametrize(("flag", "mode"), FLAGS.items())
def test_each_pooling_flag_and_each_pooling_mode_is_read(
    declared: Path, flag: str, mode: str
) -> None:
    set_pooling(declared, {"word_embedding_dimension": 32, flag: True})
    assert read_model_folder(declared).pooling_mode == mode
    for written in (mode, [mode]):
        set_pooling(declared, {"embedding_dimension": 32, "pooling_mode": written})
        assert read_model_folder(declared).pooling_mode == mode
    assert pooling_flags(mode) == {name: name == flag for name in FLAGS}


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True},
            r"expected one pooling mode, found 2 \(\['cls', 'mean'\]\)",
        ),
        ({"pooling_mode": ["mean", "max"]}, "expected one pooling mode, found 2"),
        ({"word_embedding_dimension": 32}, "expected one pooling mode, found 0"),
        ({"pooling_mode": "mean", "include_prompt": False}, "leaves the prompt out"),
        ([], "Expected `object`, got `array`"),
    ],
)
def test_other_poolings_are_refused(declared: Path, config: Any, message: str) -> None:
    set_pooling(declared, config)
    with pytest.raises(InputError, match=message):
        Encoder.load(declared)


@pytest.mark.parametrize(
    "name",
    ["LSTM", "CNN", "BoW", "WordWeights", "CLIPModel", "Router", "mine.Own", "mine.Normalize"],
)
def test_an_unsupported_module_is_refused_by_name(declared: Path, name: str) -> None:
    (declared / "2").mkdir()
    tiny_models.write_modules(
        declared, [("", "Transformer"), ("1_Pooling", "Pooling"), ("2", name)]
    )
    with pytest.raises(InputError, match=rf"module 2 is [\w.]*{name}, which is not supported"):
        Encoder.load(declared)


@pytest.mark.parametrize(
    "entries",
    [
        [("", "Pooling")],
        [("", "Transformer"), ("", "Normalize")],
        [("", "Transformer"), ("", "Transformer")],
        [("", "Transformer"), ("1_Pooling", "Pooling"), ("1_Pooling", "Pooling")],
        [("", "Transformer"), ("../elsewhere", "Pooling")],
        [("", "WordEmbeddings"), ("1_Pooling", "Pooling")],
    ],
)
def test_modules_in_another_order_or_place_are_refused(
    declared: Path, entries: list[tuple[str, str]]
) -> None:
    tiny_models.write_modules(declared, entries)
    with pytest.raises(InputError, match=r"module [0-9] is|expected a path inside the folder"):
        Encoder.load(declared)


@pytest.mark.parametrize("content", ["", "{", "{}", "[]", '["a"]', '[{"idx": 0}]', "\xff"])
def test_a_broken_modules_file_is_refused_by_its_path(declared: Path, content: str) -> None:
    (declared / "modules.json").write_bytes(content.encode("latin-1"))
    with pytest.raises(InputError, match=r"modules\.json") as no:
        Encoder.load(declared)
    assert "\n" not in str(no.value)


@pytest.mark.parametrize("name", ["1_Pooling/config.json", "2_Dense/model.safetensors"])
def test_a_missing_file_is_named(tiny_copy: Callable[..., Path], name: str) -> None:
    folder = tiny_models.declare(tiny_copy(), "Dense")
    (folder / name).unlink()
    with pytest.raises(InputError, match=Path(name).parent.name):
        Encoder.load(folder)


def test_a_cut_weight_file_of_a_step_is_refused(tiny_copy: Callable[..., Path]) -> None:
    folder = tiny_models.declare(tiny_copy(), "Dense")
    path = folder / "2_Dense" / "model.safetensors"
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(InputError, match=r"2_Dense.model\.safetensors cannot be loaded"):
        Encoder.load(folder)


def test_steps_that_do_not_fit_each_other_are_refused(tiny_copy: Callable[..., Path]) -> None:
    folder = tiny_models.declare(tiny_copy(), "Dense")
    shutil.copytree(folder / "2_Dense", folder / "3_Dense")
    tiny_models.write_modules(
        folder,
        [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Dense", "Dense"), ("3_Dense", "Dense")],
    )
    with pytest.raises(InputError, match="expects 32 inputs, but the module before it gives 16"):
        Encoder.load(folder)


@pytest.mark.parametrize(
    ("weights", "start", "layers", "pooling"),
    [
        ([0.0, 1.0, 1.0], 0, (1, 2), "first_last"),
        ([1.0, 1.0], 1, (1, 2), "first_last"),
        ([0.0, 0.0, 1.0], 0, (2,), "mean"),
        ([1.0, 0.0, 0.0], 0, (0,), "mean"),
    ],
)
def test_layer_weights_of_0_and_1_are_read(
    declared: Path,
    plain: Callable[[Path], Any],
    weights: list[float],
    start: int,
    layers: tuple[int, ...],
    pooling: str,
) -> None:
    add_layers(declared, weights, start)
    tiny_models.edit_json(declared / "config.json", output_hidden_states=True)
    encoder = Encoder.load(declared)
    assert (encoder.torch.network.pooling.layers, encoder.pooling) == (layers, pooling)
    texts = ["two bakers", "salt"]
    assert abs(plain(declared).encode(texts) - encoder.encode(texts)).max() <= 1e-5


@pytest.mark.parametrize("weights", [[0.5, 0.5, 1.0], [0.0, 0.0, 0.0], [-1.0, 1.0, 1.0]])
def test_other_layer_weights_are_refused(declared: Path, weights: list[float]) -> None:
    add_layers(declared, weights)
    with pytest.raises(InputError, match="only layer weights of 0 and 1"):
        Encoder.load(declared)


def test_layer_weights_for_more_layers_than_the_model_has_are_refused(declared: Path) -> None:
    add_layers(declared, [1.0, 1.0, 1.0, 1.0])
    with pytest.raises(InputError, match="the model has 2 layers"):
        Encoder.load(declared)


def test_a_transformer_in_a_folder_of_its_own_is_found(
    tiny_folder: Callable[[str], Path], tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(tiny_folder("bert"), folder / "0_Transformer")
    set_pooling(folder, {"pooling_mode": "max"})
    tiny_models.write_modules(folder, [("0_Transformer", "Transformer"), ("1_Pooling", "Pooling")])
    tiny_models.write_json(
        folder / "0_Transformer" / "sentence_bert_config.json", {"max_seq_length": 12}
    )
    encoder = Encoder.load(folder)
    assert (encoder.pooling, encoder.max_tokens) == ("max", 12)


def test_another_task_is_refused(declared: Path) -> None:
    tiny_models.edit_json(
        declared / "sentence_bert_config.json", transformer_task="text-generation"
    )
    with pytest.raises(InputError, match="task 'text-generation' is not supported"):
        Encoder.load(declared)
