"""Writing the file of a segment's words, in bounded memory.

Texts are taken in chunks. Of each chunk the runs of characters are split by a table, so that
each distinct one is divided into words once; the postings of the chunk, by term and document, go to
a temporary file. At the end they are read back by ranges of terms and written in order.
"""

import tempfile
from collections.abc import Iterable, Iterator
from itertools import accumulate
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from sbertkit.lexical.analyzer import Analyzer
from sbertkit.lexical.postings_file import Array, Rows, Sizes

_CHUNK_CHARACTERS = 2_000_000
_BEYOND_ASCII = 3
"""A character beyond ASCII counts as so many, since every one of many scripts is a word."""
_MAX_KNOWN_TOKENS = 200_000
"""Tokens of the runs that are remembered from one chunk to the next."""
_BLOCK_PLACES = 1_000_000
"""Tokens whose postings are put in order at once."""


def write_postings(path: Path, texts: Iterable[str], analyzer: Analyzer) -> None:
    """Writes the words of texts, the documents 0, 1, ... of a segment.

    Args:
        path: The file.
        texts: The texts, one at a time.
        analyzer: Makes their words.

    Raises:
        OSError: The disk is full or a permission is missing.
    """
    vocabulary: dict[str, int] = {}
    with tempfile.TemporaryFile(dir=path.parent) as spilled:
        chunks, lengths = [], [np.empty(0, np.uint32)]
        for first, chunk in _chunks(texts, analyzer, vocabulary):
            lengths.append(chunk.lengths)
            chunks.append(_Spilled.write(spilled, chunk, first))
        with path.open("wb") as file:
            _Output(file, vocabulary, np.concatenate(lengths), chunks).write()


class _Chunk(NamedTuple):
    """The tokens of some documents, by term, document and place.

    Attributes:
        lengths: Number of tokens of each document, (documents,).
        terms: The number of the term of each posting, (postings,).
        rows: Its document, (postings,), from 0 in each chunk.
        frequencies: Its number of tokens, (postings,).
        places: The places of the tokens, (tokens,).
    """

    lengths: Array
    terms: Array
    rows: Array
    frequencies: Array
    places: Array


def _chunks(
    texts: Iterable[str], analyzer: Analyzer, vocabulary: dict[str, int]
) -> Iterator[tuple[int, _Chunk]]:
    """The number of the first document of each chunk, and the chunk."""
    runs = _Runs(analyzer, vocabulary)
    numbers: list[int] = []
    counts: list[int] = []
    first, characters = 0, 0
    for text in texts:
        of_text = analyzer.runs(text)
        numbers += map(runs.__getitem__, of_text)
        counts.append(len(of_text))
        characters += len(text) * (1 if text.isascii() else _BEYOND_ASCII)
        if characters >= _CHUNK_CHARACTERS:
            yield first, runs.chunk(numbers, counts)
            first, characters = first + len(counts), 0
            numbers, counts = [], []
            if runs.tokens > _MAX_KNOWN_TOKENS:
                runs = _Runs(analyzer, vocabulary)
    if counts:
        yield first, runs.chunk(numbers, counts)


class _Runs(dict[str, int]):
    """Numbers of runs, and the tokens of each, made when it is first looked up."""

    def __init__(self, analyzer: Analyzer, vocabulary: dict[str, int]) -> None:
        super().__init__()
        self._analyzer = analyzer
        self._vocabulary = vocabulary
        self._terms: list[int] = []
        self._offsets: list[int] = []
        self._counts: list[int] = []
        self._widths: list[int] = []

    @property
    def tokens(self) -> int:
        """Number of tokens of all runs."""
        return len(self._terms)

    def __missing__(self, run: str) -> int:
        words = self._analyzer.words(run)
        vocabulary = self._vocabulary
        for token in words.tokens:
            self._terms.append(vocabulary.setdefault(token.term, len(vocabulary)))
            self._offsets.append(token.offset)
        self._counts.append(len(words.tokens))
        self._widths.append(words.width)
        self[run] = number = len(self)
        return number

    def chunk(self, numbers: list[int], counts: list[int]) -> _Chunk:
        """The tokens of documents.

        Args:
            numbers: The runs of all documents, in order.
            counts: How many each document has.
        """
        runs = np.array(numbers, np.int64)
        per_document = np.array(counts, np.int64)
        document = np.repeat(np.arange(len(counts)), per_document)
        widths = np.array(self._widths, np.int64)[runs]
        before = np.cumsum(widths) - widths  # through all documents
        begins = np.append(before, 0)[np.minimum(np.cumsum(per_document) - per_document, len(runs))]
        before -= begins[document]
        tokens = np.array(self._counts, np.int64)
        of_run = tokens[runs]
        first = (np.cumsum(tokens) - tokens)[runs]
        at = np.arange(int(of_run.sum())) + np.repeat(first - (np.cumsum(of_run) - of_run), of_run)
        terms = np.array(self._terms, np.int64)[at]
        places = np.repeat(before, of_run) + np.array(self._offsets, np.int64)[at]
        documents = np.repeat(document, of_run)
        lengths = np.bincount(documents, minlength=len(counts)).astype(np.uint32)
        order = _ordered(terms)
        terms, documents = terms[order], documents[order]
        begin = np.flatnonzero(_changes(terms) | _changes(documents))
        frequencies = np.diff(np.append(begin, len(terms)))
        return _Chunk(
            lengths,
            terms[begin].astype(np.uint32),
            documents[begin].astype(np.uint32),
            frequencies.astype(np.uint32),
            places[order].astype(np.uint32),
        )


