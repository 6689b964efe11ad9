"""Folders of data sets with files for each split, as they lie on Hugging Face's hub."""

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from sbertkit.data.streams import reading, source_name
from sbertkit.data.tables import has_suffix
from sbertkit.data.text import printable
from sbertkit.errors import InputError

_DICT_FILE = "dataset_dict.json"
_STATE_FILE = "state.json"
_MAX_LISTED = 10

_SHARD = re.compile(r"(?P<split>.+)-(?P<index>\d{5})-of-(?P<count>\d{5})(-[0-9a-f]+)?")
_NUMBERED = re.compile(r"(?P<split>.+?)[-_.]\d+")


class Splits(NamedTuple):
    """The splits of a folder.

    Attributes:
        files: For each split a function that gives its files, in order and of one format.
        single: Whether the folder is one saved data set, whose split has an empty name where it is
            not known.
    """

    files: Mapping[str, Callable[[], list[str]]]
    single: bool = False


def find_splits(folder: str, suffixes: tuple[str, ...]) -> Splits:
    """The splits of a folder and their files.

    The folder was written by ``save_to_disk`` (one data set or several splits), or holds files with
    the split in their names. What gives the files of a split raises these errors too.

    Args:
        folder: The folder.
        suffixes: Of the files that count, in lower case and without ``.gz``.

    Raises:
        InputError: Files of several configurations, a missing shard, or a damaged list of files.
        MissingFile: A file that the folder names does not exist.
        StorageError: The folder cannot be read.
    """
    root = Path(folder)
    if (root / _DICT_FILE).is_file():
        names = _names(_json(root / _DICT_FILE).get("splits"), root / _DICT_FILE)
        return Splits({name: partial(saved_files, root / name) for name in names})
    if (root / _STATE_FILE).is_file():
        name = _json(root / _STATE_FILE).get("_split")
        files = {name if isinstance(name, str) else "": partial(saved_files, root)}
        return Splits(files, single=True)
    shards = [_shard(path) for path in _find_files(folder, suffixes)]
    return Splits({shard.split: partial(_shards, folder, shard.split, shards) for shard in shards})


def is_saved_set(folder: Path) -> bool:
    """Whether ``save_to_disk`` wrote a folder; what it does not list there is a cache."""
    state_file = folder / _STATE_FILE
    return state_file.is_file() and "_data_files" in _json(state_file)


def saved_files(folder: Path) -> list[str]:
    """The files of a data set that ``save_to_disk`` wrote into a folder.

    Raises:
        InputError: It lists none, or chooses rows by a list of indices.
    """
    state_file = folder / _STATE_FILE
    state = _json(state_file)
    if state.get("_indices_files") or state.get("_indices_data_files"):
        raise InputError(
            f"{source_name(str(state_file))}: the rows are chosen by a list of indices, which is"
            " not read; save the data set again with flatten_indices()"
        )
    entries = state.get("_data_files")
    listed = entries if isinstance(entries, list) else []
    names = [entry.get("filename") if isinstance(entry, dict) else None for entry in listed]
    return [str(folder / name) for name in _names(names, state_file)]


def _names(values: object, file: Path) -> list[str]:
    """The names of files or folders beside `file` that it lists."""
    names = values if isinstance(values, list) else []
    # a name from a file must not lead out of the folder
    plain = all(isinstance(name, str) and re.fullmatch(r"[\w+-][\w.+-]*", name) for name in names)
    if not names or not plain:
        raise InputError(
            f"{source_name(str(file))}: expected the names of splits or data files, found none or"
            " others; save the data set again with save_to_disk"
        )
    return names


def _json(file: Path) -> dict[str, Any]:
    with reading(str(file)):
        content = file.read_bytes()
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{source_name(str(file))}: not valid JSON; save the data set again"
        ) from error
    if not isinstance(value, dict):
        raise InputError(
            f"{source_name(str(file))}: expected a JSON object, found {type(value).__name__}"
        )
    return value


class _Shard(NamedTuple):
    path: str
    configuration: str
    split: str
    total: int | None
    """Of how many shards it is one, where its name says so."""


def _shards(folder: str, split: str, shards: Iterable["_Shard"]) -> list[str]:
    """The files of a split, all of them."""
    found = [shard for shard in shards if shard.split == split]
    configurations = {shard.configuration for shard in found}
    if "." in configurations:  # files below, such as raw/test.tsv, belong to something else
        found = [shard for shard in found if shard.configuration == "."]
        configurations = {"."}
    if len(configurations) > 1:
        raise InputError(
            f"{source_name(folder)}: expected one configuration, found {len(configurations)}:"
            f" {listing(configurations)}; pass the folder of one"
        )
    if {shard.total for shard in found} not in ({None}, {len(found)}):
        raise InputError(
            f"{source_name(folder)}: the {split} files {listing(shard.path for shard in found)} are"
            " not the shards of one data set; download the missing ones, or pass the files"
            " themselves"
        )
    return [str(Path(folder) / shard.path) for shard in found]


def _find_files(folder: str, suffixes: tuple[str, ...]) -> list[str]:
    """Paths relative to the folder, sorted; hidden ones and links to folders are left out."""
    found = []

    def fail(error: OSError) -> None:
        raise error

    with reading(folder):
        for place, folders, files in os.walk(folder, onerror=fail):
            folders[:] = [name for name in folders if not name.startswith(".")]
            inside = Path(place).relative_to(folder)
            found += [
                (inside / name).as_posix()
                for name in files
                if has_suffix(name, suffixes) and not name.startswith(".")
            ]
    return sorted(found)


def _shard(path: str) -> _Shard:
    """What a path says: ``data/train-00000-of-00002``, ``pair/train``, ``default/train/0000``."""
    parent = PurePosixPath(path).parent
    stem = PurePosixPath(re.sub(r"\.gz$", "", path, flags=re.IGNORECASE)).stem
    sharded = _SHARD.fullmatch(stem)
    numbered = _NUMBERED.fullmatch(stem)
    total = None
    if sharded:
        stem, total = sharded["split"], int(sharded["count"])
    elif stem.isdigit() and parent.name:
        stem, parent = parent.name, parent.parent
    elif numbered:
        stem = numbered["split"]
    return _Shard(path, parent.as_posix(), stem.lower(), total)


def listing(names: Iterable[str]) -> str:
    """Some names for a message, of which the first ten are listed."""
    ordered = sorted(names)
    shown = ", ".join(printable(name) for name in ordered[:_MAX_LISTED])
    more = len(ordered) - _MAX_LISTED
    return f"{shown}, and {more} more" if more > 0 else shown or "nothing"
