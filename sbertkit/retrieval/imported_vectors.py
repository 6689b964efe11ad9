"""Vectors from a file or an array, taken into an index instead of encoding its texts."""

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sbertkit.data import SourcedDocument
from sbertkit.data.streams import open_seekable, reading
from sbertkit.data.tables.arrow import arrow_errors
from sbertkit.data.tables.batches import checked_rows, open_parquet, parquet_batches
from sbertkit.data.text import printable
from sbertkit.data.vector_parquet import (
    WHOLE,
    holds_passages,
    refuse_passage_rows,
    stored_vectors,
    vector_rows,
)
from sbertkit.encoder import Encoder
from sbertkit.encoder.long_options import TRUNCATE, LongOptions
from sbertkit.encoder.passage_table import PassageTable, passage_text
from sbertkit.errors import InputError, InputTypeError, ModelMismatch
from sbertkit.files import open_regular
from sbertkit.formatting import counted
from sbertkit.index.segment import write_vectors
from sbertkit.metrics.cosine import is_masked, unit_rows
from sbertkit.retrieval.corpus import CorpusReader
from sbertkit.retrieval.document_store import DocumentStore
from sbertkit.retrieval.manifest_entries import EncoderEntry

logger = logging.getLogger(__name__)

Floats = npt.NDArray[np.floating[Any]]
Importable = str | os.PathLike[str] | Floats
"""A file of vectors, or an array (n, dim)."""

_ROWS_PER_CHUNK = 4_096
_COMPARED = 32
"""Texts that are encoded to compare."""
_MIN_COSINE = 0.95
"""Between the encoder's vector and the imported one, which may be of lower precision."""


@dataclass(frozen=True, slots=True)
class ImportedVectors:
    """Vectors that are given.

    Attributes:
        source: A ``.npy`` file or an array (n, dim) with a row for each document in order, blank
            ones all included or all left out; or a Parquet file with columns ``id`` and ``vector``,
            in any order.
        dim: Size of a vector.
        encoder: The encoder that made them, which encodes some of the texts to compare; ``None``
            compares nothing.
        blank: Row numbers of the blank documents, which the segment lacks, in the corpus.
        long: What was done with texts longer than the encoder's limit.
    """

    source: Importable
    dim: int
    encoder: Encoder | None = None
    blank: Sequence[int] = ()
    long: LongOptions = TRUNCATE

    def write(self, documents: DocumentStore, path: Path) -> PassageTable:
        """See `VectorSource`; each document is one passage, but in a dump with passages.

        Raises:
            InputError: A document without a vector, another number or size of vectors, or a vector
                without direction.
            ModelMismatch: The vectors are not this encoder's.
            StorageError: The disk is full or a permission is missing.
        """
        passages = PassageTable(len(documents))
        if isinstance(self.source, str | os.PathLike) and _is_parquet(self.source):
            name = os.fspath(self.source)
            if _is_dump_with_passages(name):
                passages = _write_passages(name, documents, path, self.dim)
            else:
                _write_by_id(name, documents, path, self.dim)
        else:
            name, matrix = _matrix(self.source)
            rows = self._rows(name, matrix, len(documents))
            write_vectors(path, _in_order(name, matrix, rows, documents), self.dim)
        if self.encoder is not None:
            self._check_long(documents, passages, self.encoder)
            _compare(documents, passages, np.load(path, mmap_mode="r"), self.encoder, self.long)
        return passages

    def _check_long(
        self, documents: DocumentStore, passages: PassageTable, encoder: Encoder
    ) -> None:
        """Refuses vectors of long texts that were treated otherwise than the index says.

        Raises:
            InputError: By the mark of their file they were, or long texts have one vector.
        """
        made = None
        if isinstance(self.source, str | os.PathLike) and _is_parquet(self.source):
            made = stored_vectors(os.fspath(self.source)) if Path(self.source).is_file() else None
        if made is not None and made.long:
            if made.long not in (WHOLE, str(self.long)):
                mode, _, overlap = made.long.partition(", overlap ")
                further = f" and overlap (--overlap) {overlap}" if overlap else ""
                raise InputError(
                    f"the vectors given have long texts as {made.long}, the index would have them "
                    f"as {self.long}: choose long (--long) {mode}{further}"
                )
            return
        if passages.rows is not None and self.long.mode != "passages":
            raise InputError("the vectors given are of passages: choose long (--long) passages")
        if passages.rows is None and self.long.mode == "passages":
            from sbertkit.encoder.divided_texts import divide
            from sbertkit.encoder.passages import PassageSplitter

            divided = divide(PassageSplitter.of(encoder.spec), documents.texts())
            count = sum(len(text.passages) > 1 for text in divided)
            if count:
                raise InputError(
                    f"{counted(count, 'document')} of {len(documents):,} have more than "
                    f"{encoder.max_tokens} tokens, and one vector was given for each: say what "
                    "these are by long (--long), truncate or mean"
                )

    def _rows(self, name: str, matrix: Floats, count: int) -> npt.NDArray[np.int64]:
        """The rows of a matrix that belong to so many documents."""
        rows = np.arange(len(matrix))
        if len(matrix) == count + len(self.blank):
            rows = np.delete(rows, np.array(self.blank, np.int64))
        if (len(rows), matrix.shape[1]) != (count, self.dim):
            expected = f"{count}"
            if self.blank:
                blank = len(self.blank)
                expected += f" (or, with {blank} blank ones, {count + blank})"
            raise InputError(
                f"{name}: expected {expected} vectors of size {self.dim}, one for each document, "
                f"found an array of shape {matrix.shape}"
            )
        return rows


