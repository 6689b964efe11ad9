"""The onnxruntime backend: one graph for everything from token ids to the vector, on the CPU."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sbertkit.arrays import Vectors
from sbertkit.encoder.backends.first_use import FirstUse, alone
from sbertkit.encoder.backends.inputs import graph_inputs
from sbertkit.encoder.backends.libraries import import_library
from sbertkit.encoder.backends.streams import run_streams, usable_cores
from sbertkit.encoder.batching import Batch
from sbertkit.errors import InputError

_NOT_FUSED = ["SkipLayerNormFusion"]
"""Sums and normalization in one step take several times as long as one after the other."""


class OnnxBackend:
    """Runs an exported graph, one batch a core at a time.

    Args:
        graph: The file; its hash has been checked.
        precision: What the graph computes in.

    Raises:
        InputError: onnxruntime cannot run the graph.
        MissingDependency: There is no onnxruntime.
    """

    batch_tokens = 1_024

    def __init__(self, graph: Path, precision: str) -> None:
        self._precision = precision  # the graph's own
        self._threads = usable_cores()
        self._graph = graph
        self._first_use = FirstUse()
        self._session = _session(graph)
        self._inputs = [given.name for given in self._session.get_inputs()]

    def __reduce__(self) -> tuple[type["OnnxBackend"], tuple[Path, str]]:
        return OnnxBackend, (self._graph, self._precision)

    def run(
        self,
        plan: Sequence[npt.NDArray[np.int64]],
        pad: Callable[[npt.NDArray[np.int64]], Batch],
        deliver: Callable[[npt.NDArray[np.int64], Vectors], None],
    ) -> None:
        """Runs all batches of a plan; see `Backend.run`."""

        def run_one(rows: npt.NDArray[np.int64]) -> None:
            deliver(rows, self._embed(pad(rows)))

        run_streams(run_one, plan, self._threads, self._first_use)

    def _embed(self, batch: Batch) -> Vectors:
        try:
            (vectors,) = self._session.run(None, graph_inputs(batch, self._inputs))
        except Exception as error:  # the library has no type of its own for all it may raise
            raise _refusal(self._graph, error) from error
        result: Vectors = vectors
        return result


def _session(graph: Path) -> Any:
    """A session whose calls each use the thread they come from, so that calls run side by side."""
    library = import_library("onnxruntime")
    options = library.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 4  # errors are raised
    # Batches have all sizes: a plan of memory for each would only be kept and never used again.
    options.enable_mem_pattern = False
    try:
        with alone():
            return library.InferenceSession(
                _opened(graph),
                sess_options=options,
                providers=["CPUExecutionProvider"],
                disabled_optimizers=_NOT_FUSED,
            )
    except Exception as error:  # as in `_embed`
        raise _refusal(graph, error) from error


def _opened(graph: Path) -> str | bytes:
    """What onnxruntime opens: the path, or the file's bytes where that is not valid Unicode."""
    try:
        str(graph).encode()
    except UnicodeEncodeError:
        return graph.read_bytes()
    return str(graph)


def _refusal(graph: Path, error: Exception) -> InputError:
    reason = " ".join(str(error).split())[:300]
    return InputError(f"onnxruntime cannot run {graph}: {reason}; use backend torch")
