"""Files, gzip files and standard input as streams of bytes, with errors that name them."""

import gzip
import io
import math
import os
import stat
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, BinaryIO, cast

from sbertkit.arguments import path_text
from sbertkit.data.text import printable
from sbertkit.errors import InputError, MissingFile, SbertkitError, StorageError

STDIN = "-"
"""The source that means standard input."""

_GZIP_MAGIC = b"\x1f\x8b"
_UNPACKED_BYTES = 2**30
"""What a packed file may always have when it is copied to a temporary file."""
_UNPACKED_RATIO = 50
"""How many times its packed size it may have beyond that; gzip reaches 1,032 on zeros."""


def source_name(path: str) -> str:
    """What messages call a source: its path, or ``standard input``."""
    return "standard input" if path == STDIN else printable(path, 500)


def is_folder(path: str) -> bool:
    """Whether a source is a folder.

    Raises:
        MissingFile: It does not exist.
        StorageError: It cannot be accessed.
    """
    if path == STDIN:
        return False
    with reading(path):
        # os.stat and not Path.is_dir, which answers False for what is missing
        return stat.S_ISDIR(os.stat(path).st_mode)  # noqa: PTH116


@contextmanager
def reading(path: str) -> Iterator[None]:
    """A context in which failures to read become errors that name the source.

    Raises:
        MissingFile: The file does not exist.
        InputError: A folder, or a truncated or damaged gzip stream.
        StorageError: Any other failure of the system.
    """
    name = source_name(path)
    try:
        yield
    except SbertkitError:
        raise
    except (FileNotFoundError, NotADirectoryError) as error:
        raise MissingFile(f"{name}: no such file or folder; check the path") from error
    except IsADirectoryError as error:
        raise InputError(f"{name}: expected a file, found a folder") from error
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(
            f"{name}: broken gzip stream ({error}); the file is truncated or damaged, download it"
            " again"
        ) from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise StorageError(f"{name}: cannot be read ({reason})") from error


@contextmanager
def open_bytes(source: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """The bytes of a source, unpacked when its name ends in ``.gz``; ``-`` is standard input.

    Raises:
        InputError: A folder, a file named .gz that is not gzip, or a broken gzip stream.
        MissingFile: The file does not exist.
        StorageError: The file cannot be read.
    """
    path = path_text(source)
    with reading(path), ExitStack() as stack:
        if path == STDIN:
            yield _standard_input()
        elif not _is_packed(path):
            yield stack.enter_context(_opened(path))
        else:
            packed = stack.enter_context(_opened(path))
            if packed.peek(2)[:2] != _GZIP_MAGIC:
                raise InputError(
                    f"{source_name(path)}: not a gzip file although its name ends in .gz;"
                    " rename it or download it again"
                )
            unpacked = stack.enter_context(gzip.GzipFile(fileobj=packed, mode="rb"))
            # GzipFile's own readline is Python code, a buffer around it is many times faster
            yield stack.enter_context(io.BufferedReader(cast(io.RawIOBase, unpacked)))


@contextmanager
def open_seekable(source: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """The bytes of a source that can be read in any order; copied to a temporary file if need be.

    Raises:
        InputError: As `open_bytes`.
        MissingFile: The file does not exist.
        StorageError: The file cannot be read, or there is no room for the copy.
    """
    path = path_text(source)
    with open_bytes(path) as stream:
        if path != STDIN and not _is_packed(path) and stream.seekable():
            yield stream
            return
        with tempfile.TemporaryFile() as copy:
            _copy(path, stream, copy)
            copy.seek(0)
            yield cast(BinaryIO, copy)


def _copy(path: str, stream: BinaryIO, copy: IO[bytes]) -> None:
    """Copies a stream, unless it unpacks to suspiciously many bytes."""
    packed = Path(path).stat().st_size if _is_packed(path) else math.inf
    limit = max(_UNPACKED_BYTES, _UNPACKED_RATIO * packed)
    while chunk := stream.read(1 << 20):
        copy.write(chunk)
        if copy.tell() > limit:
            raise InputError(
                f"{source_name(path)}: expected at most {limit:,} bytes once unpacked, found more;"
                " unpack it first"
            )


def _opened(path: str) -> io.BufferedReader:
    """A file or pipe opened for reading.

    Raises:
        InputError: A device, which may have no end.
    """
    file = Path(path).open("rb")  # noqa: SIM115 - closed by the caller
    mode = os.fstat(file.fileno()).st_mode
    if stat.S_ISBLK(mode) or (stat.S_ISCHR(mode) and not file.isatty()):
        file.close()
        raise InputError(f"{source_name(path)}: expected a file or a pipe, found a device")
    return file


def _is_packed(path: str) -> bool:
    return path.lower().endswith(".gz")


def _standard_input() -> BinaryIO:
    stream = getattr(sys.stdin, "buffer", None)
    if stream is None:
        raise InputError("standard input: not open for bytes; name a file instead of -")
    return cast(BinaryIO, stream)
