"""What runs on a GPU, by a stand-in for a faiss that has one: the real one, which counts."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from segment_cases import made, random_rows, unit32

from sbertkit.index import gpu
from sbertkit.index.faiss_library import load_faiss


class _WithGpu:
    """faiss as it is built for GPUs, whose work the CPU does."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self._faiss = load_faiss()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._faiss, name)

    def get_num_gpus(self) -> int:
        return 1

    def StandardGpuResources(self) -> str:  # noqa: N802  # as faiss has it
        return "resources"

    def index_cpu_to_all_gpus(self, index: Any) -> Any:
        self.calls.append("index_cpu_to_all_gpus")
        return index

    def knn_gpu(self, resources: str, *arguments: Any, metric: int) -> Any:
        assert resources == "resources"
        self.calls.append("knn_gpu")
        return self._faiss.knn(*arguments, metric=metric)

    def Kmeans(self, *arguments: Any, gpu: bool, **options: Any) -> Any:  # noqa: N802
        self.calls.append(f"Kmeans gpu={gpu}")
        return self._faiss.Kmeans(*arguments, **options)


@pytest.fixture
def with_gpu(monkeypatch: pytest.MonkeyPatch) -> _WithGpu:
    stand_in = _WithGpu()
    for module in ("gpu", "kinds.ivfpq", "vector_search"):
        monkeypatch.setattr(f"sbertkit.index.{module}.load_faiss", lambda: stand_in)
    return stand_in


def test_a_gpu_trains_and_assigns_and_searches_batches(
    tmp_path: Path, with_gpu: _WithGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, queries = random_rows(2_000), unit32(random_rows(20, seed=1))
    search = made(tmp_path, rows, "ivfpq")
    assert with_gpu.calls == ["Kmeans gpu=True", "index_cpu_to_all_gpus"]
    assert {path.suffix for path in tmp_path.iterdir()} == {".npy", ".json"}
    with_gpu.calls.clear()
    few = search.search(queries, 5, exact=True)
    assert with_gpu.calls == []  # too small to be copied there
    monkeypatch.setattr(gpu, "_MIN_PRODUCTS", 1)
    many = search.search(queries, 5, exact=True)
    assert with_gpu.calls == ["knn_gpu"]
    np.testing.assert_array_equal(few.rows, many.rows)
    search.search(queries, 2_000, exact=True)
    monkeypatch.setattr(gpu, "_MAX_GPU_HITS", 100)
    with_gpu.calls.clear()
    search.search(queries, 2_000, exact=True)
    assert with_gpu.calls == []


@pytest.mark.parametrize("without", ["class", "device"])
def test_without_a_gpu_the_cpu_does_all(monkeypatch: pytest.MonkeyPatch, without: str) -> None:
    plain = SimpleNamespace(get_num_gpus=lambda: 0)
    if without == "device":
        plain.StandardGpuResources = None
    monkeypatch.setattr(gpu, "load_faiss", lambda: plain)
    assert gpu.gpu_count() == 0
    index = object()
    assert gpu.on_gpus(index) is index
