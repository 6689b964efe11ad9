"""The onnxruntime backend: one ONNX model from token ids to the vector, on the CPU."""

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from sbertkit.arrays import Vectors
from sbertkit.encoder.backends.first_use import FirstUse, alone
from sbertkit.encoder.backends.inputs import onnx_inputs
from sbertkit.encoder.backends.libraries import import_library
from sbertkit.encoder.backends.streams import Streams, usable_cores
from sbertkit.encoder.batching import Batch
from sbertkit.errors import InputError

_NOT_FUSED = ["SkipLayerNormFusion"]
"""Sums and normalization in one step take several times as long as one after the other."""


class OnnxBackend:
    """Runs an ONNX model, one batch per core at a time.

    Args:
        model: The file; its hash has been checked.
        precision: What the model computes in.

    Raises:
        InputError: onnxruntime cannot run the model.
        MissingDependency: onnxruntime is not installed.
    """

    batch_tokens = 1_024

    def __init__(self, model: Path, precision: str) -> None:
        self._precision = precision  # the model's own
        self._cores = usable_cores()
        self._model = model
        self.first_use = FirstUse()
        self._session = _session(model)
        self._inputs = [given.name for given in self._session.get_inputs()]

    def __reduce__(self) -> tuple[type["OnnxBackend"], tuple[Path, str]]:
        return OnnxBackend, (self._model, self._precision)

    def streams(self, batches: int) -> AbstractContextManager[Streams]:  # noqa: ARG002
        """One per core."""
        return nullcontext(Streams(self._cores))

    def embed(self, batch: Batch) -> Vectors:
        """The vectors of a batch, (B, dim)."""
        try:
            (vectors,) = self._session.run(None, onnx_inputs(batch, self._inputs))
        except Exception as error:  # the library has no type of its own for all it may raise
            raise _refusal(self._model, error) from error
        result: Vectors = vectors
        return result


def _session(model: Path) -> Any:
    """A session whose calls each use the thread they come from, so that calls run side by side."""
    library = import_library("onnx")
    options = library.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 4  # errors are raised
    # Batches have all sizes: a plan of memory for each would only be kept and never used again.
    options.enable_mem_pattern = False
    try:
        with alone():
            return library.InferenceSession(
                _path_or_bytes(model),
                sess_options=options,
                providers=["CPUExecutionProvider"],
                disabled_optimizers=_NOT_FUSED,
            )
    except Exception as error:  # as in `embed`
        raise _refusal(model, error) from error


def _path_or_bytes(model: Path) -> str | bytes:
    """What onnxruntime opens: the path, or the file's bytes where that is not valid Unicode."""
    try:
        str(model).encode()
    except UnicodeEncodeError:
        return model.read_bytes()
    return str(model)


def _refusal(model: Path, error: Exception) -> InputError:
    reason = " ".join(str(error).split())[:300]
    return InputError(f"onnxruntime cannot run {model}: {reason}; use backend torch")
