"""Parquet corpora, read in small batches of rows."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sbertkit.data.documents import ReadOptions, ReadReport
from sbertkit.data.formats.batches import LongRow, bounded_rows, open_parquet, parquet_batches
from sbertkit.data.limits import too_long
from sbertkit.data.metadata import BadRecordError
from sbertkit.data.records import BadLine, Record, record_from
from sbertkit.data.streams import open_seekable, source_name
from sbertkit.data.text import printable
from sbertkit.data.vector_parquet import has_vectors, vector_file_record
from sbertkit.errors import InputError, MissingDependency, SbertkitError


def read_parquet(path: str, options: ReadOptions, report: ReadReport) -> Iterator[Record | BadLine]:  # noqa: ARG001
    """A record a row, from the columns ``text`` and ``id``; without an id the row's number is it.

    A file that sbertkit wrote gives its documents back, without their vectors.

    Raises:
        InputError: Not Parquet, damaged, or without a column ``text``.
        MissingDependency: pyarrow is not installed.
    """
    limit = options.max_text_bytes
    name = source_name(path)
    with open_seekable(path) as stream, arrow_errors(name):
        file = open_parquet(stream)
        names: list[str] = file.schema_arrow.names
        _check_columns(names, name)
        own = has_vectors(file)
        columns = [one for one in names if one != "vector"] if own else None
        batches = map(_in_microseconds, parquet_batches(file, columns))
        for rows in bounded_rows(batches, limit):
            if isinstance(rows, LongRow):
                yield BadLine(rows.number, too_long(rows.bytes, limit))
                continue
            for row, fields in enumerate(_rows(rows.batch), rows.first):
                try:
                    yield _record(fields, row, own=own)
                except BadRecordError as error:
                    yield BadLine(row, error.reason)


def _record(fields: dict[str, Any] | BadRecordError, row: int, *, own: bool) -> Record:
    if isinstance(fields, BadRecordError):
        raise fields
    return vector_file_record(fields, row) if own else record_from(fields, row, default_id=str(row))


@contextmanager
def arrow_errors(name: str, kind: str = "Parquet") -> Iterator[None]:
    """A context in which pyarrow can be imported and what it says of damage is one line.

    Args:
        name: What messages call the file.
        kind: ``Parquet`` or ``Arrow``.

    Raises:
        InputError: The file is damaged or of another format.
        MissingDependency: pyarrow is not installed.
    """
    try:
        import pyarrow as pa
        from pyarrow import parquet  # noqa: F401 - a part that some builds lack
    except ImportError as error:
        raise MissingDependency(
            f"{name}: {kind} files need pyarrow; pip install pyarrow"
        ) from error
    try:
        yield
    except SbertkitError:
        raise
    except (pa.ArrowException, UnicodeDecodeError, MemoryError) as error:
        # damaged names of columns are no UTF-8, damaged sizes ask for more memory than there is
        raise _damaged(name, kind, error) from error
    except OSError as error:
        if error.errno is not None:  # the system's; Arrow raises OSError for damage, too
            raise
        raise _damaged(name, kind, error) from error


def _damaged(name: str, kind: str, error: Exception) -> InputError:
    reason = printable(str(error).split("\n")[0], 200) or type(error).__name__
    more = ", or write it in smaller row groups" if isinstance(error, MemoryError) else ""
    return InputError(f"{name}: not a readable {kind} file ({reason}); get it again{more}")


def _check_columns(names: list[str], name: str) -> None:
    found = printable(", ".join(names), 200)
    if "text" not in names:
        raise InputError(f"{name}: expected a column 'text', found {found}; rename the column")
    if len(set(names)) < len(names):
        raise InputError(f"{name}: a column name is there twice ({found}); rename it")


def _in_microseconds(batch: Any) -> Any:
    """The batch with times to the microsecond, the finest that Python has without pandas."""
    import pyarrow as pa

    columns = []
    for column in batch.columns:
        kind = column.type
        if pa.types.is_timestamp(kind) and kind.unit == "ns":
            column = column.cast(pa.timestamp("us", kind.tz), safe=False)
        elif pa.types.is_duration(kind) and kind.unit == "ns":
            column = column.cast(pa.duration("us"), safe=False)
        elif pa.types.is_time64(kind) and kind.unit == "ns":
            column = column.cast(pa.time64("us"), safe=False)
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _rows(batch: Any) -> Iterator[dict[str, Any] | BadRecordError]:
    try:
        rows = batch.to_pylist()
    except (ValueError, OverflowError):
        # one value that Python cannot hold (year 10000, bytes that are not UTF-8) fails them all
        rows = [_row(batch.slice(i, 1)) for i in range(batch.num_rows)]
    yield from rows


def _row(batch: Any) -> dict[str, Any] | BadRecordError:
    try:
        fields: dict[str, Any] = batch.to_pylist()[0]
    except (ValueError, OverflowError) as error:
        return BadRecordError(f"a value cannot be read ({printable(str(error))})")
    return fields
