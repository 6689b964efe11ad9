"""Parquet files of documents with vectors, which sbertkit writes and recognizes.

Columns are ``id``, ``text``, ``vector`` (a list of fixed size), in the dump of an index
``metadata`` (JSON), and for passages ``start`` and ``end`` in the text of the document. A row is a
document or a passage; in the dump of an index with passages it is a document, with lists of them.
The mark in the schema names the encoder; a digest of all rows, which no other program updates,
shows whether the vectors still belong to the texts beside them.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from sbertkit.data.metadata import BadRecordError
from sbertkit.data.tables import Row
from sbertkit.data.tables.batches import open_parquet, parquet_batches
from sbertkit.errors import InputError
from sbertkit.files import open_regular
from sbertkit.schema import read_record

if TYPE_CHECKING:  # what lists formats of corpora needs no numpy
    from sbertkit.arrays import Vectors

_MARK = b"sbertkit"
_DIGEST = b"sbertkit-rows"
_FORMAT = 1

WHOLE = "whole"
"""Where every text has one vector, of all its tokens."""


@dataclass(frozen=True, slots=True)
class VectorOrigin:
    """The encoder that made the vectors of a file.

    Attributes:
        fingerprint: Its fingerprint; empty for one that is not known.
        precision: In which it computed.
        long: What was done with texts longer than its limit; `WHOLE` if there were none.
        format: Of the file.
    """

    fingerprint: str = ""
    precision: str = ""
    long: str = ""
    format: int = _FORMAT


Bounds = tuple[int, int]
"""Start and end of a passage in its document's text."""


class VectorRows(NamedTuple):
    """Rows of such a file.

    Attributes:
        ids: Ids, (n,).
        texts: Texts, (n,).
        vectors: Vectors, (m, dim); m is n, or the sum of `counts`.
        bounds: Of passages, (m,).
        counts: How many passages each document has, (n,), where a row is a document.
    """

    ids: Sequence[str]
    texts: Sequence[str]
    vectors: "Vectors"
    bounds: Sequence[Bounds] | None = None
    counts: Sequence[int] | None = None


class VectorParquetWriter(AbstractContextManager["VectorParquetWriter"]):
    """Writes such a file, chunk by chunk; it is whole when the block ends well.

    Args:
        path: The file.
        dim: Size of a vector.
        made: The encoder.
        metadata: Whether the rows have further fields.
        passages: Whether the rows are passages.
        lists: Whether the rows are documents with lists of passages.
    """

    def __init__(
        self,
        path: Path,
        dim: int,
        made: VectorOrigin,
        *,
        metadata: bool = False,
        passages: bool = False,
        lists: bool = False,
    ) -> None:
        import pyarrow
        import pyarrow.parquet

        self._pyarrow: Any = pyarrow
        columns = [("id", pyarrow.string()), ("text", pyarrow.string())]
        columns += [("metadata", pyarrow.string())] if metadata else []
        parts = [("start", pyarrow.int64()), ("end", pyarrow.int64())] if passages or lists else []
        parts += [("vector", pyarrow.list_(pyarrow.float32(), dim))]
        columns += [(name, pyarrow.list_(kind)) for name, kind in parts] if lists else parts
        mark = {_MARK: json.dumps(asdict(made)).encode()}
        self._schema = pyarrow.schema(columns, metadata=mark)
        self._digest = _RowDigest()
        self._file = path.open("wb")  # pyarrow opens no path that is not valid Unicode
        self._writer = pyarrow.parquet.ParquetWriter(self._file, self._schema, compression="zstd")

    def write_rows(
        self, rows: VectorRows, metadata: Sequence[Mapping[str, Any]] | None = None
    ) -> None:
        """Adds rows, with their further fields (n)."""
        import numpy as np

        ids, texts, vectors, bounds, counts = rows
        pyarrow = self._pyarrow
        flat = np.ascontiguousarray(vectors, dtype=np.float32)
        columns = [pyarrow.array(ids, pyarrow.string()), pyarrow.array(texts, pyarrow.string())]
        if metadata is not None:
            rendered = [json.dumps(dict(one), ensure_ascii=False) for one in metadata]
            columns.append(pyarrow.array(rendered, pyarrow.string()))
        parts = []
        if bounds is not None:
            parts += [pyarrow.array(side, pyarrow.int64()) for side in zip(*bounds, strict=True)]
        values = pyarrow.array(flat.reshape(-1))
        parts.append(pyarrow.FixedSizeListArray.from_arrays(values, flat.shape[1]))
        if counts is not None:
            offsets = pyarrow.array(np.cumsum([0, *counts]), pyarrow.int32())
            parts = [pyarrow.ListArray.from_arrays(offsets, part) for part in parts]
        batch = pyarrow.record_batch([*columns, *parts], schema=self._schema)
        self._writer.write_batch(batch)
        self._digest.add(rows._replace(vectors=flat))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._file:
            if error is None:
                self._writer.add_key_value_metadata({_DIGEST: self._digest.hexdigest()})
            self._writer.close()


def has_vectors(file: Any) -> bool:
    """Whether a ``ParquetFile`` has the mark, so that its columns mean what they do here."""
    return _MARK in (file.schema_arrow.metadata or {})


