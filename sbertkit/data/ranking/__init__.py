"""Ranking data: queries with documents that are relevant to them, or not."""

from sbertkit.data.ranking.ranking_set import RELEVANT, RankingPair, RankingSet, RankingSource
from sbertkit.data.ranking.reading import read_ranking

__all__ = ["RELEVANT", "RankingPair", "RankingSet", "RankingSource", "read_ranking"]
