"""sbertkit: sentence embeddings, durable semantic search and numbers that can be trusted.

The names below are loaded on first use, so that ``import sbertkit`` stays light.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from sbertkit.telemetry import switch_off_telemetry

switch_off_telemetry()

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
    from sbertkit.evaluation import (
        Comparison,
        Diagnosis,
        IndexResult,
        IsotropyResult,
        MtebResult,
        RetrievalResult,
        StsResult,
        Suite,
        SuiteResult,
        compare_results,
        compare_runs,
        diagnose,
        evaluate_index,
        evaluate_isotropy,
        evaluate_mteb,
        evaluate_retrieval,
        evaluate_run,
        evaluate_sts,
        read_suite,
        run_suite,
    )
    from sbertkit.retrieval import (
        BuildOptions,
        Changes,
        Hit,
        IndexInfo,
        Problem,
        Repair,
        SearchIndex,
    )
    from sbertkit.training.classifier import ClassifiedPair, classify_pairs
    from sbertkit.training.config import TrainConfig
    from sbertkit.training.nli import train_nli
    from sbertkit.training.objectives import Contrastive, Softmax
    from sbertkit.training.results import Quality, TrainResult

__version__ = "0.1.0"

_MODULE_OF = {
    "BuildOptions": "retrieval",
    "Changes": "retrieval",
    "ClassifiedPair": "training.classifier",
    "Comparison": "evaluation",
    "Contrastive": "training.objectives",
    "DamagedIndex": "errors",
    "Diagnosis": "evaluation",
    "Document": "data",
    "EncodeReport": "encoder",
    "Encoded": "encoder",
    "Encoder": "encoder",
    "Hit": "retrieval",
    "IndexInfo": "retrieval",
    "IndexResult": "evaluation",
    "InputError": "errors",
    "InputTypeError": "errors",
    "IsotropyResult": "evaluation",
    "MissingDependency": "errors",
    "MissingFile": "errors",
    "MtebResult": "evaluation",
    "ModelMismatch": "errors",
    "NewerFormat": "errors",
    "Problem": "retrieval",
    "Quality": "training.results",
    "ReadOptions": "data",
    "Repair": "retrieval",
    "RetrievalResult": "evaluation",
    "SbertkitError": "errors",
    "SearchIndex": "retrieval",
    "Softmax": "training.objectives",
    "StorageError": "errors",
    "StsResult": "evaluation",
    "Suite": "evaluation",
    "SuiteResult": "evaluation",
    "TrainConfig": "training.config",
    "TrainResult": "training.results",
    "TrainingStopped": "errors",
    "UnknownId": "errors",
    "classify_pairs": "training.classifier",
    "compare_results": "evaluation",
    "compare_runs": "evaluation",
    "diagnose": "evaluation",
    "encode_corpus": "encoder",
    "evaluate_index": "evaluation",
    "evaluate_isotropy": "evaluation",
    "evaluate_mteb": "evaluation",
    "evaluate_retrieval": "evaluation",
    "evaluate_run": "evaluation",
    "evaluate_sts": "evaluation",
    "read_suite": "evaluation",
    "run_suite": "evaluation",
    "train_nli": "training.nli",
}

__all__ = [
    "BuildOptions",
    "Changes",
    "ClassifiedPair",
    "Comparison",
    "Contrastive",
    "DamagedIndex",
    "Diagnosis",
    "Document",
    "EncodeReport",
    "Encoded",
    "Encoder",
    "Hit",
    "IndexInfo",
    "IndexResult",
    "InputError",
    "InputTypeError",
    "IsotropyResult",
    "MissingDependency",
    "MissingFile",
    "ModelMismatch",
    "MtebResult",
    "NewerFormat",
    "Problem",
    "Quality",
    "ReadOptions",
    "Repair",
    "RetrievalResult",
    "SbertkitError",
    "SearchIndex",
    "Softmax",
    "StorageError",
    "StsResult",
    "Suite",
    "SuiteResult",
    "TrainConfig",
    "TrainResult",
    "TrainingStopped",
    "UnknownId",
    "classify_pairs",
    "compare_results",
    "compare_runs",
    "diagnose",
    "encode_corpus",
    "evaluate_index",
    "evaluate_isotropy",
    "evaluate_mteb",
    "evaluate_retrieval",
    "evaluate_run",
    "evaluate_sts",
    "read_suite",
    "run_suite",
    "train_nli",
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
