"""The file of a segment's words: for each term the documents that have it, how often and where.

After a header of whole numbers come arrays, each at a multiple of eight bytes: the lengths of the
documents; the terms in order of their UTF-8, and where each ends; where postings and places of each
term end; the postings' documents and frequencies; the places. A term's postings ascend by document,
and the places of a posting by place.
"""

import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sbertkit.errors import DamagedIndex
from sbertkit.files import open_regular
from sbertkit.opened_file import OpenedFile

WORDS_FILE = "words.bin"
_MAGIC = b"SBKWORDS"
HEADER_BYTES = 64
_ALIGNED = 8

Array = npt.NDArray[Any]
Rows = npt.NDArray[np.int64]


class Sizes(NamedTuple):
    """The header.

    Attributes:
        documents: Number of documents.
        terms: Number of distinct terms.
        term_bytes: Bytes of all terms.
        postings: Number of pairs of a term and a document.
        places: Number of tokens.
        frequency_bytes: Of a frequency.
        place_bytes: Of a place.
    """

    documents: int
    terms: int
    term_bytes: int
    postings: int
    places: int
    frequency_bytes: int
    place_bytes: int

    def to_bytes(self) -> bytes:
        """The header of the file."""
        return _MAGIC + np.array(self, "<u8").tobytes()

    @property
    def arrays(self) -> dict[str, tuple[str, int]]:
        """Type and length of each array, in the order of the file."""
        return {
            "lengths": ("<u4", self.documents),
            "term_bytes": ("<u1", self.term_bytes),
            "term_ends": ("<i8", self.terms),
            "posting_ends": ("<i8", self.terms),
            "place_ends": ("<i8", self.terms),
            "rows": ("<u4", self.postings),
            "frequencies": (f"<u{self.frequency_bytes}", self.postings),
            "places": (f"<u{self.place_bytes}", self.places),
        }

    def offsets(self) -> dict[str, int]:
        """Where each array begins, and where the file ends (``end``)."""
        sizes = [np.dtype(kind).itemsize * count for kind, count in self.arrays.values()]
        padded = (-(-size // _ALIGNED) * _ALIGNED for size in sizes)
        starts = accumulate(padded, initial=HEADER_BYTES)
        return dict(zip((*self.arrays, "end"), starts, strict=True))


class Postings(NamedTuple):
    """The documents of a term.

    Attributes:
        rows: Their numbers, ascending, (n,).
        frequencies: How often each has it, (n,).
        start: Where the places of the first begin.
    """

    rows: Array
    frequencies: Array
    start: int


class PostingsFile:
    """The words of a segment, memory-mapped; safe to share between threads.

    Args:
        path: The file, whose hash has been checked.
        documents: How many documents it is to have.

    Attributes:
        lengths: Number of tokens of each document, (n,).

    Raises:
        DamagedIndex: It is no such file.
    """

    def __init__(self, path: Path, documents: int) -> None:
        self.path = path
        with open_regular(path) as file:
            status = os.fstat(file.fileno())
            header = file.read(HEADER_BYTES)
            if len(header) < HEADER_BYTES or not header.startswith(_MAGIC):
                raise DamagedIndex(f"{path} is no file of words")
            sizes = Sizes(*np.frombuffer(header, "<u8", offset=len(_MAGIC)).tolist())
            widths = {sizes.frequency_bytes, sizes.place_bytes}
            if sizes.documents != documents or not widths <= {1, 2, 4}:
                raise DamagedIndex(f"{path}: expected the words of {documents} documents")
            offsets = sizes.offsets()
            if offsets["end"] != status.st_size:
                raise DamagedIndex(f"{path}: expected {offsets['end']} bytes")
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        arrays = {
            name: np.frombuffer(mapped, kind, count, offsets[name])
            for name, (kind, count) in sizes.arrays.items()
        }
        self.lengths: Array = arrays["lengths"]
        self._arrays = arrays
        self._terms = memoryview(mapped)[offsets["term_bytes"] :][: sizes.term_bytes]
        ends = memoryview(mapped)[offsets["term_ends"] :][: 8 * sizes.terms]
        self._term_ends = ends.cast("Q")  # faster than an array, one number at a time
        self._file = OpenedFile(path, status)

    def check(self) -> None:
        """Refuses a file that was overwritten since it was opened.

        Raises:
            DamagedIndex: It was.
        """
        self._file.check()

    @contextmanager
    def fitting(self) -> Iterator[None]:
        """Reports numbers in the file that lead out of it, in the block.

        Raises:
            DamagedIndex: There were some, so that it cannot be one that sbertkit has written.
        """
        try:
            yield
        except (IndexError, OverflowError) as error:
            raise self._damaged() from error

    def postings(self, term: str) -> Postings | None:
        """The documents of a term, if there are any.

        Raises:
            DamagedIndex: The file cannot be one that sbertkit has written.
        """
        place = self._place(term.encode("utf-8", "replace"))
        if place is None:
            return None
        first, last = _span(self._arrays["posting_ends"], place)
        start, _ = _span(self._arrays["place_ends"], place)
        rows = self._arrays["rows"][first:last]
        if not len(rows):
            raise self._damaged()
        return Postings(rows, self._arrays["frequencies"][first:last], start)

    def places(self, postings: Postings, chosen: Rows) -> tuple[Rows, Rows]:
        """Which of some postings, and the place, of each token of these; (m,) each.

        Args:
            postings: Those of a term.
            chosen: Some of them, by their numbers from 0, ascending.

        Raises:
            DamagedIndex: The file names places that it does not have.
        """
        frequencies = postings.frequencies.astype(np.int64)
        starts = postings.start + np.cumsum(frequencies) - frequencies
        starts, counts = starts[chosen], frequencies[chosen]
        places = self._arrays["places"]
        if len(chosen) and not 0 <= int(starts[-1] + counts[-1]) <= len(places):
            raise self._damaged()
        which = np.repeat(np.arange(len(chosen)), counts)
        at = np.arange(len(which)) + np.repeat(starts - (np.cumsum(counts) - counts), counts)
        return which, places[at].astype(np.int64)

    def terms(self) -> Iterator[str]:
        """All terms, in the order of their UTF-8."""
        for place in range(len(self._term_ends)):
            yield self._term(place).decode("utf-8", "replace")

    def _place(self, term: bytes) -> int | None:
        """The place of a term in the order of all, if it is known."""
        low, high = 0, len(self._term_ends)
        while low < high:
            middle = (low + high) // 2
            if self._term(middle) < term:
                low = middle + 1
            else:
                high = middle
        if low == len(self._term_ends) or self._term(low) != term:
            return None
        return low

    def _term(self, place: int) -> bytes:
        ends = self._term_ends
        return bytes(self._terms[ends[place - 1] if place else 0 : ends[place]])

    def _damaged(self) -> DamagedIndex:
        return DamagedIndex(f"{self.path}: its arrays do not fit together")


def _span(ends: Array, place: int) -> tuple[int, int]:
    """Where the part at a place begins and ends."""
    return (int(ends[place - 1]) if place else 0), int(ends[place])
