"""The index as one sees it: encoder, vector segments and documents behind one object."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType

import numpy as np
import numpy.typing as npt

from sbertkit.arguments import output_folder, path_text, whole_number
from sbertkit.data import Document, ReadOptions, repair_surrogates
from sbertkit.encoder import Encoder
from sbertkit.errors import InputError, InputTypeError, UnknownId
from sbertkit.retrieval.build import BuildOptions, Corpus, build_index
from sbertkit.retrieval.inspection import describe, verify_index
from sbertkit.retrieval.manifest import Manifest
from sbertkit.retrieval.opening import (
    Segment,
    check_encoder,
    close_segments,
    load_encoder,
    open_segments,
)
from sbertkit.retrieval.queries import Query, QueryEncoder, query_vectors
from sbertkit.retrieval.results import Hit, IndexInfo, Problem

Vectors = npt.NDArray[np.float32]

_MODES = ("dense",)


class SearchIndex:
    """An index folder opened for search; made by `SearchIndex.build` or `SearchIndex.open`.

    It keeps the view of the moment it was opened, also while another process builds anew.

    Attributes:
        path: The folder.
        encoder: The encoder that queries go through.
    """

    def __init__(
        self, path: Path, encoder: Encoder, manifest: Manifest, segments: Sequence[Segment]
    ) -> None:
        self.path = path
        self.encoder = encoder
        self._manifest = manifest
        self._segments = tuple(segments)
        self._queries = QueryEncoder(encoder)
        self._closed = False

    @classmethod
    def build(
        cls,
        corpus: Corpus,
        encoder: Encoder | Callable[[], Encoder],
        path: str | os.PathLike[str],
        *,
        kind: str = "auto",
        recall: float = 0.95,
        clusters: int | None = None,
        read: ReadOptions = ReadOptions(),  # noqa: B008  # frozen
        progress: bool = False,
        with_encoder: bool = True,
        resume: bool = False,
    ) -> "SearchIndex":
        """An index over a corpus, built at `path` in one step and opened.

        An index that is there already is replaced; until the last moment, and after any failure, it
        stays as it was. Blank documents are left out with a warning.

        Args:
            corpus: A path (see `sbertkit.data.read_corpus`) or an iterable of `Document`, of
                mappings with ``id`` and ``text``, or of pairs ``(id, text)``.
            encoder: The encoder, or a function that loads it, which is called after all documents
                have been read and accepted.
            path: The index folder: new, empty or an sbertkit index.
            kind: ``flat``, ``hnsw``, ``ivf``, or ``auto``: flat up to 50,000 documents, then hnsw.
            recall: The recall@10 against exhaustive search that is wanted; kept for tuning.
            clusters: Clusters of kind ``ivf``; by default chosen by the number of documents.
            read: How the corpus is read.
            progress: Show progress on standard error.
            with_encoder: Put the encoder into the folder as one graph, where it can be exported, so
                that `open` and queries need neither the model nor torch.
            resume: Go on with what a killed build at `path` has encoded, if there is any, and keep
                what this one has encoded if it is interrupted.

        Raises:
            InputError: The corpus, the path or an argument is refused.
            StorageError: The disk is full, a permission is missing, or another process writes.
        """
        options = BuildOptions(kind, recall, clusters, read, progress, with_encoder, resume)
        loaded: list[Encoder] = []

        def load() -> Encoder:
            loaded.append(_checked(encoder if isinstance(encoder, Encoder) else encoder()))
            return loaded[0]

        if not callable(encoder):
            _checked(encoder)
        build_index(corpus, load, output_folder(path), options)
        return cls.open(path, loaded[0])

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        encoder: Encoder | None = None,
        *,
        model: str | None = None,
        device: str = "auto",
        trust_remote_code: bool = False,
    ) -> "SearchIndex":
        """The index of a folder, its files checked against their SHA-256 before any is parsed.

        Above 1 GiB the memory-mapped vectors have only their size checked; `verify` hashes them.

        Args:
            path: The index folder.
            encoder: The encoder for queries; ``None`` takes the one that the index carries, on the
                CPU, or loads the one that it names.
            model: Where that encoder is now, if not where the index says; it is loaded.
            device: Where to run an encoder that is loaded.
            trust_remote_code: Run Python code that comes with its model.

        Raises:
            MissingFile: There is no such folder.
            InputError: The folder is no index.
            DamagedIndex: A file is missing, cut or changed.
            NewerFormat: A newer sbertkit wrote it.
            ModelMismatch: The encoder is not the one that built the index.
            StorageError: A file cannot be read.
        """
        root = Path(path_text(path)).absolute()
        if encoder is not None:
            _checked(encoder)
        manifest, segments = open_segments(root)
        try:
            if encoder is None:
                encoder = load_encoder(
                    root,
                    manifest,
                    model=model,
                    device=device,
                    trust_remote_code=trust_remote_code,
                )
            check_encoder(root, manifest.encoder, encoder)
        except BaseException:
            close_segments(segments)
            raise
        return cls(root, encoder, manifest, segments)

    def search(
        self, query: Query, k: int = 10, *, mode: str = "dense", exact: bool = False
    ) -> list[Hit]:
        """The `k` best documents for a query, best first; fewer where the index has fewer.

        Args:
            query: A text, or a vector (dim,).
            k: How many, from 1.
            mode: ``dense``: by the cosine of the vectors.
            exact: Compare with every vector, whatever the kind of index.

        Raises:
            InputError: A blank query, `k` below 1, a vector of the wrong size or without direction.
            InputTypeError: `k` is no whole number, or the query neither text nor vector.
        """
        return self.search_batch([query], k, mode=mode, exact=exact)[0]

    def search_batch(
        self,
        queries: Sequence[Query] | Vectors,
        k: int = 10,
        *,
        mode: str = "dense",
        exact: bool = False,
    ) -> list[list[Hit]]:
        """The hits of each query, in the order of the queries; see `search`."""
        k = whole_number("k", k)
        if mode not in _MODES:
            raise InputError(f"mode must be one of {', '.join(_MODES)}, not {mode!r}")
        self._check_open()
        vectors = query_vectors(queries, self._queries)
        if not len(vectors):
            return []
        found = [segment.vectors.search(vectors, k, exact=exact) for segment in self._segments]
        return [
            self._best(
                [(place, rows.rows[query], rows.scores[query]) for place, rows in enumerate(found)],
                k,
            )
            for query in range(len(vectors))
        ]

    def get(self, document_id: str) -> Document:
        """The document of an id.

        Raises:
            UnknownId: There is none.
            InputTypeError: The id is no str.
        """
        if not isinstance(document_id, str):
            raise InputTypeError(f"an id must be a str, not {document_id!r}")
        self._check_open()
        for segment in self._segments:
            document = segment.documents.get(repair_surrogates(document_id))
            if document is not None:
                return document
        raise UnknownId(f"the index {self.path} has no document with the id {document_id!r}")

    def sample(self, count: int, seed: int = 0) -> tuple[list[str], Vectors]:
        """Ids and vectors (n, dim) of documents drawn at random, each once; all where fewer.

        Raises:
            InputError: A count below 1.
        """
        count = min(whole_number("count", count), len(self))
        self._check_open()
        drawn = np.sort(np.random.default_rng(seed).choice(len(self), count, replace=False))
        ids: list[str] = []
        parts = []
        start = 0
        for segment in self._segments:
            end = start + len(segment.vectors)
            rows = drawn[(start <= drawn) & (drawn < end)] - start
            documents = segment.documents.at(rows.tolist())
            ids += [documents[row].id for row in rows.tolist()]
            parts.append(segment.vectors.at(rows))
            start = end
        return ids, np.concatenate(parts)

    def sizes(self) -> dict[str, int]:
        """Bytes of the files of all segments, by the name of the file."""
        sizes: dict[str, int] = {}
        for entry in self._manifest.files():
            name = Path(entry.path).name
            sizes[name] = sizes.get(name, 0) + entry.bytes
        return sizes

    def __repr__(self) -> str:
        info = self.info()
        return f"SearchIndex({str(self.path)!r}, {info.kind}, {info.documents} documents)"

    def __len__(self) -> int:
        return self._manifest.documents

    def info(self) -> IndexInfo:
        """What the index holds."""
        return describe(self._manifest)

    def verify(self) -> tuple[Problem, ...]:
        """What is wrong with the folder's files now; empty when nothing is."""
        return verify_index(self.path)

    def close(self) -> None:
        """Frees the files; the index cannot be searched any more."""
        close_segments(self._segments)
        self._segments = ()
        self._closed = True

    def __enter__(self) -> "SearchIndex":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _check_open(self) -> None:
        if self._closed:
            raise InputError(f"the index {self.path} was closed; open it again")

    def _best(
        self, found: Sequence[tuple[int, npt.NDArray[np.int64], Vectors]], k: int
    ) -> list[Hit]:
        """One query's hits from the rows and scores of each segment."""
        ranked = sorted(
            (
                (-float(score), place, int(row))
                for place, rows, scores in found
                for row, score in zip(rows, scores, strict=True)
            )
        )[:k]
        documents = [
            segment.documents.at([row for _, owner, row in ranked if owner == place])
            for place, segment in enumerate(self._segments)
        ]
        hits = []
        for negative, place, row in ranked:
            document = documents[place][row]
            hits.append(Hit(document.id, -negative, document.text, document.metadata))
        return hits


def _checked(encoder: object) -> Encoder:
    if not isinstance(encoder, Encoder):
        raise InputTypeError(
            f"expected an Encoder, found {type(encoder).__name__}; load one with Encoder.load(name)"
        )
    return encoder
