"""Bytes and names put on the disk itself, and hashes of files."""

import errno
import hashlib
import os
from pathlib import Path

_NO_FOLDER_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS)


def sync_file(path: Path) -> None:
    """Puts a written file's bytes on the disk itself."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def sync_folder(path: Path) -> None:
    """Puts a folder's list of names on the disk itself, where the system has such a call."""
    if os.name == "nt":
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        # Some network file systems have no such call, and nothing better to offer.
        if error.errno not in _NO_FOLDER_SYNC:
            raise
    finally:
        os.close(handle)


def sync_tree(folder: Path) -> None:
    """Puts a folder with all that is in it on the disk itself."""
    for place in (*folder.rglob("*"), folder):
        if place.is_dir():
            sync_folder(place)
        else:
            sync_file(place)


def sha256_file(path: Path) -> str:
    """The SHA-256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
