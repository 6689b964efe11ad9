"""Building an index: stage and check every document, then encode, then commit in one step."""

import os
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

from sbertkit.arguments import parse_bytes, refuses_unknown
from sbertkit.data import ReadOptions
from sbertkit.encoder import Encoder
from sbertkit.encoder.long_options import DEFAULT_LONG, LongOptions
from sbertkit.errors import InputError, InputTypeError
from sbertkit.index.kinds.table import KindWish
from sbertkit.memory import give_back
from sbertkit.retrieval.bundled_encoder import bundle_encoder, fill_cache
from sbertkit.retrieval.corpus import Corpus, CorpusReader
from sbertkit.retrieval.document_store import DOCUMENTS_FILE, DocumentStore
from sbertkit.retrieval.encoded_vectors import EncodedVectors
from sbertkit.retrieval.fusion import checked_weight
from sbertkit.retrieval.fusion_weight import with_weight
from sbertkit.retrieval.imported_vectors import (
    Importable,
    ImportedVectors,
    own_vectors,
    without_vectors,
)
from sbertkit.retrieval.lexical_index import (
    Lexical,
    describe_words,
    lexical_options,
    with_words,
)
from sbertkit.retrieval.manifest import Manifest
from sbertkit.retrieval.manifest_entries import (
    DeclaredOptions,
    EncoderEntry,
    LexicalEntry,
    WeightEntry,
)
from sbertkit.retrieval.segment_writer import VectorSource, write_segment
from sbertkit.retrieval.trial import check_on_sample
from sbertkit.retrieval.tuning_queries import QueryTexts, read_queries, text_queries
from sbertkit.retrieval.vector_index import IndexWork
from sbertkit.retrieval.workspace import Workspace, check_target, index_lock, new_generation
from sbertkit.storage import caller_errors, made_parents, storage_errors


@refuses_unknown
@dataclass(frozen=True, slots=True)
class BuildOptions:
    """What only some builds need.

    Attributes:
        clusters: Clusters of kinds ``ivf`` and ``ivfpq``; ``None`` chooses by the number of
            vectors.
        factory: The string that faiss makes an index of, for kind ``factory``.
        vectors: The vectors of the documents, so that nothing is encoded but a few texts to
            compare: an array (n, dim) or a ``.npy`` file with a row for each document in order, or
            a Parquet file with columns ``id`` and ``vector``.
        timeout: Seconds to wait for another process that writes there; ``None``: not at all.
        overlap: Tokens of the passage before that a passage begins with, for ``long`` passages.
        weight: The weight of vectors in hybrid search, 0 to 1; ``None`` measures it with parts of
            documents.
    """

    clusters: int | None = None
    factory: str | None = None
    vectors: Importable | None = None
    timeout: float | None = None
    overlap: int = 0
    weight: float | None = None

    def __post_init__(self) -> None:
        if self.weight is not None:
            checked_weight(self.weight)


