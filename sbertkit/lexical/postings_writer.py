"""Writing the file of a segment's words, in bounded memory.

The terms of each chunk of documents, and their postings, go to a temporary file. At the end the
terms of all chunks are merged, and the postings read back by ranges of terms and written in order.
"""

import heapq
import shutil
import tempfile
from array import array
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from sbertkit.lexical.analyzer import Analyzer
from sbertkit.lexical.chunks import Chunk, chunks_of, ordered
from sbertkit.lexical.postings_file import Array, Rows, Sizes

_BLOCK_PLACES = 250_000
"""Tokens whose postings are put in order at once."""
_NAMES_AT_ONCE = 1_024


def write_postings(path: Path, texts: Iterable[str], analyzer: Analyzer) -> None:
    """Writes the words of texts, the documents 0, 1, ... of a segment.

    Args:
        path: The file.
        texts: The texts, one at a time.
        analyzer: Makes their words.

    Raises:
        OSError: The disk is full or a permission is missing.
    """
    with (
        tempfile.TemporaryFile(dir=path.parent) as spilled,
        tempfile.TemporaryFile(dir=path.parent) as names,
    ):
        chunks, lengths = [], [np.empty(0, np.uint32)]
        for first, chunk in chunks_of(texts, analyzer):
            lengths.append(chunk.lengths)
            chunks.append(_Spilled.write(spilled, chunk, first))
        terms = _merge_terms(chunks, names)
        with path.open("wb") as file:
            _Output(file, terms, np.concatenate(lengths), chunks).write()


class _Spilled(NamedTuple):
    """A chunk in the temporary file, its arrays memory-mapped.

    Attributes:
        names: The bytes of all terms, in order.
        name_ends: Where each term ends, (terms,).
        posting_ends: Where the postings of each term end, (terms,).
        place_ends: Where the places of each term end, (terms,).
        rows: As of the chunk, but through all chunks.
        frequencies: As of the chunk.
        places: As of the chunk.
    """

    names: Array
    name_ends: Array
    posting_ends: Array
    place_ends: Array
    rows: Array
    frequencies: Array
    places: Array

    @classmethod
    def write(cls, file: BinaryIO, chunk: Chunk, first: int) -> "_Spilled":
        """Writes a chunk, whose first document has a number."""
        posting_ends = np.cumsum(chunk.postings, dtype=np.int64)
        arrays = (
            np.frombuffer(b"".join(chunk.names), np.uint8),
            np.cumsum([len(name) for name in chunk.names], dtype=np.int64),
            posting_ends,
            np.append(0, np.cumsum(chunk.frequencies, dtype=np.int64))[posting_ends],
            chunk.rows + np.uint32(first),
            chunk.frequencies,
            chunk.places,
        )
        mapped = []
        for one in arrays:
            start = file.seek(0, 2)
            file.write(one.tobytes())
            file.flush()
            mapped.append(np.memmap(file, one.dtype, "r", start, one.shape) if len(one) else one)
        return cls(*mapped)

    def sorted_names(self) -> Iterator[bytes]:
        """The terms, in order."""
        start = 0
        for first in range(0, len(self.name_ends), _NAMES_AT_ONCE):
            ends = self.name_ends[first : first + _NAMES_AT_ONCE]
            block = self.names[start : ends[-1]].tobytes()
            before = 0
            for end in (ends - start).tolist():
                yield block[before:end]
                before = end
            start += before


class _Terms(NamedTuple):
    """The terms of all chunks.

    Attributes:
        names: Their bytes, in order.
        sizes: How many each has, (terms,).
        numbers: For each chunk the numbers of its terms among all, ascending.
    """

    names: BinaryIO
    sizes: Array
    numbers: list[Array]


def _merge_terms(chunks: Sequence[_Spilled], names: BinaryIO) -> _Terms:
    """Merges the terms of chunks into a file."""
    sizes = array("I")
    numbers = [array("I") for _ in chunks]
    tagged = (_tagged(chunk, number) for number, chunk in enumerate(chunks))
    last = None
    for name, chunk in heapq.merge(*tagged):
        if name != last:
            names.write(name)
            sizes.append(len(name))
            last = name
        numbers[chunk].append(len(sizes) - 1)
    return _Terms(
        names,
        np.frombuffer(sizes, np.uint32),
        [np.frombuffer(one, np.uint32) for one in numbers],
    )


def _tagged(chunk: _Spilled, number: int) -> Iterator[tuple[bytes, int]]:
    return ((name, number) for name in chunk.sorted_names())