def document_of(row: Row) -> Row:
    """The document in a row of such a file, read without its vector.

    Further columns, which somebody else has added, are further fields.

    Raises:
        BadRecordError: The column ``metadata`` is no JSON object.
    """
    others = dict(row.others)
    rendered = others.pop("metadata", None)
    try:
        metadata = {} if rendered is None else json.loads(str(rendered))
    except (ValueError, RecursionError) as error:
        raise BadRecordError(f"metadata is no JSON ({type(error).__name__})") from error
    if not isinstance(metadata, dict):
        raise BadRecordError("metadata is no JSON object")
    return row._replace(others={**metadata, **others})


def stored_vectors(path: str) -> VectorOrigin | None:
    """The encoder of the vectors in a file; None for a file that is none such, or was changed.

    The whole file is read, in chunks.

    Args:
        path: A regular file that could be read as a corpus.
    """
    with open_regular(Path(path), follow=True) as stream:
        file = open_parquet(stream)
        if not has_vectors(file) or not {"id", "text", "vector"} <= set(file.schema_arrow.names):
            return None
        digest = _RowDigest()
        try:
            for rows in _rows(file):
                digest.add(rows)
        except InputError:  # it was changed
            return None
        if (file.metadata.metadata or {}).get(_DIGEST) != digest.hexdigest().encode():
            return None
        try:
            return read_record(file.schema_arrow.metadata[_MARK], VectorOrigin, path)
        except InputError:
            return None


def holds_passages(path: str) -> bool:
    """Whether the rows of a file are documents with lists of passages, by its mark and columns."""
    with open_regular(Path(path), follow=True) as stream:
        file = open_parquet(stream)
        names = file.schema_arrow.names
        if not has_vectors(file) or not {"start", "end", "vector"} <= set(names):
            return False
        kind = getattr(file.schema_arrow.field("vector").type, "value_type", None)
        return hasattr(kind, "value_type")


def refuse_passage_rows(file: Any, name: str) -> None:
    """Refuses a ``ParquetFile`` that `encode` wrote with a row for each of several passages.

    Raises:
        InputError: It is one: its rows are no documents.
    """
    schema = file.schema_arrow
    if not has_vectors(file) or "start" not in schema.names:
        return
    whole = read_record(schema.metadata[_MARK], VectorOrigin, name).long == WHOLE
    if str(schema.field("start").type) == "int64" and not whole:
        raise InputError(
            f"{name} has a row for each passage, not for each document: give the corpus that it "
            "was made from, or the file that dump writes of an index"
        )


def vector_rows(stream: BinaryIO) -> Iterator[VectorRows]:
    """The rows of such a file, chunk by chunk."""
    return _rows(open_parquet(stream))


def _rows(file: Any) -> Iterator[VectorRows]:
    names = file.schema_arrow.names
    sides = [name for name in ("start", "end") if has_vectors(file) and name in names]
    first = 1
    for batch in parquet_batches(file, ["id", "text", *sides, "vector"]):
        try:
            yield _batch_rows(batch, sides)
        except (TypeError, ValueError, AttributeError) as error:
            raise InputError(
                f"rows {first} to {first + len(batch) - 1}: expected in each a vector, or lists of "
                "as many starts, ends and vectors of one size, none of them empty; make the file "
                "again"
            ) from error
        first += len(batch)


def _batch_rows(batch: Any, sides: Sequence[str]) -> VectorRows:
    """The rows of a batch; any other error than ours means that somebody has changed them."""
    ids, texts = batch.column("id").to_pylist(), batch.column("text").to_pylist()
    parts = [batch.column(name) for name in (*sides, "vector")]
    counts = None
    if hasattr(parts[-1].type.value_type, "value_type"):  # lists of vectors
        counts, *others = (part.value_lengths().to_pylist() for part in reversed(parts))
        if any(other != counts for other in others) or not all(counts):
            raise ValueError("lists of other lengths")
        parts = [part.flatten() for part in parts]
    if any(part.null_count for part in parts) or None in ids:
        raise ValueError("a row without a value")
    bounds = None
    if len(sides) > 1:
        bounds = list(zip(*(part.to_pylist() for part in parts[:-1]), strict=True))
    flat = parts[-1].flatten().to_numpy(zero_copy_only=False)
    return VectorRows(ids, texts, flat.reshape(len(parts[-1]), -1), bounds, counts)


class _RowDigest:
    """SHA-256 over rows, whatever chunks they come in."""

    def __init__(self) -> None:
        self._texts, self._vectors = hashlib.sha256(), hashlib.sha256()

    def add(self, rows: VectorRows) -> None:
        """Takes further rows."""
        import numpy as np

        for row in zip(rows.ids, rows.texts, strict=True):
            for field in row:
                content = (field or "").encode("utf-8", "surrogatepass")
                self._texts.update(len(content).to_bytes(8, "big") + content)
        self._vectors.update(np.ascontiguousarray(rows.vectors).data)
        for numbers in (rows.bounds, rows.counts):
            if numbers is not None:
                self._texts.update(np.array(numbers, "<i8").tobytes())

    def hexdigest(self) -> str:
        """Of all rows so far."""
        return hashlib.sha256(self._texts.digest() + self._vectors.digest()).hexdigest()
