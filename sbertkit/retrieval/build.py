"""Building an index: stage and check every document, then encode, then commit in one step."""

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from sbertkit.data import (
    Document,
    ReadOptions,
    ReadReport,
    SourcedDocument,
    documents_from,
    read_corpus,
)
from sbertkit.data.part_log import PartLog
from sbertkit.data.streams import STDIN, source_name
from sbertkit.encoder import Encoder
from sbertkit.encoder.report import Account
from sbertkit.errors import InputError, InputTypeError
from sbertkit.index import VECTORS_FILE, VectorSegment, check_kind, choose_kind, write_vectors
from sbertkit.lock import writer_lock
from sbertkit.progress import track
from sbertkit.retrieval.carried import carry_encoder
from sbertkit.retrieval.document_store import DOCUMENTS_FILE, DocumentStore, stage_documents
from sbertkit.retrieval.manifest import EncoderEntry, FileEntry, Manifest, SegmentEntry
from sbertkit.retrieval.target import (
    PARTS_FILE,
    check_target,
    generation_of,
    new_segment,
    sync_build,
)
from sbertkit.storage import foreign_errors, foreign_items, made_parents, storage_errors

logger = logging.getLogger(__name__)

Corpus = str | os.PathLike[str] | Iterable[Document | Mapping[str, Any] | tuple[str, str]]


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """What an index is to be.

    Attributes:
        kind: ``flat``, ``hnsw``, ``ivf`` or ``auto``.
        recall: Recall@10 against exhaustive search that is wanted, above 0 and at most 1.
        clusters: Clusters of kind ``ivf``; ``None`` chooses by the number of documents.
        read: How the corpus is read.
        progress: Whether progress is shown on standard error.
        with_encoder: Whether the index carries its encoder, where that can be exported.
        resume: Whether to go on with what a killed build has encoded, and to keep what this one has
            if it is interrupted.
    """

    kind: str = "auto"
    recall: float = 0.95
    clusters: int | None = None
    read: ReadOptions = field(default_factory=ReadOptions)
    progress: bool = False
    with_encoder: bool = True
    resume: bool = False

    def __post_init__(self) -> None:
        check_kind(self.kind, self.clusters)
        read: object = self.read
        if not isinstance(read, ReadOptions):
            raise InputTypeError(f"read must be ReadOptions, not {read!r}")
        if isinstance(self.recall, bool) or not isinstance(self.recall, int | float):
            raise InputTypeError(f"recall must be a number, not {self.recall!r}")
        if not 0 < self.recall <= 1:
            raise InputError(f"recall must be above 0 and at most 1, not {self.recall}")


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
    with made_parents(path), writer_lock(path), storage_errors(path):
        # What is there is looked at again, now that nobody else can change it.
        check_target(path)
        with new_segment(path, resume=options.resume) as folder:
            manifest = _write_segment(corpus, encoder, folder, path, options)
            sync_build(folder)
            manifest.commit(folder.parent.parent)


def _write_segment(
    corpus: Corpus,
    encoder: Callable[[], Encoder],
    folder: Path,
    path: Path,
    options: BuildOptions,
) -> Manifest:
    """Writes all files of the segment's folder; gives the manifest that will name them."""
    root = folder.parent.parent
    database = folder / DOCUMENTS_FILE
    count = _stage(corpus, database, options)
    kind = choose_kind(options.kind, count, options.clusters)
    with foreign_errors():
        loaded = encoder()
    truncated = _encode(loaded, database, folder, count, options)
    parameters = kind.parameters(count, options.clusters)
    VectorSegment.write(folder, kind, parameters, {"truncated": truncated})
    exported = carry_encoder(loaded, root, folder.name) if options.with_encoder else None
    files = tuple(FileEntry.of(root, file) for file in sorted(folder.iterdir()))
    return Manifest(
        generation=generation_of(folder),
        encoder=_describe_encoder(loaded, path),
        corpus=_corpus_path(corpus),
        kind=options.kind,
        recall=float(options.recall),
        segments=(SegmentEntry(folder.name, count, kind.name, files),),
        exported=exported,
    )


def _corpus_path(corpus: Corpus) -> str | None:
    """Where the corpus lies; ``None`` for what lies nowhere."""
    if not isinstance(corpus, str | os.PathLike) or os.fspath(corpus) == STDIN:
        return None
    return str(Path(corpus).resolve())


def _stage(corpus: Corpus, database: Path, options: BuildOptions) -> int:
    """First pass: reads, checks and stores all documents, and says what was met."""
    report = ReadReport()
    if isinstance(corpus, str | os.PathLike):
        name, unit = source_name(os.fspath(corpus)), "line"
        documents: Iterator[SourcedDocument] = read_corpus(corpus, options.read, report)
    elif isinstance(corpus, Iterable):
        name, unit = "the corpus", "row"
        documents = foreign_items(documents_from(corpus, report))
    else:
        raise InputTypeError(
            f"the corpus must be a path or an iterable of documents, not {type(corpus).__name__}"
        )
    with track("reading", None, shown=options.progress) as advance:
        count = stage_documents(database, documents, f"{name}: {{id}} stands on {unit}s", advance)
    for message in report.warnings():
        logger.warning("%s: %s", name, message)
    if count == 0:
        left_out = "; ".join(report.warnings()) or "it is empty"
        raise InputError(f"{name} has no documents to index ({left_out})")
    return count


def _encode(
    encoder: Encoder, database: Path, folder: Path, count: int, options: BuildOptions
) -> int:
    """Second pass: writes the vectors of all staged texts; gives the number of cut texts."""
    job = {"dim": encoder.dim, "encoder": encoder.fingerprint, "precision": encoder.precision}
    with (
        closing(DocumentStore(database)) as store,
        closing(PartLog(folder / PARTS_FILE, job)) as log,
    ):
        run = encoder.start_run()
        for part in log.parts:
            run.account.add(Account(**part.note))
        if run.account.rows:
            logger.warning("%d documents of %d were encoded before", run.account.rows, count)
        texts = log.texts(("", text) for text in store.texts())
        write_vectors(
            folder / VECTORS_FILE,
            foreign_items(run.vectors(texts, total=count, progress=options.progress)),
            encoder.dim,
            rows=log.rows,
            written=lambda rows: log.add(log.drawn(rows), asdict(run.pool)),
        )
    (folder / PARTS_FILE).unlink()
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
        options=options,
        fingerprint=encoder.fingerprint,
        dim=encoder.dim,
        precision=encoder.precision,
    )
