"""The search index: encoder, vector segments and documents behind one object."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import numpy as np

from sbertkit.arguments import output_folder, path_text, whole_number
from sbertkit.arrays import Vectors
from sbertkit.encoder.long_options import DEFAULT_LONG
from sbertkit.errors import InputError, InputTypeError, UnknownId
from sbertkit.lazy import LazyFunction
from sbertkit.lexical.matcher import Matcher
from sbertkit.lock import waiting
from sbertkit.reranking import RERANK_DEPTH
from sbertkit.retrieval.current_view import CurrentView
from sbertkit.retrieval.filters.known_fields import FieldInfo
from sbertkit.retrieval.fusion import Fusion
from sbertkit.retrieval.hybrid_hits import HybridSearch
from sbertkit.retrieval.inspection import describe, index_fields, index_info, verify_index
from sbertkit.retrieval.lexical_hits import LexicalLeg
from sbertkit.retrieval.manifest import Manifest, read_manifest
from sbertkit.retrieval.matched import matcher_of, note_matched
from sbertkit.retrieval.modes import (
    DENSE,
    HIT_CHOICES,
    HYBRID,
    LEXICAL,
    PASSAGES,
    checked_mode,
    mode_taken,
)
from sbertkit.retrieval.opening import (
    check_encoder,
    load_encoder,
    open_view,
    open_with_encoder,
)
from sbertkit.retrieval.query_encoder import (
    Query,
    QueryEncoder,
    are_texts,
    listed,
    query_texts,
    query_vectors,
)
from sbertkit.retrieval.rerank import (
    LoadedReranker,
    Rerank,
    Reranking,
    note_stage,
)
from sbertkit.retrieval.results import Changes, Hit, IndexInfo, Problem
from sbertkit.retrieval.view import View, Wanted

# What only some calls need is imported by them, so that a first search starts at once.
if TYPE_CHECKING:
    from sbertkit.data import Document, ReadOptions
    from sbertkit.encoder import Encoder
    from sbertkit.retrieval.build import BuildOptions
    from sbertkit.retrieval.corpus import Corpus
    from sbertkit.retrieval.dump import dump_index
    from sbertkit.retrieval.lexical_index import Lexical
    from sbertkit.retrieval.repair import repair_index
    from sbertkit.retrieval.tuning_queries import QueryTexts
    from sbertkit.retrieval.upgrade import upgrade_index

_DOCUMENTS_PER_CHUNK = 100


class SearchIndex:
    """An index folder opened for search; made by `SearchIndex.build` or `SearchIndex.open`.

    It keeps the view of the index at opening, also while another process writes, until `refresh` or
    a change of its own. Safe to share between threads, one of which changes it.

    Attributes:
        path: The folder.
    """

    # What needs no encoder works on the folder of an index, without opening it.
    info_at = staticmethod(index_info)
    fields_at = staticmethod(index_fields)
    verify_at = staticmethod(verify_index)
    if TYPE_CHECKING:
        repair_at = staticmethod(repair_index)
        dump_at = staticmethod(dump_index)
        upgrade_at = staticmethod(upgrade_index)
    else:
        repair_at = LazyFunction("sbertkit.retrieval.repair", "repair_index")
        dump_at = LazyFunction("sbertkit.retrieval.dump", "dump_index")
        upgrade_at = LazyFunction("sbertkit.retrieval.upgrade", "upgrade_index")

    def __init__(
        self, path: Path, encoder: "Encoder | Callable[[Manifest], Encoder]", view: View
    ) -> None:
        self.path = path
        self._load = encoder
        self._current = CurrentView(path, view)
        self._queries = None if callable(encoder) else QueryEncoder(encoder)
        self._reranker = LoadedReranker()

    def __reduce__(self) -> tuple[object, ...]:
        """A copy in another process opens the folder again, with the same encoder."""
        if self._queries is None:
            where = self._load.keywords if isinstance(self._load, partial) else {}
            return partial(SearchIndex.open, mode=LEXICAL, **where), (self.path,)
        return SearchIndex.open, (self.path, self.encoder)

    @property
    def encoder(self) -> "Encoder":
        """The encoder for queries; loaded now if the index was opened for words alone."""
        return self._dense().encoder

    @property
    def default_mode(self) -> str:
        """The mode of a search for documents by texts that names none.

        It is ``hybrid`` where the index has words that can be searched, else ``dense``.
        """
        return self._current.manifest.default_mode

    @classmethod
    def build(
        cls,
        corpus: "Corpus",
        encoder: "Encoder | Callable[[], Encoder]",
        path: str | os.PathLike[str],
        *,
        kind: str = "auto",
        recall: float = 0.95,
        memory: int | str | None = None,
        queries: "QueryTexts | None" = None,
        read: "ReadOptions | None" = None,
        with_encoder: bool | None = None,
        resume: bool = False,
        progress: bool = False,
        long: str = DEFAULT_LONG,
        lexical: "Lexical" = True,
        options: "BuildOptions | None" = None,
    ) -> "SearchIndex":
        """An index over a corpus, built at `path` in one step and opened.

        An existing index is replaced; until the last moment, and after any failure, it stays
        unchanged. Blank documents are left out with a warning.

        Args:
            corpus: A path (see `sbertkit.data.read_corpus`) or an iterable of `Document`, of
                mappings with ``id`` and ``text``, or of pairs ``(id, text)``.
            encoder: The encoder, or a function that loads it, which is called after all documents
                have been read and accepted.
            path: The index folder: new, empty or an sbertkit index.
            kind: ``flat``, ``hnsw``, ``ivf``, ``ivfpq``, ``factory``, or ``auto``: flat up to
                50,000 vectors, then ivfpq.
            recall: The recall@10 against exhaustive search that the index is tuned to reach; the
                lower bound of its mean does. 1.0 is exhaustive search.
            memory: Bytes that a search may have in memory, without the encoder, or a text such as
                ``2GB``; the index is made as small. ``None``: any.
            queries: Queries to tune with, which should be like those to come: a file or texts.
                ``None``: parts of documents.
            read: How the corpus is read.
            with_encoder: Bundle the encoder into the folder as one ONNX model, so that `open` and
                queries need neither the model nor torch. ``None``: if it can be exported, else
                with a warning; ``True``: refuse an encoder that cannot, before anything is encoded.
            resume: Continue a build at `path` that was interrupted, if there is one, and keep what
                this one has encoded if it is interrupted.
            progress: Show progress on standard error.
            long: What is done with texts longer than the encoder's limit: ``passages`` gives each
                of their passages a vector, and a hit the nearest one; ``mean`` gives the text the
                mean of these vectors; ``truncate`` leaves out what is beyond the limit.
            lexical: Whether documents can be searched by their words, too; `LexicalOptions` say in
                which language, which is else detected, and how words score.
            options: What only some builds need.

        Raises:
            InputError: The corpus, the path or an argument is refused.
            ModelMismatch: Given vectors are not the encoder's.
            StorageError: The disk is full, a permission is missing, or another process writes.
        """
        from sbertkit.data import ReadOptions
        from sbertkit.retrieval.build import BuildOptions, IndexBuild

        options = BuildOptions() if options is None else options
        build = IndexBuild(
            kind,
            recall,
            memory,
            queries,
            ReadOptions() if read is None else read,
            with_encoder,
            resume,
            progress,
            long,
            lexical,
            options,
        )
        load = encoder if callable(encoder) else partial(_checked, encoder)
        if not callable(encoder):
            _checked(encoder)
        with waiting(options.timeout):
            root = output_folder(path)
            loaded = build.run(corpus, lambda: _checked(load()), root)
        return cls.open(root, loaded)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        encoder: "Encoder | None" = None,
        *,
        model: str | None = None,
        device: str = "auto",
        trust_remote_code: bool = False,
        mode: str | None = None,
    ) -> "SearchIndex":
        """The index of a folder, its files checked against their SHA-256 before any is parsed.

        Above 1 GiB the memory-mapped vectors have only their size checked; `verify` hashes them.

        Args:
            path: The index folder.
            encoder: The encoder for queries; ``None`` takes the bundled one, on the CPU, or loads
                the one that the index names.
            model: Where that encoder is now, if not where the index names it; it is loaded.
            device: Where to run an encoder that is loaded.
            trust_remote_code: Run Python code that comes with its model.
            mode: ``lexical`` opens neither vectors nor encoder until they are first needed.

        Raises:
            MissingFile: There is no such folder.
            InputError: The folder is no index.
            DamagedIndex: A file is missing, truncated or changed.
            NewerFormat: A newer sbertkit wrote it.
            ModelMismatch: The encoder is not the one that built the index.
            StorageError: A file cannot be read.
        """
        root = Path(path_text(path)).absolute()
        if mode is not None:
            checked_mode(mode)
        if encoder is not None:
            given = _checked(encoder)
            view, encoder = open_with_encoder(root, lambda _: given)
            return cls(root, encoder, view)
        load = partial(
            load_encoder, root, model=model, device=device, trust_remote_code=trust_remote_code
        )
        if mode == LEXICAL:
            return cls(root, load, open_view(root, vectors=False))
        from sbertkit.retrieval.bundled_encoder import import_runtime

        bundled = model is None and device in ("auto", "cpu")
        view, encoder = open_with_encoder(root, load, import_runtime if bundled else None)
        return cls(root, encoder, view)

    def search(
        self,
        query: Query,
        k: int = 10,
        *,
        mode: str | None = None,
        exact: bool = False,
        hits: str = "documents",
        filter: str | None = None,  # noqa: A002  # what the field calls it
        rerank: "Rerank | None" = None,
        rerank_depth: int = RERANK_DEPTH,
        fusion: Fusion | None = None,
        explain: bool = False,
    ) -> list[Hit]:
        """The `k` best documents for a query, best first; fewer where the index has fewer.

        A document with several passages counts by the best of them, which its hit names.

        Args:
            query: A text, or a vector (dim,).
            k: How many, from 1.
            mode: ``dense`` compares vectors; ``lexical`` finds documents by their words, also
                fewer than `k`: ``"..."`` is a phrase that they must have, and ``-`` before a word
                or a phrase leaves out those that have it; ``hybrid`` does both. ``None`` takes
                ``dense`` for a vector and for passages, else `default_mode`.
            exact: Compare with every vector, whatever the kind of index.
            hits: ``passages`` for the best passages, several of which may be of one document.
            filter: What the metadata of a hit say, such as ``lang = "en" and year >= 2020``; see
                `sbertkit.retrieval.filters.parser`.
            rerank: A `Reranker`, or the name of its model, that orders the first candidates again
                and gives hits their scores. Of a long document that was divided it reads the best
                passage, else the text, as far as its limit goes; of the query what is not left out.
            rerank_depth: How many candidates it orders; `k` where that is more.
            fusion: How the scores of vectors and words become one, of mode ``hybrid``; ``None``:
                by `Fusion`'s defaults.
            explain: Say in `Hit.plan` of each hit how it was searched for, in `Hit.stages` its
                score and rank before the re-ranker and after, and in `Hit.matched` which words of
                the query it has.

        Raises:
            InputError: A blank query, `k` below 1, a vector of the wrong size or without direction;
                of modes ``lexical`` and ``hybrid``, an index without words; of these, a query that
                only leaves out words; a fusion for another mode.
            BadFilter: The filter cannot be read, or names a field that no document has.
            InputTypeError: `k` is no whole number, or the query neither text nor vector.
        """
        if isinstance(query, list | tuple) and all(isinstance(one, str) for one in query):
            raise InputTypeError(
                f"expected one query, found a {type(query).__name__} of {len(query)}; search for "
                "several by search_batch"
            )
        return self.search_batch(
            [query],
            k,
            mode=mode,
            exact=exact,
            hits=hits,
            filter=filter,
            rerank=rerank,
            rerank_depth=rerank_depth,
            fusion=fusion,
            explain=explain,
        )[0]

    def search_batch(
        self,
        queries: Sequence[Query] | Vectors,
        k: int = 10,
        *,
        mode: str | None = None,
        exact: bool = False,
        hits: str = "documents",
        filter: str | None = None,  # noqa: A002  # what the field calls it
        rerank: "Rerank | None" = None,
        rerank_depth: int = RERANK_DEPTH,
        fusion: Fusion | None = None,
        explain: bool = False,
    ) -> list[list[Hit]]:
        """The hits of each query, in the order of the queries; see `search`."""
        if hits not in HIT_CHOICES:
            raise InputError(f"hits must be {' or '.join(HIT_CHOICES)}, not {hits!r}")
        passages = hits == PASSAGES
        k = whole_number("k", k)
        if mode is not None and checked_mode(mode) != DENSE and passages:
            raise InputError(
                f"mode {mode} searches for words in whole documents: leave hits (--hits) passages "
                "out"
            )
        if fusion is not None and not isinstance(fusion, Fusion):
            raise InputTypeError(f"fusion must be a Fusion, such as Fusion('rrf'), not {fusion!r}")
        queries = listed(queries)
        if mode is None and not are_texts(queries):
            mode = DENSE
        if mode != LEXICAL:
            self._dense()
        reranking = None
        if rerank is not None:
            reranking = Reranking(self._reranker.of(rerank), rerank_depth)
        with self._current.used() as view:
            taken = mode_taken(mode, hits, view.manifest.default_mode)
            if fusion is not None and taken != HYBRID:
                raise InputError(
                    f"fusion (--fusion, --weight) is of mode hybrid, and this search is {taken}; "
                    "leave it out"
                )
            wanted = Wanted(k, exact, passages, explain, taken)
            search = partial(self._found, view.matching(filter), fusion or Fusion())
            if reranking is not None:
                texts = query_texts(queries, "a re-ranker")
                found = reranking.search(search, texts, self._asked(view, texts, taken), wanted)
            else:
                found = search(queries, wanted)
            if explain:
                note_matched(found, queries, view.manifest.lexical)
            return found

    def matcher(self, query: str) -> Matcher:
        """Finds the words of a query in texts, as the index makes words; none if it has no words.

        Raises:
            InputTypeError: The query is no text.
        """
        if not isinstance(query, str):
            raise InputTypeError(f"query must be a text, found {type(query).__name__}")
        with self._current.used() as view:
            return matcher_of(view.manifest.lexical, query)

    def _found(
        self, view: View, fusion: Fusion, queries: Sequence[Query] | Vectors, wanted: Wanted
    ) -> list[list[Hit]]:
        """The hits of each query, not re-ranked."""
        if wanted.mode == DENSE:
            vectors = query_vectors(queries, self._dense())
            found = view.search(vectors, wanted) if len(vectors) else []
        else:
            leg = LexicalLeg(self.path, view)
            parsed = leg.parse(query_texts(queries, f"mode {wanted.mode}"))
            if wanted.mode == LEXICAL:
                found = [leg.hits(query, wanted) for query in parsed]
            else:
                vectors = query_vectors([query.text for query in parsed], self._dense())
                found = HybridSearch(leg, fusion).hits(parsed, vectors, wanted)
        if wanted.explain:
            note_stage(found, wanted.mode)
        return found

    def _asked(self, view: View, texts: Sequence[str], mode: str) -> Sequence[str]:
        """What queries ask for, without the signs of phrases and what they leave out."""
        if mode == DENSE:
            return texts
        return [query.text for query in LexicalLeg(self.path, view).parse(texts)]

    def get(self, document_id: str | int) -> "Document":
        """The document of an id.

        Raises:
            UnknownId: There is none.
            InputTypeError: The id is neither a str nor a whole number.
        """
        from sbertkit.retrieval.corpus import stored_id

        with self._current.used() as view:
            document = view.get(stored_id(document_id))
        if document is None:
            raise UnknownId(f"the index {self.path} has no document with the id {document_id!r}")
        return document

    def documents(
        self,
        filter: str | None = None,  # noqa: A002  # what the field calls it
    ) -> Iterator["Document"]:
        """All documents in the order of the index, one at a time in constant memory.

        Args:
            filter: Only those that match it; see `search`.
        """
        with self._current.used() as view:
            return self._drawn(view.matching(filter).documents())

    def count(
        self,
        filter: str | None = None,  # noqa: A002  # what the field calls it
    ) -> int:
        """Number of documents; of those that match a filter, see `search`."""
        with self._current.used() as view:
            return len(view.matching(filter))

    def fields(self) -> dict[str, FieldInfo]:
        """The fields that a filter may name, those that most documents have first."""
        with self._current.used() as view:
            return view.fields()

    def add(
        self,
        corpus: "Corpus",
        *,
        read: "ReadOptions | None" = None,
        progress: bool = False,
        timeout: float | None = None,
    ) -> Changes:
        """Adds the documents of a corpus, whose ids must be new; all or none of them.

        Changes by several threads of one process wait for each other.

        Args:
            corpus: A path or an iterable, as for `build`.
            read: How it is read.
            progress: Show progress on standard error.
            timeout: Seconds to wait for another process that writes; ``None``: not at all.

        Raises:
            InputError: A document is refused, or its id is not new or a duplicate.
            ModelMismatch: Another process has rebuilt the index with another encoder.
            StorageError: The disk is full, a permission is missing, or another process writes.
        """
        with waiting(timeout):
            return self._change(corpus, "add", read, progress)

    def upsert(
        self,
        corpus: "Corpus",
        *,
        read: "ReadOptions | None" = None,
        progress: bool = False,
        timeout: float | None = None,
    ) -> Changes:
        """Adds the documents of a corpus, or replaces those with the same ids; see `add`.

        Documents that are stored already exactly as given are left unchanged and not encoded.
        """
        with waiting(timeout):
            return self._change(corpus, "upsert", read, progress)

    def update(
        self,
        corpus: "Corpus",
        *,
        read: "ReadOptions | None" = None,
        progress: bool = False,
        timeout: float | None = None,
    ) -> Changes:
        """Makes the index hold exactly the documents of a corpus; see `upsert`.

        Only new and changed documents are encoded; those that are not in the corpus are deleted.
        """
        with waiting(timeout):
            return self._change(corpus, "update", read, progress)

    def delete(
        self,
        ids: Iterable[str | int] | None = None,
        *,
        filter: str | None = None,  # noqa: A002  # what the field calls it
        missing_ok: bool = False,
        timeout: float | None = None,
    ) -> Changes:
        """Deletes the documents of some ids, or those that match a filter; all or none of them.

        Their rows occupy disk space until `compact`, or until a later change rewrites the segment.

        Args:
            ids: The ids.
            filter: In place of ids; see `search`.
            missing_ok: Ignore unknown ids.
            timeout: Seconds to wait for another process that writes; ``None``: not at all.

        Raises:
            UnknownId: An id is unknown.
            InputError: A duplicate id.
            BadFilter: The filter cannot be read, or names a field that no document has.
            InputTypeError: Both ids and a filter, or neither.
            StorageError: The disk is full, a permission is missing, or another process writes.
        """
        from sbertkit.retrieval.changes import delete_documents

        with waiting(timeout), self._changing() as view:
            return delete_documents(
                self.path, ids, filter=filter, missing_ok=missing_ok, known=view
            )

    def compact(self, *, lexical: "Lexical | None" = None, timeout: float | None = None) -> Changes:
        """Rewrites the index as one segment without deleted documents; nothing is encoded.

        Args:
            lexical: Whether documents can be searched by their words afterwards, which are then
                made again; see `build`. ``None`` keeps what there is.
            timeout: Seconds to wait for another process that writes; ``None``: not at all.

        Raises:
            StorageError: The disk is full, a permission is missing, or another process writes.
        """
        from sbertkit.retrieval.changes import compact_index

        with waiting(timeout), self._changing() as view:
            return compact_index(self.path, lexical=lexical, known=view)

    def tune(
        self,
        recall: float | None = None,
        *,
        weight: float | str | None = None,
        kind: str | None = None,
        factory: str | None = None,
        memory: int | str | None = None,
        queries: "QueryTexts | None" = None,
        timeout: float | None = None,
    ) -> IndexInfo:
        """Makes the index reach a recall, or changes its kind or the weight of its hybrid search.

        No document is encoded again.

        Args:
            recall: The recall@10 to reach; see `build`. ``None`` leaves the vector index as it is.
            weight: The weight of vectors in hybrid search, 0 to 1, or ``auto`` to measure it with
                parts of documents; ``None`` leaves it as it is.
            kind: Another kind; ``None`` keeps the one that was asked for.
            factory: The factory string of faiss, for kind ``factory``.
            memory: Bytes in memory at most; see `build`.
            queries: Queries to measure with; see `build`. ``None``: those that are stored.
            timeout: Seconds to wait for another process that writes; ``None``: not at all.

        Returns:
            The description of the index, with the recall that was measured.

        Raises:
            InputError: The recall cannot be reached, or the weight cannot be measured; nothing is
                changed.
            StorageError: The disk is full, a permission is missing, or another process writes.
        """
        from sbertkit.retrieval.tune import tune_index

        with waiting(timeout), self._changing():
            tune_index(
                self.path,
                recall,
                lambda *_: self.encoder,
                weight=weight,
                kind=kind,
                factory=factory,
                memory=memory,
                queries=queries,
            )
        return self.info()

    def refresh(self) -> bool:
        """Loads what other processes have written since; whether there was anything.

        Raises:
            InputError: As `open`; the view is then unchanged.
        """
        with self._current.used() as view:
            return self._take_newer(view)

    def sample(self, count: int, seed: int = 0) -> tuple[list[str], Vectors]:
        """Vectors (n, dim) drawn at random, each once, and the ids of their documents.

        Raises:
            InputError: A count below 1, or a seed below 0.
        """
        self._dense()
        with self._current.used() as view:
            count = min(whole_number("count", count), view.row_count)
            generator = np.random.default_rng(whole_number("seed", seed, least=0))
            drawn = np.sort(generator.choice(view.row_count, count, replace=False))
            return view.sample(drawn)

    def sizes(self) -> dict[str, int]:
        """Bytes of the files of all segments, by the name of the file."""
        sizes: dict[str, int] = {}
        for entry in self._current.manifest.files():
            name = Path(entry.path).name
            sizes[name] = sizes.get(name, 0) + entry.bytes
        return sizes

    def __repr__(self) -> str:
        info = self.info()
        return f"SearchIndex({str(self.path)!r}, {info.kind}, {info.documents} documents)"

    def __len__(self) -> int:
        return self._current.manifest.documents

    def info(self) -> IndexInfo:
        """The description of the index."""
        return describe(self._current.manifest)

    def verify(self) -> tuple[Problem, ...]:
        """What is wrong with the folder's files now; empty if nothing is."""
        return verify_index(self.path)

    def close(self) -> None:
        """Closes the index: new searches are refused.

        Its files are closed when the last running search of another thread has finished.
        """
        self._current.close()

    def __enter__(self) -> "SearchIndex":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _change(
        self, corpus: "Corpus", mode: str, read: "ReadOptions | None", progress: bool
    ) -> Changes:
        from sbertkit.data import ReadOptions
        from sbertkit.retrieval.changes import change_documents

        with self._changing() as view:
            return change_documents(
                self.path,
                corpus,
                lambda _: self.encoder,
                mode=mode,
                read=ReadOptions() if read is None else read,
                progress=progress,
                known=view,
            )

    @contextmanager
    def _changing(self) -> Iterator[View]:
        """The newest view, which a change starts from; afterwards the view that it made is loaded.

        Raises:
            ModelMismatch: The newest is another encoder's.
        """
        self.refresh()
        with self._current.used() as view:
            yield view
            self._take_newer(view)

    def _take_newer(self, view: View) -> bool:
        """Loads the newest view; whether it is another one than this."""
        while True:  # until no other thread has loaded one meanwhile
            seen = self._current.manifest
            if read_manifest(self.path) == seen:
                return seen != view.manifest
            newer = open_view(self.path, view, vectors=self._queries is not None)
            if self._queries is not None:
                check_encoder(self.path, newer.manifest.encoder, self._queries.encoder)
            if self._current.replace(newer, seen):
                return True

    def _dense(self) -> QueryEncoder:
        """The encoder of queries, which with the vectors is loaded when first needed.

        Raises:
            InputError: As `open`.
        """
        while self._queries is None:
            seen = self._current.manifest
            view, encoder = open_with_encoder(self.path, self._encoder_of)
            if self._current.replace(view, seen):
                self._queries = QueryEncoder(encoder)
        return self._queries

    def _encoder_of(self, manifest: Manifest) -> "Encoder":
        return self._load(manifest) if callable(self._load) else self._load

    def _drawn(self, documents: Iterator["Document"]) -> Iterator["Document"]:
        """The documents, read in chunks, so that `close` need not wait for the last."""
        while True:
            with self._current.used():
                drawn = list(islice(documents, _DOCUMENTS_PER_CHUNK))
            if not drawn:
                return
            yield from drawn


def _checked(encoder: object) -> "Encoder":
    from sbertkit.encoder import Encoder

    if not isinstance(encoder, Encoder):
        raise InputTypeError(
            f"expected an Encoder, found {type(encoder).__name__}; load one with Encoder.load(name)"
        )
    return encoder