class _Output:
    """The file, written from chunks.

    Args:
        file: The file.
        terms: The terms.
        lengths: Number of tokens of each document.
        chunks: Postings of all documents, in order.
    """

    def __init__(
        self, file: BinaryIO, terms: _Terms, lengths: Array, chunks: list[_Spilled]
    ) -> None:
        self._file = file
        self._chunks = chunks
        self._terms = terms
        self._lengths = lengths
        self._posting_ends = self._summed([one.posting_ends for one in chunks])
        self._place_ends = self._summed([one.place_ends for one in chunks])
        count = len(terms.sizes)
        self._sizes = Sizes(
            documents=len(lengths),
            terms=count,
            term_bytes=int(terms.sizes.sum(dtype=np.int64)),
            postings=_end(self._posting_ends, count),
            places=_end(self._place_ends, count),
            frequency_bytes=_width(one.frequencies for one in chunks),
            place_bytes=_width(one.places for one in chunks),
        )

    def _summed(self, ends: Sequence[Array]) -> Rows:
        """Where those of each term end, (terms,), from where they end in each chunk."""
        total = np.zeros(len(self._terms.sizes), np.int64)
        for numbers, of_chunk in zip(self._terms.numbers, ends, strict=True):
            total[numbers] += np.diff(of_chunk, prepend=0)
        return np.cumsum(total, out=total)

    def write(self) -> None:
        """Writes it."""
        self._file.write(self._sizes.to_bytes())
        offsets = self._sizes.offsets()
        self._file.truncate(offsets["end"])
        self._file.seek(offsets["term_bytes"])
        self._terms.names.seek(0)
        shutil.copyfileobj(self._terms.names, self._file)
        self._put(offsets["lengths"], "lengths", self._lengths)
        ends = np.cumsum(self._terms.sizes, dtype=np.int64)
        self._put(offsets["term_ends"], "term_ends", ends)
        del ends
        self._put(offsets["posting_ends"], "posting_ends", self._posting_ends)
        self._put(offsets["place_ends"], "place_ends", self._place_ends)
        for rows, frequencies, places in self._blocks():
            for name, values in (("rows", rows), ("frequencies", frequencies), ("places", places)):
                offsets[name] = self._put(offsets[name], name, values)

    def _put(self, offset: int, name: str, values: Array) -> int:
        """Writes an array, or the next part of it; gives where it ends."""
        self._file.seek(offset)
        self._file.write(np.ascontiguousarray(values, self._sizes.arrays[name][0]).data)
        return self._file.tell()

    def _blocks(self) -> Iterator[tuple[Array, Array, Array]]:
        """Documents, frequencies and places of ranges of terms, one range after the other."""
        ends = self._place_ends
        start = 0
        while start < len(ends):
            limit = (ends[start - 1] if start else 0) + _BLOCK_PLACES
            end = max(start + 1, int(np.searchsorted(ends, limit, side="right")))
            yield _merged(
                [
                    _part(one, numbers, start, end)
                    for one, numbers in zip(self._chunks, self._terms.numbers, strict=True)
                ]
            )
            start = end


class _Part(NamedTuple):
    """The postings of a range of terms in a chunk; the term of each by its number among all."""

    terms: Array
    rows: Array
    frequencies: Array
    places: Array


def _part(chunk: _Spilled, numbers: Array, start: int, end: int) -> _Part:
    """The postings of a chunk of the terms from `start` to `end`."""
    first, last = np.searchsorted(numbers, np.array((start, end), numbers.dtype)).tolist()
    posting_ends = np.append(_end(chunk.posting_ends, first), chunk.posting_ends[first:last])
    postings = slice(int(posting_ends[0]), int(posting_ends[-1]))
    places = slice(_end(chunk.place_ends, first), _end(chunk.place_ends, last))
    return _Part(
        np.repeat(numbers[first:last], np.diff(posting_ends)),
        np.array(chunk.rows[postings]),
        np.array(chunk.frequencies[postings]),
        np.array(chunk.places[places]),
    )


def _end(ends: Array, place: int) -> int:
    """Where what is before a place ends."""
    return int(ends[place - 1]) if place else 0


def _merged(parts: list[_Part]) -> tuple[Array, Array, Array]:
    """Documents, frequencies and places of several chunks, by term and then by chunk."""
    terms, rows, frequencies, places = (
        np.concatenate(arrays) for arrays in zip(*parts, strict=True)
    )
    order = ordered(terms)
    counts = frequencies.astype(np.int64)
    starts = (np.cumsum(counts) - counts)[order]
    counts = counts[order]
    at = np.arange(len(places)) + np.repeat(starts - (np.cumsum(counts) - counts), counts)
    return rows[order], frequencies[order], places[at]


def _width(arrays: Iterable[Array]) -> int:
    """Bytes of the smallest type that holds all numbers."""
    largest = max((int(array.max()) for array in arrays if len(array)), default=0)
    return next(width for width in (1, 2, 4) if largest < 256**width)
