"""Batches of Parquet and Arrow files in bounded memory, whatever their rows hold."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, BinaryIO, NamedTuple

from sbertkit.data.limits import MAX_TEXT_BYTES, too_long
from sbertkit.errors import InputError

_ROWS = 1_024
_BYTES = 64 * 2**20
"""Target size of a batch, by the sizes that the file declares."""
_BUFFER = 1 << 20  # bytes read ahead for a column
_USUAL_DICTIONARY = 4 * 2**20
"""Writers give a dictionary up at about 1 MiB."""


class Rows(NamedTuple):
    """A batch, and the number of its first row from 1."""

    first: int
    batch: Any


class LongRow(NamedTuple):
    """A row that is larger than it may be, from 1, and its bytes."""

    number: int
    bytes: int


def open_parquet(stream: BinaryIO) -> Any:
    """The ``ParquetFile`` of a stream."""
    from pyarrow import parquet

    return parquet.ParquetFile(stream, buffer_size=_BUFFER, pre_buffer=False)


def parquet_batches(file: Any, columns: Sequence[str] | None = None) -> Iterator[Any]:
    """The batches of a Parquet file, with fewer rows where it declares large ones.

    Args:
        file: What `open_parquet` gave.
        columns: Names of the columns to read; None for all.
    """
    groups = range(file.metadata.num_row_groups)
    for rows, alike in groupby(groups, lambda group: _rows_at_once(file.metadata.row_group(group))):
        yield from file.iter_batches(batch_size=rows, row_groups=list(alike), columns=columns)


def bounded_rows(batches: Iterable[Any], limit: int) -> Iterator[Rows | LongRow]:
    """The rows of batches; each that is larger than `limit` bytes is reported instead.

    Args:
        batches: Record batches.
        limit: Largest row, in bytes of all its values.
    """
    number = 1
    for whole in batches:
        for start in range(0, whole.num_rows, _ROWS):
            batch = whole.slice(start, _ROWS)
            if _max_bytes(batch) <= limit:
                yield Rows(number, batch)
            else:
                for row in range(batch.num_rows):
                    one = batch.slice(row, 1)
                    size = sum(_plain(column).nbytes for column in one.columns)
                    too_large = size > limit
                    yield LongRow(number + row, size) if too_large else Rows(number + row, one)
            number += batch.num_rows


def checked_rows(batches: Iterable[Any], name: str) -> Iterator[Rows]:
    """The rows of batches, none of which may be too large.

    Raises:
        InputError: One is.
    """
    for rows in bounded_rows(batches, MAX_TEXT_BYTES):
        if isinstance(rows, LongRow):
            reason = too_long(rows.bytes, MAX_TEXT_BYTES)
            raise InputError(f"{name} row {rows.number}: {reason}; shorten or remove it")
        yield rows


def _rows_at_once(group: Any) -> int:
    """How many rows of a row group are decoded together, by the sizes that it declares."""
    chunks = [group.column(place) for place in range(group.num_columns)]
    declared = sum(chunk.total_uncompressed_size for chunk in chunks)
    rows = _BYTES * group.num_rows // max(declared, 1)
    for chunk in chunks:
        if _dictionary_bytes(chunk) > _USUAL_DICTIONARY:  # each row may refer to all of it
            rows = min(rows, _BYTES // max(chunk.total_uncompressed_size, 1))
    return int(min(max(rows, 1), _ROWS))


def _dictionary_bytes(chunk: Any) -> float:
    """About the size of a column chunk's dictionary, from what it takes in the file."""
    packed = chunk.data_page_offset - (chunk.dictionary_page_offset or chunk.data_page_offset)
    return float(packed * chunk.total_uncompressed_size / max(chunk.total_compressed_size, 1))


def _max_bytes(batch: Any) -> int:
    """Upper bound of the bytes of a batch's values, once dictionaries are resolved."""
    return sum(
        batch.num_rows * column.dictionary.nbytes if _is_dictionary(column) else column.nbytes
        for column in batch.columns
    )


def _plain(column: Any) -> Any:
    return column.dictionary_decode() if _is_dictionary(column) else column


def _is_dictionary(column: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_dictionary(column.type))
