"""Vectors that exist already, taken into a new index instead of encoding its texts."""

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sbertkit.data import SourcedDocument
from sbertkit.data.streams import open_seekable, reading
from sbertkit.data.tables.arrow import arrow_errors
from sbertkit.data.tables.batches import checked_rows, open_parquet, parquet_batches
from sbertkit.data.text import printable
from sbertkit.data.vector_parquet import stored_vectors
from sbertkit.encoder import Encoder
from sbertkit.errors import InputError, InputTypeError, ModelMismatch
from sbertkit.files import open_regular
from sbertkit.index import VECTORS_FILE, write_vectors
from sbertkit.metrics.cosine import is_masked, unit_rows
from sbertkit.retrieval.corpus import CorpusReader
from sbertkit.retrieval.document_store import DOCUMENTS_FILE, DocumentStore

logger = logging.getLogger(__name__)

Vectors = npt.NDArray[np.floating[Any]]
VectorSource = str | os.PathLike[str] | Vectors

_ROWS_A_STEP = 4_096
_COMPARED = 32
_LEAST_COSINE = 0.95
"""Between a vector of the encoder and the imported one, whose precision may have been lower."""


def import_vectors(
    source: VectorSource, folder: Path, encoder: Encoder, blank: Sequence[int] = ()
) -> None:
    """Writes the vectors of a segment's documents from a file or an array.

    Some texts are encoded to see whether the vectors are this encoder's.

    Args:
        source: A ``.npy`` file or an array (n, dim), a row for each document in order, also, or
            not, for blank ones; or a Parquet file with columns ``id`` and ``vector``, in any order.
        folder: The segment's, with its documents.
        encoder: That made the vectors.
        blank: Places of the blank documents, which the segment lacks, among all of the corpus.

    Raises:
        InputError: A document without a vector, another number or size of vectors, or one without
            direction.
        ModelMismatch: The vectors are not this encoder's.
        StorageError: The disk is full or a permission is missing.
    """
    with closing(DocumentStore(folder / DOCUMENTS_FILE)) as store:
        if isinstance(source, str | os.PathLike) and _is_parquet(source):
            import_by_id(os.fspath(source), store, folder / VECTORS_FILE, encoder.dim)
        else:
            name, matrix = _matrix(source)
            rows = np.arange(len(matrix))
            if len(matrix) == len(store) + len(blank):
                rows = np.delete(rows, np.array(blank, np.int64))
            if (len(rows), matrix.shape[1]) != (len(store), encoder.dim):
                many = f"{len(store)}"
                if blank:
                    many += f" (or, with {len(blank)} blank ones, {len(store) + len(blank)})"
                raise InputError(
                    f"{name}: expected {many} vectors of size {encoder.dim}, one for each "
                    f"document, found an array of shape {matrix.shape}"
                )
            write_vectors(folder / VECTORS_FILE, _in_order(name, matrix, rows, store), encoder.dim)
        _compare(store, np.load(folder / VECTORS_FILE, mmap_mode="r"), encoder)


def own_vectors(reader: CorpusReader, fingerprint: str, precision: str) -> str | None:
    """The file that a corpus was read from, if its own vectors are those of an encoder.

    That is so for what `encode` and `dump` wrote, as long as nobody has changed a row. Says
    whether they are used.

    Args:
        reader: Of the corpus, whose documents have been drawn.
        fingerprint: The encoder's.
        precision: In which it computes.
    """
    path = reader.path
    if path is None or not _is_parquet(path) or not Path(path).is_file():
        return None
    with reading(path), arrow_errors(reader.name):
        made = stored_vectors(path)
    if made is None:
        return None
    if (made.fingerprint, made.precision) != (fingerprint, precision):
        logger.warning(
            "%s: its vectors are of another encoder or precision, its texts are encoded",
            reader.name,
        )
        return None
    logger.warning("%s: its vectors are this encoder's, and are used", reader.name)
    return path


def without_vectors(
    documents: Iterator[SourcedDocument], source: VectorSource, corpus: str | None
) -> Iterator[SourcedDocument]:
    """Documents of a corpus, without the column that the vectors are taken from."""
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


