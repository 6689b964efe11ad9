"""The libraries that run exports, which not everybody has: importing them, and opening a model."""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from sbertkit.encoder.backends import BACKENDS
from sbertkit.encoder.backends.base import Backend
from sbertkit.encoder.backends.first_use import alone
from sbertkit.errors import MissingDependency


def backends_for(precision: str, backend: str) -> tuple[str, ...]:
    """The names of the backends that can run an export, the fastest first.

    Args:
        precision: What they have to compute in.
        backend: The one that is asked for; with ``auto`` those whose library is installed.
    """
    kinds = {name: kind for name, kind in BACKENDS.items() if kind.runs_exports}
    if backend in kinds:
        return (backend,)
    return tuple(
        name
        for name, kind in reversed(kinds.items())
        if backend == "auto" and precision in kind.precisions and find_spec(kind.library)
    )


def open_backend(name: str, model: Path, precision: str) -> Backend:
    """The backend of an ONNX model.

    Args:
        name: Of the backend.
        model: The file; its hash has been checked.
        precision: What to compute in.

    Raises:
        InputError: The library cannot run the model.
        MissingDependency: It is not installed.
    """
    backend: Backend = resolve_name(BACKENDS[name].backend)(model, precision)
    return backend


def import_library(backend: str) -> Any:
    """The library of the backend ``onnx`` or ``openvino``.

    Raises:
        MissingDependency: It is not installed.
    """
    kind = BACKENDS[backend]
    try:
        with alone():
            library = import_module(kind.library)
    except ImportError as error:
        # A signal that arrives while an extension module is made comes as the cause of this error.
        if error.__cause__ is not None and not isinstance(error.__cause__, Exception):
            raise error.__cause__ from None
        raise MissingDependency(
            f'this needs {kind.library}: pip install "sbertkit[{kind.extra}]", or choose backend '
            "torch"
        ) from error
    if backend == "onnx":  # the caller may have imported it before us
        library.disable_telemetry_events()
    return library
