"""Which documents are a query's own text under the query's id, as in ArguAna."""

import re
from collections.abc import Mapping

from sbertkit.data.retrieval import Qrels

_GRAM = 5
_MIN_SHARED = 0.8
"""In Cranfield, CISI, LISA and NPL, whose ids coincide by chance, pairs share at most 52 %."""
_WORD = re.compile(r"\w+")


def is_own_text(query: str, document: str) -> bool:
    """Whether a document is the query's text, nearly so, or one holds the other.

    A document often has a title that the query lacks, or is a longer or cleaned form of it. So at
    least 80 % of the character 5-grams of the shorter text must be in the other; case, punctuation
    and spaces do not count.
    """
    one, other = _grams(query), _grams(document)
    return len(one & other) >= _MIN_SHARED * min(len(one), len(other))


def _grams(text: str) -> set[str]:
    """The 5-grams of a text's words with single spaces; a shorter text is its own."""
    words = " ".join(_WORD.findall(text.casefold())) or text.strip()
    return {words[start : start + _GRAM] for start in range(max(1, len(words) - _GRAM + 1))}


def other_texts(
    queries: Mapping[str, str], documents: Mapping[str, str], qrels: Qrels
) -> frozenset[str]:
    """The queries whose id is by chance that of a document.

    That is one with another text, or one that is judged relevant: an answer, not the query.

    Args:
        queries: Texts by id.
        documents: Texts of the documents that have the id of a query.
        qrels: Grades by query id and document id.
    """
    return frozenset(
        name
        for name, document in documents.items()
        if qrels.get(name, {}).get(name, 0) > 0 or not is_own_text(queries[name], document)
    )
