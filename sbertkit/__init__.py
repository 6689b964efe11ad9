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
        TrainingStopped,
        UnknownId,
    )
    from sbertkit.evaluation import StsResult, evaluate_sts
    from sbertkit.retrieval import Hit, IndexInfo, Problem, SearchIndex, index_info, verify_index
    from sbertkit.training import (
        ClassifiedPair,
        Quality,
        TrainConfig,
        TrainResult,
        classify_pairs,
        train_nli,
    )

__version__ = "0.1.0"

_MODULE_OF = {
    "ClassifiedPair": "training",
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
    "Quality": "training",
    "ReadOptions": "data",
    "SbertkitError": "errors",
    "SearchIndex": "retrieval",
    "StorageError": "errors",
    "StsResult": "evaluation",
    "TrainConfig": "training",
    "TrainResult": "training",
    "TrainingStopped": "errors",
    "UnknownId": "errors",
    "classify_pairs": "training",
    "encode_corpus": "encoder",
    "evaluate_sts": "evaluation",
    "index_info": "retrieval",
    "train_nli": "training",
    "verify_index": "retrieval",
}

__all__ = [
    "ClassifiedPair",
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
    "Quality",
    "ReadOptions",
    "SbertkitError",
    "SearchIndex",
    "StorageError",
    "StsResult",
    "TrainConfig",
    "TrainResult",
    "TrainingStopped",
    "UnknownId",
    "classify_pairs",
    "encode_corpus",
    "evaluate_sts",
    "index_info",
    "train_nli",
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
