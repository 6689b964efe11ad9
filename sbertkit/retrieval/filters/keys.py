"""Values of metadata as bytes that sort exactly as the values do, each type for itself."""

import math
from collections.abc import Callable
from typing import Any

BOOLEAN, NUMBER, STRING = "boolean", "number", "string"
SCALARS = (BOOLEAN, NUMBER, STRING)
LIST, OBJECT, NULL = "list", "object", "null"
NOT_NULL = (*SCALARS, LIST, OBJECT)

Scalar = bool | int | float | str
"""A value of a filter. ``True`` is no number; whole numbers and floats are compared exactly."""


Key = tuple[str, bytes]
"""A value: its type, and its place among the values of that type."""


def in_list(type_: str) -> str:
    """The type of elements of a list, which are kept apart from values that are no list."""
    return f"{type_} in list"


def key_of(value: Any) -> Key:
    """The key of a value of JSON; all lists have the same, all objects too."""
    return _KEYS[type(value)](value)


def _boolean(value: bool) -> Key:
    return BOOLEAN, b"\1" if value else b"\0"


def _string(value: str) -> Key:
    """UTF-8 sorts as the code points do."""
    return STRING, value.encode("utf-8", "surrogatepass")


def _number(value: float) -> Key:
    """Sign, whole part with its length, and the bits after the point; exact for any number.

    No key begins another, so that the complement of all its bytes sorts the other way around.
    """
    if isinstance(value, float) and not math.isfinite(value):
        return (NULL, b"") if value != value else (NUMBER, b"\2" if value > 0 else b"\0")
    numerator, denominator = value.as_integer_ratio()
    bits = denominator.bit_length() - 1  # a power of two
    whole, rest = abs(numerator) >> bits, abs(numerator) & (denominator - 1)
    size = (whole.bit_length() + 7) // 8
    magnitude = size.to_bytes(2, "big") + whole.to_bytes(size, "big") + _groups(rest, bits) + b"\0"
    if numerator >= 0:
        return NUMBER, b"\1" + magnitude
    return NUMBER, b"\0" + bytes(255 - byte for byte in magnitude)


def _groups(rest: int, bits: int) -> bytes:
    """Bits in groups of seven, each in an odd byte, so that a zero can end them."""
    count = -(-bits // 7)
    aligned = rest << (7 * count - bits)
    places = range(7 * (count - 1), -1, -7)
    return bytes((aligned >> place & 127) << 1 | 1 for place in places)


_KEYS: dict[type, Callable[[Any], Key]] = {
    bool: _boolean,
    int: _number,
    float: _number,
    str: _string,
    list: lambda _: (LIST, b""),
    dict: lambda _: (OBJECT, b""),
    type(None): lambda _: (NULL, b""),
}