def _matrix(source: VectorSource) -> tuple[str, Vectors]:
    """What messages call an array, and the array, memory-mapped where it is a file."""
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
    name: str, matrix: Vectors, rows: npt.NDArray[np.int64], store: DocumentStore
) -> Iterator[npt.NDArray[np.float32]]:
    """The unit rows of a matrix, of which those that are named belong to the documents."""
    for start in range(0, len(rows), _ROWS_A_STEP):
        yield _unit_rows(
            name,
            np.asarray(matrix[rows[start : start + _ROWS_A_STEP]]),
            lambda row, start=start: store.at([start + row])[start + row].id,  # type: ignore[misc]
        )


def import_by_id(name: str, store: DocumentStore, path: Path, dim: int) -> None:
    """Writes the vectors of documents from a Parquet file, each at the row of its document.

    Args:
        name: The file, with columns ``id`` and ``vector``.
        store: The documents.
        path: The ``.npy`` file to write.
        dim: Size of a vector.

    Raises:
        InputError: See `import_vectors`.
    """
    steps = range(0, len(store), _ROWS_A_STEP)
    # Written and not only reserved: a full disk is then told, and does not end the process later.
    empty = (np.zeros((min(_ROWS_A_STEP, len(store) - start), dim), np.float32) for start in steps)
    write_vectors(path, empty, dim)
    vectors = np.load(path, mmap_mode="r+", allow_pickle=False)
    given = np.zeros(len(store), np.bool_)
    for ids, part in _parquet_vectors(name, dim):
        found = store.find(ids)
        kept = [number for number, one in enumerate(ids) if one in found]
        rows = [found[ids[number]].row for number in kept]
        if given[rows].any() or len(set(rows)) < len(rows):
            raise InputError(f"{name}: an id stands twice; every document needs one vector")
        given[rows] = True
        if kept:
            named = [ids[number] for number in kept]
            vectors[rows] = _unit_rows(name, part[kept], named.__getitem__)
    vectors.flush()
    if not given.all():
        row = int(np.argmin(given))
        raise InputError(
            f"{name} has no vector for {int((~given).sum())} of {len(store)} documents, the first "
            f"of them {store.at([row])[row].id!r}; give the file that was made of this corpus"
        )


def _unit_rows(name: str, rows: Vectors, id_of: Callable[[int], str]) -> npt.NDArray[np.float32]:
    """Rows scaled to unit length; those without direction are refused by the document's id."""
    usable = np.isfinite(rows).all(axis=1) & rows.any(axis=1)
    if not usable.all():
        row = int(np.argmin(usable))
        raise InputError(
            f"{name}: the vector of document {id_of(row)!r} is zero, NaN or infinite; it has no "
            "direction"
        )
    return unit_rows(rows).astype(np.float32)


def _parquet_vectors(name: str, dim: int) -> Iterator[tuple[list[str], Vectors]]:
    with open_seekable(name) as stream, arrow_errors(name):
        import pyarrow as pa
        from pyarrow import compute

        file = open_parquet(stream)
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
                    f"document {ids[wrong]!r}; is it the right model (--model)?"
                )
            yield ids, column.flatten().to_numpy(zero_copy_only=False).reshape(-1, dim)


def _compare(store: DocumentStore, vectors: Vectors, encoder: Encoder) -> None:
    """Refuses vectors that are not what the encoder gives for some of the texts."""
    rows = np.unique(np.linspace(0, len(store) - 1, min(_COMPARED, len(store))).astype(np.int64))
    documents = store.at(rows.tolist())
    texts = [documents[row].text for row in rows.tolist()]
    expected = unit_rows(encoder.encode(texts))
    cosines = np.einsum("nd,nd->n", expected, np.asarray(vectors[rows], np.float32))
    worst = int(np.argmin(cosines))
    if cosines[worst] < _LEAST_COSINE:
        document = documents[int(rows[worst])]
        raise ModelMismatch(
            f"the vector given for document {document.id!r} is not the one of "
            f"{encoder.options.model} (cosine {cosines[worst]:.2f}); give the model that made the "
            "vectors with model (--model), and the vectors in the order of the documents"
        )
