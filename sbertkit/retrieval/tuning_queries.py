"""Queries to tune an index with: those of a file, or parts of documents.

A document of the index would find itself, and so flatter every kind of index. Half of one is
another text. So are a few words, the nearest of which lie in many clusters; and a few words of each
of two documents, which are near no document, as many queries are: a graph finds the nearest of
those less easily. Each kind of part is a group, and the recall is reached in all.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from random import Random

import numpy as np

from sbertkit.data.retrieval import read_query_source
from sbertkit.data.text import is_blank
from sbertkit.encoder import Encoder
from sbertkit.errors import InputError, InputTypeError
from sbertkit.index.tuning import MIN_QUERIES
from sbertkit.metrics.cosine import unit_rows
from sbertkit.retrieval.sampled_texts import sampled_texts
from sbertkit.retrieval.vector_index import TuningQueries
from sbertkit.retrieval.view import View

QueryTexts = str | os.PathLike[str] | Sequence[str]
"""A file or BEIR folder of queries, or their texts."""

_PARTS = 400
"""Queries of each group."""
_FEW_WORDS = (2, 6)
_WORDS_OF_EACH = (2, 5)
"""Of each of two documents."""
_WORD_CHARACTERS = 6
"""Of a text without spaces, so many characters count as a word."""
_MAX_QUERIES = 5_000


def read_queries(queries: QueryTexts) -> tuple[str, list[str]]:
    """Name and texts of queries that are given.

    Args:
        queries: A list of texts, or what `read_query_source` takes.

    Raises:
        InputError: Bad lines, or too few queries.
        MissingFile: There is no such file.
        InputTypeError: Neither a path nor texts.
    """
    name = "the queries given"
    if isinstance(queries, str | os.PathLike):
        name = os.fspath(queries)
        texts = list(read_query_source(name).values())
    else:
        texts = list(queries) if isinstance(queries, Iterable) else [queries]
        if not all(isinstance(text, str) for text in texts):
            raise InputTypeError("queries must be a path or a list of texts")
        texts = [text for text in texts if not is_blank(text)]
    texts = list(dict.fromkeys(texts))
    if len(texts) < MIN_QUERIES:
        raise InputError(
            f"{name}: expected at least {MIN_QUERIES} different queries to measure a recall with, "
            f"found {len(texts)}; give more, or leave them out to take parts of documents"
        )
    return name, texts[:_MAX_QUERIES]


def text_queries(
    load: Callable[[], Encoder], view: View, texts: tuple[str, list[str]] | None = None
) -> TuningQueries | None:
    """Vectors of queries, encoded as queries.

    Args:
        load: Gives the encoder of the index.
        view: The index.
        texts: Name and texts of queries; ``None`` takes parts of its documents.

    Returns:
        The queries; ``None`` if the documents have too few different parts.
    """
    groups = 1
    if texts is None:
        parts = parts_of(text for _, text in sampled_texts(view, 3 * _PARTS))
        groups, size = len(parts), min(map(len, parts))
        if size < MIN_QUERIES:
            return None
        texts = "parts of documents", [text for group in parts for text in group[:size]]
    name, queries = texts
    vectors = load().encode(queries, kind="query")
    return TuningQueries(np.ascontiguousarray(unit_rows(vectors), np.float32), name, groups)


def parts_of(texts: Iterable[str]) -> list[list[str]]:
    """A few words of some texts, a few of each of two, and half of some; each kind distinct."""
    random = Random(0)  # noqa: S311  # no secret
    few: list[str] = []
    one_of_two: list[str] = []
    half: list[str] = []
    for text in texts:
        words, space = _words(text)
        for parts, wanted, count in (
            (few, _PARTS, random.randint(*_FEW_WORDS)),
            (one_of_two, 2 * _PARTS, random.randint(*_WORDS_OF_EACH)),
            (half, _PARTS, (len(words) + 1) // 2),
        ):
            if len(parts) < wanted and len(words) > count:
                start = random.randint(0, len(words) - count)
                parts.append(space.join(words[start : start + count]))
    pairs = zip(one_of_two[::2], one_of_two[1::2], strict=False)
    both = [f"{first} {second}" for first, second in pairs]
    return [list(dict.fromkeys(parts)) for parts in (few, both, half)]


def _words(text: str) -> tuple[list[str], str]:
    """The words of a text, and what joins them; of one without spaces, a few characters each."""
    words = text.split()
    if len(words) >= len(text) // (4 * _WORD_CHARACTERS):
        return words, " "
    step = _WORD_CHARACTERS
    return [text[start : start + step] for start in range(0, len(text), step)], ""
