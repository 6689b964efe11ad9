"""The weights of heads in the checkpoint of a base."""

from collections.abc import Mapping, Sequence

import torch
from safetensors import safe_open
from torch import Tensor, nn

from sbertkit.encoder import Encoder
from sbertkit.encoder.layout import read_model_folder
from sbertkit.encoder.resolve import resolve_model

SUFFIX = ".safetensors"


class BaseWeights:
    """Finds tensors in the files of a base.

    Args:
        encoder: The base.
    """

    def __init__(self, encoder: Encoder) -> None:
        folder = read_model_folder(resolve_model(encoder.options.model)).transformer
        self._files = {}
        for path in sorted(folder.glob(f"*{SUFFIX}")):
            with safe_open(path, framework="pt") as file:
                self._files.update(dict.fromkeys(file.keys(), path))

    def read(self, wanted: Mapping[str, Sequence[str]]) -> dict[str, Tensor]:
        """The tensors that there are, in float32, by our names.

        Args:
            wanted: The names that each may have in a checkpoint, of which the first counts, also
                behind the name of the encoder: ``pooler.weight`` is ``bert.pooler.weight``, too.
        """
        found = {}
        for own, names in wanted.items():
            name = next(filter(None, map(self._find, names)), None)
            if name is not None:
                with safe_open(self._files[name], framework="pt") as file:
                    found[own] = file.get_tensor(name).float()
        return found

    def _find(self, name: str) -> str | None:
        if name in self._files:
            return name
        return next((one for one in self._files if one.partition(".")[2] == name), None)


def take(module: nn.Module, found: Mapping[str, Tensor]) -> bool:
    """Gives a module those weights, where they are all of its own; whether they were.

    A bias that is missing is zero: not every family has every bias.
    """
    zeros = {
        name: torch.zeros_like(value)
        for name, value in module.state_dict().items()
        if name.endswith("bias")
    }
    if not found or shapes({**zeros, **found}) != shapes(module.state_dict()):
        return False
    module.load_state_dict({**zeros, **found})
    return True


def shapes(weights: Mapping[str, Tensor]) -> dict[str, tuple[int, ...]]:
    """The shapes of tensors, by name in order."""
    return {name: tuple(tensor.shape) for name, tensor in sorted(weights.items())}
