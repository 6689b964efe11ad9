"""Vectors of a segment that an encoder computes: of each document, or of each of its passages."""

import hashlib
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sbertkit.data.chunk_log import ChunkLog
from sbertkit.data.vector_files import NpyWriter
from sbertkit.encoder import Encoder
from sbertkit.encoder.long_options import TRUNCATE, LongOptions
from sbertkit.encoder.passage_table import Int64, PassageTable
from sbertkit.encoder.report import EncodeStats
from sbertkit.index.segment import unit_chunk
from sbertkit.progress import Advance, track
from sbertkit.retrieval.document_store import DocumentStore
from sbertkit.retrieval.segment_writer import NewDocuments, VectorSource
from sbertkit.retrieval.view import View
from sbertkit.retrieval.workspace import CHUNKS_FILE
from sbertkit.schema import as_record
from sbertkit.storage import caller_items, storage_errors

if TYPE_CHECKING:  # a search divides nothing
    from sbertkit.encoder.divided_texts import DividedText

logger = logging.getLogger(__name__)

_NEW_FILE = "new.npy"


class Origin(NamedTuple):
    """Where a vector is stored: the number of a segment of a view, and the row there."""

    segment: int
    row: int


@dataclass(frozen=True, slots=True)
class EncodedVectors:
    """Vectors that an encoder computes.

    Attributes:
        encoder: The encoder.
        long: What is done with texts longer than its limit.
        passages: The passages of the documents, where they are known.
        logged: Whether to log the chunks that are on the disk, and to continue after those that an
            interrupted build has logged.
        progress: Whether progress is shown on standard error.
    """

    encoder: Encoder
    long: LongOptions = TRUNCATE
    passages: PassageTable | None = None
    logged: bool = False
    progress: bool = False

    def write(self, documents: DocumentStore, path: Path) -> PassageTable:
        """See `VectorSource`."""
        passages = self.passages
        if passages is None:
            passages = self.divide(documents.texts(), len(documents))
        self.write_texts(passages.texts(documents.texts()), len(passages), path)
        return passages

    def divide(self, texts: Iterable[str], count: int) -> PassageTable:
        """The passages of so many texts."""
        if self.long.mode != "passages":
            return PassageTable(count)
        from sbertkit.encoder.divided_texts import divide
        from sbertkit.encoder.passages import PassageSplitter

        splitter = PassageSplitter.of(self.encoder.spec, self.long.overlap)
        with track("dividing", count, shown=self.progress) as advance:
            return PassageTable.of(_bounds(divide(splitter, texts), advance))

    def write_texts(self, texts: Iterable[str], total: int, path: Path) -> None:
        """Writes a unit row for each of so many texts, in order."""
        log_path = path.with_name(CHUNKS_FILE)
        run = self.encoder.start_run()
        with storage_errors(path), ExitStack() as stack:
            log = stack.enter_context(closing(self._log(log_path))) if self.logged else None
            if log is not None:
                for chunk in log.chunks:
                    run.stats.merge(as_record(chunk.note, EncodeStats, log_path))
                if log.chunks:
                    logger.warning("%d texts of %d were encoded before", log.rows, total)
                texts = log.texts(("", text) for text in texts)
            chunks = log.chunks if log is not None else ()
            writer = stack.enter_context(closing(NpyWriter(path, self.encoder.dim, chunks)))
            if self.long.mode == "mean":
                from sbertkit.encoder.divided_texts import TextDivider

                divider = TextDivider(self.encoder.spec, self.long.overlap)
                passages = divider.passages(texts)
                encoded = divider.means(run.vectors(passages, progress=self.progress))
            else:
                encoded = run.vectors(texts, total=total, progress=self.progress)
            for vectors in caller_items(encoded):
                digest = writer.append(unit_chunk(vectors, writer.rows))
                if log is not None:
                    writer.sync()
                    log.add(log.drawn(len(vectors)), digest, asdict(run.chunk_stats))
            writer.finish()

    def _log(self, path: Path) -> ChunkLog:
        encoder = self.encoder
        job = {"dim": encoder.dim, "encoder": encoder.fingerprint, "precision": encoder.precision}
        return ChunkLog(path, {**job, **asdict(self.long)})


