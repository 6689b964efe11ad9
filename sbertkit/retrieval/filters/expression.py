"""What a filter says: conditions on fields, combined by and, or and not."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from sbertkit.retrieval.filters.keys import Scalar


class Field(NamedTuple):
    """A field, and the place of its name in the filter."""

    name: str
    at: int


@dataclass(frozen=True, slots=True)
class Compare:
    """The value has the type of another and compares to it: ``=``, ``!=``, ``<``, ``<=`` ..."""

    field: Field
    operator: str
    value: Scalar


@dataclass(frozen=True, slots=True)
class OneOf:
    """The value is one of some; or, if `negated`, of the type of one of them and none of them."""

    field: Field
    values: tuple[Scalar, ...]
    negated: bool


@dataclass(frozen=True, slots=True)
class Contains:
    """The value is a list with this element, or a string with this one in it."""

    field: Field
    value: Scalar


@dataclass(frozen=True, slots=True)
class StartsWith:
    """The value is a string that begins with another."""

    field: Field
    prefix: str


@dataclass(frozen=True, slots=True)
class IsNull:
    """The document has no such field, or it is null."""

    field: Field


@dataclass(frozen=True, slots=True)
class Not:
    """All documents but those of another expression."""

    term: "Expression"


@dataclass(frozen=True, slots=True)
class And:
    """All terms."""

    terms: "tuple[Expression, ...]"


@dataclass(frozen=True, slots=True)
class Or:
    """At least one of the terms."""

    terms: "tuple[Expression, ...]"


Condition = Compare | OneOf | Contains | StartsWith | IsNull
Expression = Condition | Not | And | Or


def fields_of(expression: Expression) -> Iterator[Field]:
    """The fields that a filter names, in its order."""
    if isinstance(expression, And | Or):
        for term in expression.terms:
            yield from fields_of(term)
    elif isinstance(expression, Not):
        yield from fields_of(expression.term)
    else:
        yield expression.field
