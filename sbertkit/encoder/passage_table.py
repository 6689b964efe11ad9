"""Which document, and which of its characters, each of many vectors stands for."""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Int64 = npt.NDArray[np.int64]

TO_THE_END = -1
"""The end of a passage that ends with its text."""


class Bounds(NamedTuple):
    """Characters of a text, from `start` to before `end`."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class PassageTable:
    """The passages of documents, in order; a row is a passage.

    Attributes:
        documents: Number of documents.
        rows: Number of the document, start and end of each passage, (n, 3); the end is
            `TO_THE_END` for a whole document. ``None``: each document is one passage.
    """

    documents: int
    rows: Int64 | None = None

    @classmethod
    def of(cls, parts: Iterable[Sequence[tuple[int, int]]]) -> "PassageTable":
        """The table of documents whose passages are given by start and end."""
        rows = array("q")
        number = -1
        for number, bounds in enumerate(parts):
            if len(bounds) == 1:
                rows.extend((number, 0, TO_THE_END))
            else:
                for start, end in bounds:
                    rows.extend((number, start, end))
        return cls.from_rows(number + 1, np.array(rows, np.int64).reshape(-1, 3))

    @classmethod
    def from_rows(cls, documents: int, rows: Int64) -> "PassageTable":
        """The table of these rows, at least one for each of so many documents."""
        return cls(documents, None if len(rows) == documents else rows)

    def __len__(self) -> int:
        return self.documents if self.rows is None else len(self.rows)

    def document_of(self, rows: Int64) -> Int64:
        """The numbers of the documents of some passages."""
        return rows if self.rows is None else self.rows[rows, 0]

    def bounds_of(self, row: int) -> Bounds:
        """Start and end of a passage."""
        if self.rows is None:
            return Bounds(0, TO_THE_END)
        _, start, end = self.rows[row].tolist()
        return Bounds(start, end)

    def rows_of(self, documents: Int64) -> Int64:
        """The passages of some documents, in their order."""
        if self.rows is None:
            return documents
        first = np.searchsorted(self.rows[:, 0], documents)
        counts = np.searchsorted(self.rows[:, 0], documents, side="right") - first
        steps = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        found: Int64 = np.repeat(first, counts) + steps
        return found

    def renumbered(self, documents: Int64, first: int) -> Int64:
        """The passages of some documents as rows (n, 3), the documents numbered from `first`."""
        rows = self.rows_of(documents)
        if self.rows is None:
            return np.stack(
                [first + np.arange(len(rows)), np.zeros_like(rows), np.full_like(rows, TO_THE_END)],
                axis=1,
            )
        chosen = self.rows[rows]
        starts = np.flatnonzero(np.r_[True, chosen[1:, 0] != chosen[:-1, 0]])
        numbers = np.zeros(len(chosen), np.int64)
        numbers[starts[1:]] = 1
        return np.concatenate([(first + np.cumsum(numbers))[:, None], chosen[:, 1:]], axis=1)

    def texts(self, texts: Iterable[str]) -> Iterator[str]:
        """The texts of all passages, in order, from those of the documents."""
        row = 0
        for number, text in enumerate(texts):
            if self.rows is None:
                yield text
                continue
            while row < len(self.rows) and self.rows[row, 0] == number:
                yield passage_text(text, self.bounds_of(row))
                row += 1


def passage_text(text: str, bounds: Bounds) -> str:
    """The text of a passage."""
    return text[bounds.start :] if bounds.end == TO_THE_END else text[bounds.start : bounds.end]