def own_vectors(reader: CorpusReader, entry: EncoderEntry, long: LongOptions) -> str | None:
    """The file of a corpus, if its own vectors are those of an encoder.

    That is the case for files of `encode` and `dump` in which no row was changed. Logs whether they
    are used.

    Args:
        reader: The corpus, whose documents have been read.
        entry: The encoder.
        long: What is done with texts longer than its limit.
    """
    path = reader.path
    if reader.columns is not None and reader.columns.text not in ((), ("text",)):
        return None
    if path is None or not _is_parquet(path) or not Path(path).is_file():
        return None
    with reading(path), arrow_errors(reader.name):
        made = stored_vectors(path)
    if made is None:
        return None
    if (made.fingerprint, made.precision) != (entry.fingerprint, entry.precision) or (
        made.long not in (WHOLE, str(long))
    ):
        logger.warning(
            "%s: its vectors are of another encoder or precision, or long texts were treated in "
            "another way; its texts are encoded",
            reader.name,
        )
        return None
    logger.warning("%s: its vectors are this encoder's, and are used", reader.name)
    return path


def without_vectors(
    documents: Iterator[SourcedDocument], source: Importable, corpus: str | None
) -> Iterator[SourcedDocument]:
    """The documents of a corpus without the column that the vectors are taken from."""
    same = isinstance(source, str | os.PathLike) and corpus is not None
    with suppress(OSError):
        same = same and Path(str(corpus)).samefile(source)  # type: ignore[arg-type]
    for document, line in documents:
        if same and "vector" in document.metadata:
            fields = {name: value for name, value in document.metadata.items() if name != "vector"}
            document = document._replace(metadata=fields)
        yield SourcedDocument(document, line)


def _is_parquet(source: str | os.PathLike[str]) -> bool:
    return Path(source).suffix.lower() == ".parquet"


def _is_dump_with_passages(name: str) -> bool:
    if not Path(name).is_file():  # a pipe, which can be read once
        return False
    with reading(name), arrow_errors(name):
        return holds_passages(name)


def _matrix(source: Importable) -> tuple[str, Floats]:
    """The name of an array in messages, and the array, memory-mapped if it is a file."""
    name = "vectors"
    matrix: Any = source
    if isinstance(source, str | os.PathLike):
        name = os.fspath(source)
        if Path(name).suffix.lower() != ".npy":
            raise InputError(f"{name}: expected a name that ends in .npy or .parquet")
        with reading(name):
            open_regular(Path(name), follow=True).close()  # a pipe would be waited for
            try:
                matrix = np.load(name, mmap_mode="r", allow_pickle=False)
            except OSError:
                raise
            except Exception as error:  # whatever a header may make of NumPy's parser
                reason = " ".join(str(error).split())[:200]
                raise InputError(f"{name} is not a readable .npy file ({reason})") from error
    if not isinstance(matrix, np.ndarray) or matrix.ndim != 2 or matrix.dtype.kind != "f":
        found = (
            f"an array of shape {matrix.shape} and type {matrix.dtype}"
            if isinstance(matrix, np.ndarray)
            else type(matrix).__name__
        )
        raise InputTypeError(f"{name}: expected an array (n, dim) of floats, found {found}")
    if is_masked(matrix):
        raise InputError(f"{name}: expected numbers, found masked ones; fill them in")
    return name, np.asarray(matrix)


