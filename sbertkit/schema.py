"""JSON documents as typed records: one check of every field, one error that says which."""

import json
import math
from collections.abc import Collection, Mapping
from dataclasses import fields, is_dataclass
from typing import Annotated, Any, NoReturn, TypeVar

import msgspec

from sbertkit.errors import InputError
from sbertkit.forks import fork_safe_lock

Record = TypeVar("Record")

Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
"""A whole number of things or bytes."""

Positive = Annotated[int, msgspec.Meta(ge=1, le=2**53)]
"""A whole number from 1."""

Digest = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{64}\Z")]
"""A SHA-256 in hexadecimal."""

_lock = fork_safe_lock()
"""Two threads that first convert to one type together crash msgspec while it inspects the type."""


def parse_json(raw: bytes | str, where: object) -> Any:
    """The content of a JSON document.

    Args:
        raw: The document, in UTF-8.
        where: The file, for the message.

    Raises:
        InputError: No JSON, nested too deep, or with NaN or an infinity.
    """
    try:
        return json.loads(raw, parse_constant=_refuse_constant, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where} is not valid JSON: {error}") from error


def as_record(content: Any, kind: type[Record], where: object) -> Record:
    """Parsed JSON as a record; unknown names are ignored.

    Args:
        content: What `parse_json` gave.
        kind: A dataclass, whose annotations are checked without any conversion but of whole
            numbers to float; its `__post_init__` may raise `ValueError` for more.
        where: The file, for the message.

    Raises:
        InputError: A field is missing, has another type or is out of range.
    """
    try:
        with _lock:
            return msgspec.convert(content, kind)
    except (msgspec.ValidationError, RecursionError, UnicodeEncodeError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{where}: {reason}") from error


def read_record(raw: bytes | str, kind: type[Record], where: object) -> Record:
    """A JSON document as a record; see `parse_json` and `as_record`.

    Raises:
        InputError: No JSON, or not what the record holds.
    """
    return as_record(parse_json(raw, where), kind, where)


def to_dict(record: Any, *, without: Collection[str] = ()) -> dict[str, Any]:
    """A dataclass as strict JSON can hold it.

    Nested dataclasses, named tuples and mappings become objects, other tuples become arrays.

    Args:
        record: An instance of a dataclass.
        without: Fields of the record itself to leave out.
    """
    names = (one.name for one in fields(record) if one.name not in without)
    return {name: _plain(getattr(record, name)) for name in names}


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return to_dict(value)
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _finite(number: str) -> float:
    value = float(number)
    if math.isinf(value):
        raise ValueError(f"{number} is too large a number")
    return value