@dataclass(frozen=True, slots=True)
class IndexBuild:
    """A build; the attributes are the arguments of `SearchIndex.build`."""

    kind: str = "auto"
    recall: float = 0.95
    memory: int | str | None = None
    queries: QueryTexts | None = None
    read: ReadOptions = ReadOptions()  # noqa: RUF009  # frozen
    with_encoder: bool | None = None
    resume: bool = False
    progress: bool = False
    long: str = DEFAULT_LONG
    lexical: Lexical = True
    options: BuildOptions = BuildOptions()  # frozen

    def __post_init__(self) -> None:
        for name, kind in (("read", ReadOptions), ("options", BuildOptions)):
            if not isinstance(getattr(self, name), kind):
                raise InputTypeError(f"{name} must be {kind.__name__}, not {getattr(self, name)!r}")
        self._wish  # noqa: B018  # checked
        with_encoder: object = self.with_encoder
        if with_encoder is not None and not isinstance(with_encoder, bool):
            raise InputTypeError(f"with_encoder must be True, False or None, not {with_encoder!r}")
        self._long  # noqa: B018  # checked
        if lexical_options(self.lexical) is None and self.options.weight is not None:
            raise InputError("without words there is no hybrid search: leave weight (--weight) out")
        if self.resume and self.options.vectors is not None:
            raise InputError("with given vectors nothing is encoded: leave resume out")

    def run(self, corpus: Corpus, load: Callable[[], Encoder], path: Path) -> Encoder:
        """Builds or rebuilds the index folder; on any failure the old one stays unchanged.

        Args:
            corpus: A path or an iterable of documents.
            load: Gives the encoder; called once all documents have been read and accepted.
            path: The index folder, all links followed: new, empty or an sbertkit index.

        Returns:
            The encoder.

        Raises:
            InputError: The corpus or the path is refused.
            StorageError: The disk is full, a permission is missing or another process builds there.
        """
        check_target(path)
        with made_parents(path), index_lock(path), storage_errors(path):
            # Checked again, now that nobody else can change it.
            check_target(path)
            with new_generation(path, resume=self.resume) as workspace:
                encoder, manifest = self._write(corpus, load, workspace, path)
                workspace.sync()
                workspace.commit(manifest)
        return encoder

    def _write(
        self, corpus: Corpus, load: Callable[[], Encoder], workspace: Workspace, path: Path
    ) -> tuple[Encoder, Manifest]:
        """Writes all files of the index; gives the manifest that will name them."""
        folder = workspace.new_segment()
        queries = None if self.queries is None else read_queries(self.queries)
        reader = CorpusReader(corpus, self.read)
        documents = reader.documents
        if self.options.vectors is not None:
            documents = without_vectors(documents, self.options.vectors, reader.path)
        count = reader.stage(folder / DOCUMENTS_FILE, documents, progress=self.progress)
        if count == 0:
            raise reader.empty_corpus_error()
        # What is wrong for any size of a vector is refused before the encoder is loaded.
        self._wish.check_for(count)
        with caller_errors():
            encoder = load()
        self._check(count, encoder, folder / DOCUMENTS_FILE)
        exported = None
        if self.with_encoder is not False:  # first, since it may be refused
            required = self.with_encoder is True
            exported = bundle_encoder(encoder, workspace.root, folder.name, required=required)
        elif encoder.device == "cpu":
            fill_cache(encoder)
        entry = _describe_encoder(encoder, path)
        lexical = self._words(folder / DOCUMENTS_FILE)
        vectors = self._vectors(reader, encoder, entry)
        segment = write_segment(workspace.root, folder, vectors)
        segments = with_words(workspace, lexical, [segment], progress=self.progress)
        give_back()
        manifest = Manifest(
            generation=workspace.generation,
            encoder=entry,
            corpus=reader.path,
            segments=segments,
            exported=exported,
            tombstones=None,
            columns=reader.columns,
            long=self._long,
            lexical=lexical,
            **asdict(self._wish),
        )
        source = partial(text_queries, lambda: encoder, texts=queries)
        manifest = IndexWork(source, required=True).settle(workspace, manifest)
        give_back()
        manifest = with_weight(workspace.root, manifest, lambda: encoder)
        give_back()  # the index is opened next
        return encoder, manifest

    def _words(self, database: Path) -> LexicalEntry | None:
        """What the manifest says of the lexical index, if there is to be one."""
        options = lexical_options(self.lexical)
        if options is None:
            return None
        with closing(DocumentStore(database)) as documents:
            entry = describe_words(options, [documents])
        if self.options.weight is None:
            return entry
        return replace(entry, weight=WeightEntry(self.options.weight))

    def _check(self, count: int, encoder: Encoder, database: Path) -> None:
        """Refuses what the index of so many documents cannot have, before they are encoded."""
        kind = self._wish.choose(count, encoder.dim)
        kind.check_for(count, encoder.dim)
        if self.options.vectors is None:
            check_on_sample(kind, self.recall, encoder, database)

    @property
    def _wish(self) -> KindWish:
        """What is asked of the vector index."""
        memory = parse_bytes("memory", self.memory)
        options = self.options
        return KindWish(self.kind, self.recall, options.clusters, options.factory, memory)

    @property
    def _long(self) -> LongOptions:
        return LongOptions(self.long, self.options.overlap)

    def _vectors(self, reader: CorpusReader, encoder: Encoder, entry: EncoderEntry) -> VectorSource:
        """Where the vectors come from: as given, from the corpus itself, or from the encoder."""
        given = self.options.vectors
        if given is None and not self.resume:
            given = own_vectors(reader, entry, self._long)
        if given is None:
            return EncodedVectors(encoder, self._long, logged=True, progress=self.progress)
        return ImportedVectors(given, encoder.dim, encoder, reader.blank_rows, self._long)


def _describe_encoder(encoder: Encoder, path: Path) -> EncoderEntry:
    options = encoder.options.declared()
    name = options.pop("model")
    relative = None
    # A hub name is no folder, one may not be looked at any more, one may be on another drive.
    with suppress(OSError, ValueError):
        if Path(name).is_dir():
            relative = Path(os.path.relpath(Path(name).resolve(), path.resolve())).as_posix()
    return EncoderEntry(
        name=name,
        relative=relative,
        options=DeclaredOptions(**options),
        fingerprint=encoder.fingerprint,
        dim=encoder.dim,
        precision=encoder.precision,
    )
