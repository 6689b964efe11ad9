"""What is tried: poolings over layers, and what is fitted after them."""

from dataclasses import dataclass

import numpy as np

from sbertkit.encoder import Encoder
from sbertkit.encoder.pooling import Pooling
from sbertkit.encoder.whitening import FITS

POOLINGS = ("mean", "cls", "max", "eos", "weighted_mean")
"""Without ``mean_sqrt_len``, which has the direction of ``mean``."""
_MOST_LAYERS = 6


@dataclass(frozen=True, slots=True)
class Candidate:
    """A way to get vectors from an encoder.

    Attributes:
        pooling: With its layers; none for the model's output.
        step: What is fitted after the encoder's own post-processing, by its name in
            `sbertkit.encoder.whitening.FITS`; None for nothing.
    """

    pooling: Pooling
    step: str | None

    def __str__(self) -> str:
        layers = self.pooling.layers
        where = f" of layer {layers[0]}" if len(layers) == 1 else ""
        if len(layers) > 1:
            where = f" of layers {', '.join(map(str, layers))}"
        name = "mean" if self.pooling.name == "first_last" else self.pooling.name
        return f"{name}{where}{f', {self.step}' if self.step else ''}"


def poolings_of(encoder: Encoder) -> list[Pooling]:
    """The poolings to try, the encoder's own first.

    Of many layers six are tried, evenly spaced up to the last; averages of the first and the last,
    of the last two, and of all layers are tried with the mean.
    """
    count = encoder.transformer.layer_count
    layers = np.unique(np.linspace(1, count, min(count, _MOST_LAYERS)).round().astype(int))
    names = [name for name in POOLINGS if name != "eos" or encoder.tokenizer.special.after]
    found = [encoder.network.pooling]
    # The model's output is its last layer, but for a norm that some models put after it.
    found += [Pooling(name) for name in names]
    found += [Pooling(name, (layer,)) for name in names for layer in layers[:-1].tolist()]
    found.append(Pooling.named("first_last", count))
    averages = [(count - 1, count), tuple(range(1, count + 1))]
    found += [Pooling("mean", layers) for layers in averages if len(layers) > 1 and layers[0] > 0]
    return list(dict.fromkeys(found))


def steps() -> list[str | None]:
    """The post-processing to try: none, then all that can be fitted."""
    return [None, *FITS]
