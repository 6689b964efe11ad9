"""Scoring pairs of a query and a document, to order again what a search has found.

The names are loaded on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sbertkit.reranking.reranker import Ranked, Reranker, Scored

__all__ = ["RERANK_DEPTH", "Ranked", "Reranker", "Scored"]

RERANK_DEPTH = 100
"""Candidates of a search that are re-ranked."""


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.reranker"), name)
