"""Retrieval collections: queries, judgements and runs, in the forms of TREC and BEIR."""

from sbertkit.data.retrieval.collections import (
    Collection,
    find_splits_of,
    is_collection,
    read_collection,
)
from sbertkit.data.retrieval.judgements import Qrels, checked_qrels, read_qrels
from sbertkit.data.retrieval.queries import numbered_queries, read_queries, read_query_source
from sbertkit.data.retrieval.runs import (
    Run,
    check_run_ids,
    checked_run,
    read_run,
    run_lines,
    write_run,
)

__all__ = [
    "Collection",
    "Qrels",
    "Run",
    "check_run_ids",
    "checked_qrels",
    "checked_run",
    "find_splits_of",
    "is_collection",
    "numbered_queries",
    "read_collection",
    "read_qrels",
    "read_queries",
    "read_query_source",
    "read_run",
    "run_lines",
    "write_run",
]
