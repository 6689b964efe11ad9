"""Two systems on the same queries, sentence pairs or data sets."""

from sbertkit.evaluation.comparison.compare import compare_results, compare_runs
from sbertkit.evaluation.comparison.comparison import Comparison

__all__ = ["Comparison", "compare_results", "compare_runs"]
