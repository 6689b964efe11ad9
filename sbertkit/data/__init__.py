"""Corpora and data sets: records, and their readers."""

from sbertkit.data.corpora import read_corpus
from sbertkit.data.documents import Document, IssueCount, ReadOptions, ReadReport, SourcedDocument
from sbertkit.data.iterables import documents_from
from sbertkit.data.text import has_surrogates, is_blank, repair_surrogates

__all__ = [
    "Document",
    "IssueCount",
    "ReadOptions",
    "ReadReport",
    "SourcedDocument",
    "documents_from",
    "has_surrogates",
    "is_blank",
    "read_corpus",
    "repair_surrogates",
]
