"""What the documents of a corpus change in an index: counted first, so that all or none is done."""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path

import numpy as np

from sbertkit.data import Document, SourcedDocument
from sbertkit.encoder.passage_table import passage_text
from sbertkit.errors import InputError
from sbertkit.formatting import counted
from sbertkit.retrieval.corpus import CorpusReader
from sbertkit.retrieval.document_store import DocumentStore, StoredRow, rendered
from sbertkit.retrieval.encoded_vectors import Origin, digest
from sbertkit.retrieval.results import Changes
from sbertkit.retrieval.view import View

_DOCUMENTS_PER_CHUNK = 1_000
_NUMBERED = (
    "its documents have no ids but the numbers of their lines; name the column of their ids by "
    "id_column (--id-column), or append them to the corpus of the index and run index --update"
)


class ChangePlan:
    """What the documents of a corpus change in a view.

    Attributes:
        masks: Which documents of each segment remain.
        origins: The segment, and the number there, of a stored document with the text of each new
            one, if there is one.
        unchanged: Documents that are left unchanged.
    """

    def __init__(self, view: View, mode: str, reader: CorpusReader) -> None:
        self.masks = [segment.mask() for segment in view.segments]
        self.origins: list[Origin | None] = []
        self.unchanged = 0
        self._added = self._changed = self._deleted = self._moved = 0
        self._view = view
        self._mode = mode
        self._reader = reader
        self._lines = [np.full(len(mask), -1, np.int64) for mask in self.masks]

    def new_documents(self) -> Iterator[SourcedDocument]:
        """The documents that are new or changed.

        Raises:
            InputError: A duplicate id, or with ``add`` one that is not new.
        """
        while chunk := list(islice(self._reader.documents, _DOCUMENTS_PER_CHUNK)):
            known = self._view.find([sourced.document.id for sourced in chunk])
            for sourced in chunk:
                stored = known.get(sourced.document.id)
                if stored is None:
                    self._added += 1
                    self.origins.append(None)
                    yield sourced
                elif self._differs(sourced, *stored):
                    yield sourced

    def check_ids(self) -> None:
        """Refuses texts without ids that are not of the corpus of the index.

        Raises:
            InputError: They are from memory, or would replace those of another file.
        """
        self._check_own_ids()
        if self._changed and (self._is_elsewhere() or self._reader.path is None):
            raise InputError(
                f"{self._reader.name} would replace {counted(self._changed, 'document')} of the "
                f"index: {_NUMBERED}"
            )

    def delete_missing(self) -> None:
        """Deletes the documents that are not in the corpus."""
        for mask, lines in zip(self.masks, self._lines, strict=True):
            missing = mask & (lines < 0)
            self._deleted += int(np.count_nonzero(missing))
            mask[missing] = False

    def reuse_vectors(self, staged: Path) -> None:
        """Finds the texts of new documents among the removed ones, such as moved lines."""
        removed = {
            digest(text): Origin(place, number) for place, number, text in self._removed_texts()
        }
        if not removed:
            return
        with closing(DocumentStore(staged)) as store:
            for number, text in enumerate(store.texts()):
                if self.origins[number] is None:
                    self.origins[number] = removed.get(digest(text))

    def removed_passages(self) -> dict[bytes, Origin]:
        """The segment and row of the vectors of removed passages, by the digest of their text."""
        removed = {}
        for place, number, text in self._removed_texts():
            passages = self._view.segments[place].passages
            for row in passages.rows_of(np.array([number])).tolist():
                part = passage_text(text, passages.bounds_of(row))
                removed[digest(part)] = Origin(place, row)
        return removed

    def _removed_texts(self) -> Iterator[tuple[int, int, str]]:
        """Segment, number and text of each document that is removed or replaced."""
        for place, (segment, mask) in enumerate(zip(self._view.segments, self.masks, strict=True)):
            numbers = np.flatnonzero(segment.mask() & ~mask).tolist()
            for number, text in segment.documents.texts_at(numbers):
                yield place, number, text

    def count_by_text(self, staged: Path) -> None:
        """Counts documents by text and metadata, as their ids are the numbers of lines.

        So many are changed as one line takes the place of another.
        """
        removed: Counter[bytes] = Counter()
        for segment, mask in zip(self._view.segments, self.masks, strict=True):
            gone = segment.documents.documents(segment.mask() & ~mask)
            removed.update(digest(_content(sourced.document)) for sourced in gone)
        with closing(DocumentStore(staged)) as store:
            new = Counter(digest(_content(sourced.document)) for sourced in store.documents())
        self._moved = (removed & new).total()
        added, deleted = (new - removed).total(), (removed - new).total()
        self._changed = min(added, deleted)
        self._added, self._deleted = added - self._changed, deleted - self._changed

    def check_same_corpus(self, root: Path) -> None:
        """Refuses another corpus than the one of the index.

        Raises:
            InputError: The corpus has another path and none of the texts of the index.
        """
        kept = self.unchanged or any(origin is not None for origin in self.origins)
        if self._is_elsewhere() and len(self._view) and not kept:
            built_from = self._view.manifest.corpus or "texts in memory"
            raise InputError(
                f"{self._reader.name} has none of the {len(self._view):,} texts of {root}, which "
                f"was built from {built_from}; nothing was changed: give this corpus an index of "
                "its own, or rebuild that one with it (--replace, without --update)"
            )

    def _check_own_ids(self) -> None:
        if not self._reader.named:
            raise InputError(
                f"{self._reader.name}: documents to {self._mode} need ids of their own, found "
                "texts without; nothing was changed: pass tuples (id, text)"
            )

    def _is_elsewhere(self) -> bool:
        """Whether the corpus has another path than that of the index, or only one has a path."""
        paths = (self._view.manifest.corpus, self._reader.path)
        return len({path and Path(path).resolve() for path in paths}) > 1

    def changes(self, encoded: int = 0) -> Changes:
        """The counts, with that of the texts that were encoded."""
        return Changes(
            added=self._added,
            changed=self._changed,
            deleted=self._deleted,
            unchanged=self.unchanged,
            moved=self._moved,
            encoded=encoded,
            documents=len(self._view) + self._added - self._deleted,
        )

    def _differs(self, sourced: SourcedDocument, place: int, stored: StoredRow) -> bool:
        """Whether a document with a known id replaces the stored one."""
        document, line = sourced
        first = int(self._lines[place][stored.row])
        if first >= 0:
            raise self._reader.duplicate_error(document.id, first, line)
        if self._mode == "add" and self._reader.numbered:
            self._check_own_ids()
            raise InputError(
                f"{self._reader.name}: {self._reader.unit} {line} has a number that is the id of a "
                f"document in the index; nothing was added: {_NUMBERED}"
            )
        if self._mode == "add":
            raise InputError(
                f"{self._reader.name}: id {document.id!r} on {self._reader.unit} {line} is in the "
                "index already; nothing was added: leave it out, or replace the stored document "
                "with upsert"
            )
        self._lines[place][stored.row] = line
        same_text = document.text == stored.text
        if same_text and self._has_metadata(document, place, stored):
            self.unchanged += 1
            return False
        self._changed += 1
        self.masks[place][stored.row] = False
        self.origins.append(Origin(place, stored.row) if same_text else None)
        return True

    def _has_metadata(self, document: Document, place: int, stored: StoredRow) -> bool:
        """Whether a document has the metadata of a stored row, in any order."""
        if rendered(document) == stored.metadata:
            return True
        known = self._view.segments[place].documents.at([stored.row])[stored.row]
        return _sorted_keys(document) == _sorted_keys(known)


def _sorted_keys(document: Document) -> str:
    return json.dumps(dict(document.metadata), sort_keys=True)


def _content(document: Document) -> str:
    return f"{document.text}\0{_sorted_keys(document)}"
