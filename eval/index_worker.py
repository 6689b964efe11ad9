"""Builds and searches one vector index on request: python index_worker.py SYSTEM FOLDER CORPUS.

SYSTEM is a key of `SYSTEMS`, or ``sbertkit KIND RECALL``. FOLDER holds the corpus as CORPUS.npy and
CORPUS.txt, and queries.npy; indexes are kept in it. Each line of standard input is a JSON list of a
method of `Worker` and its arguments, each line of output its result. All libraries get two threads.
"""

import json
import os
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

THREADS = 2
for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS"):
    os.environ[_variable] = str(THREADS)  # before any library is loaded

import numpy as np  # noqa: E402

K = 10
_EF = (16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
_PROBES_AND_CANDIDATES = tuple(
    (probes, candidates)
    for probes in (32, 48, 64, 80, 96, 128, 160, 192)
    for candidates in (80, 120, 200, 400)
)
_RESCORED_AT_ONCE = 64
_WARM, _WARM_SINGLE = 256, 20
"""Queries before those that are timed: the first find everything cold."""


class System:
    """A library; each search gives the rows (q, K) of the nearest vectors.

    Attributes:
        settings: What a search can be given, from fast to exact.
        is_peer: Whether it is installed in the environment of the peers, else in sbertkit's.

    Args:
        folder: Where its index is kept.
        vectors: Unit rows (n, dim).
    """

    settings: Sequence[Any] = ()
    is_peer: ClassVar[bool] = True
    index: Any

    def __init__(self, folder: Path, vectors: Any) -> None:
        self.file = folder / "index"
        self.vectors = vectors
        self.dim = vectors.shape[1]

    def build(self) -> None:
        """Makes the index in memory."""
        raise NotImplementedError

    def save(self) -> None:
        """Writes it."""
        raise NotImplementedError

    def open(self) -> None:
        """Reads it."""
        raise NotImplementedError

    def search(self, queries: Any, setting: Any) -> Any:
        """Rows (q, K)."""
        raise NotImplementedError

    def bytes(self) -> int:
        """Those of the index, without the stored vectors, which are a file of their own."""
        return self.file.stat().st_size


class Hnswlib(System):
    """Defaults of its README: M 16, ef_construction 200."""

    settings = _EF

    def build(self) -> None:
        """See `System`."""
        import hnswlib  # type: ignore[import-untyped]  # in its own environment

        self.index = hnswlib.Index(space="ip", dim=self.dim)
        self.index.init_index(max_elements=len(self.vectors), M=16, ef_construction=200)
        self.index.add_items(self.vectors, num_threads=THREADS)

    def save(self) -> None:
        """See `System`."""
        self.index.save_index(str(self.file))

    def open(self) -> None:
        """See `System`."""
        import hnswlib

        self.index = hnswlib.Index(space="ip", dim=self.dim)
        self.index.load_index(str(self.file))

    def search(self, queries: Any, setting: Any) -> Any:
        """See `System`."""
        self.index.set_ef(setting)
        return self.index.knn_query(queries, k=K, num_threads=THREADS)[0]


class Usearch(System):
    """Its defaults, which store vectors as bf16."""

    settings = _EF

    def build(self) -> None:
        """See `System`."""
        from usearch.index import Index  # type: ignore[import-not-found]  # as hnswlib

        self.index = Index(ndim=self.dim, metric="ip", dtype="bf16")
        self.index.add(np.arange(len(self.vectors)), self.vectors, threads=THREADS)

    def save(self) -> None:
        """See `System`."""
        self.index.save(str(self.file))

    def open(self) -> None:
        """See `System`."""
        from usearch.index import Index

        self.index = Index.restore(str(self.file))

    def search(self, queries: Any, setting: Any) -> Any:
        """See `System`."""
        self.index.expansion_search = setting
        return np.atleast_2d(self.index.search(queries, K, threads=THREADS).keys)


class Voyager(System):
    """Its defaults: M 12, ef_construction 200, float32."""

    settings = _EF

    def build(self) -> None:
        """See `System`."""
        import voyager  # type: ignore[import-not-found]  # as hnswlib

        self.index = voyager.Index(voyager.Space.Cosine, self.dim, max_elements=len(self.vectors))
        # A copy, since it takes nothing that is mapped.
        self.index.add_items(np.array(self.vectors), num_threads=THREADS)

    def save(self) -> None:
        """See `System`."""
        self.index.save(str(self.file))

    def open(self) -> None:
        """See `System`."""
        import voyager

        self.index = voyager.Index.load(str(self.file))

    def search(self, queries: Any, setting: Any) -> Any:
        """See `System`."""
        return self.index.query(queries, K, num_threads=THREADS, query_ef=setting)[0]


class Turbovec(System):
    """All vectors in 4 bits per number; candidates are scored again from the stored vectors."""

    settings = (10, 15, 20, 30, 40, 60, 100, 200)

    def build(self) -> None:
        """See `System`."""
        from turbovec import TurboQuantIndex  # type: ignore[import-not-found]  # as hnswlib

        self.index = TurboQuantIndex(dim=self.dim, bit_width=4)
        self.index.add(self.vectors)

    def save(self) -> None:
        """See `System`."""
        self.index.write(str(self.file))

    def open(self) -> None:
        """See `System`."""
        from turbovec import TurboQuantIndex

        self.index = TurboQuantIndex.load(str(self.file))
        self.index.prepare()

    def search(self, queries: Any, setting: Any) -> Any:
        """See `System`."""
        rows = self.index.search(queries, setting)[1]
        best = np.empty((len(queries), K), np.int64)
        for start in range(0, len(queries), _RESCORED_AT_ONCE):
            chunk = slice(start, start + _RESCORED_AT_ONCE)
            stored = self.vectors[rows[chunk]]  # (q, c, dim)
            scores = np.matmul(stored, queries[chunk, :, None])[:, :, 0]
            order = np.argsort(-scores, axis=1)[:, :K]
            best[chunk] = np.take_along_axis(rows[chunk], order, axis=1)
        return best


def _faiss() -> Any:
    """The library, whose own types do not know its search parameters."""
    import faiss

    faiss.omp_set_num_threads(THREADS)
    return faiss


class Faiss(System):
    """An index of faiss by the string of its factory."""

    is_peer = False
    factory: ClassVar[str]

    def build(self) -> None:
        """See `System`."""
        faiss = _faiss()
        self.index = faiss.index_factory(self.dim, self.factory, faiss.METRIC_INNER_PRODUCT)
        self.index.train(self.vectors)
        self.index.add(self.vectors)

    def save(self) -> None:
        """See `System`."""
        _faiss().write_index(self.index, str(self.file))

    def open(self) -> None:
        """See `System`."""
        self.index = _faiss().read_index(str(self.file))

    def search(self, queries: Any, setting: Any) -> Any:
        """See `System`."""
        return self.index.search(queries, K, params=self.parameters(setting))[1]

    def parameters(self, setting: Any) -> Any:
        """The search parameters of a setting."""
        raise NotImplementedError


class FaissHnsw(Faiss):
    """What its wiki advises where memory does not matter."""

    factory = "HNSW32"
    settings = _EF

    def parameters(self, setting: Any) -> Any:
        """See `Faiss`."""
        return _faiss().SearchParametersHNSW(efSearch=setting)


class FaissIvfPq(Faiss):
    """What its wiki advises where it does: below a million vectors, 4 to 16 times their root."""

    factory = "IVF4096,PQ192x4fs,RFlat"
    settings = tuple((probes, factor) for probes in (8, 16, 32, 64, 128, 256) for factor in (3, 10))
    """Clusters that are searched, and candidates per result that are scored again."""

    def parameters(self, setting: Any) -> Any:
        """See `Faiss`."""
        faiss = _faiss()
        probes, factor = setting
        return faiss.IndexRefineSearchParameters(
            k_factor=factor, base_index_params=faiss.SearchParametersIVF(nprobe=probes)
        )


class Sbertkit(System):
    """A kind of index of sbertkit, asked for a recall.

    The settings are what is wanted: ``rows``, as of the peers, or ``hits`` with their documents,
    both with the settings that the index has chosen; or other settings, to get rows with.

    Args:
        folder: Where its index is kept.
        vectors: Unit rows (n, dim).
        texts: The file of the texts, one per line.
        kind: Of the index.
        recall: That is asked for.
    """

    is_peer = False

    def __init__(self, folder: Path, vectors: Any, texts: Path, kind: str, recall: float) -> None:
        super().__init__(folder, vectors)
        others = _PROBES_AND_CANDIDATES if (kind, recall) == ("ivfpq", 0.99) else ()
        self.settings = ("rows", "hits", *others)
        self.texts = texts
        self.kind, self.recall = kind, recall

    def build(self) -> None:
        """See `System`."""
        from sbertkit import BuildOptions, Document, Encoder, SearchIndex

        with self.texts.open(encoding="utf-8", newline="\n") as lines:
            self.index = SearchIndex.build(
                (Document(str(row), line.rstrip("\n")) for row, line in enumerate(lines)),
                Encoder.load("all-MiniLM-L6-v2", device="cpu"),
                self.file,
                kind=self.kind,
                recall=self.recall,
                with_encoder=False,
                long="truncate",
                lexical=False,
                options=BuildOptions(vectors=self.vectors),
            )

    def save(self) -> None:
        """It is saved."""

    def open(self) -> None:
        """See `System`."""
        from sbertkit import SearchIndex

        self.index = SearchIndex.open(self.file)

    def search(self, queries: Any, setting: Any) -> Any:
        """See `System`."""
        if setting != "hits":
            from sbertkit.index.kinds.base import SearchSettings

            with self.index._current.used() as view:
                search = view.vectors
                if setting != "rows":
                    search = search.with_settings(SearchSettings(*setting))
                return search.search(queries, K).rows
        if len(queries) == 1:
            found = [self.index.search(queries[0], K, mode="dense")]
        else:
            found = self.index.search_batch(queries, K, mode="dense")
        return np.array([[int(hit.id) for hit in hits] for hits in found])

    def bytes(self) -> int:
        """See `System`; documents are left out as well."""
        beside = ("vectors.npy", "documents.db", "fields.db", "queries.npy")
        return sum(size for name, size in self.index.sizes().items() if name not in beside)


SYSTEMS: dict[str, type[System]] = {
    "hnswlib": Hnswlib,
    "usearch": Usearch,
    "voyager": Voyager,
    "turbovec": Turbovec,
    "faiss HNSW32": FaissHnsw,
    "faiss IVF4096,PQ192x4fs,RFlat": FaissIvfPq,
}


class Worker:
    """A system on request."""

    def __init__(self, system: str, work: Path, corpus: str) -> None:
        self._folder = work / f"indexes-{corpus}" / system.replace(" ", "-").replace(",", "_")
        self._queries = np.load(work / "queries.npy")
        vectors = np.asarray(np.load(work / f"{corpus}.npy", mmap_mode="r"))
        if system in SYSTEMS:
            self._system = SYSTEMS[system](self._folder, vectors)
        else:
            _, kind, recall = system.split()
            texts = work / f"{corpus}.txt"
            self._system = Sbertkit(self._folder, vectors, texts, kind, float(recall))

    def settings(self) -> Sequence[Any]:
        """Those of the system."""
        return self._system.settings

    def build(self) -> dict[str, Any]:
        """Builds and saves the index: its seconds, without saving, and bytes; or the refusal."""
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(parents=True)
        started = time.perf_counter()
        try:
            self._system.build()
        except ValueError as error:
            return {"refused": str(error)}
        seconds = time.perf_counter() - started
        self._system.save()
        return {"seconds": round(seconds, 2), "bytes": self._system.bytes()}

    def open(self) -> None:
        """Opens the index, which is built where it is missing."""
        if not self._system.file.exists():
            self.build()
        self._system.open()

    def rows(self, setting: Any) -> list[list[int]]:
        """The rows that all queries find."""
        found: list[list[int]] = np.asarray(self._system.search(self._queries, setting)).tolist()
        return found

    def batch(self, setting: Any) -> float:
        """Seconds for all queries at once, after some that are not counted."""
        self._system.search(self._queries[:_WARM], setting)
        started = time.perf_counter()
        self._system.search(self._queries, setting)
        return time.perf_counter() - started

    def single(self, setting: Any, count: int) -> float:
        """The median of the seconds of so many queries, one after another, after some others."""
        for row in range(count, count + _WARM_SINGLE):
            self._system.search(self._queries[row : row + 1], setting)
        seconds = []
        for row in range(count):
            started = time.perf_counter()
            self._system.search(self._queries[row : row + 1], setting)
            seconds.append(time.perf_counter() - started)
        return float(np.median(seconds))

    def info(self) -> dict[str, Any]:
        """What an index of sbertkit says about its recall."""
        known: dict[str, Any] = self._system.index.info().to_dict()
        return known["measured"] or {}


def main() -> None:
    """Reads what to do and does it."""
    system, work, corpus = sys.argv[1:]
    worker = Worker(system, Path(work), corpus)
    for line in sys.stdin:
        name, *given = json.loads(line)
        print(json.dumps(getattr(worker, name)(*given)), flush=True)


if __name__ == "__main__":
    main()
