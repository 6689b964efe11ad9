"""A whole corpus to a file of vectors, in memory for one pool of texts."""

import logging
import os
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain

from sbertkit.data import Document, ReadOptions, ReadReport, read_corpus
from sbertkit.data.vector_files import open_vector_writer, vector_file
from sbertkit.encoder.encoder import Encoder
from sbertkit.encoder.report import EncodeReport
from sbertkit.errors import InputError

logger = logging.getLogger(__name__)

_DEFAULT = ReadOptions()


def encode_corpus(
    encoder: Encoder | Callable[[], Encoder],
    source: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    read: ReadOptions = _DEFAULT,
    progress: bool = False,
) -> EncodeReport:
    """Writes the vector of every document, in order, and gives the report on them.

    Blank documents keep their row. The file appears only when all went well.

    Args:
        encoder: The encoder, or a function that loads it, which is called when the first document
            has been read.
        source: A corpus, see `sbertkit.data.read_corpus`.
        output: ``.npy`` (a float32 matrix) or ``.parquet`` (columns id, text, vector).
        read: How the corpus is read.
        progress: Show progress on standard error.

    Raises:
        InputError: The corpus or the output's name is refused, or there is no document.
        StorageError: The disk is full or a permission is missing.
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
    waiting: deque[Document] = deque()

    def texts() -> Iterator[str]:
        for document in chain([first], documents):
            waiting.append(document)
            yield document.text

    run = loaded.start_run()
    with open_vector_writer(output, loaded.dim) as writer:
        for vectors in run.vectors(texts(), progress=progress):
            rows = [waiting.popleft() for _ in range(len(vectors))]
            writer.write([row.id for row in rows], [row.text for row in rows], vectors)
    for message in report.warnings():
        logger.warning("%s: %s", source, message)
    return run.report()
