"""The grammar of filters.

::

    filter    = all ("or" all)*
    all       = one ("and" one)*
    one       = "not"* (condition | "(" filter ")")
    condition = field ("=" | "!=" | "<" | "<=" | ">" | ">=") value
              | field "not"? "in" "(" value ("," value)* ")"
              | field "contains" value
              | field "starts" "with" string
              | field "is" "not"? "null"
    field     = name ("." name)*          a name: a word, or anything in backticks
    value     = string | number | "true" | "false"

A quote within a string or name of its own kind is doubled. Keywords may have any case.
"""

import math
import re
from collections.abc import Callable
from functools import reduce
from typing import NoReturn

from sbertkit.errors import InputTypeError
from sbertkit.retrieval.filters.expression import (
    And,
    Compare,
    Contains,
    Expression,
    Field,
    IsNull,
    Not,
    OneOf,
    Or,
    StartsWith,
)
from sbertkit.retrieval.filters.field_names import KEYWORDS, inner_name
from sbertkit.retrieval.filters.keys import Scalar
from sbertkit.retrieval.filters.tokens import (
    END,
    NAME,
    NUMBER,
    QUOTED_NAME,
    STRING,
    Token,
    bad_filter,
    tokens_of,
)

_MAX_DEPTH = 100
_MAX_CONDITIONS = 1_000
_MAX_DIGITS = 4_000  # Python reads no number of more than 4,300
_NUMBER = re.compile(r"-?[0-9]+(?P<real>(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)")


def parse_filter(text: str) -> Expression:
    """What a filter says.

    Raises:
        BadFilter: It is not in the grammar, nested more than 100 deep, or of more than 1,000
            conditions.
        InputTypeError: It is no str.
    """
    if not isinstance(text, str):
        raise InputTypeError(f"a filter must be a str, found {type(text).__name__}")
    return _Parser(text).filter()


