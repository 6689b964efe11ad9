"""From a path to the files that are read: one file, or a split of a data set folder."""

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sbertkit.arguments import path_text
from sbertkit.data.nli.rows import RowReader, read_csv_rows, read_jsonl_rows, read_tsv_rows
from sbertkit.data.nli.tables import read_arrow_rows, read_parquet_rows
from sbertkit.data.split_files import split_files
from sbertkit.data.streams import STDIN, is_folder, reading, source_name
from sbertkit.errors import InputError, InputTypeError
from sbertkit.storage import sha256_file


@dataclass(frozen=True, slots=True)
class Format:
    """How files with one of the suffixes are read, and what messages call their rows."""

    read: RowReader
    suffixes: tuple[str, ...]
    unit: str = "line"


FORMATS = (
    Format(read_jsonl_rows, (".jsonl", ".ndjson")),
    Format(read_tsv_rows, (".tsv", ".txt")),
    Format(read_csv_rows, (".csv",)),
    Format(read_parquet_rows, (".parquet",), "row"),
    Format(read_arrow_rows, (".arrow",), "row"),
)


@dataclass(frozen=True, slots=True)
class Source:
    """What was given, and what of it is read.

    Attributes:
        path: As it was given.
        folder: Whether it is a folder, in which `files` are.
        files: In the order in which they are read.
        format: That of all files.
    """

    path: str
    folder: bool
    files: tuple[str, ...]
    format: Format

    def sha256(self) -> str:
        """The hash of the file, or of the list of the files in a folder with their hashes.

        Raises:
            MissingFile: A file is gone.
            StorageError: A file cannot be read.
        """
        hashes = [_file_hash(file) for file in self.files]
        if not self.folder:
            return hashes[0]
        names = [Path(file).relative_to(self.path).as_posix() for file in self.files]
        listing = "".join(f"{sha}  {name}\n" for sha, name in zip(hashes, names, strict=True))
        return hashlib.sha256(os.fsencode(listing)).hexdigest()


def find_sources(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    split: str | None = None,
) -> tuple[Source, ...]:
    """What to read for each path; nothing is read yet but what names the files of a folder.

    Args:
        paths: A file or folder, or several.
        split: See `read_nli`.

    Raises:
        InputError: No paths, standard input, a name that does not tell the format, or a folder
            without that one split.
        InputTypeError: Not paths.
        MissingFile: Nothing is there.
        StorageError: It cannot be looked at.
    """
    if isinstance(paths, str | os.PathLike):
        return (_find_source(paths, split),)
    if not isinstance(paths, Sequence):
        found = type(paths).__name__
        raise InputTypeError(f"expected a path or a list of paths, found {found}")
    if not paths:
        raise InputError("expected at least one file or folder with NLI pairs, found an empty list")
    return tuple(_find_source(path, split) for path in paths)


def _find_source(given: str | os.PathLike[str], split: str | None) -> Source:
    path = path_text(given)
    if path == STDIN:
        raise InputError(
            "NLI pairs cannot be read from standard input, whose format has no name; pass a file"
        )
    if not is_folder(path):
        form = _format_of(path)
        with reading(path):
            if not Path(path).is_file():
                raise InputError(
                    f"{source_name(path)}: expected a regular file, which is read and hashed, found"
                    " a pipe or a device"
                )
        return Source(path, False, (path,), form)
    files = split_files(path, split)
    return Source(path, True, tuple(files), _format_of(files[0]))


def _format_of(path: str) -> Format:
    suffix = Path(path.lower().removesuffix(".gz")).suffix
    for form in FORMATS:
        if suffix in form.suffixes:
            return form
    known = ", ".join(suffix for form in FORMATS for suffix in form.suffixes)
    raise InputError(
        f"{source_name(path)}: the format cannot be told from the name; expected one that ends in"
        f" {known} (and .gz); rename the file"
    )


def _file_hash(file: str) -> str:
    with reading(file):
        return sha256_file(Path(file))
