"""Rows of Parquet and Arrow files, in small batches.

The library datasets is not used: importing it takes seconds and loads pandas, it copies what it
reads into a cache, and it gives no row for a value that cannot be read.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO

from sbertkit.data.bad_rows import BadRow
from sbertkit.data.limits import too_long
from sbertkit.data.lines import TextOptions
from sbertkit.data.streams import open_seekable, source_name
from sbertkit.data.tables.batches import LongRow, bounded_rows, open_parquet, parquet_batches
from sbertkit.data.tables.columns import Fields, Layout, Row
from sbertkit.data.text import printable
from sbertkit.errors import InputError, SbertkitError

_FILE_MAGIC = b"ARROW1"
_STREAM_END = b"\xff\xff\xff\xff\0\0\0\0"

Batches = Callable[[Sequence[str] | None], Iterable[Any]]
"""Gives the record batches with the columns of those names, or with all."""


def read_parquet(path: str, columns: Fields, text: TextOptions) -> Iterator[Row | BadRow]:
    """The rows of a Parquet file.

    Raises:
        InputError: Not Parquet, damaged, or without a needed column.
    """
    name = source_name(path)
    with open_seekable(path) as stream, arrow_errors(name):
        yield from parquet_rows(open_parquet(stream), columns, name, text.max_bytes)


def read_arrow(path: str, columns: Fields, text: TextOptions) -> Iterator[Row | BadRow]:
    """The rows of an Arrow file, as ``save_to_disk`` of Hugging Face's datasets writes them.

    Raises:
        InputError: Not Arrow, damaged, or without a needed column.
    """
    name = source_name(path)
    with open_seekable(path) as stream, arrow_errors(name, "Arrow"):
        schema, batches = _open_arrow(stream)

        def selected(names: Sequence[str] | None) -> Iterable[Any]:
            return batches if names is None else (batch.select(names) for batch in batches)

        yield from _rows(schema, selected, columns, name, text.max_bytes)


def parquet_rows(
    file: Any, columns: Fields, name: str, limit: int, *, without: Sequence[str] = ()
) -> Iterator[Row | BadRow]:
    """The rows of an open ``ParquetFile``.

    Args:
        file: What `open_parquet` gave.
        columns: The fields that the rows have.
        name: What messages call the file.
        limit: Largest row, in bytes.
        without: Names of columns that are not read.
    """

    def batches(names: Sequence[str] | None) -> Iterable[Any]:
        return parquet_batches(file, names)

    return _rows(file.schema_arrow, batches, columns, name, limit, without)


def _rows(
    schema: Any,
    batches: Batches,
    columns: Fields,
    name: str,
    limit: int,
    without: Sequence[str] = (),
) -> Iterator[Row | BadRow]:
    known = [one for one in schema.names if one not in without]
    known += [one for one in columns.nested if one not in known and _is_nested(schema, one)]
    found = columns.of_header(known, name)
    used = sorted({*found.positions.values(), *found.others.values()})
    names = [known[position] for position in used]
    classes = {
        field: _classes(schema, known[position]) for field, position in found.positions.items()
    }
    layout = Layout(
        {field: used.index(position) for field, position in found.positions.items()},
        len(names),
        others={field: used.index(position) for field, position in found.others.items()},
        classes={field: one for field, one in classes.items() if one},
    )
    read = list(dict.fromkeys(_top(schema, one) for one in names))
    wanted = batches(None if len(read) == len(schema.names) else read)
    for rows in bounded_rows(wanted, limit):
        if isinstance(rows, LongRow):
            yield BadRow(rows.number, too_long(rows.bytes, limit))
            continue
        for number, cells in enumerate(_cells(rows.batch, names), rows.first):
            if isinstance(cells, str):
                yield BadRow(number, cells)
            else:
                yield layout.row(number, cells)


def _cells(batch: Any, names: Sequence[str]) -> Iterator[Sequence[object] | str]:
    """The cells of each row in the order of the names, or why they cannot be read."""
    columns = [_in_microseconds(_column(batch, name)) for name in names]
    try:
        cells = [column.to_pylist() for column in columns]
    except (ValueError, OverflowError):
        # one value that Python cannot hold (year 10000, bytes that are not UTF-8) fails them all
        yield from (_cells_of(columns, names, row) for row in range(batch.num_rows))
    else:
        yield from zip(*cells, strict=True)


def _top(schema: Any, name: str) -> str:
    """The column that has a field, which is the column itself or in it."""
    return name if name in schema.names else name.split(".")[0]


def _is_nested(schema: Any, name: str) -> bool:
    """Whether a name with dots is a field of a column."""
    import pyarrow as pa

    top, *parts = name.split(".")
    if schema.names.count(top) != 1:
        return False
    kind = schema.field(top).type
    for part in parts:
        if not pa.types.is_struct(kind) or kind.get_field_index(part) < 0:
            return False
        kind = kind.field(part).type
    return True


def _column(batch: Any, name: str) -> Any:
    index = batch.schema.get_field_index(name)
    if index >= 0:
        return batch.column(index)
    from pyarrow import compute

    top, *parts = name.split(".")
    return compute.struct_field(batch.column(batch.schema.get_field_index(top)), parts)


def _cells_of(columns: Sequence[Any], names: Sequence[str], row: int) -> list[object] | str:
    cells = []
    for name, column in zip(names, columns, strict=True):
        try:
            cells.append(column[row].as_py())
        except (ValueError, OverflowError) as error:
            return f"'{printable(name)}' cannot be read ({printable(str(error))})"
    return cells


def _in_microseconds(column: Any) -> Any:
    """The column with times to the microsecond, the finest that Python has without pandas."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        return column.cast(pa.timestamp("us", kind.tz), safe=False)
    if pa.types.is_duration(kind) and kind.unit == "ns":
        return column.cast(pa.duration("us"), safe=False)
    if pa.types.is_time64(kind) and kind.unit == "ns":
        return column.cast(pa.time64("us"), safe=False)
    return column


