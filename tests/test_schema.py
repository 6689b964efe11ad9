"""JSON documents as typed records."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import pytest

from sbertkit.errors import InputError
from sbertkit.schema import Count, Digest, parse_json, read_record, to_dict


@dataclass(frozen=True)
class Part:
    """A part of a record."""

    name: str
    bytes: Count


@dataclass(frozen=True)
class Record:
    """A record with each kind of field."""

    sha256: Digest
    share: float
    parts: tuple[Part, ...] = ()
    note: str | None = None


_DIGEST = "0" * 64
_WHOLE = f'{{"sha256": "{_DIGEST}", "share": 1, "parts": [{{"name": "a", "bytes": 3}}]}}'


def test_a_document_becomes_a_record() -> None:
    assert read_record(_WHOLE, Record, "a.json") == Record(_DIGEST, 1.0, (Part("a", 3),))


def test_fields_of_later_versions_are_passed_over() -> None:
    text = _WHOLE.replace('"share"', '"later": [1], "share"')
    assert read_record(text, Record, "a.json") == Record(_DIGEST, 1.0, (Part("a", 3),))


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ('"bytes": 3', '"bytes": "3"', "parts[0].bytes"),
        ('"bytes": 3', '"bytes": 3.0', "parts[0].bytes"),
        ('"bytes": 3', '"bytes": true', "parts[0].bytes"),
        ('"bytes": 3', '"bytes": -1', "parts[0].bytes"),
        ('"bytes": 3', '"bytes": null', "parts[0].bytes"),
        ('"bytes": 3', f'"bytes": {10**30}', "parts[0].bytes"),
        ('"bytes": 3', '"other": 3', "bytes"),
        (_DIGEST, _DIGEST + "\\n", "sha256"),
        (_DIGEST, _DIGEST[1:], "sha256"),
        ('"share": 1', '"share": "1"', "share"),
        ('"share": 1', '"share": "\\ud800"', "surrogates"),
        ('"share": 1', '"share": NaN', "NaN"),
        ('"share": 1', '"share": -Infinity', "Infinity"),
        ('"share": 1', '"share": 1e999', "1e999"),
        ('"share": 1', f'"share": {"1" * 5000}', "not valid JSON"),
        ('[{"name": "a", "bytes": 3}]', "{}", "parts"),
        ('[{"name": "a", "bytes": 3}]', "[" * 100_000 + "]" * 100_000, "not valid JSON"),
        (_WHOLE, "[]", "object"),
        (_WHOLE, "null", "object"),
        (_WHOLE, "", "not valid JSON"),
    ],
)
def test_a_field_that_is_not_as_it_should_be_is_named(old: str, new: str, where: str) -> None:
    with pytest.raises(InputError) as refused:
        read_record(_WHOLE.replace(old, new), Record, "a.json")
    assert "a.json" in str(refused.value)
    assert where in str(refused.value)
    assert "\n" not in str(refused.value)


def test_bytes_that_are_no_text_are_no_json() -> None:
    with pytest.raises(InputError, match="not valid JSON"):
        parse_json(b"\xff\xfe\x00", "a.json")


class Point(NamedTuple):
    x: float
    y: float | None


@dataclass(frozen=True, slots=True)
class Inner:
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Outer:
    name: str
    inner: Inner
    by_name: Mapping[str, Point | None]
    large: tuple[int, ...]


def test_a_record_becomes_plain_objects_and_arrays() -> None:
    record = Outer("a", Inner((Point(1.0, None),)), {"p": Point(2.0, 3.0), "q": None}, (1, 2))
    expected = {
        "name": "a",
        "inner": {"points": [{"x": 1.0, "y": None}]},
        "by_name": {"p": {"x": 2.0, "y": 3.0}, "q": None},
        "large": [1, 2],
    }
    assert to_dict(record) == expected
    assert to_dict(record, without=("large",)) == {
        name: value for name, value in expected.items() if name != "large"
    }
