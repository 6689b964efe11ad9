"""The search index: an encoder, vector segments and documents in one durable folder."""

from sbertkit.retrieval.build import BuildOptions
from sbertkit.retrieval.changes import change_documents, compact_index, delete_documents
from sbertkit.retrieval.default_path import default_index_path
from sbertkit.retrieval.dump import dump_index
from sbertkit.retrieval.filters.known_fields import FieldInfo
from sbertkit.retrieval.fusion import Fusion
from sbertkit.retrieval.inspection import index_fields, index_info, verify_index
from sbertkit.retrieval.repair import repair_index
from sbertkit.retrieval.results import (
    Changes,
    Hit,
    IndexInfo,
    LexicalInfo,
    Passage,
    Problem,
    Repair,
    Stage,
)
from sbertkit.retrieval.search_index import SearchIndex
from sbertkit.retrieval.upgrade import upgrade_index

__all__ = [
    "BuildOptions",
    "Changes",
    "FieldInfo",
    "Fusion",
    "Hit",
    "IndexInfo",
    "LexicalInfo",
    "Passage",
    "Problem",
    "Repair",
    "SearchIndex",
    "Stage",
    "change_documents",
    "compact_index",
    "default_index_path",
    "delete_documents",
    "dump_index",
    "index_fields",
    "index_info",
    "repair_index",
    "upgrade_index",
    "verify_index",
]
