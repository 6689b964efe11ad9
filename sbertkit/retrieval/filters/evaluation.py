"""Which documents of a segment a filter matches.

A condition compares values of one type: a value of another type, or none, matches no condition but
``is null``. ``not`` gives all documents that an expression does not match.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from sbertkit.retrieval.filters.expression import (
    And,
    Compare,
    Contains,
    Expression,
    IsNull,
    Not,
    OneOf,
    Or,
    StartsWith,
)
from sbertkit.retrieval.filters.keys import NOT_NULL, STRING, in_list, key_of

Mask = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int32] | list[int]

_AFTER = b"\0"
"""What a key becomes the next one with."""
_BEYOND = b"\xff"
"""Greater than any byte of UTF-8."""


class Values(Protocol):
    """The values of one type of a field, as keys, and the rows that have them."""

    def between(self, low: bytes, high: bytes | None) -> Rows:
        """The rows with a key from `low` on and below `high`; ``None`` for no bound."""
        ...

    def one_of(self, keys: Sequence[bytes]) -> Rows:
        """The rows with one of some keys."""
        ...

    def containing(self, part: bytes) -> Rows:
        """The rows with a key that has some bytes in it."""
        ...


class Fields(Protocol):
    """The fields of the documents of a segment."""

    count: int

    def values(self, field: str, type_: str) -> Values | None:
        """The values of one type of a field, if there are any."""
        ...


def matching(expression: Expression, fields: Fields) -> Mask:
    """Whether each document of a segment matches a filter, (n,); an array of its own."""
    return _RULES[type(expression)](expression, fields)


def _all(expression: And, fields: Fields) -> Mask:
    mask = matching(expression.terms[0], fields)
    for term in expression.terms[1:]:
        if mask.any():
            mask &= matching(term, fields)
    return mask


def _any(expression: Or, fields: Fields) -> Mask:
    mask = matching(expression.terms[0], fields)
    for term in expression.terms[1:]:
        if not mask.all():
            mask |= matching(term, fields)
    return mask


def _not(expression: Not, fields: Fields) -> Mask:
    return ~matching(expression.term, fields)


def _compare(condition: Compare, fields: Fields) -> Mask:
    type_, key = key_of(condition.value)
    mask = np.zeros(fields.count, np.bool_)
    values = fields.values(condition.field.name, type_)
    if values is not None:
        for low, high in _RANGES[condition.operator](key):
            mask[values.between(low, high)] = True
    return mask


_RANGES: dict[str, Callable[[bytes], list[tuple[bytes, bytes | None]]]] = {
    "=": lambda key: [(key, key + _AFTER)],
    "!=": lambda key: [(b"", key), (key + _AFTER, None)],
    "<": lambda key: [(b"", key)],
    "<=": lambda key: [(b"", key + _AFTER)],
    ">": lambda key: [(key + _AFTER, None)],
    ">=": lambda key: [(key, None)],
}
"""The ranges of keys that an operator means."""


def _one_of(condition: OneOf, fields: Fields) -> Mask:
    keys: dict[str, set[bytes]] = {}
    for value in condition.values:
        type_, key = key_of(value)
        keys.setdefault(type_, set()).add(key)
    mask = np.zeros(fields.count, np.bool_)
    for type_, wanted in keys.items():
        values = fields.values(condition.field.name, type_)
        if values is not None:
            if condition.negated:
                mask[values.between(b"", None)] = True
            mask[values.one_of(sorted(wanted))] = not condition.negated
    return mask


def _contains(condition: Contains, fields: Fields) -> Mask:
    type_, key = key_of(condition.value)
    mask = np.zeros(fields.count, np.bool_)
    elements = fields.values(condition.field.name, in_list(type_))
    if elements is not None:
        mask[elements.one_of([key])] = True
    texts = fields.values(condition.field.name, STRING) if type_ == STRING else None
    if texts is not None:
        mask[texts.containing(key)] = True
    return mask


def _starts_with(condition: StartsWith, fields: Fields) -> Mask:
    prefix = key_of(condition.prefix)[1]
    mask = np.zeros(fields.count, np.bool_)
    texts = fields.values(condition.field.name, STRING)
    if texts is not None:
        mask[texts.between(prefix, prefix + _BEYOND)] = True
    return mask


def _is_null(condition: IsNull, fields: Fields) -> Mask:
    mask = np.ones(fields.count, np.bool_)
    for type_ in NOT_NULL:
        values = fields.values(condition.field.name, type_)
        if values is not None:
            mask[values.between(b"", None)] = False
    return mask


_RULES: dict[type, Callable[[Any, Fields], Mask]] = {
    And: _all,
    Or: _any,
    Not: _not,
    Compare: _compare,
    OneOf: _one_of,
    Contains: _contains,
    StartsWith: _starts_with,
    IsNull: _is_null,
}
