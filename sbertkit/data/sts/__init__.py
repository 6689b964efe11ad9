"""Semantic textual similarity: scored sentence pairs and their files."""

from sbertkit.data.sts.pairs import ALL_SPLITS, StsPair, StsSet
from sbertkit.data.sts.reading import read_sts

__all__ = ["ALL_SPLITS", "StsPair", "StsSet", "read_sts"]
