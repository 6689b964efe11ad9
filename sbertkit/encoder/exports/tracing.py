"""From an encoder's torch network to an ONNX model, and from that to an 8-bit one."""

import io
import logging
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from sbertkit.encoder.backends.inputs import onnx_inputs
from sbertkit.encoder.backends.libraries import import_library
from sbertkit.encoder.batching import Batch, BatchCollator
from sbertkit.encoder.network import Network
from sbertkit.encoder.tokenization import Tokens
from sbertkit.encoder.transformer import quiet_transformers
from sbertkit.errors import InputError, MissingDependency

_OPSET = 17
_MAX_BYTES = 2**31 - 2**20
"""An ONNX file cannot be larger: protobuf counts with 32 bits."""


def trace_model(
    network: Network,
    collator: BatchCollator,
    tokens: Sequence[Tokens],
    path: Path,
    *,
    output: str = "sentence_embedding",
) -> None:
    """Writes a network as an ONNX model in float32.

    Args:
        network: On the CPU; it is put in evaluation mode.
        collator: Of the encoder.
        tokens: Of texts of different lengths, to trace with.
        path: The file to write.
        output: Name of what it gives.

    Raises:
        InputError: The network cannot be traced, or is too large for one file.
    """
    size = sum(tensor.numel() * 4 for tensor in network.parameters())
    if size > _MAX_BYTES:
        raise InputError(
            f"the model has {size / 1e9:.1f} GB of weights, and one ONNX file holds at most 2; "
            "use backend torch"
        )
    batch = collator.collate(tokens, np.arange(len(tokens)))
    names = ["input_ids", "attention_mask", "token_type_ids"]
    given = onnx_inputs(batch, names if batch.token_type_ids is not None else names[:2])
    network.eval()  # or the exporter would put its parts in training mode at the end
    axes = {key: {0: "texts", 1: "tokens"} for key in given}
    written = io.BytesIO()  # the exporter opens no path that is not valid Unicode
    try:
        with _quiet():
            torch.onnx.export(
                network,
                tuple(torch.from_numpy(array) for array in given.values()),
                written,  # type: ignore[arg-type]  # not in its types, but taken without dynamo
                input_names=list(given),
                output_names=[output],
                dynamic_axes={**axes, output: {0: "texts"}},
                opset_version=_OPSET,
                dynamo=False,
            )
    except OSError:  # it cannot write the file
        raise
    except Exception as error:  # the exporter passes on whatever a model raises
        reason = " ".join(str(error).split())[:200]
        raise InputError(
            f"{type(network.transformer).__name__} cannot be exported to ONNX ({reason}); use "
            "backend torch"
        ) from error
    path.write_bytes(written.getbuffer())


def quantize_model(source: Path, path: Path, batches: Iterable[Batch]) -> None:
    """Writes an ONNX model with the products of weights and activations in 8 bits.

    Weights have one scale per column; activations one per product, so that its range in the
    batches just fits (the widest activation is the last of 255 levels).

    Args:
        source: The model in float32.
        path: The file to write.
        batches: What the model reads, to find the ranges of its activations.

    Raises:
        InputError: The model cannot be quantized.
        MissingDependency: onnx or onnxruntime is missing.
    """
    import_library("onnx")
    try:
        import onnx
        from onnxruntime import quantization
    except ImportError as error:
        raise MissingDependency('8 bits need onnx: pip install "sbertkit[cpu]"') from error

    class Reader(quantization.CalibrationDataReader):  # type: ignore[misc]  # has no types
        def __init__(self, names: Sequence[str]) -> None:
            self._given = (onnx_inputs(batch, names) for batch in batches)

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

    def is_error(record: logging.LogRecord) -> bool:
        return record.levelno >= logging.ERROR

    # Quantization speaks to the root logger itself, whose filter is asked for nothing else.
    root = logging.getLogger()
    with quiet_transformers(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        root.addFilter(is_error)
        try:
            yield
        finally:
            root.removeFilter(is_error)
