"""Sealed documents: JSON with its own hash, and files that they name with size and hash."""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any, TypeVar

from sbertkit.errors import InputError, NewerFormat, OlderFormat
from sbertkit.files import inside, open_regular
from sbertkit.schema import Count, Digest, as_record, parse_json

Record = TypeVar("Record")

_HASHED_BYTES = 2**20
"""Read at once: each time a thread waits for the interpreter's lock, twice."""


@dataclass(frozen=True, slots=True)
class SealedFile:
    """A file: its path relative to a folder, its size and its SHA-256."""

    path: str
    bytes: Count
    sha256: Digest

    @classmethod
    def of(cls, root: Path, path: Path) -> "SealedFile":
        """The record of a file in `root` as it is now."""
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            return cls(path.relative_to(root).as_posix(), os.fstat(file.fileno()).st_size, digest)

    def fault(self, root: Path, *, hashed: bool = True) -> str | None:
        """What is wrong with the file in `root`; ``None`` if nothing is.

        Args:
            root: The folder.
            hashed: Whether the hash is compared, not only the size.

        Raises:
            OSError: It cannot be read.
        """
        try:
            with open_regular(inside(root, self.path)) as file:
                size = os.fstat(file.fileno()).st_size
                if size != self.bytes:
                    return f"expected {self.bytes} bytes, found {size}"
                return self.hash_fault(file) if hashed else None
        except (FileNotFoundError, NotADirectoryError):
            return "missing"
        except InputError as error:
            return str(error)

    def hash_fault(self, file: BufferedReader) -> str | None:
        """What is wrong with the bytes of an open file; ``None`` if nothing is.

        Raises:
            OSError: It cannot be read.
        """
        if sha256_of(file) == self.sha256:
            return None
        return "does not match its SHA-256: it was changed after writing"


def sha256_of(file: BufferedReader) -> str:
    """The SHA-256 of an open file in hexadecimal; other threads are hardly held up meanwhile.

    Raises:
        OSError: It cannot be read.
    """
    digest = hashlib.sha256()
    size = os.fstat(file.fileno()).st_size
    buffer = memoryview(bytearray(max(1, min(_HASHED_BYTES, size))))
    while count := file.readinto(buffer):
        digest.update(buffer[:count])
    return digest.hexdigest()


def seal(content: Mapping[str, Any]) -> bytes:
    """A JSON document with the SHA-256 of its content in the field ``sha256``."""
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    # ASCII: names of files need not be valid Unicode.
    return json.dumps({**content, "sha256": digest}, indent=2).encode("ascii") + b"\n"


def read_sealed(raw: bytes, kind: type[Record], where: object, *, version: int) -> Record:
    """A sealed document as a record; its field ``format`` is the version of its format.

    Args:
        raw: The document, which must be what `seal` gives, to the byte.
        kind: The record, see `as_record`.
        where: The file, for messages.
        version: The version that is read.

    Raises:
        NewerFormat: A newer sbertkit wrote it.
        OlderFormat: An older one did.
        InputError: It was changed, or has another content than the record.
    """
    content = parse_json(raw, where)
    fields = dict(content) if isinstance(content, dict) else {}
    found = fields.get("format")
    if type(found) is int and found > version:
        raise NewerFormat(
            f"{where} was written in format {found}; this sbertkit reads format {version}: upgrade "
            "sbertkit"
        )
    fields.pop("sha256", None)
    if not _is_sealed(fields, raw):
        raise InputError(
            f"{where} does not match its own SHA-256: it was changed after it was written"
        )
    if type(found) is int and 0 < found < version:
        raise OlderFormat(f"{where} is of format {found}, this sbertkit reads format {version}")
    if type(found) is not int or found != version:
        raise InputError(f"{where}: expected format {version}, found {found!r:.50}")
    return as_record(fields, kind, where)


def _is_sealed(content: Mapping[str, Any], raw: bytes) -> bool:
    """Whether bytes are the sealed document of a content."""
    try:
        return raw == seal(content)
    except RecursionError:  # nested deeper than can be written
        return False