def _in_order(
    name: str, matrix: Floats, rows: npt.NDArray[np.int64], store: DocumentStore
) -> Iterator[npt.NDArray[np.float32]]:
    """The unit rows of a matrix that belong to the documents, in chunks."""
    for start in range(0, len(rows), _ROWS_PER_CHUNK):
        yield _unit_rows(
            name,
            np.asarray(matrix[rows[start : start + _ROWS_PER_CHUNK]]),
            lambda row, start=start: store.at([start + row])[start + row].id,  # type: ignore[misc]
        )


def _write_by_id(name: str, store: DocumentStore, path: Path, dim: int) -> None:
    """Writes the vectors of a Parquet file, each at the row of its document."""
    starts = range(0, len(store), _ROWS_PER_CHUNK)
    # Written, not only allocated: so a full disk is an error, and no signal at a later write.
    zeros = (np.zeros((min(_ROWS_PER_CHUNK, len(store) - at), dim), np.float32) for at in starts)
    write_vectors(path, zeros, dim)
    vectors = np.load(path, mmap_mode="r+", allow_pickle=False)
    given = np.zeros(len(store), np.bool_)
    for ids, chunk in _parquet_vectors(name, dim):
        found = store.find(ids)
        kept = [number for number, one in enumerate(ids) if one in found]
        rows = [found[ids[number]].row for number in kept]
        if given[rows].any() or len(set(rows)) < len(rows):
            raise InputError(f"{name}: duplicate id; every document needs one vector")
        given[rows] = True
        if kept:
            named = [ids[number] for number in kept]
            vectors[rows] = _unit_rows(name, chunk[kept], named.__getitem__)
    vectors.flush()
    if not given.all():
        row = int(np.argmin(given))
        raise InputError(
            f"{name} has no vector for {int((~given).sum())} of {len(store)} documents, the first "
            f"of them {store.at([row])[row].id!r}; give the file that was made from this corpus"
        )


def _write_passages(name: str, store: DocumentStore, path: Path, dim: int) -> PassageTable:
    """Writes the vectors of a dump with passages, each at the row of its passage."""
    bounds: dict[int, Sequence[tuple[int, int]]] = {}
    for number, of_document, _ in _dumped(name, store, dim):
        if number in bounds:
            raise InputError(f"{name}: duplicate id; every document needs its passages once")
        document = store.at([number])[number]
        end = max(end for _, end in of_document)
        begins = [start for start, _ in of_document]
        if begins != sorted(begins) or begins[0] < 0 or end > len(document.text):
            raise InputError(
                f"{name}: the passages of document {document.id!r} are not places in its text, in "
                "order; give the file that was made from this corpus"
            )
        bounds[number] = of_document
    missing = next((number for number in range(len(store)) if number not in bounds), None)
    if missing is not None:
        raise InputError(
            f"{name} has no vector for document {store.at([missing])[missing].id!r}; give the file "
            "that was made from this corpus"
        )
    table = PassageTable.of(bounds[number] for number in range(len(store)))
    starts = range(0, len(table), _ROWS_PER_CHUNK)
    zeros = (np.zeros((min(_ROWS_PER_CHUNK, len(table) - at), dim), np.float32) for at in starts)
    write_vectors(path, zeros, dim)  # written, so that a full disk is an error
    vectors = np.load(path, mmap_mode="r+", allow_pickle=False)
    for number, _, of_passages in _dumped(name, store, dim):
        document_id = store.at([number])[number].id
        rows = table.rows_of(np.array([number]))
        vectors[rows] = _unit_rows(name, of_passages, lambda _, one=document_id: one)  # type: ignore[misc]
    vectors.flush()
    return table


