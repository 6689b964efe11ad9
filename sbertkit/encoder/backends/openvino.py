"""The OpenVINO backend: the ONNX model in float32, bfloat16 or 8 bits on the CPU."""

import ctypes
import os
import sys
import threading
import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from sbertkit.arrays import Vectors
from sbertkit.encoder.backends.first_use import FirstUse, alone
from sbertkit.encoder.backends.inputs import onnx_inputs
from sbertkit.encoder.backends.libraries import import_library
from sbertkit.encoder.backends.streams import Streams, usable_cores
from sbertkit.encoder.batching import Batch
from sbertkit.errors import InputError

_BF16 = "BF16"
"""The capability of a CPU that computes in bfloat16 itself."""


class OpenvinoBackend:
    """Runs an ONNX model, one batch per core at a time.

    Args:
        model: The file; its hash has been checked.
        precision: ``fp32``; ``bf16`` for matrix products in 16 bits; or ``int8`` for a model whose
            products are in 8 bits, what is between them in 16 where the CPU can.

    Raises:
        InputError: OpenVINO cannot run the model.
        MissingDependency: OpenVINO is not installed.
    """

    batch_tokens = 1_024

    def __init__(self, model: Path, precision: str) -> None:
        self._model = model
        self._precision = precision
        self._cores = usable_cores()
        self.first_use = FirstUse()
        self._compile()
        _alive.add(self)

    def __reduce__(self) -> tuple[type["OpenvinoBackend"], tuple[Path, str]]:
        return OpenvinoBackend, (self._model, self._precision)

    def streams(self, batches: int) -> AbstractContextManager[Streams]:  # noqa: ARG002
        """One per core."""
        return nullcontext(Streams(self._cores))

    def embed(self, batch: Batch) -> Vectors:
        """The vectors of a batch, (B, dim)."""
        if self._compiled is None:  # in a forked process, by its first batch, which runs alone
            self._compile()
        try:
            if not hasattr(self._requests, "one"):
                self._requests.one = self._compiled.create_infer_request()
            (vectors,) = self._requests.one.infer(onnx_inputs(batch, self._inputs)).values()
        except Exception as error:  # the library has no type of its own
            raise self._refusal(error) from error
        result: Vectors = np.array(vectors, np.float32)
        return result

    def _compile(self) -> None:
        with alone():
            core = import_library("openvino").Core()
            try:
                with _kept_signal_stack():
                    self._compiled: Any = core.compile_model(
                        str(self._model), "CPU", self._settings(core)
                    )
                self._inputs = [given.get_any_name() for given in self._compiled.inputs]
            except Exception as error:  # as above
                raise self._refusal(error) from error
        self._requests = threading.local()

    def _settings(self, core: Any) -> dict[str, object]:
        capable = _BF16 in core.get_property("CPU", "OPTIMIZATION_CAPABILITIES")
        halves = self._precision == "bf16" or (self._precision == "int8" and capable)
        return {
            "INFERENCE_PRECISION_HINT": "bf16" if halves else "f32",
            "NUM_STREAMS": self._cores,
            "INFERENCE_NUM_THREADS": self._cores,
            "ENABLE_CPU_PINNING": False,
        }

    def _refusal(self, error: Any) -> InputError:
        reason = " ".join(str(error).split())[:300]
        return InputError(f"OpenVINO cannot run {self._model}: {reason}; use backend onnx or torch")


_alive: "weakref.WeakSet[OpenvinoBackend]" = weakref.WeakSet()


def _drop_compiled() -> None:
    """Parts a forked process from what its parent compiled, whose threads it does not have."""
    for backend in _alive:
        # To free it would wait for these threads: one reference more, and it is never freed.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(backend._compiled))
        backend._compiled = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_drop_compiled)


class _Stack(ctypes.Structure):
    """``stack_t`` of Linux."""

    _fields_ = (("start", ctypes.c_void_p), ("flags", ctypes.c_int), ("size", ctypes.c_size_t))


@contextmanager
def _kept_signal_stack() -> Iterator[None]:
    """Gives the thread its signal stack back after the block.

    OpenVINO sets one when it loads its CPU plugin and unmaps it when the plugin goes; with two of
    them, or another thread that frees, the thread is left with memory that is not there any more,
    and the next signal, such as that of Ctrl-C, ends the process.
    """
    if sys.platform != "linux":
        yield
        return
    library = ctypes.CDLL(None)
    stack = _Stack()
    known = library.sigaltstack(None, ctypes.byref(stack)) == 0
    try:
        yield
    finally:
        if known:
            library.sigaltstack(ctypes.byref(stack), None)
