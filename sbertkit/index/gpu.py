"""Where faiss runs on GPUs: training, assignment to clusters, and exhaustive search of batches.

What is stored is always the form for the CPU. Without a GPU, or with a faiss that was built without
it, everything here does what the CPU does.
"""

from typing import Any

from sbertkit.arrays import Vectors
from sbertkit.index.faiss_library import load_faiss

_MIN_PRODUCTS = 2**28
"""Products of numbers below which copying the vectors to a GPU takes longer than the search."""

_MAX_GPU_HITS = 2_048
"""What faiss finds on a GPU at most."""


def gpu_count() -> int:
    """How many GPUs faiss can use."""
    faiss = load_faiss()
    # A build without GPUs lacks the class; one without a driver counts none.
    return int(faiss.get_num_gpus()) if hasattr(faiss, "StandardGpuResources") else 0


def on_gpus(index: Any) -> Any:
    """The index on all GPUs, or itself where there are none."""
    return load_faiss().index_cpu_to_all_gpus(index) if gpu_count() else index


def nearest(queries: Vectors, vectors: Vectors, wanted: int) -> tuple[Any, ...]:
    """The greatest inner products (q, wanted) of queries and vectors, and their rows.

    Args:
        queries: Rows (q, dim) float32.
        vectors: Rows (n, dim) float32.
        wanted: How many, up to n.
    """
    faiss = load_faiss()
    metric = faiss.METRIC_INNER_PRODUCT
    products = len(queries) * vectors.size
    if products >= _MIN_PRODUCTS and wanted <= _MAX_GPU_HITS and gpu_count():
        resources = faiss.StandardGpuResources()
        return tuple(faiss.knn_gpu(resources, queries, vectors, wanted, metric=metric))
    return tuple(faiss.knn(queries, vectors, wanted, metric=metric))
