"""The corpus of a build or a change: documents from a path or from the caller's own iterable."""

import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sbertkit.data import (
    Document,
    ReadOptions,
    ReadReport,
    SourcedDocument,
    documents_from,
    read_corpus,
)
from sbertkit.data.streams import STDIN, source_name
from sbertkit.errors import InputError, InputTypeError
from sbertkit.storage import caller_items

logger = logging.getLogger(__name__)

Corpus = str | os.PathLike[str] | Iterable[Document | Mapping[str, Any] | tuple[str, str]]


class CorpusReader:
    """Draws the documents of a corpus and says afterwards what was met.

    Attributes:
        name: What messages call the corpus.
        unit: What messages count in it: ``line`` or ``row``.
        path: Where it lies, absolute and as it was named; ``None`` for what lies nowhere.
        documents: The documents, each once.

    Raises:
        InputError: The corpus is refused, here or while it is drawn.
        InputTypeError: It is neither a path nor iterable.
    """

    def __init__(self, corpus: Corpus, read: ReadOptions) -> None:
        options: object = read
        if not isinstance(options, ReadOptions):
            raise InputTypeError(f"read must be ReadOptions, not {options!r}")
        self._report = ReadReport()
        self.path: str | None = None
        if isinstance(corpus, str | os.PathLike):
            self.name, self.unit = source_name(os.fspath(corpus)), "line"
            if os.fspath(corpus) != STDIN:
                self.path = os.path.abspath(corpus)  # noqa: PTH100  # Path.absolute keeps ".."
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
        """Places of the blank documents, which are left out, among all that were drawn."""
        return self._report.blank_rows

    @property
    def named(self) -> bool:
        """Whether the corpus is a path or standard input, which nobody names who wants nothing."""
        return self.unit == "line"

    def stands_twice(self, document_id: str, first: int, second: int) -> InputError:
        """The refusal of an id that stands in two places."""
        return InputError(
            f"{self.name}: id {document_id!r} stands on {self.unit}s {first} and {second}; "
            "every document needs an id of its own"
        )

    def warn(self) -> None:
        """Says what was met, once all documents have been drawn."""
        for message in self._report.warnings():
            logger.warning("%s: %s", self.name, message)

    def empty_corpus_error(self) -> InputError:
        """The refusal of a corpus without documents."""
        left_out = "; ".join(self._report.warnings()) or "it is empty"
        return InputError(f"{self.name} has no documents to index ({left_out})")
