"""A whole corpus to a file of vectors, with one chunk of texts in memory."""

import logging
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, replace
from itertools import chain

from sbertkit.arrays import Vectors
from sbertkit.data import Document, ReadOptions, ReadReport, read_corpus
from sbertkit.data.chunk_log import ChunkLog, IdAndText
from sbertkit.data.vector_files import open_vector_writer, vector_file
from sbertkit.data.vector_parquet import WHOLE, Bounds, VectorOrigin
from sbertkit.encoder.divided_texts import TextDivider, divide
from sbertkit.encoder.encoder import Encoder
from sbertkit.encoder.encoding import EncodingRun
from sbertkit.encoder.long_options import TRUNCATE, LongOptions
from sbertkit.encoder.passages import PassageSplitter
from sbertkit.encoder.report import EncodeReport, EncodeStats
from sbertkit.errors import InputError
from sbertkit.schema import as_record

logger = logging.getLogger(__name__)

_DEFAULT = ReadOptions()


def encode_corpus(
    encoder: Encoder | Callable[[], Encoder],
    source: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    read: ReadOptions = _DEFAULT,
    long: LongOptions = TRUNCATE,
    progress: bool = False,
    resume: bool = False,
) -> EncodeReport:
    """Writes the vector of every document, or passage, in order, and gives the report on them.

    Blank documents keep their row. The file appears only when all went well. An interrupted call
    leaves its partial output in the same folder, which `resume` continues, to the same file.

    Args:
        encoder: The encoder, or a function that loads it, which is called when the first document
            has been read.
        source: A corpus, see `sbertkit.data.read_corpus`.
        output: ``.npy`` (a float32 matrix) or ``.parquet`` (columns id, text, vector; of passages
            also start and end in the document's text).
        read: How the corpus is read.
        long: What is done with documents longer than the encoder's limit.
        progress: Show progress on standard error.
        resume: Continue the partial output of an interrupted call, if there is any, and keep that
            of this one if it is interrupted.

    Raises:
        InputError: The corpus or the output's name is refused, there is no document, passages are
            to be written as .npy, or the partial output was made from another corpus or otherwise.
        StorageError: The disk is full, a permission is missing or another process writes the file.
    """
    target = vector_file(output)
    with suppress(OSError):
        if target.samefile(source):
            raise InputError(f"{output} is the corpus itself; choose another name for the vectors")
    if long.mode == "passages" and target.suffix.lower() == ".npy":
        raise InputError(
            f"{output} has no place for the documents that passages belong to: choose a name that "
            "ends in .parquet"
        )
    report = ReadReport()
    documents = (found.document for found in read_corpus(source, read, report, keep_blank=True))
    first = next(documents, None)
    if first is None:
        raise InputError(f"{source} has no documents to encode")
    loaded = encoder if isinstance(encoder, Encoder) else encoder()
    made = VectorOrigin(loaded.fingerprint, loaded.precision, str(long))
    job = {"encoder": loaded.fingerprint, "precision": loaded.precision, "long": str(long)}
    passages = long.mode == "passages"
    with open_vector_writer(
        output, loaded.dim, job=job, made=made, passages=passages, resume=resume
    ) as writer:
        run = loaded.start_run()
        for done in writer.log.chunks:
            run.stats.merge(as_record(done.note, EncodeStats, output))
        if run.stats.rows:
            logger.warning("%s: %d texts were encoded before", output, run.stats.rows)
        resumed = writer.log.rows
        rows = _Rows(chain([first], documents), loaded, long, before=resumed)
        for vectors in rows.encoded(run, writer.log, progress=progress):
            if len(vectors):  # else none of a long text's passages was its last
                ids, texts = zip(*writer.log.drawn(len(vectors)), strict=True)
                bounds = rows.bounds_of(len(vectors)) if passages else None
                writer.write(ids, texts, vectors, asdict(run.chunk_stats), bounds)
        counted = long.mode != "mean" or resumed == 0  # of a mean not all passages may be logged
        if counted and run.stats.rows == rows.documents and not run.stats.truncated:
            writer.made = replace(made, long=WHOLE)
    for message in report.warnings():
        logger.warning("%s: %s", source, message)
    encoded = run.report()
    return replace(encoded, rows=rows.documents) if long.mode == "mean" else encoded


class _Rows:
    """The rows of a file: documents, or their passages.

    Attributes:
        documents: How many documents were read.

    Args:
        documents: The documents.
        encoder: Whose limit decides which are long.
        long: What is done with those.
        before: How many of the rows are in the file already.
    """

    def __init__(
        self, documents: Iterable[Document], encoder: Encoder, long: LongOptions, before: int
    ) -> None:
        self.documents = 0
        self._read = documents
        self._spec = encoder.spec
        self._long = long
        self._before = before
        self._bounds: deque[Bounds] = deque()

    def encoded(self, run: EncodingRun, log: ChunkLog, *, progress: bool) -> Iterator[Vectors]:
        """The vectors of the rows that are not in the file, chunk by chunk."""
        if self._long.mode == "mean":
            divider = TextDivider(self._spec, self._long.overlap)
            texts = divider.passages(log.texts(self._counted()))
            return divider.means(run.vectors(texts, progress=progress))
        rows = self._passages() if self._long.mode == "passages" else self._counted()
        return run.vectors(log.texts(rows), progress=progress)

    def bounds_of(self, count: int) -> list[Bounds]:
        """Start and end of the next passages."""
        return [self._bounds.popleft() for _ in range(count)]

    def _counted(self) -> Iterator[IdAndText]:
        for document in self._read:
            self.documents += 1
            yield document.id, document.text

    def _passages(self) -> Iterator[IdAndText]:
        ids: deque[str] = deque()

        def texts() -> Iterator[str]:
            for document_id, text in self._counted():
                ids.append(document_id)
                yield text

        number = 0
        for divided in divide(PassageSplitter.of(self._spec, self._long.overlap), texts()):
            document_id = ids.popleft()
            for passage, part in zip(divided.passages, divided.parts(), strict=True):
                if number >= self._before:
                    self._bounds.append((passage.start, passage.end))
                number += 1
                yield document_id, part
