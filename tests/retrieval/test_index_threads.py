"""One encoder and one index, shared by threads and by a forked process."""

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from index_cases import documents

from sbertkit import Encoder, SearchIndex
from sbertkit.encoder.backends import streams
from sbertkit.encoder.backends.first_use import FirstUse
from sbertkit.retrieval.query_encoder import QueryEncoder

CORPUS = documents(300)
QUERIES = [text for _, text in documents(200, "query")]
THREADS = 8
BACKENDS = ["torch", "onnx", *(["openvino"] if find_spec("openvino") else [])]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", ["flat", "hnsw"])
def test_threads_get_the_answers_of_one_thread(
    tiny_bert: Path, tmp_path: Path, backend: str, kind: str
) -> None:
    encoder = Encoder.load(tiny_bert, pooling="mean", device="cpu", backend=backend)
    with SearchIndex.build(CORPUS, encoder, tmp_path / "index", kind=kind) as index:
        expected = {query: index.search(query) for query in QUERIES}
    with SearchIndex.open(tmp_path / "index", encoder) as index:  # which remembers no query yet
        begin = threading.Barrier(THREADS)

        def ask(number: int) -> int:
            begin.wait()
            order = np.random.default_rng(number).permutation(len(QUERIES))
            return sum(index.search(QUERIES[row]) == expected[QUERIES[row]] for row in order)

        with ThreadPoolExecutor(THREADS) as threads:
            assert list(threads.map(ask, range(THREADS))) == [len(QUERIES)] * THREADS


def test_threads_that_encode_lists_get_what_one_gets(tiny_bert: Path) -> None:
    encoder = Encoder.load(tiny_bert, pooling="mean", device="cpu", backend="onnx")
    lists = [[f"{number} {query}" for query in QUERIES] for number in range(THREADS)]
    expected = [encoder.encode(texts) for texts in lists]
    fresh = Encoder.load(tiny_bert, pooling="mean", device="cpu", backend="onnx")
    with ThreadPoolExecutor(THREADS) as threads:
        for found, wanted in zip(threads.map(fresh.encode, lists), expected, strict=True):
            np.testing.assert_array_equal(found, wanted)


def test_batches_never_use_more_cores_than_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "usable_cores", lambda: 3)
    monkeypatch.setattr(streams, "_cores", streams._Cores())
    lock, running, most = threading.Lock(), 0, 0

    def run(cores: int) -> None:
        def run_one(_: object) -> None:
            nonlocal running, most
            with lock:
                running += cores
                most = max(most, running)
            threading.Event().wait(0.001)
            with lock:
                running -= cores

        plan = [np.array([row]) for row in range(20)]
        streams.run_streams(run_one, plan, streams.Streams(4, cores), FirstUse())

    with ThreadPoolExecutor(THREADS) as threads:
        list(threads.map(run, [1, 2, 3, 1, 2, 3, 1, 1]))
    assert most == 3


@pytest.mark.parametrize(
    ("wanted", "cores"), [("1", 1), ("100000", None), ("", None), ("0", None), ("2,1", None)]
)
def test_the_cores_are_those_of_the_process_or_as_many_as_openmp_may_use(
    monkeypatch: pytest.MonkeyPatch, wanted: str, cores: int | None
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", wanted)
    monkeypatch.setattr(streams, "quota_cores", lambda: None)
    all_cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert streams.usable_cores() == (cores or all_cores)


FORKING = """
import os, sys, signal
from sbertkit import Encoder, SearchIndex

model, place, backend, kind = sys.argv[1:]
encoder = Encoder.load(model, pooling="mean", device="cpu", backend=backend)
corpus = [(str(row), f"text {row} " * (row % 9 + 1)) for row in range(400)]
index = SearchIndex.build(corpus, encoder, place, kind=kind)
texts = [f"one more text {row}" for row in range(500)]
vectors, hits = encoder.encode(texts), index.search_batch(texts[:40])
child = os.fork()
if not child:
    signal.alarm(60)
    texts = texts + ["not yet seen"]
    same = abs(encoder.encode(texts)[:-1] - vectors).max() < 1e-5
    again = SearchIndex.open(place, encoder)
    same &= [[hit.id for hit in found] for found in again.search_batch(texts[:40])] == [
        [hit.id for hit in found] for found in hits
    ]
    os._exit(0 if same else 1)  # as the workers of multiprocessing do
status = os.waitpid(child, 0)[1]
print(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", ["flat", "hnsw", "ivf"])
def test_a_forked_process_continues(
    tiny_bert: Path, tmp_path: Path, backend: str, kind: str
) -> None:
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("OMP_NUM_THREADS", "TOKENIZERS_PARALLELISM")
    }
    done = subprocess.run(
        [sys.executable, "-c", FORKING, str(tiny_bert), str(tmp_path / "index"), backend, kind],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout == "0\n", done.stderr


def test_queries_are_remembered_and_the_oldest_forgotten(
    tiny_encoder: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []
    encode = tiny_encoder.encode

    def noting(texts: list[str], kind: Any) -> npt.NDArray[np.float32]:
        asked.append(texts)
        return encode(texts, kind=kind)

    monkeypatch.setattr(tiny_encoder, "encode", noting)
    queries = QueryEncoder(tiny_encoder, cached=3)
    first = queries.encode(["a", "b", "a"])
    np.testing.assert_array_equal(queries.encode(["b", "a"]), first[[1, 2]])
    queries.encode(["c", "d"])  # forgets b, which was used before a
    queries.encode(["a", "c", "d"])
    queries.encode(["b"])
    assert asked == [["a", "b"], ["c", "d"], ["b"]]
    many = [f"text {number}" for number in range(10)]
    np.testing.assert_allclose(queries.encode(many), encode(many, kind="query"), atol=1e-5)
    assert len(queries._vectors) == 3
    assert queries.encode([]).shape == (0, tiny_encoder.dim)
