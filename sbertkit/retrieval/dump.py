"""An index as files that other programs read."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from sbertkit.arguments import output_file, path_text
from sbertkit.data import Document
from sbertkit.errors import InputError, MissingDependency
from sbertkit.index.plain import write_plain_index
from sbertkit.retrieval.opening import open_view
from sbertkit.retrieval.view import View
from sbertkit.storage import staged_file, storage_errors

Vectors = npt.NDArray[np.float32]

_ROWS_A_STEP = 4_096


def dump_index(index: str | os.PathLike[str], path: str | os.PathLike[str]) -> tuple[Path, ...]:
    """Writes the documents and vectors of an index to a file; deleted ones are left out.

    Args:
        index: The index folder.
        path: ``NAME.parquet``, with columns ``id``, ``text``, ``metadata`` (JSON) and ``vector``,
            which `SearchIndex.build` takes back; or ``NAME.faiss``, a flat inner-product index,
            beside which ``NAME.ids.json`` lists the ids in the order of its rows.

    Returns:
        The files.

    Raises:
        InputError: Another name, or no index.
        DamagedIndex: The index is damaged.
        MissingDependency: Parquet without pyarrow.
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
            raise InputError(f"{path} lies in the index itself; choose another place for the file")
        with storage_errors(target):
            return writers[target.suffix.lower()](view, target)
    finally:
        view.close()


def _write_parquet(view: View, path: Path) -> tuple[Path, ...]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingDependency("Parquet files need pyarrow: pip install pyarrow") from error
    dim = view.manifest.encoder.dim
    schema = pyarrow.schema(
        [
            ("id", pyarrow.string()),
            ("text", pyarrow.string()),
            ("metadata", pyarrow.string()),
            ("vector", pyarrow.list_(pyarrow.float32(), dim)),
        ]
    )
    with (
        staged_file(path) as staged,
        pyarrow.parquet.ParquetWriter(staged, schema, compression="zstd") as writer,
    ):
        for documents, vectors in _parts(view):
            columns = [
                pyarrow.array([one.id for one in documents], pyarrow.string()),
                pyarrow.array([one.text for one in documents], pyarrow.string()),
                pyarrow.array(
                    [json.dumps(dict(one.metadata), ensure_ascii=False) for one in documents],
                    pyarrow.string(),
                ),
                pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(vectors.reshape(-1)), dim),
            ]
            writer.write_batch(pyarrow.record_batch(columns, schema=schema))
    return (path,)


def _write_faiss(view: View, path: Path) -> tuple[Path, ...]:
    beside = path.with_suffix(".ids.json")
    with staged_file(path) as staged, staged_file(beside) as staged_ids:
        pools = (vectors for _, vectors in _parts(view))
        write_plain_index(staged, pools, view.manifest.encoder.dim)
        ids = [document.id for document in view.documents()]
        staged_ids.write_text(json.dumps(ids, ensure_ascii=False) + "\n", encoding="utf-8")
    return path, beside


def _parts(view: View) -> Iterator[tuple[list[Document], Vectors]]:
    """Documents with their vectors, part by part in the order of the index."""
    for segment in view.segments:
        live = np.flatnonzero(segment.mask())
        for start in range(0, len(live), _ROWS_A_STEP):
            rows = live[start : start + _ROWS_A_STEP]
            documents = segment.documents.at(rows.tolist())
            yield [documents[row] for row in rows.tolist()], segment.vectors.at(rows)
