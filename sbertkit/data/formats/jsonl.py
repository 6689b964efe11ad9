"""Corpora of one JSON object a line, and the corpus.jsonl of BEIR."""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any, NoReturn

from sbertkit.data.documents import ReadOptions, ReadReport
from sbertkit.data.formats.lines import line_records
from sbertkit.data.lines import Line
from sbertkit.data.metadata import BadRecordError
from sbertkit.data.records import BadLine, Record, record_from
from sbertkit.data.text import printable


def read_jsonl(path: str, options: ReadOptions, report: ReadReport) -> Iterator[Record | BadLine]:
    """A record a line, from an object with ``text``; without an id the line's number is the id."""
    return line_records(path, options, report, _from_object)


def read_beir(path: str, options: ReadOptions, report: ReadReport) -> Iterator[Record | BadLine]:
    """A record a line, whose text is title and text; the title stays in the metadata."""
    return line_records(path, options, report, _from_beir)


def _from_object(line: Line) -> Record | None:
    if not line.text.strip():
        return None
    return record_from(parse_object(line.text), line.number, default_id=str(line.number))


def _from_beir(line: Line) -> Record | None:
    if not line.text.strip():
        return None
    return _with_title(record_from(parse_object(line.text), line.number))


def _with_title(record: Record) -> Record:
    title = record.metadata.get("title")
    if title is not None and not isinstance(title, str):
        raise BadRecordError(f"title must be a str, found {type(title).__name__}")
    if not title or not isinstance(record.text, str):
        return record
    return record._replace(text=f"{title} {record.text}".strip())


def parse_object(line: str) -> dict[str, Any]:
    """The JSON object in a line of text.

    Raises:
        BadRecordError: Not JSON, not an object, a key twice, or a number that JSON does not have.
    """
    try:
        value = _DECODER.decode(line)
    except json.JSONDecodeError as error:
        what = error.msg.removesuffix(" starting at").removesuffix(" at")
        raise BadRecordError(f"not valid JSON ({what} at column {error.colno})") from error
    except RecursionError as error:
        raise BadRecordError("JSON nested too deep") from error
    except ValueError as error:  # whole numbers of thousands of digits
        raise BadRecordError(f"not readable JSON ({error})") from error
    if not isinstance(value, dict):
        raise BadRecordError(f"expected a JSON object, found {type(value).__name__}")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        twice = next(name for name in fields if counts[name] > 1)
        raise BadRecordError(f"the key '{printable(twice)}' is there twice")
    return fields


def _refuse_constant(name: str) -> NoReturn:
    raise BadRecordError(f"not valid JSON (the constant {name})")


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse_constant)
