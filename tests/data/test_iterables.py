"""Documents from memory."""

import datetime
import decimal
import json
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sbertkit.data import Document, ReadReport, SourcedDocument, documents_from
from sbertkit.errors import InputError, InputTypeError


def documents(*records: Any) -> list[Document]:
    return [sourced.document for sourced in documents_from(records)]


def test_documents_mappings_and_pairs_may_be_mixed() -> None:
    assert documents(
        Document("a", "one", {"k": 1}), {"id": "b", "text": "two", "year": 1999}, ("c", "three")
    ) == [Document("a", "one", {"k": 1}), Document("b", "two", {"year": 1999}), ("c", "three", {})]


def test_rows_count_from_zero_with_blank_ones() -> None:
    report = ReadReport()
    records = [("a", "one"), ("b", " \u200b"), ("c", "three")]
    assert list(documents_from(records, report)) == [
        SourcedDocument(Document("a", "one", {}), 0),
        SourcedDocument(Document("c", "three", {}), 2),
    ]
    assert report.documents == 2
    assert report.blank.examples == ["b"]


def test_records_are_drawn_one_at_a_time() -> None:
    drawn: list[int] = []

    def records() -> Iterator[tuple[str, str]]:
        for number in range(10):
            drawn.append(number)
            yield str(number), "words"

    stream = documents_from(records())
    assert drawn == []
    next(stream)
    assert drawn == [0]


@pytest.mark.parametrize("number", [7, np.int64(7), np.uint8(7)])
def test_whole_numbers_become_ids(number: Any) -> None:
    assert documents((number, "x"), {"_id": number, "text": "y"}) == [
        Document("7", "x", {}),
        Document("7", "y", {}),
    ]


@pytest.mark.parametrize(
    ("record", "found"),
    [
        (3, r"row 1 \(int\): not a record"),
        (None, r"row 1 \(NoneType\): not a record"),
        (["a", "b"], r"row 1 \(list\): not a record"),
        (("a", None), r"row 1 \(tuple\): text must be a str, found NoneType"),
        (("a", b"x"), "found bytes"),
        ((None, "x"), "id must be a str or int, found NoneType"),
        ((True, "x"), "id must be a str or int, found bool"),
        ((1.0, "x"), "id must be a str or int, found float"),
        (Document("a", "x", [1]), "metadata must be a mapping, found list"),  # type: ignore[arg-type]
        ({"id": "a", "text": "x", 3: 4}, "names of fields must be str, found int"),
        ({"id": "a", "text": "x", "blob": b"1"}, "field 'blob' holds bytes"),
        ({"id": "a", "text": "x", "deep": {"f": [object()]}}, "field 'f' holds object"),
    ],
)
def test_a_wrong_type_is_refused_with_row_and_type(record: Any, found: str) -> None:
    with pytest.raises(InputTypeError, match=found) as caught:
        documents(("first", "good"), record)
    assert "row 1 (" in str(caught.value)


@pytest.mark.parametrize(
    ("record", "found"),
    [
        ({"id": "a"}, "no field 'text'"),
        (("a", "b", "c"), "a tuple of 3"),
        ((), "a tuple of 0"),
        (("", "x"), "id is empty"),
        ((" ", "x"), "id is empty"),
        (("a\tb", "x"), r"id 'a\\tb' holds a tab"),
        (("a\n", "x"), "holds a tab, line end or NUL"),
        (("a\rb", "x"), "holds a tab, line end or NUL"),
        (("a\0", "x"), "holds a tab, line end or NUL"),
        ({"id": "a", "text": "x", "n": math.inf}, "infinite"),
    ],
)
def test_a_wrong_value_is_refused_with_row_and_type(record: Any, found: str) -> None:
    with pytest.raises(InputError, match=found) as caught:
        documents(record)
    assert "row 0 (" in str(caught.value)


@pytest.mark.parametrize("records", ["corpus.txt", b"x", {"id": "a", "text": "b"}, 3, None])
def test_what_is_not_an_iterable_of_records_is_refused_at_once(records: Any) -> None:
    with pytest.raises(InputTypeError, match="expected an iterable of documents"):
        documents_from(records)


def test_surrogates_are_repaired_wherever_they_are() -> None:
    report = ReadReport()
    records = [
        Document("a", "half \ud83d", {}),
        Document("b\udc00", "text", {}),
        Document("c", "text", {"k\ud800": ["\ud800", {"d": "\udfff"}]}),
        Document("d", "whole 👍", {}),
    ]
    found = [sourced.document for sourced in documents_from(records, report)]
    assert found == [
        Document("a", "half \ufffd", {}),
        Document("b\ufffd", "text", {}),
        Document("c", "text", {"k\ufffd": ["\ufffd", {"d": "\ufffd"}]}),
        Document("d", "whole 👍", {}),
    ]
    assert report.repaired.examples == ["a", "b\ufffd", "c"]


def test_metadata_becomes_what_json_can_hold() -> None:
    fields = {
        "none": None,
        "nan": math.nan,
        "day": datetime.date(2024, 2, 29),
        "moment": datetime.datetime(2024, 2, 29, 12, 30, tzinfo=datetime.UTC),
        "hour": datetime.time(1, 2),
        "span": datetime.timedelta(seconds=90),
        "price": decimal.Decimal("1.10"),
        "flag": np.bool_(True),
        "count": np.int64(3),
        "share": np.float32(0.5),
        "array": np.array([[1, 2], [3, 4]]),
        "pair": (1, "two"),
        "stamp": pd.Timestamp("2024-02-29"),
        "no_stamp": pd.NaT,
    }
    (document,) = documents({"id": "a", "text": "x", **fields})
    assert json.loads(json.dumps(document.metadata, allow_nan=False)) == {
        "none": None,
        "nan": None,
        "day": "2024-02-29",
        "moment": "2024-02-29T12:30:00+00:00",
        "hour": "01:02:00",
        "span": 90.0,
        "price": "1.10",
        "flag": True,
        "count": 3,
        "share": 0.5,
        "array": [[1, 2], [3, 4]],
        "pair": [1, "two"],
        "stamp": "2024-02-29T00:00:00",
        "no_stamp": None,
    }


def test_metadata_without_end_is_refused() -> None:
    endless: dict[str, Any] = {}
    endless["self"] = [endless]
    with pytest.raises(InputError, match="nested more than 100 deep"):
        documents({"id": "a", "text": "x", "more": endless})


@pytest.mark.parametrize("record", [(10**5000, "t"), {"id": "1", "text": "t", "n": -(10**5000)}])
def test_a_number_too_long_to_print_is_refused_with_its_row(record: Any) -> None:
    with pytest.raises(InputError, match=r"row 1 .*thousands of digits"):
        list(documents_from([("a", "fine"), record]))
