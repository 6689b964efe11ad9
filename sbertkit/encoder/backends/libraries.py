"""Importing the libraries that run graphs, which not everybody has."""

from importlib import import_module
from typing import Any

from sbertkit.encoder.backends.first_use import alone
from sbertkit.errors import MissingDependency

_EXTRAS = {"onnxruntime": "cpu", "openvino": "openvino"}


def import_library(name: str) -> Any:
    """The library ``onnxruntime`` or ``openvino``.

    Raises:
        MissingDependency: It is not installed.
    """
    try:
        with alone():
            library = import_module(name)
    except ImportError as error:
        # A signal that arrives while an extension module is made comes as the cause of this error.
        if error.__cause__ is not None and not isinstance(error.__cause__, Exception):
            raise error.__cause__ from None
        raise MissingDependency(
            f'this needs {name}: pip install "sbertkit[{_EXTRAS[name]}]", or choose backend torch'
        ) from error
    if name == "onnxruntime":  # the caller may have imported it before us
        library.disable_telemetry_events()
    return library
