"""Vectors of many poolings and layers from one pass over the texts."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn

from sbertkit.arrays import Vectors
from sbertkit.encoder.backends.torch import TorchBackend
from sbertkit.encoder.encoder import Encoder
from sbertkit.encoder.encoding import EncodingRun
from sbertkit.encoder.network import token_states
from sbertkit.encoder.pooling import Pooling
from sbertkit.encoder.report import EncodeStats
from sbertkit.encoder.torch_model import TorchModel
from sbertkit.errors import InputError


def encode_poolings(
    encoder: Encoder,
    texts: Sequence[str],
    poolings: Sequence[Pooling],
    *,
    progress: bool = False,
    stats: EncodeStats | None = None,
) -> dict[Pooling, Vectors]:
    """Vectors of the texts, (n, dim), under each pooling.

    The encoder's own post-processing follows each pooling, without a normalization at its end.

    Args:
        encoder: Whose weights, tokenizer and limit they are.
        texts: The texts.
        poolings: Each with the layers that it takes.
        progress: Show progress on standard error.
        stats: What happened to the texts is added to it.

    Raises:
        InputError: Vectors that are not finite, precision int8, or an exported encoder.
    """
    model, precision = encoder.torch, encoder.precision
    if precision == "int8":
        raise InputError("many poolings at once need torch: choose precision fp32 or bf16")
    network = _MultiPoolingNetwork(model, poolings)
    backend = TorchBackend(network, model.device, precision)
    run = EncodingRun(replace(model.spec, dim=network.dim), lambda _: backend)
    chunks = list(run.vectors(texts, progress=progress))
    if stats is not None:
        stats.merge(run.report())
    table = np.concatenate(chunks) if chunks else np.empty((0, network.dim), np.float32)
    columns = np.split(table, len(poolings), axis=1)
    return {
        pooling: np.ascontiguousarray(part) for pooling, part in zip(poolings, columns, strict=True)
    }


class _MultiPoolingNetwork(nn.Module):
    """Gives the vectors of all poolings side by side."""

    def __init__(self, model: TorchModel, poolings: Iterable[Pooling]) -> None:
        super().__init__()
        self.transformer = model.network.transformer
        self.poolings = tuple(poolings)
        self.postprocessors = nn.ModuleList(model.postprocessors_before_normalization)
        size = model.transformer.hidden_size
        for module in self.postprocessors:
            size = module.out_dim(size)  # type: ignore[operator]  # a PostProcessor
        self.dim = size * len(self.poolings)

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None
    ) -> Tensor:
        """Vectors (B, poolings x dim)."""
        inputs = input_ids, attention_mask, token_type_ids
        output = token_states(self.transformer, inputs, all_layers=True)
        vectors = []
        for pooling in self.poolings:
            pooled = pooling(output.last_hidden_state, output.hidden_states, attention_mask)
            for module in self.postprocessors:
                pooled = module(pooled)
            vectors.append(pooled)
        return torch.cat(vectors, dim=1)
