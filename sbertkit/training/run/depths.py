"""How deep each parameter of a network lies: embeddings, layers from the lowest up, the rest."""

from torch import nn

from sbertkit.encoder.layers import layer_lists
from sbertkit.errors import InputError


class Depths:
    """The depths of a network's parameters: 0 for embeddings, 1 for the lowest layer, and so on.

    Layers are found by structure, as the modules of the list that has most of the parameters, so
    that models may call them as they like; other lists of the same length have parts of the same
    layers. Weights that all layers share are one layer. What goes before them and every
    embedding has depth 0; what follows is `top`: the last normalization, a dense layer or a head.

    Args:
        transformer: The encoder below the pooling.
        name: What messages call it.

    Attributes:
        layers: How many layers there are.
        top: The depth above the highest layer.

    Raises:
        InputError: There is no list of layers.
    """

    def __init__(self, transformer: nn.Module, name: str) -> None:
        lists = sorted(map(_flat, layer_lists(transformer).values()), key=_size, reverse=True)
        if not lists:
            raise InputError(
                f"{name} has no list of layers, by which they are found; train the whole encoder"
            )
        count = len(lists[0])
        self.layers = count
        self.top = count + 1
        self._known: dict[int, int] = {}
        for layers in lists:
            if len(layers) == count:
                for depth, layer in enumerate(layers, 1):
                    self._known |= {id(tensor): depth for tensor in layer.parameters()}
        for module in transformer.modules():
            if isinstance(module, nn.Embedding):
                self._known.setdefault(id(module.weight), 0)
        for tensor in transformer.parameters():  # in the order of the definition
            if self._known.get(id(tensor), 0):
                break
            self._known[id(tensor)] = 0

    def of(self, tensor: nn.Parameter) -> int:
        """The depth of a parameter; `top` for one of another module."""
        return self._known.get(id(tensor), self.top)

    def name(self, depth: int) -> str:
        """What the parameters of a depth are called."""
        if depth == 0:
            return "embeddings"
        return "head" if depth == self.top else f"layer {depth}"


def _flat(layers: nn.ModuleList) -> list[nn.Module]:
    """The modules of a list, and of lists in it, as of blocks of layers."""
    found: list[nn.Module] = []
    for layer in layers:
        found += _flat(layer) if isinstance(layer, nn.ModuleList) else [layer]
    return found


def _size(layers: list[nn.Module]) -> int:
    return sum(tensor.numel() for layer in layers for tensor in layer.parameters())
