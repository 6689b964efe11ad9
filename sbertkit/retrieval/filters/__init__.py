"""Filters over the metadata of documents: the language, its parser and its evaluation."""

from sbertkit.retrieval.filters.parser import parse_filter

__all__ = ["parse_filter"]
