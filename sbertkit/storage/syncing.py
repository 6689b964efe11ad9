"""Files and folders synced to the disk, and hashes of files."""

import errno
import hashlib
import os
from pathlib import Path

_NO_FOLDER_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS)


def sync_file(path: Path) -> None:
    """Syncs a written file to the disk."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def sync_folder(path: Path) -> None:
    """Syncs a folder's entries to the disk, where the system supports it."""
    if os.name == "nt":
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        # Some network file systems do not support it and offer nothing better.
        if error.errno not in _NO_FOLDER_SYNC:
            raise
    finally:
        os.close(handle)


def sync_tree(folder: Path) -> None:
    """Syncs a folder and everything in it to the disk."""
    for place in (*folder.rglob("*"), folder):
        if place.is_dir():
            sync_folder(place)
        else:
            sync_file(place)


def sha256_file(path: Path) -> str:
    """The SHA-256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
