"""Semantic textual similarity: scored sentence pairs and their files."""

from sbertkit.data.splits import ALL_SPLITS
from sbertkit.data.sts.reading import read_sts
from sbertkit.data.sts.sts_set import StsPair, StsSet

__all__ = ["ALL_SPLITS", "StsPair", "StsSet", "read_sts"]