def _dumped(
    name: str, store: DocumentStore, dim: int
) -> Iterator[tuple[int, Sequence[tuple[int, int]], Floats]]:
    """Number, bounds of the passages and vectors of each document of a store that a dump has."""
    with open_seekable(name) as stream, arrow_errors(name):
        for rows in vector_rows(stream):
            if rows.vectors.shape[1] != dim:
                raise InputError(
                    f"{name}: expected vectors of size {dim}, found {rows.vectors.shape[1]}; is it "
                    "the right model?"
                )
            found, first = store.find(rows.ids), 0
            for document_id, count in zip(rows.ids, rows.counts or (), strict=True):
                part = slice(first, first + count)
                first += count
                if document_id in found:
                    yield found[document_id].row, (rows.bounds or ())[part], rows.vectors[part]


def _unit_rows(name: str, rows: Floats, id_of: Callable[[int], str]) -> npt.NDArray[np.float32]:
    """Rows scaled to unit length; one without direction is refused with its document's id."""
    usable = np.isfinite(rows).all(axis=1) & rows.any(axis=1)
    if not usable.all():
        row = int(np.argmin(usable))
        raise InputError(
            f"{name}: the vector of document {id_of(row)!r} is zero, NaN or infinite; it has no "
            "direction"
        )
    return unit_rows(rows).astype(np.float32)


def _parquet_vectors(name: str, dim: int) -> Iterator[tuple[list[str], Floats]]:
    with open_seekable(name) as stream, arrow_errors(name):
        import pyarrow as pa
        from pyarrow import compute

        file = open_parquet(stream)
        refuse_passage_rows(file, name)
        schema = file.schema_arrow
        if [schema.names.count(column) for column in ("id", "vector")] != [1, 1]:
            raise InputError(
                f"{name}: expected one column 'id' and one column 'vector', found "
                f"{printable(', '.join(schema.names), 200)}"
            )
        kind = schema.field("vector").type
        lists = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
        if not any(is_list(kind) for is_list in lists) or not pa.types.is_floating(kind.value_type):
            raise InputError(f"{name}: column 'vector' must hold lists of floats, found {kind}")
        batches = parquet_batches(file, ["id", "vector"])
        for _, batch in checked_rows(batches, name):
            ids = [str(one) for one in batch.column("id").to_pylist()]
            column = batch.column("vector")
            sizes = compute.fill_null(compute.list_value_length(column), 0).to_pylist()
            wrong = next((row for row, size in enumerate(sizes) if size != dim), None)
            if wrong is not None:
                raise InputError(
                    f"{name}: expected vectors of size {dim}, found {sizes[wrong]} numbers for the "
                    f"document {ids[wrong]!r}; is it the right model?"
                )
            yield ids, column.flatten().to_numpy(zero_copy_only=False).reshape(-1, dim)


def _compare(
    store: DocumentStore,
    passages: PassageTable,
    vectors: Floats,
    encoder: Encoder,
    long: LongOptions,
) -> None:
    """Refuses vectors that differ from those of the encoder for some of the texts."""
    count = len(passages)
    rows = np.unique(np.linspace(0, count - 1, min(_COMPARED, count)).astype(np.int64))
    numbers = passages.document_of(rows).tolist()
    documents = store.at(numbers)
    bounds = map(passages.bounds_of, rows.tolist())
    texts = [
        passage_text(documents[number].text, one)
        for number, one in zip(numbers, bounds, strict=True)
    ]
    run = encoder.start_run()
    expected = unit_rows(np.concatenate(list(run.vectors(texts, warn=False))))
    cosines = np.einsum("nd,nd->n", expected, np.asarray(vectors[rows], np.float32))
    if long.mode != "truncate":  # how a long text was treated is not known
        cosines[list(run.report().truncated)] = 1
    lowest = int(np.argmin(cosines))
    if cosines[lowest] < _MIN_COSINE:
        raise ModelMismatch(
            f"the vector given for document {documents[numbers[lowest]].id!r} is not the one of "
            f"{encoder.options.model} (cosine {cosines[lowest]:.2f}); give the model that made the "
            "vectors with model (--model), and the vectors in the order of the documents"
        )
