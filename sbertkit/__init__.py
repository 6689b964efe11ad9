"""sbertkit: sentence embeddings, durable semantic search and numbers that can be trusted.

The names below are loaded on first use, so that ``import sbertkit`` stays light.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sbertkit.data import Document, ReadOptions
    from sbertkit.encoder import Encoded, Encoder, EncodeReport, encode_corpus
    from sbertkit.errors import (
        DamagedIndex,
        InputError,
        InputTypeError,
        MissingDependency,
        MissingFile,
        ModelMismatch,
        NewerFormat,
        SbertkitError,
        StorageError,
        UnknownId,
    )
    from sbertkit.evaluation import StsResult, evaluate_sts
    from sbertkit.retrieval import Hit, IndexInfo, Problem, SearchIndex, index_info, verify_index

__version__ = "0.1.0"

_MODULE_OF = {
    "DamagedIndex": "errors",
    "Document": "data",
    "EncodeReport": "encoder",
    "Encoded": "encoder",
    "Encoder": "encoder",
    "Hit": "retrieval",
    "IndexInfo": "retrieval",
    "InputError": "errors",
    "InputTypeError": "errors",
    "MissingDependency": "errors",
    "MissingFile": "errors",
    "ModelMismatch": "errors",
    "NewerFormat": "errors",
    "Problem": "retrieval",
    "ReadOptions": "data",
    "SbertkitError": "errors",
    "SearchIndex": "retrieval",
    "StorageError": "errors",
    "StsResult": "evaluation",
    "UnknownId": "errors",
    "encode_corpus": "encoder",
    "evaluate_sts": "evaluation",
    "index_info": "retrieval",
    "verify_index": "retrieval",
}

__all__ = [
    "DamagedIndex",
    "Document",
    "EncodeReport",
    "Encoded",
    "Encoder",
    "Hit",
    "IndexInfo",
    "InputError",
    "InputTypeError",
    "MissingDependency",
    "MissingFile",
    "ModelMismatch",
    "NewerFormat",
    "Problem",
    "ReadOptions",
    "SbertkitError",
    "SearchIndex",
    "StorageError",
    "StsResult",
    "UnknownId",
    "encode_corpus",
    "evaluate_sts",
    "index_info",
    "verify_index",
]


def __getattr__(name: str) -> object:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module 'sbertkit' has no attribute {name!r}")
    value: object = getattr(import_module(f"sbertkit.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
