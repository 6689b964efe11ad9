"""An encoder whose vectors are kept in files, so that what was encoded once is read."""

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
from sbertkit.encoder.report import merged
from sbertkit.errors import InputError, StorageError
from sbertkit.files import read_regular
from sbertkit.progress import track
from sbertkit.schema import read_record
from sbertkit.storage import staged_file, storage_errors
from sbertkit.user_cache import without_cache

logger = logging.getLogger(__name__)

_CHUNK = 4_096
"""Texts a file; so many are encoded again after an interruption, at most."""
_DIGEST = hashlib.sha256().digest_size
_REPORT_BYTES = 2**20
"""Limit of a report on a chunk of texts, which names each row three times at most."""
_FLOAT = np.dtype("<f4")


class CachedEncoder:
    """Gives the vectors of an encoder, from files where they are known.

    A file holds the vectors of some texts; it is found by a hash over them, below a folder for the
    encoder's fingerprint, precision and device. A damaged file is encoded again.

    Args:
        encoder: Whose vectors they are.
        folder: Where the files are; it may be deleted at any time.
    """

    def __init__(self, encoder: Encoder, folder: Path) -> None:
        self._encoder = encoder
        place = f"{encoder.fingerprint[:32]}-{encoder.precision}-{encoder.device}"
        self._folder = folder / place

    def encode(self, texts: Sequence[str], *, kind: str = "document") -> Vectors:
        """Vectors (n, dim) of the texts."""
        return self.encode_with_report(texts, kind=kind).vectors

    def encode_with_report(self, texts: Sequence[str], *, kind: str = "document") -> Encoded:
        """As `encode`, with the report on the texts."""
        run = self.start_run(kind=kind)
        parts = list(run.vectors(texts))
        vectors = np.concatenate(parts) if parts else np.empty((0, self._encoder.dim), np.float32)
        return Encoded(vectors, run.report())

    def start_run(self, *, kind: str = "document") -> "CachedRun":
        """A run whose vectors come part by part."""
        return CachedRun(self._encoder, self._folder, kind)


class CachedRun:
    """The texts of one call, part by part; see `CachedEncoder.start_run`."""

    def __init__(self, encoder: Encoder, folder: Path, kind: str) -> None:
        self._encoder = encoder
        self._folder = folder
        self._kind = kind
        self._reports: list[EncodeReport] = []

    def vectors(self, texts: Iterable[str], *, progress: bool = False) -> Iterator[Vectors]:
        """Vectors of the texts in order, one part (n, dim) at a time."""
        with track("encoding", None, shown=progress) as advance:
            for part in _parts(texts):
                encoded = self._encoded(part)
                self._reports.append(encoded.report)
                advance(len(part))
                yield encoded.vectors
        self.report().warn(logger, self._encoder.max_tokens)

    def report(self) -> EncodeReport:
        """The account of the texts whose vectors have been drawn."""
        return merged(self._reports)

    def _encoded(self, texts: Sequence[str]) -> Encoded:
        file = self._folder / f"{self._key(texts)}.vectors"
        known = _read(file, len(texts), self._encoder.dim)
        if known is not None:
            return known
        run = self._encoder.start_run(kind=self._kind)  # type: ignore[arg-type]  # checked there
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


def _parts(texts: Iterable[str]) -> Iterator[list[str]]:
    iterator = iter(texts)
    while part := list(islice(iterator, _CHUNK)):
        yield part


def _read(file: Path, rows: int, dim: int) -> Encoded | None:
    """What a file holds of so many texts; None where it is missing, damaged or of others."""
    try:
        content = read_regular(file, limit=_DIGEST + _REPORT_BYTES + rows * dim * _FLOAT.itemsize)
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
    named = {*report.truncated, *report.blank, *report.repaired}
    counts = (report.tokens_lost, report.duplicates, report.seconds, report.tokens_per_second)
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
    except StorageError as error:  # nothing is lost but time
        without_cache(file.parent, str(error))