class _Spilled(NamedTuple):
    """A chunk in the temporary file, its arrays memory-mapped."""

    terms: Array
    rows: Array
    frequencies: Array
    places: Array

    @classmethod
    def write(cls, file: BinaryIO, chunk: _Chunk, first: int) -> "_Spilled":
        """Writes the postings of a chunk, whose first document has a number."""
        arrays = (chunk.terms, chunk.rows + np.uint32(first), chunk.frequencies, chunk.places)
        mapped = []
        for array in arrays:
            start = file.seek(0, 2)
            file.write(array.tobytes())
            file.flush()
            mapped.append(
                np.memmap(file, array.dtype, "r", start, array.shape) if len(array) else array
            )
        return cls(*mapped)


class _Output:
    """The file, written from chunks.

    Args:
        file: The file.
        vocabulary: Numbers of terms.
        lengths: Number of tokens of each document.
        chunks: Postings of all documents, in order.
    """

    def __init__(
        self, file: BinaryIO, vocabulary: dict[str, int], lengths: Array, chunks: list[_Spilled]
    ) -> None:
        self._file = file
        self._chunks = chunks
        count = len(vocabulary)
        zeros = np.zeros(count, np.int64)
        self._postings = sum((np.bincount(one.terms, minlength=count) for one in chunks), zeros)
        self._tokens = sum(
            (np.bincount(one.terms, one.frequencies, count).astype(np.int64) for one in chunks),
            zeros,
        )
        encoded = [term.encode("utf-8", "replace") for term in vocabulary]
        self._order = sorted(range(count), key=encoded.__getitem__)
        self._terms = [encoded[number] for number in self._order]
        self._lengths = lengths
        self._sizes = Sizes(
            documents=len(lengths),
            terms=count,
            term_bytes=sum(map(len, self._terms)),
            postings=int(self._postings.sum()),
            places=int(self._tokens.sum()),
            frequency_bytes=_width(one.frequencies for one in chunks),
            place_bytes=_width(one.places for one in chunks),
        )

    def write(self) -> None:
        """Writes it."""
        self._file.write(self._sizes.to_bytes())
        offsets = self._sizes.offsets()
        self._file.truncate(offsets["end"])
        small = {
            "lengths": self._lengths,
            "term_bytes": np.frombuffer(b"".join(self._terms), np.uint8),
            "term_ends": np.array(list(accumulate(map(len, self._terms))), np.int64),
            "term_numbers": np.array(self._order, np.int64),
            "posting_ends": np.cumsum(self._postings),
            "place_ends": np.cumsum(self._tokens),
        }
        for name, array in small.items():
            self._put(offsets[name], name, array)
        for rows, frequencies, places in self._blocks():
            for name, array in (("rows", rows), ("frequencies", frequencies), ("places", places)):
                offsets[name] = self._put(offsets[name], name, array)

    def _put(self, offset: int, name: str, array: Array) -> int:
        """Writes an array, or the next part of it; gives where it ends."""
        self._file.seek(offset)
        self._file.write(array.astype(self._sizes.arrays[name][0]).tobytes())
        return self._file.tell()

    def _blocks(self) -> Iterator[tuple[Array, Array, Array]]:
        """Documents, frequencies and places of ranges of terms, one range after the other."""
        ends = np.cumsum(self._tokens)
        cursors = np.zeros((len(self._chunks), 2), np.int64)
        start = 0
        while start < len(ends):
            limit = (ends[start - 1] if start else 0) + _BLOCK_PLACES
            end = max(start + 1, int(np.searchsorted(ends, limit, side="right")))
            yield _merged(
                [
                    self._part(one, cursor, end)
                    for one, cursor in zip(self._chunks, cursors, strict=True)
                ]
            )
            start = end

    def _part(self, chunk: _Spilled, cursor: Rows, end: int) -> _Spilled:
        """The next postings of a chunk, of terms below `end`; moves the cursor behind them."""
        first, place = cursor.tolist()
        last = int(np.searchsorted(chunk.terms, end))
        frequencies = np.array(chunk.frequencies[first:last])
        after = place + int(frequencies.sum(dtype=np.int64))
        cursor[:] = last, after
        return _Spilled(
            np.array(chunk.terms[first:last]),
            np.array(chunk.rows[first:last]),
            frequencies,
            np.array(chunk.places[place:after]),
        )


def _merged(parts: list[_Spilled]) -> tuple[Array, Array, Array]:
    """Documents, frequencies and places of several chunks, by term and then by chunk."""
    terms, rows, frequencies, places = (
        np.concatenate(arrays) for arrays in zip(*parts, strict=True)
    )
    order = _ordered(terms)
    counts = frequencies.astype(np.int64)
    starts = (np.cumsum(counts) - counts)[order]
    counts = counts[order]
    at = np.arange(len(places)) + np.repeat(starts - (np.cumsum(counts) - counts), counts)
    return rows[order], frequencies[order], places[at]


def _ordered(terms: Array) -> Rows:
    """The order by term; of equal ones, as they are. Faster than a stable sort."""
    keys = (terms.astype(np.int64) << 32) | np.arange(len(terms))
    keys.sort()
    return keys & 0xFFFFFFFF


def _changes(numbers: Array) -> Array:
    """Whether each number is another one than that before it."""
    changes = np.ones(len(numbers), np.bool_)
    np.not_equal(numbers[1:], numbers[:-1], out=changes[1:])
    return changes


def _width(arrays: Iterable[Array]) -> int:
    """Bytes of the smallest type that holds all numbers."""
    largest = max((int(array.max()) for array in arrays if len(array)), default=0)
    return next(width for width in (1, 2, 4) if largest < 256**width)