def _open_arrow(stream: BinaryIO) -> tuple[Any, Iterable[Any]]:
    """The schema and the batches of an IPC file or stream."""
    import pyarrow as pa

    magic = stream.read(len(_FILE_MAGIC))
    if magic != _FILE_MAGIC:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(max(0, size - len(_STREAM_END)))
        if stream.read() != _STREAM_END:
            # a stream that is truncated between two batches would be read as a whole one
            raise pa.ArrowInvalid("the mark at its end is missing")
        stream.seek(0)
        reader = pa.ipc.open_stream(stream)
        return reader.schema, map(_checked, reader)
    stream.seek(0)
    reader = pa.ipc.open_file(stream)
    return reader.schema, (_checked(reader.get_batch(i)) for i in range(reader.num_record_batches))


def _checked(batch: Any) -> Any:
    # Arrow believes the offsets of texts in a file, and wrong ones end the process.
    batch.validate(full=True)
    return batch


def _classes(schema: Any, column: str) -> tuple[str, ...]:
    """The names of a ClassLabel column by number, from what the schema says to Hugging Face."""
    try:
        content = json.loads((schema.metadata or {})[b"huggingface"])
        feature = content["info"]["features"][column]
        names = feature["names"] if feature["_type"] == "ClassLabel" else None
    except (KeyError, TypeError, ValueError, RecursionError):  # not there, or not understood
        return ()
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return ()
    return tuple(names)


@contextmanager
def arrow_errors(name: str, kind: str = "Parquet") -> Iterator[None]:
    """A context in which what pyarrow reports of damage becomes one line.

    Args:
        name: What messages call the file.
        kind: ``Parquet`` or ``Arrow``.

    Raises:
        InputError: The file is damaged or of another format.
    """
    import pyarrow as pa

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
    return InputError(f"{name}: not a readable {kind} file ({reason}); download it again{more}")
