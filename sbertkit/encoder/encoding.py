"""One pass over texts: check, tokenize, batch, embed, and put the vectors in order."""

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

import numpy as np

from sbertkit.arrays import Vectors
from sbertkit.encoder.backends.base import Backend
from sbertkit.encoder.backends.streams import run_streams
from sbertkit.encoder.batching import Int64
from sbertkit.encoder.protocols import Kind
from sbertkit.encoder.report import EncodeReport, EncodeStats
from sbertkit.encoder.rows import PairRows, Row, RowReader, TextRows, length_of, rows_of
from sbertkit.encoder.spec import EncoderSpec
from sbertkit.encoder.tokenization import Tokens
from sbertkit.errors import InputError
from sbertkit.progress import Advance, track

Item = TypeVar("Item")
Result = TypeVar("Result")

logger = logging.getLogger(__name__)

_CHUNK_TEXTS = 8_192
_CHUNK_CHARS = 2_000_000
"""A chunk is sorted by length as a whole: enough for full batches, a minute's work at most."""


class _Chunk(NamedTuple):
    """Texts that are encoded together, and what happened to them."""

    texts: list[str]
    stats: EncodeStats


class _TokenizedChunk(NamedTuple):
    """A chunk with the tokens of each distinct text, and where each row has its text there."""

    stats: EncodeStats
    tokens: list[Tokens]
    place_of: list[int]


