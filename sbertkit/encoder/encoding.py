"""One pass over texts: check, tokenize, batch, run, and put the vectors in order."""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from sbertkit.arrays import Vectors
from sbertkit.data.text import has_surrogates, is_blank, repair_surrogates
from sbertkit.encoder.backends import Backend
from sbertkit.encoder.batching import Padder, plan_batches
from sbertkit.encoder.report import Account, EncodeReport
from sbertkit.encoder.tokenization import Tokenizer, Tokens
from sbertkit.errors import InputError, InputTypeError
from sbertkit.progress import Advance, track

Item = TypeVar("Item")
Result = TypeVar("Result")

logger = logging.getLogger(__name__)

_POOL_TEXTS = 8_192
_POOL_CHARS = 2_000_000
"""A pool is sorted by length as a whole: large enough for full batches, a minute's work at most."""


def length_of(texts: object) -> int | None:
    """How many texts there are, where that is known before they are drawn."""
    try:
        return len(texts) if isinstance(texts, Sized) else None
    except TypeError:  # an array without dimensions
        return None


def _rows_of(texts: object) -> Iterator[object]:
    """The rows of what was given as texts, each still to be checked."""
    found = f"expected an iterable of strings, found {type(texts).__name__}"
    if isinstance(texts, Mapping) or hasattr(texts, "columns"):
        raise InputTypeError(f"{found}; pass one column of it or a list of its texts")
    if isinstance(texts, bytes | bytearray):  # their rows would be numbers
        raise InputTypeError(f"{found}; decode it and pass a list of strings")
    try:
        return iter(texts)  # type: ignore[call-overload, no-any-return]  # also by __getitem__
    except TypeError as error:
        raise InputTypeError(found) from error


@dataclass(frozen=True, slots=True)
class RunSettings:
    """What one call asks of the encoder.

    Attributes:
        max_tokens: Where texts are cut; ``None`` for nowhere.
        prompt: Put before every text.
        blank_allowed: Whether a blank text has the vector of the empty text or is refused.
        batch_tokens: Tokens a batch, padding included; ``None`` for what suits the backend.
    """

    max_tokens: int | None
    prompt: str
    blank_allowed: bool
    batch_tokens: int | None


class _Pool(NamedTuple):
    """Texts that are encoded together, and what was met in them."""

    texts: list[str]
    account: Account


class _TokenizedPool(NamedTuple):
    """A pool with the tokens of each distinct text, and where each row has its text there."""

    account: Account
    tokens: list[Tokens]
    place_of: list[int]


