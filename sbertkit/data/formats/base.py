"""What a format of corpora is, and the fields that documents have."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from sbertkit.data.bad_rows import BadRow
from sbertkit.data.lines import TextOptions
from sbertkit.data.tables import Columns, Row

Reader = Callable[[str, TextOptions], Iterator[Row | BadRow]]
"""Reads the file or folder of that path into rows with the fields ``id`` and ``text``."""


@dataclass(frozen=True, slots=True)
class CorpusFormat:
    """A format of corpora.

    Attributes:
        name: By which it is chosen.
        read: Its reader; where a row has no ``id``, its number is the id.
        suffixes: Of names of files, in lower case and without ``.gz``.
        unit: What messages count in it.
    """

    name: str
    read: Reader
    suffixes: tuple[str, ...] = ()
    unit: str = "line"


DOCUMENT = Columns(
    {"id": ("id", "_id"), "text": ("text",)},
    needed=("text",),
    expected="a column 'text'",
    exact=True,
    others=True,
)
"""The fields of a document, whose other columns are its metadata."""

DOCUMENT_WITH_ID = replace(DOCUMENT, needed=("text", "id"))