class EncodingRun:
    """Encodes the texts of one call, chunk by chunk, and counts what happens to them.

    Attributes:
        stats: What happened so far. A run that continues another has the stats of that one merged
            in before it begins.
        chunk_stats: What happened to the texts of the vectors that came last; rows count from 0.

    Args:
        spec: The encoder's.
        choose_backend: Gives what embeds the batches, for a job of at least so many texts.
        kind: ``query`` puts the query prompt before each text and refuses a blank one;
            ``document`` puts the document prompt and gives it the vector of the empty text.
        batch_tokens: Tokens per batch, padding included; ``None`` for what suits the backend.

    Raises:
        InputError: An unknown kind.
    """

    def __init__(
        self,
        spec: EncoderSpec,
        choose_backend: Callable[[int], Backend],
        *,
        kind: Kind = "document",
        batch_tokens: int | None = None,
    ) -> None:
        self._spec = spec
        self._choose_backend = choose_backend
        self._reader: RowReader = TextRows(spec.prompts, kind)
        if spec.scores_pairs:
            self._reader = PairRows(spec.prompts)
        self._batch_tokens = batch_tokens
        self.stats = EncodeStats()
        self.chunk_stats = EncodeStats()
        self._tokens_before = 0
        self._seconds = 0.0

    def vectors(
        self,
        texts: Iterable[Row],
        *,
        total: int | None = None,
        progress: bool = False,
        warn: bool = True,
    ) -> Iterator[Vectors]:
        """Vectors of the texts in order, one chunk (n, dim) at a time; drawn once per run.

        Args:
            texts: The texts or pairs, read no further than one chunk ahead of the one encoded.
            total: How many there are, for the progress; by default `len(texts)` where it has one.
            progress: Show progress on standard error.
            warn: Log at the end, once, what would otherwise pass unseen.
        """
        started = time.perf_counter()
        if length_of(texts) is not None and not isinstance(texts, Iterator):
            for number, row in enumerate(self._rows(texts), self.stats.rows):
                self._reader.check(row, number)  # before any of them costs time
        if total is None:
            total = length_of(texts)
        self._tokens_before = self.stats.tokens
        with track(self._reader.doing, total, done=self.stats.rows, shown=progress) as advance:
            for chunk, following in _one_ahead(self._chunks(texts), self._tokenize):
                known = self.stats.rows + chunk.stats.rows
                if following is not None:
                    known += following.stats.rows
                backend = self._choose_backend(max(total or 0, known))
                vectors = self._embed(chunk, backend, advance)
                self.stats.merge(chunk.stats)
                self.chunk_stats = chunk.stats
                yield vectors
        self._seconds = time.perf_counter() - started
        if warn:
            self.report().warn(logger, self._spec)

    def report(self) -> EncodeReport:
        """What happened to the texts whose vectors have been drawn."""
        return self.stats.report(self._seconds, self.stats.tokens - self._tokens_before)

    def _chunks(self, texts: Iterable[Row]) -> Iterator[_Chunk]:
        """Checked texts, a bounded number at a time."""
        chunk = _Chunk([], EncodeStats())
        chars = 0
        for number, row in enumerate(self._rows(texts), self.stats.rows):
            chunk.texts.append(self._clean(row, number, chunk.stats))
            chunk.stats.rows += 1
            chars += self._reader.chars(chunk.texts[-1])
            if chunk.stats.rows >= _CHUNK_TEXTS or chars >= _CHUNK_CHARS:
                yield chunk
                chunk, chars = _Chunk([], EncodeStats()), 0
        if chunk.texts:
            yield chunk

    def _rows(self, given: object) -> Iterator[object]:
        return rows_of(given, self._reader.expected)

    def _clean(self, row: object, number: int, stats: EncodeStats) -> Any:
        return self._reader.clean(self._reader.check(row, number), stats)

    def _tokenize(self, chunk: _Chunk) -> _TokenizedChunk:
        places: dict[str, int] = {}
        place_of = [places.setdefault(text, len(places)) for text in chunk.texts]
        return _TokenizedChunk(chunk.stats, self._spec.tokenize(list(places)), place_of)

    def _embed(self, chunk: _TokenizedChunk, backend: Backend, advance: Advance) -> Vectors:
        stats, tokens, place_of = chunk
        lengths = [len(token.ids) for token in tokens]
        repeats = np.bincount(place_of)
        distinct = np.empty((len(tokens), self._spec.dim), dtype=np.float32)

        def embed(rows: Int64) -> None:  # called from several threads, never twice for a row
            vectors = backend.embed(self._spec.collator.collate(tokens, rows))
            _check_shape(vectors, (len(rows), self._spec.dim))
            distinct[rows] = vectors
            advance(int(repeats[rows].sum()))

        budget = self._batch_tokens or backend.batch_tokens
        plan = self._spec.collator.plan(lengths, budget)
        with backend.streams(len(plan)) as streams:
            run_streams(embed, plan, streams, backend.first_use)
        vectors = distinct if len(tokens) == stats.rows else distinct[place_of]
        self._check_finite(vectors)
        stats.duplicates = stats.rows - len(tokens)
        stats.tokens = sum(lengths)
        special = len(self._spec.tokenizer.special)
        stats.text_tokens = int(repeats @ np.array(lengths)) - special * stats.rows
        for row, place in enumerate(place_of):
            token = tokens[place]
            if token.truncated:
                stats.truncated.append(row)
                stats.tokens_lost += token.truncated
                stats.tokens_lost_exact &= token.exact
            if token.unknown:
                stats.unknown_tokens += token.unknown
                if 2 * token.unknown > lengths[place] - special:
                    stats.mostly_unknown.append(row)
        return vectors

    def _check_finite(self, vectors: Vectors) -> None:
        finite = np.isfinite(vectors).all(axis=1)
        if not finite.all():
            row = self.stats.rows + int(np.argmin(finite))
            raise InputError(
                f"row {row}: the model gave a vector with NaN or infinite values; "
                "its weights are damaged"
            )


def _check_shape(vectors: object, expected: tuple[int, int]) -> None:
    """Refuses what is no array of floating-point numbers in a shape; NumPy would stretch a row.

    Raises:
        InputError: Something else.
    """
    found = type(vectors).__name__
    if isinstance(vectors, np.ndarray):
        if vectors.shape == expected and vectors.dtype.kind == "f":
            return
        found = f"{vectors.dtype} of shape {vectors.shape}"
    raise InputError(
        f"the model gave {found}, expected vectors of shape {expected}: its files do not belong "
        "together"
    )


def _one_ahead(
    items: Iterator[Item], work: Callable[[Item], Result]
) -> Iterator[tuple[Result, Item | None]]:
    """The result of some work on each item, and the item that follows.

    The result of the one that follows is made while the last is being used.
    """
    item = next(items, None)
    if item is None:
        return
    result = work(item)
    item = next(items, None)
    if item is not None:
        with ThreadPoolExecutor(1, "sbertkit-tokenize") as thread:
            while item is not None:
                future = thread.submit(work, item)
                yield result, item
                result = future.result()
                item = next(items, None)
    yield result, None
