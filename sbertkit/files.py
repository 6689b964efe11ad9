"""Opening files that others may have prepared: regular files alone, of a bounded size."""

import os
import stat
from io import BufferedReader
from pathlib import Path, PurePosixPath

from sbertkit.errors import InputError

DOCUMENT_BYTES = 2**26
"""Limit of a JSON document; a manifest of 1,000 segments has about 2 MB."""


def open_regular(path: Path, *, follow: bool = False) -> BufferedReader:
    """A file opened for reading, after a check that it is a regular one.

    What was checked is what is read, whatever happens to the name meanwhile; a FIFO is refused
    instead of waited for.

    Args:
        path: The file.
        follow: Whether `path` itself may be a symbolic link.

    Raises:
        InputError: A link, a folder, a FIFO, a socket or a device.
        OSError: It cannot be opened.
    """
    if not follow and path.is_symlink():
        raise InputError(f"{path} is a symbolic link; expected a regular file")
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    handle = os.open(path, flags | (0 if follow else getattr(os, "O_NOFOLLOW", 0)))
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise InputError(f"{path} is a folder, a pipe or a device; expected a regular file")
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def read_regular(path: Path, *, limit: int = DOCUMENT_BYTES, follow: bool = False) -> bytes:
    """The bytes of a regular file, whose size is checked before they are read.

    Args:
        path: The file.
        limit: Largest size accepted, in bytes.
        follow: Whether `path` itself may be a symbolic link.

    Raises:
        InputError: No regular file, or a larger one.
        OSError: It cannot be read.
    """
    with open_regular(path, follow=follow) as file:
        size = os.fstat(file.fileno()).st_size
        if size > limit:
            raise InputError(f"{path} has {size:,} bytes; expected at most {limit:,}")
        return file.read(limit)


def inside(root: Path, name: str) -> Path:
    """The path of a file that a document in a folder names, which must lie in that folder.

    Args:
        root: The folder, which may be reached by links.
        name: The file's path relative to it, with ``/`` between its parts.

    Raises:
        InputError: The name leads out of the folder, or through a symbolic link below it.
    """
    parts = PurePosixPath(name).parts
    plain = bool(parts) and "/".join(parts) == name and "\0" not in name
    if os.name == "nt":
        plain = plain and not set(name) & set("\\:")
    if not plain or name.startswith("/") or ".." in parts:
        raise InputError(f"{root} names a file {name!r}; expected a path inside the folder")
    path = root
    for part in parts:
        path /= part
        if path.is_symlink():
            raise InputError(f"{path} is a symbolic link; expected a file or folder of its own")
    return path