class _Parser:
    """A filter while it is read: a method for each rule of the grammar."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = tokens_of(text)
        self._token = next(self._tokens)
        self._depth = self._conditions = 0

    def filter(self) -> Expression:
        """The whole filter."""
        if self._token.kind == END:
            self._refuse("it is empty; leave it out, or write a condition such as year >= 2020")
        expression = self._any()
        if self._token.kind != END:
            self._expected("and, or, or the end")
        return expression

    def _any(self) -> Expression:
        terms = [self._all()]
        while self._takes("or"):
            terms.append(self._all())
        return terms[0] if len(terms) == 1 else Or(tuple(terms))

    def _all(self) -> Expression:
        terms = [self._one()]
        while self._takes("and"):
            terms.append(self._one())
        return terms[0] if len(terms) == 1 else And(tuple(terms))

    def _one(self) -> Expression:
        negated = False
        while self._takes("not"):
            negated = not negated
        term = self._parenthesized() if self._token.text == "(" else self._condition()
        return Not(term) if negated else term

    def _parenthesized(self) -> Expression:
        if self._depth == _MAX_DEPTH:
            self._refuse(f"parentheses nested more than {_MAX_DEPTH} deep; write fewer")
        self._depth += 1
        self._take("(")
        expression = self._any()
        self._take(")", "and, or, or )")
        self._depth -= 1
        return expression

    def _condition(self) -> Expression:
        self._conditions += 1
        if self._conditions > _MAX_CONDITIONS:
            self._refuse(
                f"more than {_MAX_CONDITIONS:,} conditions; for many values of one field write "
                "FIELD in (...)"
            )
        field = self._field()
        rule = _RULES.get(self._token.text.lower())
        if rule is None:
            self._expected("=, !=, <, <=, >, >=, in, not in, contains, starts with or is")
        return rule(self, field)

    def _field(self) -> Field:
        at = self._token.at
        keys = [self._key("the name of a field")]
        while self._takes("."):
            keys.append(self._key("a name after ."))
        if len(keys) > _MAX_DEPTH:
            self._refuse(f"a field nested more than {_MAX_DEPTH} deep, as none is", at)
        return Field(reduce(inner_name, keys, ""), at)

    def _key(self, expected: str) -> str:
        token = self._token
        plain = token.kind == NAME and token.text.lower() not in KEYWORDS
        if not plain and token.kind != QUOTED_NAME:
            remedy = "; such a name is written in backticks"
            self._expected(expected, remedy if token.kind in (NAME, NUMBER, STRING) else "")
        self._token = next(self._tokens)
        return token.text if plain else _unquoted(token)

    def _compared(self, field: Field) -> Expression:
        operator = self._token.text
        self._take(operator)
        at = self._token.at
        value = self._value()
        if isinstance(value, bool) and operator not in ("=", "!="):
            self._refuse("true and false have no order; compare them by = or !=", at)
        return Compare(field, operator, value)

    def _one_of(self, field: Field) -> Expression:
        negated = self._takes("not")
        remedy = "; to negate another condition, write not before its field"
        self._take("in", "in after not", remedy if negated else "")
        self._take("(")
        values = [self._value()]
        while self._takes(","):
            values.append(self._value())
        self._take(")", ", or )")
        return OneOf(field, tuple(values), negated)

    def _contains(self, field: Field) -> Expression:
        self._take("contains")
        return Contains(field, self._value())

    def _starts_with(self, field: Field) -> Expression:
        self._take("starts")
        self._take("with")
        if self._token.kind != STRING:
            self._expected("a string in quotes")
        return StartsWith(field, str(self._value()))

    def _is_null(self, field: Field) -> Expression:
        self._take("is")
        negated = self._takes("not")
        self._take("null", "null" if negated else "null or not null")
        return Not(IsNull(field)) if negated else IsNull(field)

    def _value(self) -> Scalar:
        token = self._token
        value: Scalar
        if token.kind == STRING:
            value = _unquoted(token)
        elif token.kind == NUMBER:
            value = self._number(token.text)
        elif token.kind == NAME and token.text.lower() in ("true", "false"):
            value = token.text.lower() == "true"
        elif token.kind == NAME and token.text.lower() == "null":
            self._refuse("nothing equals null; write FIELD is null")
        else:
            named = token.kind in (NAME, QUOTED_NAME)
            self._expected("a value", "; a string stands in quotes" if named else "")
        self._token = next(self._tokens)
        return value

    def _number(self, text: str) -> int | float:
        found = _NUMBER.fullmatch(text)
        if found is None:
            self._expected("a number", "; anything else, also a date, stands in quotes")
        if len(text) > _MAX_DIGITS:
            self._refuse(f"a number of more than {_MAX_DIGITS:,} digits")
        if not found["real"]:
            return int(text)
        if not math.isfinite(float(text)):
            self._refuse("a number that is too large; expected one below 1.8e308")
        return float(text)

    def _takes(self, text: str) -> bool:
        """Whether the next token is this keyword or sign, which is then read."""
        if self._token.text.lower() != text:  # a string or a quoted name has its quotes
            return False
        self._token = next(self._tokens)
        return True

    def _take(self, text: str, expected: str = "", remedy: str = "") -> None:
        if not self._takes(text):
            self._expected(expected or text, remedy)

    def _expected(self, what: str, remedy: str = "") -> NoReturn:
        self._refuse(f"expected {what}, found {self._token.shown}{remedy}")

    def _refuse(self, reason: str, at: int | None = None) -> NoReturn:
        raise bad_filter(self._text, self._token.at if at is None else at, reason)


_RULES: dict[str, Callable[[_Parser, Field], Expression]] = {
    **dict.fromkeys(("=", "!=", "<", "<=", ">", ">="), _Parser._compared),
    **dict.fromkeys(("in", "not"), _Parser._one_of),
    "contains": _Parser._contains,
    "starts": _Parser._starts_with,
    "is": _Parser._is_null,
}
"""What comes after a field, by its first word."""


def _unquoted(token: Token) -> str:
    quote = token.text[0]
    return token.text[1:-1].replace(quote * 2, quote)