class EncodingRun:
    """Encodes the texts of one call, pool by pool, and keeps account of what it meets.

    Attributes:
        account: What was met so far. A run that goes on with another has the account of that one
            put in before it begins.
        pool: What was met in the texts of the vectors that came last.

    Args:
        tokenizer: The encoder's tokenizer.
        padder: Builds its batches.
        choose_backend: Gives what runs them, for a job of at least so many texts.
        dim: Size of a vector.
        settings: What the call asks for.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        padder: Padder,
        choose_backend: Callable[[int], Backend],
        *,
        dim: int,
        settings: RunSettings,
    ) -> None:
        self._tokenizer = tokenizer
        self._padder = padder
        self._choose_backend = choose_backend
        self._dim = dim
        self._settings = settings
        self.account = Account()
        self.pool = Account()
        self._tokens_before = 0
        self._seconds = 0.0

    def vectors(
        self,
        texts: Iterable[str],
        *,
        total: int | None = None,
        progress: bool = False,
        warn: bool = True,
    ) -> Iterator[Vectors]:
        """Vectors of the texts in order, one pool (n, dim) at a time; drawn once a run.

        Args:
            texts: The texts, read no further than one pool ahead of the one that is encoded.
            total: How many there are, for the progress; by default `len(texts)` where it has one.
            progress: Show progress on standard error.
            warn: Say at the end, once, what would otherwise pass unseen.
        """
        started = time.perf_counter()
        if length_of(texts) is not None and not isinstance(texts, Iterator):
            for row, text in enumerate(_rows_of(texts), self.account.rows):
                self._checked(text, row)  # before any of them costs time
        if total is None:
            total = length_of(texts)
        self._tokens_before = self.account.tokens
        with track("encoding", total, done=self.account.rows, shown=progress) as advance:
            for pool, following in _one_ahead(self._pools(texts), self._tokenize):
                known = self.account.rows + pool.account.rows
                if following is not None:
                    known += following.account.rows
                backend = self._choose_backend(max(total or 0, known))
                vectors = self._encode_pool(pool, backend, advance)
                self.account.add(pool.account)
                self.pool = pool.account
                yield vectors
        self._seconds = time.perf_counter() - started
        if warn:
            self.report().warn(logger, self._settings.max_tokens)

    def report(self) -> EncodeReport:
        """The account of the texts whose vectors have been drawn."""
        return self.account.report(self._seconds, self.account.tokens - self._tokens_before)

    def _pools(self, texts: Iterable[str]) -> Iterator[_Pool]:
        """Checked texts, a bounded number at a time."""
        pool = _Pool([], Account())
        chars = 0
        for row, text in enumerate(_rows_of(texts), self.account.rows):
            pool.texts.append(self._clean(text, row, pool.account))
            pool.account.rows += 1
            chars += len(pool.texts[-1])
            if pool.account.rows >= _POOL_TEXTS or chars >= _POOL_CHARS:
                yield pool
                pool, chars = _Pool([], Account()), 0
        if pool.texts:
            yield pool

    def _checked(self, text: object, row: int) -> str:
        """The text of a row.

        Raises:
            InputError: A blank query.
            InputTypeError: No text.
        """
        if not isinstance(text, str):
            if hasattr(text, "as_py"):  # a row of an Arrow column
                return self._checked(text.as_py(), row)
            raise InputTypeError(
                f"row {row}: expected a string, found {type(text).__name__}"
                + (f" ({text!r})" if isinstance(text, float) or text is None else "")
                + "; every row must be a text"
            )
        if not self._settings.blank_allowed and is_blank(text):
            raise InputError(f"row {row}: the query is blank; give it some words")
        return text

    def _clean(self, row_text: object, row: int, account: Account) -> str:
        text = self._checked(row_text, row)
        if is_blank(text):
            account.blank.append(row)
            return self._settings.prompt
        if has_surrogates(text):
            account.repaired.append(row)
            text = repair_surrogates(text)
        return self._settings.prompt + text

    def _tokenize(self, pool: _Pool) -> _TokenizedPool:
        places: dict[str, int] = {}
        place_of = [places.setdefault(text, len(places)) for text in pool.texts]
        tokens = self._tokenizer.tokenize(list(places), self._settings.max_tokens)
        return _TokenizedPool(pool.account, tokens, place_of)

    def _encode_pool(self, pool: _TokenizedPool, backend: Backend, advance: Advance) -> Vectors:
        account, tokens, place_of = pool
        lengths = [len(token.ids) for token in tokens]
        repeats = np.bincount(place_of)
        distinct = np.empty((len(tokens), self._dim), dtype=np.float32)

        def deliver(rows: npt.NDArray[np.int64], vectors: Vectors) -> None:
            _check_shape(vectors, (len(rows), self._dim))
            distinct[rows] = vectors
            advance(int(repeats[rows].sum()))

        backend.run(
            plan_batches(lengths, self._settings.batch_tokens or backend.batch_tokens),
            lambda rows: self._padder.pad(tokens, rows),
            deliver,
        )
        vectors = distinct if len(tokens) == account.rows else distinct[place_of]
        self._check_finite(vectors)
        account.duplicates = account.rows - len(tokens)
        account.tokens = sum(lengths)
        for row, place in enumerate(place_of, self.account.rows):
            if tokens[place].lost:
                account.truncated.append(row)
                account.tokens_lost += tokens[place].lost
                account.tokens_lost_exact &= tokens[place].exact
        return vectors

    def _check_finite(self, vectors: Vectors) -> None:
        finite = np.isfinite(vectors).all(axis=1)
        if not finite.all():
            row = self.account.rows + int(np.argmin(finite))
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
