"""The files of a split in a folder of Hugging Face's hub or datasets."""

import json
import os
import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from sbertkit.data.splits import ALL_SPLITS, find_split, no_such_split, split_key
from sbertkit.data.streams import reading, source_name
from sbertkit.data.text import printable
from sbertkit.errors import InputError

_DICT_FILE = "dataset_dict.json"
_STATE_FILE = "state.json"
_SUFFIX = ".parquet"
_MOST_LISTED = 10

_SHARD = re.compile(r"(?P<split>.+)-(?P<index>\d{5})-of-(?P<count>\d{5})(-[0-9a-f]+)?")
_NUMBERED = re.compile(r"(?P<split>.+?)[-_.]\d+")


def split_files(folder: str, split: str | None) -> list[str]:
    """The files of a split in a folder, in order, all of one format.

    The folder was written by ``save_to_disk`` (one data set or several splits), or holds Parquet
    files with the split in their names.

    Args:
        folder: The folder.
        split: The split, or ``all``; None for ``train``, or for a single data set whatever it is.

    Raises:
        InputError: Something else, several configurations, no such split, or a missing shard.
        MissingFile: A file that the folder names is not there.
        StorageError: The folder cannot be read.
    """
    root = Path(folder)
    if (root / _DICT_FILE).is_file():
        splits = _names(_json(root / _DICT_FILE).get("splits"), root / _DICT_FILE)
        wanted = _wanted(folder, splits, split)
        return [file for one in wanted for file in _saved_files(root / one)]
    if (root / _STATE_FILE).is_file():
        return _saved_files(root, split)
    return _parquet_files(folder, split)


def _wanted(folder: str, splits: Iterable[str], split: str | None) -> list[str]:
    """The names of the splits to read.

    Raises:
        InputError: The wanted one is not there.
    """
    names = list(dict.fromkeys(splits))
    if split == ALL_SPLITS:
        return names
    found = find_split(split or "train", names)
    if found is None:
        raise no_such_split(source_name(folder), split or "train", sorted(names))
    return [found]


def _saved_files(folder: Path, split: str | None = None) -> list[str]:
    state_file = folder / _STATE_FILE
    state = _json(state_file)
    name = state.get("_split")
    if isinstance(name, str) and split not in (None, ALL_SPLITS):
        _wanted(str(folder), [name], split)
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


def _parquet_files(folder: str, split: str | None) -> list[str]:
    shards = [_shard(path) for path in _find_parquet(folder)]
    if not shards:
        with reading(folder):
            there = [path.name for path in Path(folder).iterdir()]
        raise InputError(
            f"{source_name(folder)}: expected Parquet files or a data set written by save_to_disk,"
            f" found {_listing(there)}; pass the files themselves"
        )
    configurations = sorted({shard.configuration for shard in shards})
    if len(configurations) > 1:
        raise InputError(
            f"{source_name(folder)}: expected one configuration, found {len(configurations)}:"
            f" {_listing(configurations)}; pass the folder of one"
        )
    chosen = []
    for name in _wanted(folder, (shard.split for shard in shards), split):
        parts = [shard for shard in shards if split_key(shard.split) == split_key(name)]
        if {shard.total for shard in parts} not in ({None}, {len(parts)}):
            raise InputError(
                f"{source_name(folder)}: the {name} files {_listing(part.path for part in parts)}"
                " are not the shards of one whole; get the missing ones, or pass the files"
                " themselves"
            )
        chosen += parts
    return [str(Path(folder) / shard.path) for shard in chosen]


def _find_parquet(folder: str) -> list[str]:
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
                if name.lower().endswith(_SUFFIX) and not name.startswith(".")
            ]
    return sorted(found)


def _shard(path: str) -> _Shard:
    """What a path says: ``data/train-00000-of-00002``, ``pair/train``, ``default/train/0000``."""
    parent, stem = PurePosixPath(path).parent, PurePosixPath(path).stem
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


def _listing(names: Iterable[str]) -> str:
    ordered = sorted(names)
    shown = ", ".join(printable(name) for name in ordered[:_MOST_LISTED])
    more = len(ordered) - _MOST_LISTED
    return f"{shown}, and {more} more" if more > 0 else shown or "nothing"
