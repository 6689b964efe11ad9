"""Documents."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

_EMPTY: Mapping[str, Any] = MappingProxyType({})


class Document(NamedTuple):
    """A document: its id, its text and further fields that JSON can hold."""

    id: str
    text: str
    metadata: Mapping[str, Any] = _EMPTY


class SourcedDocument(NamedTuple):
    """A document with the place it was read from, for messages about it."""

    document: Document
    line: int
    """Line of a text file, row of a Parquet file, file of a folder (each from 1); row of an
    iterable (from 0)."""
