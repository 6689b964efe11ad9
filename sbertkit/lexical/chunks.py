"""Documents in chunks: the words of each chunk by term, document and place.

Texts are split into runs of characters by a table, so that each distinct run is divided into words
once.
"""

from array import array
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from sbertkit.lexical.analyzer import Analyzer
from sbertkit.lexical.postings_file import Array, Rows

_CHUNK_CHARACTERS = 2_000_000
_BEYOND_ASCII = 3
"""A character beyond ASCII counts as so many, since every one of many scripts is a word."""
_MAX_KNOWN_TOKENS = 200_000
"""Tokens of the runs that are remembered from one chunk to the next."""


class Chunk(NamedTuple):
    """The tokens of some documents, by term, document and place.

    Attributes:
        lengths: Number of tokens of each document, (documents,).
        names: The terms, in order.
        postings: Number of documents of each term, (terms,).
        rows: The document of each posting, (postings,), from 0 in each chunk.
        frequencies: Its number of tokens, (postings,).
        places: The places of the tokens, (tokens,).
    """

    lengths: Array
    names: list[bytes]
    postings: Array
    rows: Array
    frequencies: Array
    places: Array


def chunks_of(texts: Iterable[str], analyzer: Analyzer) -> Iterator[tuple[int, Chunk]]:
    """The number of the first document of each chunk, and the chunk."""
    runs = _Runs(analyzer)
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
                runs = _Runs(analyzer)
    if counts:
        yield first, runs.chunk(numbers, counts)


class _Runs(dict[str, int]):
    """Numbers of runs, and the tokens of each, made when it is first looked up."""

    def __init__(self, analyzer: Analyzer) -> None:
        super().__init__()
        self._analyzer = analyzer
        self._vocabulary: dict[str, int] = {}
        self._names: list[bytes] = []
        self._terms = array("q")
        self._offsets = array("q")
        self._counts = array("q")
        self._widths = array("q")

    @property
    def tokens(self) -> int:
        """Number of tokens of all runs."""
        return len(self._terms)

    def __missing__(self, run: str) -> int:
        words = self._analyzer.words(run)
        for token in words.tokens:
            self._terms.append(self._number(token.term))
            self._offsets.append(token.offset)
        self._counts.append(len(words.tokens))
        self._widths.append(words.width)
        self[run] = number = len(self)
        return number

    def _number(self, term: str) -> int:
        number = self._vocabulary.setdefault(term, len(self._names))
        if number == len(self._names):
            self._names.append(term.encode("utf-8", "replace"))
        return number

    def chunk(self, numbers: list[int], counts: list[int]) -> Chunk:
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
        names, terms = self._ranked(np.array(self._terms, np.int64)[at])
        places = np.repeat(before, of_run) + np.array(self._offsets, np.int64)[at]
        documents = np.repeat(document, of_run)
        lengths = np.bincount(documents, minlength=len(counts)).astype(np.uint32)
        order = ordered(terms)
        terms, documents = terms[order], documents[order]
        begin = np.flatnonzero(_changes(terms) | _changes(documents))
        frequencies = np.diff(np.append(begin, len(terms)))
        return Chunk(
            lengths,
            names,
            np.bincount(terms[begin], minlength=len(names)).astype(np.uint32),
            documents[begin].astype(np.uint32),
            frequencies.astype(np.uint32),
            places[order].astype(np.uint32),
        )

    def _ranked(self, terms: Rows) -> tuple[list[bytes], Rows]:
        """The terms that tokens have, in order, and the rank of each token's, (tokens,)."""
        used = np.flatnonzero(np.bincount(terms, minlength=len(self._names)))
        ascending = sorted(used.tolist(), key=self._names.__getitem__)
        ranks = np.empty(len(self._names), np.int64)
        ranks[ascending] = np.arange(len(ascending))
        return [self._names[number] for number in ascending], ranks[terms]


def ordered(terms: Array) -> Rows:
    """The order by term; of equal ones, as they are. Faster than a stable sort."""
    keys = (terms.astype(np.int64) << 32) | np.arange(len(terms))
    keys.sort()
    return keys & 0xFFFFFFFF


def _changes(numbers: Array) -> Array:
    """Whether each number is another one than that before it."""
    changes = np.ones(len(numbers), np.bool_)
    np.not_equal(numbers[1:], numbers[:-1], out=changes[1:])
    return changes
