"""The rows that a model reads, checked and cleaned one by one: texts, or pairs of them."""

from collections.abc import Iterator, Mapping, Sized
from typing import Any, Protocol

from sbertkit.data.text import has_surrogates, is_blank, repair_surrogates
from sbertkit.encoder.prompts import Prompts
from sbertkit.encoder.protocols import Kind
from sbertkit.encoder.report import EncodeStats
from sbertkit.errors import InputError, InputTypeError

Row = str | tuple[str, str]
"""A text, or a query and a document."""


def length_of(rows: object) -> int | None:
    """How many rows there are, where that is known before they are drawn."""
    try:
        return len(rows) if isinstance(rows, Sized) else None
    except TypeError:  # an array without dimensions
        return None


def rows_of(given: object, expected: str = "strings") -> Iterator[object]:
    """The rows of what was given, each still to be checked.

    Args:
        given: What a caller gave.
        expected: What rows should be, for the message.

    Raises:
        InputTypeError: It has no rows.
    """
    found = f"expected an iterable of {expected}, found {type(given).__name__}"
    if isinstance(given, Mapping) or hasattr(given, "columns"):
        raise InputTypeError(f"{found}; pass one column of it or a list of its texts")
    if isinstance(given, bytes | bytearray):  # their rows would be numbers
        raise InputTypeError(f"{found}; decode it and pass a list of strings")
    try:
        return iter(given)  # type: ignore[call-overload, no-any-return]  # also by __getitem__
    except TypeError as error:
        raise InputTypeError(found) from error


class RowReader(Protocol):
    """Checks and cleans the rows of one call."""

    expected: str
    """What rows should be, for messages."""
    doing: str
    """What is done with them, for the progress."""

    def check(self, row: object, number: int) -> Any:
        """The row, if the model can read it."""
        ...

    def clean(self, row: Any, stats: EncodeStats) -> Any:
        """What the model reads of a checked row; what happened to it is added to `stats`."""
        ...

    def chars(self, row: Any) -> int:
        """Characters of a cleaned row."""
        ...


class TextRows:
    """Texts, with a prompt before each.

    Args:
        prompts: The model's.
        kind: ``query``, of which none may be blank, or ``document``.
    """

    expected = "strings"
    doing = "encoding"

    def __init__(self, prompts: Prompts, kind: Kind) -> None:
        if kind not in Prompts._fields:
            raise InputError(f"kind must be 'document' or 'query', not {kind!r}")
        self._prompt: str = getattr(prompts, kind)
        self._blank_allowed = kind != "query"

    def check(self, row: object, number: int) -> str:
        """The text of a row.

        Raises:
            InputError: A blank query.
            InputTypeError: No text.
        """
        if not isinstance(row, str):
            if hasattr(row, "as_py"):  # a row of an Arrow column
                return self.check(row.as_py(), number)
            raise InputTypeError(
                f"row {number}: expected a string, found {type(row).__name__}"
                + (f" ({row!r})" if isinstance(row, float) or row is None else "")
                + "; every row must be a text"
            )
        if not self._blank_allowed and is_blank(row):
            raise InputError(f"row {number}: the query is blank; give it some words")
        return row

    def clean(self, row: str, stats: EncodeStats) -> str:
        """The text with its prompt; a blank one is empty, unpaired surrogates are replaced."""
        if is_blank(row):
            stats.blank.append(stats.rows)
            return self._prompt
        if has_surrogates(row):
            stats.repaired.append(stats.rows)
            row = repair_surrogates(row)
        return self._prompt + row

    def chars(self, row: str) -> int:
        """Its length."""
        return len(row)


class PairRows:
    """Pairs of a query and a document, with the query's prompt before it.

    Args:
        prompts: The model's.
    """

    expected = "pairs (query, document)"
    doing = "scoring"

    def __init__(self, prompts: Prompts) -> None:
        self._queries = TextRows(prompts, "query")
        self._documents = TextRows(prompts, "document")

    def check(self, row: object, number: int) -> tuple[str, str]:
        """The pair of a row.

        Raises:
            InputError: A blank query.
            InputTypeError: No pair of texts.
        """
        if not isinstance(row, tuple | list) or len(row) != 2:
            found = f"{len(row)} of them" if isinstance(row, tuple | list) else type(row).__name__
            raise InputTypeError(
                f"row {number}: expected a pair of two strings, a query and a document, found "
                f"{found}"
            )
        return self._queries.check(row[0], number), self._documents.check(row[1], number)

    def clean(self, row: tuple[str, str], stats: EncodeStats) -> tuple[str, str]:
        """The pair with its prompts; a blank document is empty."""
        repaired = len(stats.repaired)
        query, document = self._queries.clean(row[0], stats), self._documents.clean(row[1], stats)
        del stats.repaired[repaired + 1 :]  # of a row, once
        return query, document

    def chars(self, row: tuple[str, str]) -> int:
        """Its length."""
        return len(row[0]) + len(row[1])
