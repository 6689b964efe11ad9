"""Loading sentence encoders and turning texts into vectors.

The names are loaded on first use: the tables of poolings and backends need none of what they need.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sbertkit.encoder.corpus import encode_corpus
    from sbertkit.encoder.encoder import Encoder
    from sbertkit.encoder.report import Encoded, EncodeReport

_MODULE_OF = {
    "EncodeReport": "report",
    "Encoded": "report",
    "Encoder": "encoder",
    "encode_corpus": "corpus",
}

__all__ = ["EncodeReport", "Encoded", "Encoder", "encode_corpus"]


def __getattr__(name: str) -> object:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{module}"), name)
