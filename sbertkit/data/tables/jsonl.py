"""Rows of JSON Lines: an object in each line."""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any, NoReturn

from sbertkit.data.bad_rows import BadRow
from sbertkit.data.lines import LongLine, TextOptions, bounded_lines
from sbertkit.data.metadata import BadRecordError
from sbertkit.data.tables.columns import Fields, ObjectReader, Row
from sbertkit.data.text import printable

_ONE_PER_LINE = "write one object per line"


def read_jsonl(path: str, columns: Fields, text: TextOptions) -> Iterator[Row | BadRow]:
    """A row for each line with an object; blank lines are skipped."""
    reader = ObjectReader(columns)
    for line in bounded_lines(path, text):
        if isinstance(line, LongLine):
            yield line.bad_row(text.max_bytes)
        elif line.text.strip():
            try:
                row: Row | BadRow = reader.row(line.number, parse_object(line.text))
            except BadRecordError as error:
                row = BadRow(line.number, error.reason)
            yield row


def parse_object(line: str) -> dict[str, Any]:
    """The JSON object in a line of text.

    Raises:
        BadRecordError: Not JSON, not an object, a duplicate key, or a number that JSON lacks.
    """
    try:
        value = _DECODER.decode(line)
    except json.JSONDecodeError as error:
        if line.strip() == "[":
            raise BadRecordError(f"an array of JSON over several lines; {_ONE_PER_LINE}") from error
        what = error.msg.removesuffix(" starting at").removesuffix(" at")
        raise BadRecordError(f"not valid JSON ({what} at column {error.colno})") from error
    except RecursionError as error:
        raise BadRecordError("JSON nested too deep") from error
    except ValueError as error:  # whole numbers of thousands of digits
        raise BadRecordError(f"not readable JSON ({error})") from error
    if not isinstance(value, dict):
        found = f"an array; {_ONE_PER_LINE}" if isinstance(value, list) else type(value).__name__
        raise BadRecordError(f"expected a JSON object, found {found}")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        twice = next(name for name in fields if counts[name] > 1)
        raise BadRecordError(f"duplicate key '{printable(twice)}'")
    return fields


def _refuse_constant(name: str) -> NoReturn:
    raise BadRecordError(f"not valid JSON (the constant {name})")


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse_constant)
