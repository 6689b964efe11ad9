"""The corpus of a build or a change: documents from a path or from the caller's own iterable."""

import logging
import numbers
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sbertkit.data import (
    Document,
    ReadOptions,
    ReadReport,
    SourcedDocument,
    documents_from,
    read_corpus,
    repair_surrogates,
)
from sbertkit.data.corpora import has_columns
from sbertkit.data.document_columns import ColumnChoice
from sbertkit.data.streams import STDIN, source_name
from sbertkit.errors import InputError, InputTypeError
from sbertkit.progress import say, track
from sbertkit.retrieval.document_store import stage_documents
from sbertkit.storage import caller_items

logger = logging.getLogger(__name__)

Corpus = str | os.PathLike[str] | Iterable[str | Document | Mapping[str, Any] | tuple[str, str]]


def stored_id(document_id: object) -> str:
    """An id as the index stores it: whole numbers as text, without unpaired surrogates.

    Raises:
        InputTypeError: Neither a str nor a whole number.
    """
    if isinstance(document_id, numbers.Integral) and not isinstance(document_id, bool):
        return str(int(document_id))
    if not isinstance(document_id, str):
        raise InputTypeError(f"an id must be a str or int, not {document_id!r}")
    return repair_surrogates(document_id)


class CorpusReader:
    """Reads the documents of a corpus and logs what it has left out.

    Attributes:
        name: Its name in messages.
        unit: What messages count in it: ``line`` or ``row``.
        path: Its absolute path, links not followed; ``None`` if it has none.
        columns: The columns that were chosen, if any were.
        documents: The documents, each once.

    Args:
        corpus: A path or an iterable of documents.
        read: How a path is read.
        stored: The columns that were chosen for the index; taken if `read` chooses none.

    Raises:
        InputError: The corpus is refused, here or while it is read.
        InputTypeError: It is neither a path nor iterable.
    """

    def __init__(
        self, corpus: Corpus, read: ReadOptions, stored: ColumnChoice | None = None
    ) -> None:
        options: object = read
        if not isinstance(options, ReadOptions):
            raise InputTypeError(f"read must be ReadOptions, not {options!r}")
        self._report = ReadReport()
        self.columns: ColumnChoice | None = None
        self.path: str | None = None
        if isinstance(corpus, str | os.PathLike):
            self.name, self.unit = source_name(os.fspath(corpus)), "line"
            if os.fspath(corpus) != STDIN:
                self.path = os.path.abspath(corpus)  # noqa: PTH100  # Path.absolute keeps ".."
            if stored is not None and not read.columns.made and has_columns(corpus, read):
                read = read.with_columns(stored)
            self.columns = read.columns if read.columns.made else None
            self.documents: Iterator[SourcedDocument] = read_corpus(corpus, read, self._report)
        elif isinstance(corpus, Iterable):
            self.name, self.unit = "the corpus", "row"
            self.documents = caller_items(documents_from(corpus, self._report))
        else:
            raise InputTypeError(
                "the corpus must be a path or an iterable of documents, not "
                f"{type(corpus).__name__}"
            )

    @property
    def blank_rows(self) -> Sequence[int]:
        """Row numbers of the blank documents, which are left out, among all that were read."""
        return self._report.blank_rows

    @property
    def numbered(self) -> bool:
        """Whether the ids of all documents are numbers of lines or rows; after staging."""
        return 0 < self._report.documents == self._report.numbered

    @property
    def named(self) -> bool:
        """Whether the corpus is a path or standard input; it is then an error if it is empty."""
        return self.unit == "line"

    def stage(self, database: Path, documents: Iterable[SourcedDocument], *, progress: bool) -> int:
        """Stores documents in a new database; gives their number and logs what was left out.

        Args:
            database: The file.
            documents: Those of the corpus, or some of them.
            progress: Whether progress is shown on standard error.

        Raises:
            InputError: The corpus is refused, or has a duplicate id.
        """
        with track("reading", None, shown=progress) as advance:
            count = stage_documents(database, documents, self.duplicate_error, advance)
        if self._report.columns is not None:
            say(f"{self.name}: {self._report.columns}", shown=progress)
        for message in self._report.warnings():
            logger.warning("%s: %s", self.name, message)
        return count

    def duplicate_error(self, document_id: str, first: int, second: int) -> InputError:
        """The error for an id on two lines or rows."""
        return InputError(
            f"{self.name}: duplicate id {document_id!r} on {self.unit}s {first} and {second}; "
            "every document needs an id of its own"
        )

    def empty_corpus_error(self) -> InputError:
        """The error for a corpus without documents."""
        left_out = "; ".join(self._report.warnings()) or "it is empty"
        return InputError(f"{self.name} has no documents to index ({left_out})")
