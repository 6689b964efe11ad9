"""What the weight files of a folder hold, read off their headers, and a model built within that."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import NamedTuple

from safetensors import safe_open
from torch import Tensor, nn
from torch.nn.modules import module as torch_module

from sbertkit.encoder.library_errors import library_errors
from sbertkit.errors import InputError
from sbertkit.files import open_regular, read_regular
from sbertkit.schema import read_record

_SUFFIX = ".safetensors"
_INDEX = f"*{_SUFFIX}.index.json"

_MAX_RATIO = 4
"""A model may have more tensors than its files (a pooler, tied weights), though not many times."""
_MORE_TENSORS = 100
_MORE_ELEMENTS = 2**26
"""Beyond that; buffers such as a causal mask are in no file."""


class WeightSizes(NamedTuple):
    """How many tensors there are, and elements in all of them."""

    tensors: int
    elements: int


@dataclass(frozen=True, slots=True)
class _ShardIndex:
    """What is read of an index of weight files: the file of each tensor."""

    weight_map: dict[str, str]


def weight_sizes(folder: Path) -> WeightSizes:
    """The sizes of all weights in a folder, none of which is read.

    Raises:
        InputError: There are none in safetensors, a file is damaged, or an index names something
            else than a safetensors file of the folder.
    """
    for path in folder.glob(_INDEX):
        for name in set(
            read_record(read_regular(path, follow=True), _ShardIndex, path).weight_map.values()
        ):
            _check_shard(folder, path, name)
    files = [path for path in sorted(folder.glob(f"*{_SUFFIX}")) if not path.name.startswith(".")]
    if not files:
        raise InputError(
            f"{folder} has no *.safetensors file, the only weight format that is read; "
            "convert the weights with safetensors.torch.save_model"
        )
    shapes = [shape for path in files for shape in tensor_shapes(path).values()]
    return WeightSizes(len(shapes), sum(prod(shape) for shape in shapes))


def tensor_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """The shape of each tensor of a safetensors file, by its name.

    Raises:
        InputError: No such file, or a damaged one.
    """
    with library_errors(f"the weights in {path} cannot be loaded"):
        open_regular(path, follow=True).close()
        with safe_open(path, framework="numpy") as file:
            return {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118


def _check_shard(folder: Path, index: Path, name: str) -> None:
    """Refuses what the library would follow out of the folder, or unpickle."""
    path = folder / name
    if path.name != name or not name.endswith(_SUFFIX) or "\0" in name:
        raise InputError(f"{index} names {name!r}; expected *{_SUFFIX} files of the same folder")
    if path.is_symlink() and not _inside(folder.resolve(), path.resolve()):
        raise InputError(f"{path} is a symbolic link out of its folder; expected the file itself")


def _inside(folder: Path, target: Path) -> bool:
    """Whether a link's target is in the folder, or among the blobs of the hub cache it lies in."""
    caches = [parent.parent / "blobs" for parent in folder.parents if parent.name == "snapshots"]
    return any(target.is_relative_to(place) for place in (folder, *caches))


@contextmanager
def built_within(sizes: WeightSizes, folder: Path) -> Iterator[None]:
    """Stops this thread when it builds a model far larger than its weights.

    The library lays a model out without memory first; so a config that asks for a billion layers,
    or for a vocabulary of that size, ends here.

    Args:
        sizes: What the files hold.
        folder: Where they are, for the message.

    Raises:
        InputError: The model is too large.
    """
    thread = threading.get_ident()
    max_tensors = _MAX_RATIO * sizes.tensors + _MORE_TENSORS
    max_elements = _MAX_RATIO * sizes.elements + _MORE_ELEMENTS
    tensors = elements = 0

    def count(_module: nn.Module, _name: str, tensor: Tensor | None) -> None:
        nonlocal tensors, elements
        if tensor is None or not tensor.is_meta or threading.get_ident() != thread:
            return
        tensors += 1
        elements += tensor.numel()
        if tensors > max_tensors or elements > max_elements:
            raise InputError(
                f"{folder}: config.json asks for a model of more than {tensors - 1:,} tensors with "
                f"{elements:,} numbers, and the weight files hold {sizes.tensors:,} with "
                f"{sizes.elements:,}; get the whole checkpoint with its own config.json"
            )

    hooks = [
        torch_module.register_module_parameter_registration_hook(count),
        torch_module.register_module_buffer_registration_hook(count),
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
