"""The libraries that run graphs: which of them serves, and opening one."""

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from sbertkit.arrays import Vectors
from sbertkit.encoder.backends import Backend
from sbertkit.encoder.backends.onnx import OnnxBackend
from sbertkit.encoder.backends.openvino import OpenvinoBackend
from sbertkit.encoder.exports.manifest import GRAPH_FILE
from sbertkit.encoder.exports.probes import least_cosine
from sbertkit.errors import InputError

_PRECISIONS = {"openvino": ("fp32", "bf16", "int8"), "onnx": ("fp32", "int8")}
"""By the backend's name, the fastest first."""
_LIBRARIES = {"openvino": "openvino", "onnx": "onnxruntime"}
_BACKENDS: dict[str, Callable[[Path, str], Backend]] = {
    "openvino": OpenvinoBackend,
    "onnx": OnnxBackend,
}

LARGEST_DIFFERENCE = 1e-4
"""To torch in float32, relative to the largest component."""
LEAST_COSINE = {"fp32": 0.999, "bf16": 0.999, "int8": 0.9}
"""To torch in float32 on every probe text; less than that is not what the precision costs."""


def engines_for(precision: str, backend: str) -> tuple[str, ...]:
    """The backends that serve, the fastest first; with ``auto`` those whose library is here."""
    if backend in _PRECISIONS:
        return (backend,)
    return tuple(
        name
        for name, possible in _PRECISIONS.items()
        if backend == "auto" and precision in possible and find_spec(_LIBRARIES[name]) is not None
    )


def graph_precision(precision: str) -> str:
    """The precision of the graph file that an encoder of some precision runs."""
    return "int8" if precision == "int8" else "fp32"


def open_engine(name: str, folder: Path, precision: str) -> Backend:
    """The backend of an export.

    Args:
        name: ``onnx`` or ``openvino``.
        folder: The export; its hashes have been checked.
        precision: What to compute in.

    Raises:
        InputError: The library cannot run the graph.
        MissingDependency: It is not installed.
    """
    return _BACKENDS[name](folder / GRAPH_FILE, precision)


def check_equal(expected: Vectors, found: Vectors, precision: str, model: str) -> None:
    """Refuses vectors of the probe texts that are not those of torch in float32.

    Raises:
        InputError: They differ by more than the precision explains.
    """
    if precision == "fp32":
        difference = float(np.abs(expected - found).max() / np.abs(expected).max())
        equal = difference <= LARGEST_DIFFERENCE
        told = f"largest difference {difference:.1e}, expected at most {LARGEST_DIFFERENCE:.0e}"
    else:
        cosine = least_cosine(expected, found)
        equal = cosine >= LEAST_COSINE[precision]
        told = f"least cosine {cosine:.4f}, expected at least {LEAST_COSINE[precision]}"
    if not equal:
        remedy = "use backend torch" if precision != "int8" else "use precision bf16 or fp32"
        raise InputError(
            f"the graph of {model} computes something else than torch ({told}); {remedy}"
        )
