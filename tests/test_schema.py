"""JSON documents as typed records."""

import subprocess
import sys
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


_FIRST_USES = """
import sys, threading
from dataclasses import make_dataclass
from typing import Literal
from sbertkit.schema import Count, as_record
sys.setswitchinterval(1e-6)
content = {"count": 1, "word": "x", "counts": [1, 2], "inner": {"word": "y"}}
def convert(kind, barrier):
    barrier.wait()
    as_record(content, kind, "here")
for number in range(400):
    inner = make_dataclass("Inner", [("word", Literal["x", "y"])])
    fields = [("count", Count), ("word", Literal["x", "y"]), ("counts", tuple[Count, ...])]
    kind = make_dataclass("Outer", [*fields, ("inner", inner)])
    barrier = threading.Barrier(4)
    threads = [threading.Thread(target=convert, args=(kind, barrier)) for _ in range(4)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
print("done")
"""


def test_threads_may_first_use_a_kind_of_record_together() -> None:
    """In a process of its own: what is not locked here ends it by SIGSEGV."""
    ran = subprocess.run(
        [sys.executable, "-c", _FIRST_USES], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ran.returncode, ran.stdout) == (0, "done\n"), ran.stderr