class Encoded(NamedTuple):
    """New documents, and how many of their vectors were encoded."""

    documents: NewDocuments
    encoded: int


def encode_new(
    load: Callable[[], EncodedVectors],
    database: Path,
    origins: Sequence[Origin | None],
    view: View,
    known_passages: Callable[[], Mapping[bytes, Origin]],
) -> Encoded:
    """Vectors of staged documents: those that are stored already, and new ones.

    Args:
        load: Gives what computes the new ones, if there are any.
        database: The staged documents.
        origins: For each the segment of the view, and the number there, of a document with its
            text, if there is one.
        view: The view.
        known_passages: Gives the segment and row of the vectors of further passages, by `digest`.
    """
    missing = [number for number, origin in enumerate(origins) if origin is None]
    if not missing:
        return Encoded(_joined(database, origins, view, PassageTable(0), [], None), 0)
    source, path = load(), database.with_name(_NEW_FILE)
    with closing(DocumentStore(database)) as store:
        wanted = set(missing)
        divided = source.divide(store.texts(wanted), len(missing))
        found: list[Origin | None] = [None] * len(divided)
        known = known_passages() if source.long.mode == "passages" else {}
        if known:
            texts = divided.texts(store.texts(wanted))
            found = [known.get(digest(text)) for text in texts]
        count = found.count(None)
        if count:
            texts = compress(divided.texts(store.texts(wanted)), [one is None for one in found])
            source.write_texts(texts, count, path)
    written = iter(range(count))
    rows = [one or Origin(len(view.segments), next(written)) for one in found]
    return Encoded(_joined(database, origins, view, divided, rows, path if count else None), count)


def import_new(source: VectorSource, database: Path, view: View) -> NewDocuments:
    """Staged documents whose vectors come all from one source."""
    path = database.with_name(_NEW_FILE)
    with closing(DocumentStore(database)) as store:
        passages = source.write(store, path)
    rows = np.arange(len(passages))
    origins = np.stack([np.full(len(rows), len(view.segments)), rows], axis=1)
    return NewDocuments(database, passages, origins, path)


def _joined(
    database: Path,
    origins: Sequence[Origin | None],
    view: View,
    divided: PassageTable,
    rows: Sequence[Origin],
    path: Path | None,
) -> NewDocuments:
    """All staged documents in their order, with the passages of stored ones and of new ones."""
    if divided.rows is None and all(segment.passages.rows is None for segment in view.segments):
        rest = iter(rows)
        whole = [origin or next(rest) for origin in origins]
        table = PassageTable(len(origins))
        return NewDocuments(database, table, np.array(whole, np.int64).reshape(-1, 2), path)
    joined: list[Origin] = []
    parts: list[Int64] = []
    new = 0
    for number, origin in enumerate(origins):
        table, document = divided, new
        if origin is not None:
            table, document = view.segments[origin.segment].passages, origin.row
        of_document = np.array([document])
        found = table.rows_of(of_document)
        parts.append(table.renumbered(of_document, number))
        if origin is None:
            joined += [rows[row] for row in found.tolist()]
            new += 1
        else:
            joined += [Origin(origin.segment, row) for row in found.tolist()]
    table = PassageTable.from_rows(len(origins), np.concatenate(parts))
    return NewDocuments(database, table, np.array(joined, np.int64), path)


def digest(text: str) -> bytes:
    """A hash of a text, the same for equal texts only."""
    content = text.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(content, digest_size=16).digest()


def _bounds(texts: Iterable["DividedText"], advance: Advance) -> Iterator[list[tuple[int, int]]]:
    for divided in texts:
        advance(1)
        yield [(one.start, one.end) for one in divided.passages]
