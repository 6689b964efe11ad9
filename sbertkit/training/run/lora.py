"""LoRA: low-rank matrices beside the weights of linear layers, added to them at the end."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import nn
from transformers.pytorch_utils import Conv1D

from sbertkit.encoder import Encoder
from sbertkit.errors import InputError, MissingDependency
from sbertkit.training.config import TrainConfig
from sbertkit.training.run.depths import Depths

_ADAPTER = "default"
_FOLDER, _WEIGHTS = "lora", "model.safetensors"
_NAMES = ("encoder", "LoRA matrices", "head")


class LowRank:
    """The low-rank matrices of an encoder in training.

    A linear layer with the weight W (out, in) gives ``W x + (alpha / rank) B A dropout(x)``, with A
    (rank, in) and B (out, rank), which is zero at first. W stays; in the end it becomes
    ``W + (alpha / rank) B A``. What moves beside the matrices is the head: that of the objective,
    dense layers after the pooling, and of a model that scores pairs all above its layers.

    Source: Hu et al. 2021, LoRA, section 4.1.

    Args:
        encoder: Gets the matrices.
        config: Their rank and so on.

    Raises:
        InputError: The encoder has no list of layers, or no linear layers in them.
        MissingDependency: peft is not installed.
    """

    def __init__(self, encoder: Encoder, config: TrainConfig) -> None:
        self._torch = encoder.torch
        self._model = encoder.torch.transformer.model
        network = encoder.torch.network
        depths = Depths(network.transformer, encoder.options.model)
        above = {id(one) for one in network.parameters() if depths.of(one) == depths.top}
        stays = {id(one) for one in network.transformer.parameters()}
        if encoder.spec.scores_pairs:
            stays -= above
        targets = _targets(encoder, depths, everywhere=config.lora_targets == "all")
        _inject(self._model, targets, config)
        self._layers: dict[str, Any] = {
            name: module for name, module in self._model.named_modules() if name in targets
        }
        self._stays = stays
        self._tensors = {
            name: one for name, one in network.named_parameters() if id(one) not in stays
        }
        self._matrices = {id(one) for one in self._tensors.values()} - above

    def of(self, tensor: nn.Parameter) -> int:
        """The place of a parameter among the parts, as `Depths.of` gives it."""
        if id(tensor) in self._stays:
            return 0
        return 1 if id(tensor) in self._matrices else 2

    def name(self, depth: int) -> str:
        """What the parameters of a part are called."""
        return _NAMES[depth]

    def merge(self) -> None:
        """Adds the matrices to the weights, and leaves an encoder without them."""
        for name, layer in self._layers.items():
            plain = layer.get_base_layer()
            plain.weight.data = plain.weight.data + layer.get_delta_weight(_ADAPTER).detach()
            self._model.set_submodule(name, plain)
        self._torch.weights_changed()

    @contextmanager
    def merged(self) -> Iterator[None]:
        """For the block, the encoder has no matrices but the same vectors; then it is as before."""
        before = {name: one.get_base_layer().weight.data for name, one in self._layers.items()}
        self.merge()
        try:
            yield
        finally:
            for name, layer in self._layers.items():
                layer.get_base_layer().weight.data = before[name]
                self._model.set_submodule(name, layer)
            self._torch.weights_changed()

    def write(self, folder: Path) -> None:
        """Writes all of the encoder that moves into a model folder, exactly as it is."""
        place = folder / _FOLDER
        place.mkdir()
        tensors = {name: one.detach().cpu().contiguous() for name, one in self._tensors.items()}
        save_file(tensors, place / _WEIGHTS)

    def read(self, folder: Path) -> None:
        """Takes what `write` wrote.

        Raises:
            InputError: It is damaged, or of another shape.
        """
        path = folder / _FOLDER / _WEIGHTS
        try:
            found = load_file(path)
        except (OSError, SafetensorError) as error:
            reason = " ".join(str(error).split())[:200]
            raise InputError(f"{path} cannot be read ({reason}); start a new run") from error
        if {n: t.shape for n, t in found.items()} != {n: t.shape for n, t in self._tensors.items()}:
            raise InputError(f"{path} has matrices of another run; start a new run")
        with torch.no_grad():
            for name, tensor in self._tensors.items():
                tensor.copy_(found[name])
        self._torch.weights_changed()


def _targets(encoder: Encoder, depths: Depths, *, everywhere: bool) -> set[str]:
    """The names of the linear layers that get matrices.

    All of a layer do where its attention has none, as XLNet's, whose weights are tensors.
    """
    model = encoder.torch.transformer.model
    used = {id(tensor) for tensor in encoder.torch.used_parameters.values()}
    inner = {
        id(tensor)
        for tensor in model.parameters()
        if id(tensor) in used and 0 < depths.of(tensor) < depths.top
    }
    linear = {
        name
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear | Conv1D) and id(module.weight) in inner
    }
    if not linear:
        raise InputError(
            f"lora (--lora) needs linear layers, found none in {encoder.options.model}; train the "
            "whole encoder"
        )
    attention = {
        f"{name}."
        for name, module in model.named_modules()
        if "attention" in type(module).__name__.lower() and name
    }
    inside = {name for name in linear if any(name.startswith(one) for one in attention)}
    return linear if everywhere or not inside else inside


def _inject(model: Any, targets: set[str], config: TrainConfig) -> None:
    """Puts matrices of the run's own seed beside the weights of those linear layers."""
    try:
        from peft import LoraConfig, inject_adapter_in_model
    except ImportError as error:
        raise MissingDependency('lora (--lora) needs peft: pip install "sbertkit[lora]"') from error
    rank = config.lora or 1
    torch.manual_seed(config.seed)
    settings = LoraConfig(
        r=rank,
        lora_alpha=2 * rank if config.lora_alpha is None else config.lora_alpha,
        lora_dropout=config.lora_dropout,
        target_modules=sorted(targets),
        fan_in_fan_out=isinstance(model.get_submodule(min(targets)), Conv1D),
    )
    inject_adapter_in_model(settings, model, _ADAPTER)
    vars(model).pop("peft_config", None)  # which would make it a model with adapters when saved
