"""Pure functions on arrays: correlations, their intervals, and how isotropic vectors are."""

from sbertkit.metrics.alignment import alignment
from sbertkit.metrics.bootstrap import (
    Interval,
    StoredInterval,
    bootstrap_interval,
    spearman_interval,
)
from sbertkit.metrics.correlation import Correlation, pearson, spearman
from sbertkit.metrics.cosine import row_cosines, unit_rows
from sbertkit.metrics.differences import CorrelationDifference, Difference, MeanDifference
from sbertkit.metrics.ndcg import ndcg
from sbertkit.metrics.permutation import PairedTest, mean_test, paired_permutation, paired_test
from sbertkit.metrics.random_pairs import mean_random_cosine, uniformity
from sbertkit.metrics.similarity import SIMILARITIES, row_similarities
from sbertkit.metrics.spectrum import effective_rank, isoscore, variance_shares

__all__ = [
    "SIMILARITIES",
    "Correlation",
    "CorrelationDifference",
    "Difference",
    "Interval",
    "MeanDifference",
    "PairedTest",
    "StoredInterval",
    "alignment",
    "bootstrap_interval",
    "effective_rank",
    "isoscore",
    "mean_random_cosine",
    "mean_test",
    "ndcg",
    "paired_permutation",
    "paired_test",
    "pearson",
    "row_cosines",
    "row_similarities",
    "spearman",
    "spearman_interval",
    "uniformity",
    "unit_rows",
    "variance_shares",
]
