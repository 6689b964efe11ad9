"""A cache of an encoder's vectors in files, so that no text is encoded twice."""

import hashlib
import json
import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path

import numpy as np

from sbertkit.arrays import Vectors
from sbertkit.encoder import Encoded, Encoder, EncodeReport
from sbertkit.encoder.protocols import Kind
from sbertkit.encoder.report import EncodeStats
from sbertkit.encoder.spec import EncoderSpec
from sbertkit.errors import InputError, StorageError
from sbertkit.files import read_regular
from sbertkit.progress import track
from sbertkit.schema import read_record
from sbertkit.storage import staged_file, storage_errors
from sbertkit.user_cache import without_cache

logger = logging.getLogger(__name__)

_TEXTS_PER_FILE = 4_096
"""An interruption loses at most one file."""
_DIGEST = hashlib.sha256().digest_size
_MAX_REPORT_BYTES = 2**20
"""A report lists each row of a chunk at most four times."""
_FLOAT = np.dtype("<f4")


class CachedEncoder:
    """An encoder that reads vectors from files, and encodes and writes the missing ones.

    A file holds the vectors of a chunk of texts; its name is a hash over the texts, its folder is
    named by the encoder's fingerprint, precision, backend as asked for, and device. The texts of a
    damaged file are encoded again.

    Args:
        encoder: The encoder.
        folder: Folder of the files; it may be deleted at any time.
    """

    def __init__(self, encoder: Encoder, folder: Path) -> None:
        self._encoder = encoder
        how = (encoder.fingerprint[:32], encoder.precision, encoder.options.backend, encoder.device)
        self._folder = folder / "-".join(how)

    @property
    def spec(self) -> EncoderSpec:
        """See `Encoder.spec`."""
        return self._encoder.spec

    def encode_with_report(self, texts: Sequence[str], *, kind: Kind = "document") -> Encoded:
        """Vectors (n, dim) of the texts, and the report on them."""
        run = self.start_run(kind=kind)
        chunks = list(run.vectors(texts))
        vectors = np.concatenate(chunks) if chunks else np.empty((0, self._encoder.dim), np.float32)
        return Encoded(vectors, run.report())

    def start_run(self, *, kind: Kind = "document") -> "CachedRun":
        """A run whose vectors come chunk by chunk."""
        return CachedRun(self._encoder, self._folder, kind)


class CachedRun:
    """The texts of one call, chunk by chunk; see `CachedEncoder.start_run`."""

    def __init__(self, encoder: Encoder, folder: Path, kind: Kind) -> None:
        self._encoder = encoder
        self._folder = folder
        self._kind = kind
        self._stats = EncodeStats()
        self._seconds = 0.0

    def vectors(self, texts: Iterable[str], *, progress: bool = False) -> Iterator[Vectors]:
        """Vectors of the texts in order, one chunk (n, dim) at a time."""
        with track("encoding", None, shown=progress) as advance:
            for chunk in _chunks(texts):
                encoded = self._encoded(chunk)
                self._stats.merge(encoded.report)
                self._seconds += encoded.report.seconds
                advance(len(chunk))
                yield encoded.vectors
        self.report().warn(logger, self._encoder.spec)

    def report(self) -> EncodeReport:
        """The report on the texts whose vectors have been taken."""
        return self._stats.report(self._seconds, self._stats.tokens)

    def _encoded(self, texts: Sequence[str]) -> Encoded:
        file = self._folder / f"{self._key(texts)}.vectors"
        cached = _read(file, len(texts), self._encoder.dim)
        if cached is not None:
            return cached
        run = self._encoder.start_run(kind=self._kind)
        vectors = np.concatenate(list(run.vectors(texts, warn=False)))
        encoded = Encoded(vectors, run.report())
        _write(file, encoded)
        return encoded

    def _key(self, texts: Sequence[str]) -> str:
        digest = hashlib.sha256(self._kind.encode())
        for text in texts:
            content = text.encode(errors="surrogatepass")
            digest.update(b"%d:" % len(content) + content)
        return digest.hexdigest()


def _chunks(texts: Iterable[str]) -> Iterator[list[str]]:
    iterator = iter(texts)
    while chunk := list(islice(iterator, _TEXTS_PER_FILE)):
        yield chunk


def _read(file: Path, rows: int, dim: int) -> Encoded | None:
    """The vectors and the report of a file; None if it is missing or damaged."""
    try:
        content = read_regular(
            file, limit=_DIGEST + _MAX_REPORT_BYTES + rows * dim * _FLOAT.itemsize
        )
        return _parsed(content, rows, dim)
    except FileNotFoundError:
        return None
    except (OSError, InputError) as error:
        logger.warning("%s is damaged (%s); its texts are encoded again", file, error)
        return None


def _parsed(content: bytes, rows: int, dim: int) -> Encoded:
    """The vectors and the report of a file: a hash over the rest, a line of JSON, float32 values.

    Raises:
        InputError: It is damaged.
    """
    digest, rest = content[:_DIGEST], content[_DIGEST:]
    if hashlib.sha256(rest).digest() != digest:
        raise InputError("not the bytes that were written")
    line, _, values = rest.partition(b"\n")
    report = read_record(line, EncodeReport, "its report")
    named = {*report.truncated, *report.blank, *report.repaired, *report.mostly_unknown}
    tokens = (report.tokens_lost, report.unknown_tokens, report.text_tokens)
    counts = (*tokens, report.duplicates, report.seconds, report.tokens_per_second)
    if report.rows != rows or not named <= set(range(rows)) or min(counts) < 0:
        raise InputError("a report on other texts")
    if len(values) != rows * dim * _FLOAT.itemsize:
        raise InputError(f"expected {rows} vectors of {dim} numbers")
    vectors = np.frombuffer(values, _FLOAT).reshape(rows, dim).astype(np.float32)
    if not np.isfinite(vectors).all():
        raise InputError("a number is not finite")
    return Encoded(vectors, report)


def _write(file: Path, encoded: Encoded) -> None:
    report = json.dumps(asdict(encoded.report)).encode()
    content = report + b"\n" + encoded.vectors.astype(_FLOAT).tobytes()
    try:
        with storage_errors(file), staged_file(file) as staged:
            staged.write_bytes(hashlib.sha256(content).digest() + content)
    except StorageError as error:  # the vectors can be computed again
        without_cache(file.parent, str(error))
