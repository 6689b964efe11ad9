"""Averages of the weights of two models, and whether two models have weights to average."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from sbertkit.encoder.torch_model import TorchModel
from sbertkit.errors import InputError

_COSMETIC = (
    "_name_or_path",
    "architectures",
    "attn_implementation",
    "cache",
    "checkpoint",
    "drop",
    "dtype",
    "initializer",
    "label",
    "output_",
    "problem_type",
    "return_dict",
    "sentence_transformers",
    "version",
)
"""Parts of the names of settings of a config that change no vector."""

Weights = dict[str, Tensor]


def kept_weights(model: TorchModel) -> Weights:
    """A copy of the weights that decide a vector, by name."""
    return {name: tensor.detach().clone() for name, tensor in model.used_parameters.items()}


def average_into(model: TorchModel, other: Mapping[str, Tensor], share: float) -> None:
    """Makes the weights that decide a vector the average with those of another model.

    ``w = share * w_other + (1 - share) * w``; weights that are equal stay as they are.

    Args:
        model: It is changed in place.
        other: What `kept_weights` gave of a model of the same shape.
        share: What the other counts, from 0 to 1.

    Source: Wortsman et al. 2022, Robust fine-tuning of zero-shot models (WiSE-FT), section 3.
    """
    with torch.no_grad():
        for name, tensor in model.used_parameters.items():
            tensor.lerp_(other[name].to(tensor.device), share)
    model.weights_changed()


class _Trait(NamedTuple):
    """What two models must have in common."""

    name: str
    of: Callable[[TorchModel], Any]


def _architecture(model: TorchModel) -> str:
    return type(model.transformer.model).__name__


def _pooling(model: TorchModel) -> str:
    layers = model.network.pooling.layers
    return model.spec.pooling + (f" of layers {', '.join(map(str, layers))}" if layers else "")


def _modules(model: TorchModel) -> str:
    modules = model.postprocessors_before_normalization
    shown = [f"{one.st_name} {one.config()}" for one in modules]  # type: ignore[operator]
    return ", ".join(shown) or "none"


def _normalization(model: TorchModel) -> str:
    return "unit length" if model.spec.normalizes else "none"


_TRAITS = (
    _Trait("architecture", _architecture),
    _Trait("pooling", _pooling),
    _Trait("modules after the pooling", _modules),
    _Trait("normalization", _normalization),
)


def check_alike(first: TorchModel, second: TorchModel) -> None:
    """Nothing, if the weights of two models have the same names, shapes and meaning.

    Raises:
        InputError: What differs is named.
    """
    fault = _fault(first, second)
    if fault is not None:
        names = f"{first.spec.options.model} and {second.spec.options.model}"
        raise InputError(
            f"{names} cannot be merged: {fault}; merge encoders that were trained from one base"
        )


def _fault(first: TorchModel, second: TorchModel) -> str | None:
    """What differs, if anything does."""
    for trait in _TRAITS:
        one, two = trait.of(first), trait.of(second)
        if one != two:
            return f"the {trait.name} of one is {one}, of the other {two}"
    shapes = [
        {name: tuple(tensor.shape) for name, tensor in model.used_parameters.items()}
        for model in (first, second)
    ]
    for name in sorted(shapes[0].keys() | shapes[1].keys()):
        found = [side.get(name) for side in shapes]
        if found[0] != found[1]:
            one, two = (f"has the shape {side}" if side else "is missing" for side in found)
            return f"{name.removeprefix('transformer.')} {one} in one, and {two} in the other"
    settings = [_settings(model) for model in (first, second)]
    for key in sorted(settings[0].keys() | settings[1].keys()):
        one, two = (side.get(key) for side in settings)
        if one != two:
            return f"{key} in config.json is {one!r:.60} in one, and {two!r:.60} in the other"
    if first.spec.tokenizer.canonical_json() != second.spec.tokenizer.canonical_json():
        return "their tokenizers differ"
    return None


def _settings(model: TorchModel) -> dict[str, Any]:
    """The settings of the config that may change what the same weights compute."""
    content: dict[str, Any] = model.transformer.model.config.to_dict()
    return {
        key: value for key, value in content.items() if not any(part in key for part in _COSMETIC)
    }
