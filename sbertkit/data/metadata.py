"""Metadata as JSON and SQLite can hold it."""

import datetime
import decimal
import math
import numbers
import uuid
from collections.abc import Mapping
from typing import Any

from sbertkit.data.text import has_surrogates, printable, repair_surrogates

_MAX_BITS = 4_096  # Python refuses to print numbers of more than 4,300 digits
_MAX_DEPTH = 100  # json.dumps gives up at some hundreds


class BadRecordError(Exception):
    """Why a record cannot become a document; caught inside this package.

    Attributes:
        reason: What was expected and found, without the place.
        wrong_type: Whether a value has a type that is not accepted.
    """

    def __init__(self, reason: str, *, wrong_type: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.wrong_type = wrong_type


class Cleaner:
    """Makes the values of one record storable.

    Attributes:
        repaired: Whether unpaired surrogates were met so far.
    """

    __slots__ = ("repaired",)

    def __init__(self) -> None:
        self.repaired = False

    def text(self, text: str) -> str:
        """The text without unpaired surrogates."""
        if not has_surrogates(text):
            return text
        self.repaired = True
        return repair_surrogates(text)

    def metadata(self, fields: Mapping[Any, object]) -> dict[str, Any]:
        """The fields with values that JSON has: dates in ISO form, NaN as None.

        Raises:
            BadRecordError: A value that JSON has no form for.
        """
        return dict(self._items(fields, 0))

    def _items(self, fields: Mapping[Any, object], depth: int) -> list[tuple[str, Any]]:
        if depth > _MAX_DEPTH:
            raise BadRecordError(f"fields nested more than {_MAX_DEPTH} deep")
        items = []
        for key, value in fields.items():
            if not isinstance(key, str):
                found = type(key).__name__
                raise BadRecordError(f"names of fields must be str, found {found}", wrong_type=True)
            items.append((self.text(key), self._value(key, value, depth)))
        if len(dict(items)) < len(items):
            raise BadRecordError("two fields have one name once unpaired surrogates are repaired")
        return items

    def _value(self, key: str, value: object, depth: int) -> Any:
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            return self.text(str(value))
        if isinstance(value, int):
            return _bounded(value)
        if isinstance(value, float):
            return _finite(key, value)
        if isinstance(value, Mapping):
            return dict(self._items(value, depth + 1))
        if isinstance(value, list | tuple | set | frozenset):
            if depth >= _MAX_DEPTH:
                raise BadRecordError(f"fields nested more than {_MAX_DEPTH} deep")
            return [self._value(key, item, depth + 1) for item in value]
        return self._foreign(key, value, depth)

    def _foreign(self, key: str, value: object, depth: int) -> Any:
        if isinstance(value, datetime.date | datetime.time):
            # pandas' NaT is a datetime that differs from itself
            return value.isoformat() if value == value else None
        if isinstance(value, datetime.timedelta):
            return value.total_seconds()
        if isinstance(value, decimal.Decimal | uuid.UUID):
            return str(value)
        if hasattr(value, "tolist"):  # NumPy scalars and arrays, without importing NumPy
            native = value.tolist()
            if type(native) is not type(value):
                return self._value(key, native, depth)
        raise BadRecordError(
            f"field '{printable(key)}' holds {type(value).__name__}, which JSON cannot hold",
            wrong_type=True,
        )


def _finite(key: str, value: float) -> float | None:
    if math.isnan(value):
        return None
    if math.isinf(value):
        raise BadRecordError(
            f"field '{printable(key)}' holds an infinite number, which JSON cannot hold"
        )
    return float(value)


def _bounded(value: numbers.Integral | int) -> int:
    number = int(value)
    if number.bit_length() > _MAX_BITS:
        raise BadRecordError("a number has thousands of digits; write it as text")
    return number


def id_text(value: object) -> str:
    """An id as str, from a str or a whole number.

    Raises:
        BadRecordError: Another type, a blank id, or one with a tab, line end or NUL.
    """
    if isinstance(value, str):
        text = str(value)
    elif isinstance(value, bool) or not isinstance(value, numbers.Integral):
        found = type(value).__name__
        raise BadRecordError(f"id must be a str or int, found {found}", wrong_type=True)
    else:
        text = str(_bounded(value))
    if not text.strip():
        raise BadRecordError("id is empty")
    if any(char in text for char in "\t\n\r\0"):
        raise BadRecordError(f"id '{printable(text)}' holds a tab, line end or NUL")
    return text
