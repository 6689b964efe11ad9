"""The names of the package: the one list of them, from which they are loaded on first use."""

# ruff: noqa: I001 - which would give each name a statement of its own

from .comparison import (
    Comparison as Comparison,
    compare_results as compare_results,
    compare_runs as compare_runs,
)
from .diagnosis import (
    Diagnosis as Diagnosis,
    diagnose as diagnose,
)
from .encoder_comparison import (
    ComparedEncoder as ComparedEncoder,
    EncoderComparison as EncoderComparison,
    compare_encoders as compare_encoders,
)
from .index_quality import (
    IndexResult as IndexResult,
    evaluate_index as evaluate_index,
)
from .isotropy import (
    IsotropyResult as IsotropyResult,
    evaluate_isotropy as evaluate_isotropy,
)
from .model_cost import (
    MeasuredModels as MeasuredModels,
    ModelCost as ModelCost,
    measure_models as measure_models,
)
from .mteb_tasks import (
    MtebResult as MtebResult,
    evaluate_mteb as evaluate_mteb,
)
from .retrieval import (
    RetrievalResult as RetrievalResult,
    evaluate_retrieval as evaluate_retrieval,
    evaluate_run as evaluate_run,
)
from .sts import (
    Correlations as Correlations,
    MeanScore as MeanScore,
    StsResult as StsResult,
    SubsetScore as SubsetScore,
    evaluate_sts as evaluate_sts,
    mean_score as mean_score,
)
from .suites import (
    Suite as Suite,
    SuiteResult as SuiteResult,
    read_suite as read_suite,
    run_suite as run_suite,
)
