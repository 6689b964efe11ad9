"""Vectors of many poolings and layers from one pass over the texts."""

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from sbertkit.arrays import Vectors
from sbertkit.encoder.backends.torch import TorchBackend
from sbertkit.encoder.encoder import Encoder
from sbertkit.encoder.encoding import EncodingRun, RunSettings
from sbertkit.encoder.pooling import Pooling
from sbertkit.errors import InputError


def encode_grid(
    encoder: Encoder, texts: Sequence[str], poolings: Sequence[Pooling], *, progress: bool = False
) -> dict[Pooling, Vectors]:
    """Vectors of the texts, (n, dim), under each pooling.

    The encoder's own post-processing follows each pooling, without a normalization at its end.

    Args:
        encoder: Whose weights, tokenizer and limit they are.
        texts: The texts.
        poolings: Each with the layers that it takes.
        progress: Show progress on standard error.

    Raises:
        InputError: Vectors that are not finite, precision int8, or an exported graph.
    """
    precision = encoder.precision
    if precision == "int8":
        raise InputError("many poolings at once need torch: choose precision fp32 or bf16")
    network = _GridNetwork(encoder, poolings)
    backend = TorchBackend(network, next(encoder.network.parameters()).device, precision)
    run = EncodingRun(
        encoder.tokenizer,
        encoder.padder,
        lambda _: backend,
        dim=network.dim,
        settings=RunSettings(
            max_tokens=encoder.max_tokens,
            prompt=encoder.prompts.document,
            blank_allowed=True,
            batch_tokens=None,
        ),
    )
    parts = list(run.vectors(texts, progress=progress))
    table = np.concatenate(parts) if parts else np.empty((0, network.dim), np.float32)
    columns = np.split(table, len(poolings), axis=1)
    return {
        pooling: np.ascontiguousarray(part) for pooling, part in zip(poolings, columns, strict=True)
    }


class _GridNetwork(nn.Module):
    """Gives the vectors of all poolings side by side."""

    def __init__(self, encoder: Encoder, poolings: Iterable[Pooling]) -> None:
        super().__init__()
        self.transformer = encoder.network.transformer
        self.poolings = tuple(poolings)
        self.steps = nn.ModuleList(encoder.steps_before_normalization)
        size = encoder.transformer.hidden_size
        for step in self.steps:
            size = step.out_dim(size)  # type: ignore[operator]  # a Step
        self.dim = size * len(self.poolings)

    def forward(self, input_ids: Tensor, mask: Tensor, types: Tensor | None = None) -> Tensor:
        """Vectors (B, poolings x dim)."""
        extra = {} if types is None else {"token_type_ids": types}
        output = self.transformer(
            input_ids=input_ids, attention_mask=mask, output_hidden_states=True, **extra
        )
        vectors = []
        for pooling in self.poolings:
            pooled = pooling(output.last_hidden_state, output.hidden_states, mask)
            for step in self.steps:
                pooled = step(pooled)
            vectors.append(pooled)
        return torch.cat(vectors, dim=1)
