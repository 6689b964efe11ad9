"""From a path to the files that are read: one file, or a split of a data set folder."""

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sbertkit.arguments import path_text
from sbertkit.data.split_files import find_splits, listing
from sbertkit.data.splits import ALL_SPLITS, find_split, no_such_split
from sbertkit.data.streams import STDIN, is_folder, reading, source_name
from sbertkit.data.tables import Table, table_of
from sbertkit.errors import InputError, InputTypeError
from sbertkit.storage import sha256_file


@dataclass(frozen=True, slots=True)
class Source:
    """What was given, and what of it is read.

    Attributes:
        path: As it was given.
        folder: Whether it is a folder, in which `files` are.
        files: In the order in which they are read.
        table: The format of all files.
    """

    path: str
    folder: bool
    files: tuple[str, ...]
    table: Table

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
        InputError: No paths, standard input, an unknown format, or a folder without that one split.
        InputTypeError: Not paths.
        MissingFile: A path does not exist.
        StorageError: A path cannot be read.
    """
    if isinstance(paths, str | os.PathLike):
        return (_find_source(paths, split),)
    if not isinstance(paths, Sequence):
        found = type(paths).__name__
        raise InputTypeError(f"expected a path or a list of paths, found {found}")
    if not paths:
        raise InputError("expected at least one file or folder to train on, found an empty list")
    return tuple(_find_source(path, split) for path in paths)


def _find_source(given: str | os.PathLike[str], split: str | None) -> Source:
    path = path_text(given)
    if path == STDIN:
        raise InputError(
            "training data cannot be read from standard input, whose format has no name; pass a "
            "file"
        )
    if is_folder(path):
        files = _files_of_split(path, split)
        return Source(path, True, tuple(files), table_of(files[0]))
    table = table_of(path)
    with reading(path):
        if not Path(path).is_file():
            raise InputError(
                f"{source_name(path)}: expected a regular file, which is read and hashed, found"
                " a pipe or a device"
            )
    return Source(path, False, (path,), table)


def _files_of_split(folder: str, split: str | None) -> list[str]:
    """The files of a split, or of all; None is ``train``, or a single data set's whatever it is."""
    files, single = find_splits(folder, (".parquet",))
    if not files:
        with reading(folder):
            found = [path.name for path in Path(folder).iterdir()]
        raise InputError(
            f"{source_name(folder)}: expected Parquet files or a data set written by save_to_disk,"
            f" found {listing(found)}; pass the files themselves"
        )
    if split == ALL_SPLITS or (single and (split is None or "" in files)):
        return [file for one in files.values() for file in one()]
    wanted = split or "train"
    found_name = find_split(wanted, files)
    if found_name is None:
        raise no_such_split(source_name(folder), wanted, sorted(files))
    return files[found_name]()


def _file_hash(file: str) -> str:
    with reading(file):
        return sha256_file(Path(file))
