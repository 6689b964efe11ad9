"""Hashes of files, those of large ones remembered in the user's cache while a file stays as it was.

Whether it did is seen as git sees it: by device, inode, size and times. A file that was changed
within seconds of being read could be changed again at the same tick of the clock, so that its hash
is not remembered. Some file systems report no time of change of their own; a few samples of the
content tell two models of one size apart there, too.
"""

import hashlib
import logging
import os
import time
from dataclasses import asdict, dataclass
from io import BufferedReader
from pathlib import Path

from sbertkit.errors import InputError, StorageError
from sbertkit.files import open_regular, read_regular
from sbertkit.schema import Digest
from sbertkit.sealed import read_sealed, seal
from sbertkit.storage import staged_file, storage_errors
from sbertkit.user_cache import cache_folder, is_private

logger = logging.getLogger(__name__)

LARGE_BYTES = 2**20
"""A smaller file is hashed each time, which takes no longer than to look its hash up."""
SETTLED_SECONDS = 5
"""The coarsest clocks of file systems tick every two seconds."""
_SAMPLES = 32
_SAMPLE_BYTES = 4_096
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class _Remembered:
    """A file's hash, and the state in which it had it."""

    state: tuple[int, ...]
    samples: Digest
    content: Digest


def file_sha256(path: Path, *, remembered: bool = True) -> str:
    """The SHA-256 of a regular file in hexadecimal, links followed.

    Args:
        path: The file.
        remembered: Whether the hash that a large file had may be taken; else it is read.

    Raises:
        InputError: It is no regular file.
        OSError: It cannot be read.
    """
    with open_regular(path, follow=True) as file:
        state = _state(file)
        if os.fstat(file.fileno()).st_size < LARGE_BYTES:
            return hashlib.file_digest(file, "sha256").hexdigest()
        samples, place = _samples(file), _place(path)
        known = _read(place) if remembered and place is not None else None
        if known is not None and (known.state, known.samples) == (state, samples):
            return known.content
        started = time.time_ns()
        file.seek(0)
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        settled = max(state[-2:]) < started - SETTLED_SECONDS * 10**9
        if place is not None and settled and _state(file) == state:
            _keep(_Remembered(state, samples, digest), place)
        return digest


def _state(file: BufferedReader) -> tuple[int, ...]:
    """What changes with an open file; the times of its content and of any change come last."""
    found = os.fstat(file.fileno())
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _samples(file: BufferedReader) -> str:
    """A hash over some places of a large file."""
    digest = hashlib.sha256()
    last = os.fstat(file.fileno()).st_size - _SAMPLE_BYTES
    for number in range(_SAMPLES):
        file.seek(last * number // (_SAMPLES - 1))
        digest.update(file.read(_SAMPLE_BYTES))
    return digest.hexdigest()


def _place(path: Path) -> Path | None:
    folder = cache_folder("hashes")
    if folder is None:
        return None
    return folder / f"{hashlib.sha256(os.fsencode(path.absolute())).hexdigest()[:32]}.json"


def _read(place: Path) -> _Remembered | None:
    """What is remembered, if nobody else may have written it and it is whole."""
    try:
        if not is_private(place):
            return None
        return read_sealed(read_regular(place), _Remembered, place, version=_FORMAT)
    except (OSError, InputError):
        return None


def _keep(found: _Remembered, place: Path) -> None:
    try:
        with storage_errors(place), staged_file(place, private=True) as staged:
            staged.write_bytes(seal({"format": _FORMAT, **asdict(found)}))
    except StorageError as error:  # the file is read again the next time
        logger.info("a hash was not kept: %s", error)
