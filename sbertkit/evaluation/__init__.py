"""Evaluation of encoders and indexes."""

from sbertkit.evaluation.sts import MeanScore, StsResult, evaluate_sts, mean_score

__all__ = ["MeanScore", "StsResult", "evaluate_sts", "mean_score"]
