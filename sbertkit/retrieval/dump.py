"""Writing an index to files for other programs."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from sbertkit.arguments import output_file, path_text
from sbertkit.arrays import Vectors
from sbertkit.data import Document
from sbertkit.data.vector_parquet import WHOLE, VectorOrigin, VectorParquetWriter, VectorRows
from sbertkit.encoder.passage_table import TO_THE_END
from sbertkit.errors import InputError
from sbertkit.index.faiss_files import write_flat_index
from sbertkit.index.segment import Rows
from sbertkit.retrieval.opening import open_view
from sbertkit.retrieval.view import Segment, View
from sbertkit.storage import staged_file, storage_errors, sync_file

_DOCUMENTS_PER_CHUNK = 1_024


def dump_index(
    index: str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    filter: str | None = None,  # noqa: A002  # what the field calls it
) -> tuple[Path, ...]:
    """Writes the documents and vectors of an index, without deleted ones, to a file.

    Args:
        index: The index folder.
        path: ``NAME.parquet``, with columns ``id``, ``text``, ``metadata`` (JSON) and ``vector``
            (with passages, lists of ``start``, ``end`` and ``vector``), which builds and changes
            read back without encoding; or ``NAME.faiss``, a flat inner-product index, with the ids
            in the order of its rows in ``NAME.ids.json``.
        filter: Only the documents that match it; see `SearchIndex.search`.

    Returns:
        The files.

    Raises:
        InputError: Another suffix, or no index.
        BadFilter: The filter cannot be read, or names a field that no document has.
        DamagedIndex: The index is damaged.
        StorageError: The disk is full or a permission is missing.
    """
    target = output_file(path)
    writers = {".parquet": _write_parquet, ".faiss": _write_faiss}
    if target.suffix.lower() not in writers:
        raise InputError(f"{path}: expected a name that ends in .parquet or .faiss")
    root = Path(path_text(index)).absolute()
    view = open_view(root)
    try:
        if root.resolve() in target.resolve().parents:
            raise InputError(f"{path} is inside the index folder; choose another place")
        with storage_errors(target):
            return writers[target.suffix.lower()](view.matching(filter), target)
    finally:
        view.close()


def _write_parquet(view: View, path: Path) -> tuple[Path, ...]:
    entry = view.manifest.encoder
    divided = view.row_count > len(view)
    whole = view.manifest.long.mode == "passages" and not divided
    long = WHOLE if whole else str(view.manifest.long)
    made_by = VectorOrigin(entry.fingerprint, entry.precision, long)
    with (
        staged_file(path) as staged,
        VectorParquetWriter(staged, entry.dim, made_by, metadata=True, lists=divided) as writer,
    ):
        for documents, rows, segment in _chunks(view):
            ids, texts, metadata = zip(*documents, strict=True)
            of_documents = VectorRows(ids, texts, segment.vectors.at(rows))
            if divided:
                of_documents = _with_passages(of_documents, rows, segment)
            writer.write_rows(of_documents, metadata)
    return (path,)


def _with_passages(documents: VectorRows, rows: Rows, segment: Segment) -> VectorRows:
    numbers = segment.passages.document_of(rows)
    counts = np.unique(numbers, return_counts=True)[1].tolist()
    texts = (
        text for text, count in zip(documents.texts, counts, strict=True) for _ in range(count)
    )
    bounds = [
        (start, len(text) if end == TO_THE_END else end)
        for text, (start, end) in zip(texts, map(segment.passages.bounds_of, rows), strict=True)
    ]
    return documents._replace(bounds=bounds, counts=counts)


def _write_faiss(view: View, path: Path) -> tuple[Path, ...]:
    beside = path.with_suffix(".ids.json")
    with staged_file(path) as staged, staged_file(beside) as staged_ids:
        dim = view.manifest.encoder.dim
        ids: list[str] = []

        def vectors() -> Iterator[Vectors]:
            for documents, rows, segment in _chunks(view):
                numbers = segment.passages.document_of(rows)
                places = np.unique(numbers, return_inverse=True)[1].tolist()
                ids.extend(documents[place].id for place in places)
                yield segment.vectors.at(rows)

        write_flat_index(staged, vectors(), dim)
        staged_ids.write_text(json.dumps(ids, ensure_ascii=False) + "\n", encoding="utf-8")
        sync_file(staged)
        sync_file(staged_ids)
        # Two files cannot be replaced in one step: a kill may leave only the ids, never wrong ones.
        path.unlink(missing_ok=True)
    return path, beside


def _chunks(view: View) -> Iterator[tuple[list[Document], Rows, Segment]]:
    """Documents with the rows of their vectors, in chunks, in the order of the index."""
    for segment in view.segments:
        live = np.flatnonzero(segment.mask())
        for start in range(0, len(live), _DOCUMENTS_PER_CHUNK):
            numbers = live[start : start + _DOCUMENTS_PER_CHUNK]
            documents = segment.documents.at(numbers.tolist())
            rows = segment.passages.rows_of(numbers)
            yield [documents[number] for number in numbers.tolist()], rows, segment
