"""Parquet corpora."""

import datetime
import decimal
import gzip
import io
import math
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbertkit.data import Document, ReadOptions, ReadReport, read_corpus
from sbertkit.errors import InputError


def write(tmp_path: Path, columns: dict[str, Any], **options: Any) -> Path:
    path = tmp_path / "corpus.parquet"
    pq.write_table(pa.table(columns), path, **options)
    return path


def read(source: Any, **options: Any) -> list[Document]:
    return [d.document for d in read_corpus(source, ReadOptions(**options))]


def test_rows_become_documents_across_row_groups_and_batches(tmp_path: Path) -> None:
    ids = [f"d{n}" for n in range(1000)]
    path = write(tmp_path, {"n": range(1000), "text": ids, "id": ids}, row_group_size=300)
    assert read(path) == [Document(f"d{n}", f"d{n}", {"n": n}) for n in range(1000)]


@pytest.mark.parametrize("codec", ["none", "snappy", "zstd"])
@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())]
)
def test_types_of_text_and_compression_make_no_difference(
    tmp_path: Path, codec: str, kind: pa.DataType
) -> None:
    path = write(tmp_path, {"text": pa.array(["one", "zwei"], kind)}, compression=codec)
    assert read(path) == [Document("1", "one", {}), Document("2", "zwei", {})]


def test_whole_numbers_are_ids(tmp_path: Path) -> None:
    assert read(write(tmp_path, {"_id": [5], "text": ["x"]})) == [Document("5", "x", {})]


def test_gzip_and_standard_input_work_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = write(tmp_path, {"text": ["one"]}).read_bytes()
    packed = tmp_path / "corpus.parquet.gz"
    packed.write_bytes(gzip.compress(data))
    assert read(packed) == [Document("1", "one", {})]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert read("-", format="parquet") == [Document("1", "one", {})]


def test_blank_and_null_texts_differ(tmp_path: Path) -> None:
    path = write(tmp_path, {"id": ["a", "b", "c", None], "text": ["x", " ", None, "y"]})
    with pytest.raises(InputError, match=r"corpus\.parquet row 3: text must be a str, found None"):
        read(path)
    report = ReadReport()
    found = list(read_corpus(path, ReadOptions(skip_bad_lines=True), report))
    assert [(d.document.id, d.line) for d in found] == [("a", 1)]
    assert report.blank.examples == ["b"]
    assert report.bad_lines.examples == ["3", "4"]


def test_metadata_becomes_what_json_can_hold(tmp_path: Path) -> None:
    moment = datetime.datetime(2024, 2, 29, 12, 30, 15, 250)
    columns = {
        "text": ["x"],
        "nan": [math.nan],
        "null": [None],
        "day": [moment.date()],
        "us": pa.array([moment], pa.timestamp("us")),
        "ns": pa.array([1_709_209_815_000_000_001], pa.timestamp("ns")),
        "zone": pa.array([moment], pa.timestamp("ms", "UTC")).cast(pa.timestamp("s", "UTC"), False),
        "time": pa.array([3_600_000_000_001], pa.time64("ns")),
        "span": pa.array([1_500_000_001], pa.duration("ns")),
        "price": [decimal.Decimal("1.10")],
        "list": [[1, None]],
        "struct": [{"a": [math.nan], "b": moment.date()}],
    }
    (document,) = read(write(tmp_path, columns))
    assert document.metadata == {
        "nan": None,
        "null": None,
        "day": "2024-02-29",
        "us": "2024-02-29T12:30:15.000250",
        "ns": "2024-02-29T12:30:15",
        "zone": "2024-02-29T12:30:15+00:00",
        "time": "01:00:00",
        "span": 1.5,
        "price": "1.10",
        "list": [1, None],
        "struct": {"a": [None], "b": "2024-02-29"},
    }


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        (pa.array([None, b"raw"]), "field 'more' holds bytes"),
        (pa.array([0.0, math.inf]), "infinite"),
        (pa.array([[], [b"raw"]]), "field 'more' holds bytes"),
        (pa.array([0, 10**15], pa.timestamp("s")), "'more' cannot be read"),
    ],
)
def test_a_value_that_json_cannot_hold_makes_a_bad_row(
    tmp_path: Path, column: pa.Array, reason: str
) -> None:
    path = write(tmp_path, {"id": ["a", "b"], "text": ["x", "y"], "more": column})
    with pytest.raises(InputError, match=r"corpus\.parquet row 2: ") as caught:
        read(path)
    assert reason in str(caught.value)
    assert str(caught.value).endswith("; fix the row or pass skip_bad_lines")
    assert [d.id for d in read(path, skip_bad_lines=True)] == ["a"]


def test_bytes_that_are_not_text_make_a_bad_row(tmp_path: Path) -> None:
    raw = pa.array([b"good", b"\xff"], pa.binary()).view(pa.string())
    path = write(tmp_path, {"text": raw})
    assert read(path, skip_bad_lines=True) == [Document("1", "good", {})]


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (["id", "name"], "expected a column 'text', or title, .*, found id, name"),
        (["text", "text"], "duplicate column name"),
    ],
)
def test_missing_and_repeated_columns_are_refused(
    tmp_path: Path, names: list[str], reason: str
) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.Table.from_arrays([pa.array(["x"]), pa.array(["y"])], names=names), path)
    with pytest.raises(InputError, match=reason):
        read(path)


@pytest.mark.parametrize("change", ["empty", "text", "cut", "header", "pages"])
def test_a_damaged_file_is_refused_by_name(tmp_path: Path, change: str) -> None:
    path = write(tmp_path, {"text": ["words " * 50] * 500}, compression="snappy")
    data = path.read_bytes()
    path.write_bytes(
        {
            "empty": b"",
            "text": b"one document a line\n" * 10,
            "cut": data[:-20],
            "header": data[:-8] + b"\xff\xff\xff\x7fPAR1",
            "pages": data[:4] + b"\xff" * 60 + data[64:],
        }[change]
    )
    with pytest.raises(InputError, match=r"corpus\.parquet: not a readable Parquet file") as caught:
        read(path, skip_bad_lines=True)
    assert "\n" not in str(caught.value)


def test_a_table_without_rows_has_no_documents(tmp_path: Path) -> None:
    assert read(write(tmp_path, {"text": pa.array([], pa.string())})) == []
