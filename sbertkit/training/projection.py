"""A linear layer from a student's vectors to the size of its teacher's."""

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from sbertkit.encoder import Encoder
from sbertkit.encoder.postprocessors import Dense


class Projection(Dense):
    """A linear map that starts as truncation or padding, until it is fitted.

    It is a `Dense` of sentence-transformers, which every runtime runs, and not the teacher's
    vectors reduced to the student's size: so the student's vectors are comparable with those of the
    teacher, also where the student is larger, and an index that has them can be searched by it.

    Args:
        in_features: Size of the student's vectors.
        out_features: Size of the teacher's.
    """

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__(in_features, out_features, activation="Identity")
        nn.init.eye_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def fit(self, given: npt.NDArray[np.floating], wanted: npt.NDArray[np.floating]) -> None:
        """Takes the map that is nearest, by least squares.

        Args:
            given: Vectors of the student, (n, in_features).
            wanted: Those of the teacher, (n, out_features).
        """
        rows = np.column_stack([given, np.ones(len(given))]).astype(np.float64)
        solution, *_ = np.linalg.lstsq(rows, wanted.astype(np.float64), rcond=1e-6)
        with torch.no_grad():
            self.linear.weight.copy_(torch.from_numpy(solution[:-1].T))
            self.linear.bias.copy_(torch.from_numpy(solution[-1]))


def with_projection(encoder: Encoder, dim: int) -> Encoder:
    """The encoder with a `Projection` to vectors of a size, before a normalization at its end."""
    model = encoder.torch
    before = model.postprocessors_before_normalization
    inputs = encoder.variant(model.network.pooling, before).dim
    after = model.postprocessors[len(before) :]
    return encoder.variant(model.network.pooling, [*before, Projection(inputs, dim), *after])


def fit_projection(encoder: Encoder, texts: list[str], wanted: npt.NDArray[np.floating]) -> None:
    """Fits the `Projection` of an encoder, where it has one.

    Args:
        encoder: Whose vectors without it are taken.
        texts: Some texts.
        wanted: The teacher's vectors of them, (n, dim).
    """
    model = encoder.torch
    for place, module in enumerate(model.postprocessors):
        if isinstance(module, Projection):
            plain = encoder.variant(model.network.pooling, model.postprocessors[:place])
            module.fit(plain.encode(texts), wanted)
            model.weights_changed()
