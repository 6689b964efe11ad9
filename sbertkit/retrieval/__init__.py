"""The search index: an encoder, vector segments and documents in one durable folder."""

from sbertkit.retrieval.inspection import index_info, verify_index
from sbertkit.retrieval.places import default_index_path
from sbertkit.retrieval.results import Hit, IndexInfo, Problem
from sbertkit.retrieval.search_index import SearchIndex

__all__ = [
    "Hit",
    "IndexInfo",
    "Problem",
    "SearchIndex",
    "default_index_path",
    "index_info",
    "verify_index",
]
