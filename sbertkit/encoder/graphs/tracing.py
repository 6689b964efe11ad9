"""From an encoder's torch network to a graph file, and from that to an 8-bit one."""

import copy
import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from sbertkit.encoder.backends.libraries import import_library
from sbertkit.encoder.batching import Padder
from sbertkit.encoder.network import Network
from sbertkit.encoder.pooling import Pooling
from sbertkit.encoder.tokenization import Tokens
from sbertkit.encoder.transformer import quiet_transformers
from sbertkit.errors import InputError, MissingDependency

_OPSET = 17
_LARGEST_BYTES = 2**31 - 2**20
"""A graph file cannot be larger: protobuf counts with 32 bits."""


class _TraceablePooling:
    """A pooling whose graph works for any number of texts.

    `Pooling` picks tokens by a list of row numbers, which a trace would keep as it was.
    """

    def __init__(self, pooling: Pooling) -> None:
        self._pooling = pooling
        self.name = pooling.name
        self.layers = pooling.layers

    def __call__(
        self, output: Tensor, hidden_states: Sequence[Tensor] | None, mask: Tensor
    ) -> Tensor:
        """As `Pooling.__call__`."""
        if self.name not in ("cls", "eos"):
            return self._pooling(output, hidden_states, mask)
        if self.layers and hidden_states is not None:
            output = torch.stack([hidden_states[layer] for layer in self.layers]).mean(dim=0)
        if self.name == "cls":
            place = mask.argmax(dim=1)
        else:
            place = mask.shape[1] - 1 - mask.flip(1).argmax(dim=1)
        chosen = place[:, None, None].expand(-1, 1, output.shape[2])  # (B, 1, dim)
        return output.gather(1, chosen).squeeze(1)


def trace_graph(network: Network, padder: Padder, tokens: Sequence[Tokens], path: Path) -> None:
    """Writes the graph of a network as an ONNX file in float32.

    Args:
        network: On the CPU, in evaluation mode.
        padder: Of the encoder.
        tokens: Of texts of different lengths, to trace with.
        path: The file to write.

    Raises:
        InputError: The network cannot be traced, or is too large for one file.
    """
    size = sum(tensor.numel() * 4 for tensor in network.parameters())
    if size > _LARGEST_BYTES:
        raise InputError(
            f"the model has {size / 1e9:.1f} GB of weights, and one graph file holds at most 2; "
            "use backend torch"
        )
    batch = padder.pad(tokens, np.arange(len(tokens)))
    given = {"input_ids": batch.input_ids, "attention_mask": batch.mask}
    if batch.types is not None:
        given["token_type_ids"] = batch.types
    traceable = copy.copy(network)
    traceable.eval()  # or the exporter would put its parts in training mode at the end
    traceable.pooling = _TraceablePooling(network.pooling)  # type: ignore[assignment]  # alike
    axes = {key: {0: "texts", 1: "tokens"} for key in given}
    try:
        with _quiet():
            torch.onnx.export(
                traceable,
                tuple(torch.from_numpy(array) for array in given.values()),
                str(path),
                input_names=list(given),
                output_names=["sentence_embedding"],
                dynamic_axes={**axes, "sentence_embedding": {0: "texts"}},
                opset_version=_OPSET,
                dynamo=False,
            )
    except Exception as error:  # the exporter passes on whatever a model raises
        reason = " ".join(str(error).split())[:200]
        raise InputError(
            f"{type(network.transformer).__name__} cannot be exported as a graph ({reason}); use "
            "backend torch"
        ) from error


def quantize_graph(source: Path, path: Path) -> None:
    """Writes the graph with 8-bit weights, one scale a column, and activations scaled as they come.

    Args:
        source: A graph in float32.
        path: The file to write.

    Raises:
        InputError: The graph cannot be quantized.
        MissingDependency: onnx or onnxruntime is missing.
    """
    import_library("onnxruntime")
    try:
        from onnxruntime.quantization import QuantType, quantize_dynamic
    except ImportError as error:
        raise MissingDependency('8 bits need onnx: pip install "sbertkit[cpu]"') from error
    try:
        with _quiet():
            quantize_dynamic(source, path, per_channel=True, weight_type=QuantType.QInt8)
    except Exception as error:  # the library has no type of its own
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"{source} cannot be quantized: {reason}; use precision fp32") from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Keeps what exporters say of their inner workings off the screen."""
    root = logging.getLogger()
    level = root.level
    with quiet_transformers(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        root.setLevel(logging.ERROR)  # quantization speaks to the root logger
        try:
            yield
        finally:
            root.setLevel(level)
