"""The fields of a segment: the ids in its documents, and the metadata in the file for filters."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from sbertkit.retrieval.database import MemoryDatabase, PublishedDatabase
from sbertkit.retrieval.document_store import DocumentStore
from sbertkit.retrieval.filters.evaluation import Mask, Rows, Values, matching
from sbertkit.retrieval.filters.expression import Expression
from sbertkit.retrieval.filters.field_file import FIELDS_FILE, fields_in_memory
from sbertkit.retrieval.filters.field_names import ID
from sbertkit.retrieval.filters.field_store import ColumnSize, FieldStore
from sbertkit.retrieval.filters.keys import STRING


class SegmentFields:
    """What filters read of a segment; safe to share between threads.

    Without a file, what it would hold is made in memory from the documents when it is first needed.

    Args:
        documents: The segment's documents.
        file: The file, whose hash has been checked; ``None`` if there is none.

    Attributes:
        count: Number of documents, including deleted ones.

    Raises:
        DamagedIndex: It is no such file.
    """

    def __init__(self, documents: DocumentStore, file: Path | None) -> None:
        self.count = len(documents)
        self._documents = documents
        self._store: FieldStore | None = None
        if file is not None:  # opened now, as a writer may remove it later
            database = PublishedDatabase(file)
            try:
                self._store = FieldStore(database, self.count)
            except BaseException:
                database.close()
                raise

    def matching(self, expression: Expression) -> Mask:
        """Whether each document matches a filter, (n,); an array of its own."""
        return matching(expression, self)

    def values(self, field: str, type_: str) -> Values | None:
        """The values of one type of a field, if there are any."""
        if field == ID:
            return _Ids(self._documents) if type_ == STRING else None
        return self._stored().column(field, type_)

    def has(self, field: str) -> bool:
        """Whether any document has the field, be it null."""
        return field == ID or self._stored().has(field)

    def sizes(self) -> Iterator[ColumnSize]:
        """All fields but the id, with their types."""
        return self._stored().sizes()

    def close(self) -> None:
        """Closes the file."""
        if self._store is not None:
            self._store.close()

    def _stored(self) -> FieldStore:
        # Without a lock: two threads that come at the same time both make it.
        if self._store is None:
            tables = fields_in_memory(self._documents.metadata())
            database = MemoryDatabase(self._documents.path.with_name(FIELDS_FILE), tables)
            self._store = FieldStore(database, self.count)
        return self._store


class _Ids:
    """The ids of a segment's documents, see `Values`."""

    def __init__(self, documents: DocumentStore) -> None:
        self._documents = documents

    def between(self, low: bytes, high: bytes | None) -> Rows:
        """The rows with an id from `low` on and below `high`; ``None`` for no bound."""
        return self._documents.ids_between(low, high)

    def one_of(self, keys: Sequence[bytes]) -> Rows:
        """The rows with one of some ids."""
        ids = []
        for key in keys:
            with suppress(UnicodeDecodeError):  # an unpaired surrogate, which no id has
                ids.append(key.decode())
        return self._documents.ids_among(ids)

    def containing(self, part: bytes) -> Rows:
        """The rows with an id that has some bytes in it."""
        return self._documents.ids_containing(part)
