"""What a format of corpora is."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sbertkit.data.bad_rows import BadRow
from sbertkit.data.document_columns import DocumentColumns
from sbertkit.data.lines import TextOptions
from sbertkit.data.tables import Row

Reader = Callable[[str, TextOptions, DocumentColumns], Iterator[Row | BadRow]]
"""Reads the file or folder of that path into rows with the field ``text``, and ``id`` if known."""


@dataclass(frozen=True, slots=True)
class CorpusFormat:
    """A format of corpora.

    Attributes:
        name: By which it is chosen.
        read: Its reader; where a row has no ``id``, its number is the id.
        suffixes: Of names of files, in lower case and without ``.gz``.
        unit: What messages count in it.
        has_columns: Whether texts, ids and metadata are found by names of columns.
        needs_id: Whether every document must have an id.
        is_lines: Whether each line is a document, so that blank ones may divide longer documents.
    """

    name: str
    read: Reader
    suffixes: tuple[str, ...] = ()
    unit: str = "line"
    has_columns: bool = False
    needs_id: bool = False
    is_lines: bool = False
