"""A whole corpus to a file of vectors, with one chunk of texts in memory."""

import logging
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from itertools import chain

from sbertkit.data import ReadOptions, ReadReport, read_corpus
from sbertkit.data.vector_files import open_vector_writer, vector_file
from sbertkit.data.vector_parquet import VectorOrigin
from sbertkit.encoder.encoder import Encoder
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
    progress: bool = False,
    resume: bool = False,
) -> EncodeReport:
    """Writes the vector of every document, in order, and gives the report on them.

    Blank documents keep their row. The file appears only when all went well. An interrupted call
    leaves its partial output in the same folder, which `resume` continues, to the same file.

    Args:
        encoder: The encoder, or a function that loads it, which is called when the first document
            has been read.
        source: A corpus, see `sbertkit.data.read_corpus`.
        output: ``.npy`` (a float32 matrix) or ``.parquet`` (columns id, text, vector).
        read: How the corpus is read.
        progress: Show progress on standard error.
        resume: Continue the partial output of an interrupted call, if there is any, and keep that
            of this one if it is interrupted.

    Raises:
        InputError: The corpus or the output's name is refused, there is no document, or the partial
            output was made from another corpus or by another encoder.
        StorageError: The disk is full, a permission is missing or another process writes the file.
    """
    target = vector_file(output)
    with suppress(OSError):
        if target.samefile(source):
            raise InputError(f"{output} is the corpus itself; choose another name for the vectors")
    report = ReadReport()
    documents = (found.document for found in read_corpus(source, read, report, keep_blank=True))
    first = next(documents, None)
    if first is None:
        raise InputError(f"{source} has no documents to encode")
    loaded = encoder if isinstance(encoder, Encoder) else encoder()
    run = loaded.start_run()
    job = {"encoder": loaded.fingerprint, "precision": loaded.precision}
    made = VectorOrigin(loaded.fingerprint, loaded.precision)
    with open_vector_writer(output, loaded.dim, job=job, made=made, resume=resume) as writer:
        for chunk in writer.log.chunks:
            run.stats.merge(as_record(chunk.note, EncodeStats, output))
        if run.stats.rows:
            logger.warning("%s: %d documents were encoded before", output, run.stats.rows)
        rows = ((document.id, document.text) for document in chain([first], documents))
        for vectors in run.vectors(writer.log.texts(rows), progress=progress):
            ids, texts = zip(*writer.log.drawn(len(vectors)), strict=True)
            writer.write(ids, texts, vectors, asdict(run.chunk_stats))
    for message in report.warnings():
        logger.warning("%s: %s", source, message)
    return run.report()
