"""The configurations to try: poolings over layers, each with each post-processor."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sbertkit.encoder import Encoder
from sbertkit.encoder.pooling import POOLINGS, Pooling
from sbertkit.encoder.whitening import FITTERS, post_processed

_LEFT_OUT = ("mean_sqrt_len", "first_last")
"""The former has the direction of ``mean``; the latter is tried for the whole model alone."""
_MAX_LAYERS = 6


@dataclass(frozen=True, slots=True)
class Candidate:
    """A configuration of an encoder.

    Attributes:
        pooling: The pooling and its layers; no layers stand for the model's output.
        postprocessor: What is fitted after the encoder's own post-processing, by its name in
            `sbertkit.encoder.whitening.FITTERS`; None for nothing.
    """

    pooling: Pooling
    postprocessor: str | None

    def __str__(self) -> str:
        layers = self.pooling.layers
        where = f" of layer {layers[0]}" if len(layers) == 1 else ""
        if len(layers) > 1:
            where = f" of layers {', '.join(map(str, layers))}"
        name = "mean" if self.pooling.name == "first_last" else self.pooling.name
        return f"{name}{where}{f', {self.postprocessor}' if self.postprocessor else ''}"

    def apply(self, encoder: Encoder, texts: Sequence[str]) -> Encoder:
        """The encoder in this configuration, its post-processor fitted on the texts.

        Raises:
            InputError: The texts are too few or too similar for the post-processor.
        """
        pooled = encoder.variant(self.pooling, encoder.torch.postprocessors)
        return post_processed(pooled, self.postprocessor, texts) if self.postprocessor else pooled


def poolings_of(encoder: Encoder) -> list[Pooling]:
    """The poolings to try, the encoder's current one first.

    Of many layers six are tried, evenly spaced up to the last; averages of the first and the last,
    of the last two, and of all layers are tried with the mean.
    """
    count = encoder.torch.transformer.layer_count
    layers = np.unique(np.linspace(1, count, min(count, _MAX_LAYERS)).round().astype(int))
    names = [
        kind.name
        for kind in POOLINGS.values()
        if kind.name not in _LEFT_OUT
        and (encoder.tokenizer.special.after or not kind.needs_end_token)
    ]
    found = [encoder.torch.network.pooling]
    # The model's output is its last layer, except for a norm that some models add.
    found += [Pooling(name) for name in names]
    found += [Pooling(name, (layer,)) for name in names for layer in layers[:-1].tolist()]
    found.append(Pooling.named("first_last", count))
    averages = [(count - 1, count), tuple(range(1, count + 1))]
    found += [Pooling("mean", layers) for layers in averages if len(layers) > 1 and layers[0] > 0]
    return list(dict.fromkeys(found))


def candidates_of(encoder: Encoder) -> list[Candidate]:
    """All configurations to try, the encoder's current one first."""
    return [
        Candidate(pooling, postprocessor)
        for pooling in poolings_of(encoder)
        for postprocessor in (None, *FITTERS)
    ]
