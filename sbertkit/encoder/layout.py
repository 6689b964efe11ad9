"""The folder layout of sentence-transformers: what a model folder declares."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from sbertkit.encoder.postprocess import STEPS, build_step
from sbertkit.errors import InputError

_TRANSFORMER_CONFIGS = (
    "sentence_bert_config.json",
    "sentence_roberta_config.json",
    "sentence_distilbert_config.json",
    "sentence_camembert_config.json",
    "sentence_albert_config.json",
    "sentence_xlm-roberta_config.json",
    "sentence_xlnet_config.json",
)
_POOLING_FLAGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}


@dataclass(slots=True)
class ModelFolder:
    """What a folder says about itself.

    Attributes:
        transformer: Folder of the encoder's own files.
        declares_modules: Whether there is a modules.json; else it is a plain encoder.
        pooling_mode: sentence-transformers' name of the pooling, if one is declared.
        layers: Hidden states whose average is pooled; empty for the output alone.
        steps: Post-processing in order.
        max_tokens: The declared limit, if any.
        lower_case: Whether texts are lower-cased before tokenizing.
        settings: The content of config_sentence_transformers.json.
    """

    transformer: Path
    declares_modules: bool = False
    pooling_mode: str | None = None
    layers: tuple[int, ...] = ()
    steps: list[nn.Module] = field(default_factory=list)
    max_tokens: int | None = None
    lower_case: bool = False
    settings: dict[str, Any] = field(default_factory=dict)


def read_model_folder(folder: Path) -> ModelFolder:
    """What the folder declares; weights of post-processing are read, those of the encoder not.

    Raises:
        InputError: A module that is not supported, a broken or missing file.
    """
    modules_file = folder / "modules.json"
    if not modules_file.is_file():
        return ModelFolder(folder)
    model = ModelFolder(folder, declares_modules=True)
    settings_file = folder / "config_sentence_transformers.json"
    if settings_file.is_file():
        model.settings = _read_object(settings_file)
    modules = _read_json(modules_file)
    if not isinstance(modules, list) or not modules:
        raise InputError(f"{modules_file}: expected a list of modules")
    for position, module in enumerate(modules):
        if not isinstance(module, dict) or not {"type", "path"} <= module.keys():
            raise InputError(f"{modules_file}: module {position} has no type or path")
        _read_module(model, folder, module, position)
    return model


def pooling_flags(mode: str) -> dict[str, bool]:
    """The settings of a Pooling module that has that one mode."""
    return {flag: mode == flagged for flag, flagged in _POOLING_FLAGS.items()}


def _read_module(
    model: ModelFolder, folder: Path, module: Mapping[str, Any], position: int
) -> None:
    """Adds one entry of modules.json to what is known of the model."""
    kind = str(module["type"])
    name = kind.rsplit(".", 1)[-1]
    place = folder / str(module["path"])
    if not place.resolve().is_relative_to(folder.resolve()):
        raise InputError(f"{folder}: module {position} points outside the folder")
    # The first module is the encoder, and no other is.
    published = kind.startswith("sentence_transformers.") and (
        (name == "Transformer") == (position == 0)
    )
    if published and name == "Transformer":
        _read_transformer(model, place)
    elif published and name == "WeightedLayerPooling" and model.pooling_mode is None:
        model.layers = _read_layers(place)
    elif published and name == "Pooling" and model.pooling_mode is None:
        model.pooling_mode = _read_pooling_mode(place / "config.json")
    elif published and name == "Dropout":
        pass  # does nothing outside training
    elif published and name in STEPS and model.pooling_mode is not None:
        config_file = place / "config.json"
        config = _read_object(config_file) if config_file.is_file() else {}
        model.steps.append(build_step(name, config, _read_weights(place, name)))
    else:
        raise InputError(
            f"{folder}: module {position} is {kind}, which is not supported there; expected "
            "Transformer, then Pooling (WeightedLayerPooling before it), then any of "
            f"{', '.join(sorted(STEPS))} or Dropout, all of sentence_transformers"
        )


def _read_transformer(model: ModelFolder, place: Path) -> None:
    model.transformer = place
    for name in _TRANSFORMER_CONFIGS:
        if (place / name).is_file():
            config = _read_object(place / name)
            limit = config.get("max_seq_length")
            if limit is not None and not isinstance(limit, int):
                raise InputError(f"{place / name}: max_seq_length must be a number, not {limit!r}")
            model.max_tokens = limit or None
            model.lower_case = bool(config.get("do_lower_case"))
            task = config.get("transformer_task", "feature-extraction")
            if task != "feature-extraction":
                raise InputError(f"{place / name}: task {task!r} is not supported")
            return


def _read_pooling_mode(path: Path) -> str:
    config = _read_object(path)
    modes = config.get("pooling_mode")
    if modes is None:
        modes = [mode for key, mode in _POOLING_FLAGS.items() if config.get(key)]
    elif isinstance(modes, str):
        modes = [modes]
    if len(modes) != 1:
        raise InputError(f"{path}: expected one pooling mode, found {len(modes)} ({modes})")
    if config.get("include_prompt", True) is False:
        raise InputError(f"{path}: pooling that leaves the prompt out is not supported")
    return str(modes[0])


def _read_layers(place: Path) -> tuple[int, ...]:
    config = _read_object(place / "config.json")
    weights = _read_weights(place, "WeightedLayerPooling").get("layer_weights")
    if weights is None or not set(weights.tolist()) <= {0.0, 1.0} or not weights.any():
        raise InputError(f"{place}: only layer weights of 0 and 1 are supported")
    start = int(config.get("layer_start", 4))
    return tuple(start + offset for offset, weight in enumerate(weights.tolist()) if weight)


def _read_weights(place: Path, name: str) -> dict[str, Tensor]:
    path = place / "model.safetensors"
    if not path.is_file():
        if name == "Normalize":
            return {}
        raise InputError(f"{place}: no model.safetensors for the module {name}")
    try:
        return load_file(path)
    except (SafetensorError, OSError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error


def _read_object(path: Path) -> dict[str, Any]:
    content = _read_json(path)
    if not isinstance(content, dict):
        raise InputError(f"{path}: expected a JSON object")
    return content


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise InputError(f"{path} is missing; the model folder is not complete") from error
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read as JSON: {error}") from error
