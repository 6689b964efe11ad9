"""Pure functions on arrays: correlations, their intervals, and how isotropic vectors are."""

from sbertkit.metrics.bootstrap import Interval, bootstrap_interval, spearman_interval
from sbertkit.metrics.correlation import Correlation, pearson, spearman
from sbertkit.metrics.cosine import row_cosines
from sbertkit.metrics.isotropy import effective_rank, mean_random_cosine, uniformity

__all__ = [
    "Correlation",
    "Interval",
    "bootstrap_interval",
    "effective_rank",
    "mean_random_cosine",
    "pearson",
    "row_cosines",
    "spearman",
    "spearman_interval",
    "uniformity",
]
