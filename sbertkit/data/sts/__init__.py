"""Semantic textual similarity: scored sentence pairs and their files."""

from sbertkit.data.splits import ALL_SPLITS
from sbertkit.data.sts.pairs import StsPair, StsSet
from sbertkit.data.sts.reading import read_sts

__all__ = ["ALL_SPLITS", "StsPair", "StsSet", "read_sts"]
