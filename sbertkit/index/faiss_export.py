"""A plain faiss index, for programs that know nothing of sbertkit."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from sbertkit.arrays import Vectors
from sbertkit.index.faiss_library import load_faiss


def write_flat_index(path: Path, pools: Iterable[Vectors], dim: int) -> None:
    """Writes unit vectors as faiss's ``IndexFlatIP``, whose inner products are their cosines.

    Args:
        path: The file.
        pools: Arrays (n, dim); a row's place is its number in faiss.
        dim: Size of a vector.
    """
    faiss = load_faiss()
    index = faiss.IndexFlatIP(dim)
    for pool in pools:
        index.add(np.ascontiguousarray(pool))
    with path.open("wb") as file:
        faiss.write_index(index, faiss.PyCallbackIOWriter(file.write))
