"""Evaluation of encoders and indexes."""

from sbertkit.evaluation.comparison import Comparison, compare_results, compare_runs
from sbertkit.evaluation.diagnosis import Diagnosis, diagnose
from sbertkit.evaluation.index_quality import IndexResult, evaluate_index
from sbertkit.evaluation.isotropy import IsotropyResult, evaluate_isotropy
from sbertkit.evaluation.mteb_tasks import MtebResult, evaluate_mteb
from sbertkit.evaluation.retrieval import RetrievalResult, evaluate_retrieval, evaluate_run
from sbertkit.evaluation.sts import (
    Correlations,
    MeanScore,
    StsResult,
    SubsetScore,
    evaluate_sts,
    mean_score,
)
from sbertkit.evaluation.suites import Suite, SuiteResult, read_suite, run_suite

__all__ = [
    "Comparison",
    "Correlations",
    "Diagnosis",
    "IndexResult",
    "IsotropyResult",
    "MeanScore",
    "MtebResult",
    "RetrievalResult",
    "StsResult",
    "SubsetScore",
    "Suite",
    "SuiteResult",
    "compare_results",
    "compare_runs",
    "diagnose",
    "evaluate_index",
    "evaluate_isotropy",
    "evaluate_mteb",
    "evaluate_retrieval",
    "evaluate_run",
    "evaluate_sts",
    "mean_score",
    "read_suite",
    "run_suite",
]
