"""Queries as unit vectors."""

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sbertkit.arrays import Vectors
from sbertkit.data import is_blank
from sbertkit.errors import InputError, InputTypeError
from sbertkit.forks import fork_safe_lock
from sbertkit.metrics.cosine import is_masked, unit_rows

if TYPE_CHECKING:
    from sbertkit.encoder import Encoder

Query = str | npt.NDArray[np.floating[Any]] | Sequence[float]


def as_matrix(rows: Any) -> Vectors:
    """Query vectors as a float32 matrix (q, dim), of unit length.

    Raises:
        InputError: A vector without direction, or with masked numbers.
        InputTypeError: Not a list of vectors of numbers.
    """
    if any(map(is_masked, rows)):
        raise InputError("a query vector has masked numbers; fill them in")
    try:
        matrix = np.asarray(rows)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputTypeError("a query must be a text or a vector (dim,) of numbers") from error
    if matrix.ndim != 2 or matrix.dtype.kind not in "fiu":
        raise InputTypeError(
            "queries must be texts or vectors (dim,) of numbers; found an array of shape "
            f"{matrix.shape} and type {matrix.dtype}"
        )
    usable = np.isfinite(matrix).all(axis=1) & matrix.any(axis=1)
    if matrix.shape[1] and not usable.all():
        raise InputError("a query vector is zero, NaN or infinite and has no direction")
    return np.ascontiguousarray(unit_rows(matrix), dtype=np.float32)


class QueryEncoder:
    """Encodes queries and caches the vectors of the last ones; safe to share between threads.

    Attributes:
        dim: Size of a vector.
        encoder: The encoder.

    Args:
        encoder: See above.
        cached: How many vectors are kept, those that were used last.
    """

    def __init__(self, encoder: "Encoder", cached: int = 1_024) -> None:
        self.dim = encoder.dim
        self.encoder = encoder
        self._cached = cached
        self._vectors: OrderedDict[str, Vectors] = OrderedDict()
        self._lock = fork_safe_lock()

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Vectors (n, dim) of texts.

        Raises:
            InputError: A blank text.
        """
        for number, text in enumerate(texts, 1):
            if is_blank(text):
                raise InputError(f"query {number} is blank; give it some words")
        with self._lock:
            known = {text: self._vectors[text] for text in texts if text in self._vectors}
        new = [text for text in dict.fromkeys(texts) if text not in known]
        if new:
            known.update(zip(new, self.encoder.encode(new, kind="query"), strict=True))
        with self._lock:
            for text in texts[-self._cached :]:
                self._vectors[text] = known[text].copy()  # not a view that keeps all the others
                self._vectors.move_to_end(text)
            while len(self._vectors) > self._cached:
                self._vectors.popitem(last=False)
        if not texts:
            return np.empty((0, self.dim), np.float32)
        return np.stack([known[text] for text in texts])


def listed(queries: Any) -> "list[Any] | npt.NDArray[Any]":
    """Queries as a list, an array as it is.

    Raises:
        InputTypeError: A single query, or a table.
    """
    table = hasattr(queries, "columns")  # its rows would be the names of its columns
    if isinstance(queries, str | bytes | Mapping) or table or not isinstance(queries, Iterable):
        raise InputTypeError(
            f"expected a list of queries, found {type(queries).__name__}; put a single one in [], "
            "pass one column of a table"
        )
    return queries if isinstance(queries, np.ndarray) else list(queries)


def are_texts(queries: Iterable[object]) -> bool:
    """Whether all of some queries are texts."""
    return all(isinstance(one, str) for one in queries)


def query_vectors(queries: Sequence[Query] | Vectors, encoder: QueryEncoder) -> Vectors:
    """Unit vectors (q, dim) of texts, which go through the encoder, or of vectors.

    Raises:
        InputError: A blank text, a vector of the wrong size or without direction.
        InputTypeError: Neither texts nor vectors.
    """
    queries = listed(queries)
    if are_texts(queries):
        vectors = as_matrix(encoder.encode([str(query) for query in queries]))
    else:
        vectors = as_matrix(queries)
    if vectors.shape[1] != encoder.dim:
        raise InputError(
            f"the index has vectors of size {encoder.dim}, the query has size {vectors.shape[1]}"
        )
    return vectors


def query_texts(queries: Iterable[object], reader: str) -> list[str]:
    """The queries, all of which are texts.

    Args:
        queries: They.
        reader: What reads them, for messages.

    Raises:
        InputError: One is blank.
        InputTypeError: One is a vector, or they are no list.
    """
    texts = []
    for number, query in enumerate(listed(queries), 1):
        if not isinstance(query, str):
            raise InputTypeError(
                f"query {number} is no text, which {reader} reads; search for texts, or without it"
            )
        if is_blank(query):
            raise InputError(f"query {number} is blank; give it some words")
        texts.append(query)
    return texts
