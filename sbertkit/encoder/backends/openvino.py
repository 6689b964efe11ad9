"""The OpenVINO backend: the graph in float32 or bfloat16 on the CPU."""

import ctypes
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sbertkit.arrays import Vectors
from sbertkit.encoder.backends.first_use import FirstUse, alone
from sbertkit.encoder.backends.inputs import graph_inputs
from sbertkit.encoder.backends.libraries import import_library
from sbertkit.encoder.backends.signal_stack import kept_signal_stack
from sbertkit.encoder.backends.streams import run_streams, usable_cores
from sbertkit.encoder.batching import Batch
from sbertkit.errors import InputError

_BF16 = "BF16"
"""What a CPU is said to be capable of that computes in bfloat16 itself."""


_alive: "weakref.WeakSet[OpenvinoBackend]" = weakref.WeakSet()


def _let_go() -> None:
    """Parts a forked process from what its parent compiled, whose threads it does not have."""
    for backend in _alive:
        # To free it would wait for these threads: one reference more, and it is never freed.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(backend._compiled))
        backend._compiled = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)


class OpenvinoBackend:
    """Runs an exported graph, one batch a core at a time.

    Args:
        graph: The file; its hash has been checked.
        precision: ``fp32``; ``bf16`` for matrix products in 16 bits; or ``int8`` for a graph whose
            products are in 8 bits, what is between them in 16 where the CPU can.

    Raises:
        InputError: OpenVINO cannot run the graph.
        MissingDependency: There is no OpenVINO.
    """

    batch_tokens = 1_024

    def __init__(self, graph: Path, precision: str) -> None:
        self._graph = graph
        self._precision = precision
        self._streams = usable_cores()
        self._compiled: Any = None
        with alone():
            self._compile()
        _alive.add(self)

    def __reduce__(self) -> tuple[type["OpenvinoBackend"], tuple[Path, str]]:
        return OpenvinoBackend, (self._graph, self._precision)

    def run(
        self,
        plan: Sequence[npt.NDArray[np.int64]],
        pad: Callable[[npt.NDArray[np.int64]], Batch],
        deliver: Callable[[npt.NDArray[np.int64], Vectors], None],
    ) -> None:
        """Runs all batches of a plan; see `Backend.run`."""
        if self._compiled is None:  # as after a fork
            with alone():
                if self._compiled is None:
                    self._compile()

        def run_one(rows: npt.NDArray[np.int64]) -> None:
            deliver(rows, self._embed(pad(rows)))

        run_streams(run_one, plan, self._streams, self._first_use)

    def _compile(self) -> None:
        core = import_library("openvino").Core()
        with kept_signal_stack():
            capable = _BF16 in core.get_property("CPU", "OPTIMIZATION_CAPABILITIES")
        halves = self._precision == "bf16" or (self._precision == "int8" and capable)
        settings = {
            "INFERENCE_PRECISION_HINT": "bf16" if halves else "f32",
            "NUM_STREAMS": self._streams,
            "INFERENCE_NUM_THREADS": self._streams,
            "ENABLE_CPU_PINNING": False,
        }
        try:
            with kept_signal_stack():
                compiled = core.compile_model(str(self._graph), "CPU", settings)
            self._inputs = [given.get_any_name() for given in compiled.inputs]
        except Exception as error:  # the library has no type of its own
            raise self._refusal(error) from error
        self._first_use = FirstUse()
        self._requests = threading.local()
        self._compiled = compiled

    def _embed(self, batch: Batch) -> Vectors:
        try:
            if not hasattr(self._requests, "one"):
                self._requests.one = self._compiled.create_infer_request()
            (vectors,) = self._requests.one.infer(graph_inputs(batch, self._inputs)).values()
        except Exception as error:  # as above
            raise self._refusal(error) from error
        result: Vectors = np.array(vectors, np.float32)
        return result

    def _refusal(self, error: Any) -> InputError:
        reason = " ".join(str(error).split())[:300]
        return InputError(f"OpenVINO cannot run {self._graph}: {reason}; use backend onnx or torch")
