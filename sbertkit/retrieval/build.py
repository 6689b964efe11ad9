"""Building an index: stage and check every document, then encode, then commit in one step."""

import logging
import os
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from sbertkit.data import ReadOptions
from sbertkit.data.chunk_log import ChunkLog
from sbertkit.encoder import Encoder
from sbertkit.encoder.report import EncodeStats
from sbertkit.errors import InputError, InputTypeError
from sbertkit.index import (
    VECTORS_FILE,
    VectorSegment,
    check_kind,
    choose_kind,
    unit_pools,
    write_vectors,
)
from sbertkit.progress import track
from sbertkit.retrieval.bundled_encoder import bundle_encoder
from sbertkit.retrieval.corpus import Corpus, CorpusReader
from sbertkit.retrieval.document_store import DOCUMENTS_FILE, DocumentStore, stage_documents
from sbertkit.retrieval.imported_vectors import (
    VectorSource,
    import_vectors,
    own_vectors,
    without_vectors,
)
from sbertkit.retrieval.manifest import DeclaredOptions, EncoderEntry, Manifest, SegmentEntry
from sbertkit.retrieval.workspace import (
    CHUNKS_FILE,
    Workspace,
    check_target,
    index_lock,
    new_generation,
)
from sbertkit.schema import as_record
from sbertkit.storage import caller_errors, caller_items, made_parents, storage_errors

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """What an index is to be.

    Attributes:
        kind: ``flat``, ``hnsw``, ``ivf`` or ``auto``.
        recall: Recall@10 against exhaustive search that is wanted, above 0 and at most 1.
        clusters: Clusters of kind ``ivf``; ``None`` chooses by the number of documents.
        read: How the corpus is read.
        progress: Whether progress is shown on standard error.
        with_encoder: Whether the index carries its encoder; ``None``: where that can be exported.
        resume: Whether to go on with what a killed build has encoded, and to keep what this one has
            if it is interrupted.
        vectors: The vectors of the documents, if they exist already; see `import_vectors`.
    """

    kind: str = "auto"
    recall: float = 0.95
    clusters: int | None = None
    read: ReadOptions = field(default_factory=ReadOptions)
    progress: bool = False
    with_encoder: bool | None = None
    resume: bool = False
    vectors: VectorSource | None = None

    def __post_init__(self) -> None:
        check_kind(self.kind, self.clusters)
        read: object = self.read
        if not isinstance(read, ReadOptions):
            raise InputTypeError(f"read must be ReadOptions, not {read!r}")
        with_encoder: object = self.with_encoder
        if with_encoder is not None and not isinstance(with_encoder, bool):
            raise InputTypeError(f"with_encoder must be True, False or None, not {with_encoder!r}")
        if isinstance(self.recall, bool) or not isinstance(self.recall, int | float):
            raise InputTypeError(f"recall must be a number, not {self.recall!r}")
        if not 0 < self.recall <= 1:
            raise InputError(f"recall must be above 0 and at most 1, not {self.recall}")
        if self.resume and self.vectors is not None:
            raise InputError("where vectors are given nothing is encoded: leave resume out")


def build_index(
    corpus: Corpus, encoder: Callable[[], Encoder], path: Path, options: BuildOptions
) -> None:
    """Builds or rebuilds the index folder; on any failure the old one stays as it was.

    Args:
        corpus: A path or an iterable of documents.
        encoder: Gives the encoder; called once all documents have been read and accepted.
        path: The index folder, all links followed: new, empty or an sbertkit index.
        options: What it is to be.

    Raises:
        InputError: The corpus or the path is refused.
        StorageError: The disk is full, a permission is missing, or another process builds there.
    """
    check_target(path)
    with made_parents(path), index_lock(path), storage_errors(path):
        # What is there is looked at again, now that nobody else can change it.
        check_target(path)
        with new_generation(path, resume=options.resume) as workspace:
            manifest = _write(corpus, encoder, workspace, path, options)
            workspace.sync()
            workspace.commit(manifest)


def _write(
    corpus: Corpus,
    encoder: Callable[[], Encoder],
    workspace: Workspace,
    path: Path,
    options: BuildOptions,
) -> Manifest:
    """Writes all files of the index; gives the manifest that will name them."""
    folder = workspace.new_segment()
    reader = CorpusReader(corpus, options.read)
    if options.vectors is not None:
        reader.documents = without_vectors(reader.documents, options.vectors, reader.path)
    count = _stage(reader, folder / DOCUMENTS_FILE, options)
    kind = choose_kind(options.kind, count, options.clusters)
    with caller_errors():
        loaded = encoder()
    exported = None
    if options.with_encoder is not False:  # first, for it may be refused
        required = options.with_encoder is True
        exported = bundle_encoder(loaded, workspace.root, folder.name, required=required)
    truncated = None
    vectors = options.vectors
    if vectors is None and not options.resume:
        vectors = own_vectors(reader, loaded.fingerprint, loaded.precision)
    if vectors is None:
        truncated = _encode(loaded, folder, count, options)
    else:
        import_vectors(vectors, folder, loaded, reader.blank_rows)
    parameters = kind.parameters(count, options.clusters)
    VectorSegment.write(folder, kind, parameters, {"truncated": truncated})
    return Manifest(
        generation=workspace.generation,
        encoder=_describe_encoder(loaded, path),
        corpus=reader.path,
        kind=options.kind,
        recall=float(options.recall),
        segments=(SegmentEntry.of(workspace.root, folder, count, kind.name),),
        exported=exported,
        tombstones=None,
        clusters=options.clusters,
    )


def _stage(reader: CorpusReader, database: Path, options: BuildOptions) -> int:
    """First pass: reads, checks and stores all documents, and says what was met."""
    with track("reading", None, shown=options.progress) as advance:
        count = stage_documents(database, reader.documents, reader.stands_twice, advance)
    reader.warn()
    if count == 0:
        raise reader.empty_corpus_error()
    return count


def _encode(encoder: Encoder, folder: Path, count: int, options: BuildOptions) -> int:
    """Second pass: writes the vectors of all staged texts; gives the number of cut texts."""
    job = {"dim": encoder.dim, "encoder": encoder.fingerprint, "precision": encoder.precision}
    with (
        closing(DocumentStore(folder / DOCUMENTS_FILE)) as store,
        closing(ChunkLog(folder / CHUNKS_FILE, job)) as log,
    ):
        run = encoder.start_run()
        for chunk in log.chunks:
            run.stats.merge(as_record(chunk.note, EncodeStats, folder / CHUNKS_FILE))
        if run.stats.rows:
            logger.warning("%d documents of %d were encoded before", run.stats.rows, count)
        texts = log.texts(("", text) for text in store.texts())
        pools = caller_items(run.vectors(texts, total=count, progress=options.progress))
        write_vectors(
            folder / VECTORS_FILE,
            unit_pools(pools, row=log.rows),
            encoder.dim,
            chunks=log.chunks,
            written=lambda rows, digest: log.add(log.drawn(rows), digest, asdict(run.chunk_stats)),
        )
    (folder / CHUNKS_FILE).unlink()
    return len(run.report().truncated)


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
