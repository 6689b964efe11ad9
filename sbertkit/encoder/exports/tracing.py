"""From an encoder's torch network to a graph file, and from that to an 8-bit one."""

import copy
import io
import logging
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sbertkit.encoder.backends.inputs import graph_inputs
from sbertkit.encoder.backends.libraries import import_library
from sbertkit.encoder.batching import Batch, Padder
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
    names = ["input_ids", "attention_mask", "token_type_ids"]
    given = graph_inputs(batch, names if batch.types is not None else names[:2])
    traceable = copy.copy(network)
    traceable.eval()  # or the exporter would put its parts in training mode at the end
    traceable.pooling = _TraceablePooling(network.pooling)  # type: ignore[assignment]  # alike
    axes = {key: {0: "texts", 1: "tokens"} for key in given}
    written = io.BytesIO()  # the exporter opens no path that is not valid Unicode
    try:
        with _quiet():
            torch.onnx.export(
                traceable,
                tuple(torch.from_numpy(array) for array in given.values()),
                written,  # type: ignore[arg-type]  # not so said, but taken without dynamo
                input_names=list(given),
                output_names=["sentence_embedding"],
                dynamic_axes={**axes, "sentence_embedding": {0: "texts"}},
                opset_version=_OPSET,
                dynamo=False,
            )
    except OSError:  # it cannot write the file
        raise
    except Exception as error:  # the exporter passes on whatever a model raises
        reason = " ".join(str(error).split())[:200]
        raise InputError(
            f"{type(network.transformer).__name__} cannot be exported as a graph ({reason}); use "
            "backend torch"
        ) from error
    path.write_bytes(written.getbuffer())


def quantize_graph(source: Path, path: Path, batches: Iterable[Batch]) -> None:
    """Writes the graph with the products of weights and activations in 8 bits.

    Weights have one scale a column; activations one a product, so that the range it meets in the
    batches just fits (the widest activation is the last step of 255).

    Args:
        source: A graph in float32.
        path: The file to write.
        batches: What the model reads, to find the ranges of its activations.

    Raises:
        InputError: The graph cannot be quantized.
        MissingDependency: onnx or onnxruntime is missing.
    """
    import_library("onnxruntime")
    try:
        import onnx
        from onnxruntime import quantization
    except ImportError as error:
        raise MissingDependency('8 bits need onnx: pip install "sbertkit[cpu]"') from error

    class Reader(quantization.CalibrationDataReader):  # type: ignore[misc]  # has no types
        def __init__(self, names: Sequence[str]) -> None:
            self._given = (graph_inputs(batch, names) for batch in batches)

        def get_next(self) -> dict[str, npt.NDArray[np.int64]] | None:
            return next(self._given, None)

    try:
        graph = onnx.load(source).graph
        weights = {tensor.name for tensor in graph.initializer}
        products = [
            node.name
            for node in graph.node
            if node.op_type == "MatMul" and node.input[1] in weights
        ]
        with _quiet():
            quantization.quantize_static(
                source,
                path,
                Reader([given.name for given in graph.input]),
                quant_format=quantization.QuantFormat.QDQ,
                op_types_to_quantize=["MatMul"],
                nodes_to_quantize=products,
                per_channel=True,
                activation_type=quantization.QuantType.QUInt8,
                weight_type=quantization.QuantType.QInt8,
                extra_options={"OpTypesToExcludeOutputQuantization": ["MatMul"]},
            )
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
