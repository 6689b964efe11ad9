"""Where named data sets are on this machine."""

import os
from pathlib import Path

from sbertkit.arguments import did_you_mean
from sbertkit.data.named.hub import cached, check_cached, fetch_named
from sbertkit.data.named.sets import NAMED_SETS, NamedSet
from sbertkit.errors import InputError, MissingFile

DATA_FOLDER = "SBERTKIT_DATA"
"""The environment variable that names a folder of data sets."""


def find_local(named: NamedSet) -> Path | None:
    """The file or folder of a set that is here: below `DATA_FOLDER`, or in the hub's cache."""
    return _in_data_folder(named) or cached(named, hub_cache())


def named_data(named: NamedSet) -> Path:
    """The file or folder of a set; fetched from the hub where it is not here yet.

    Raises:
        InputError: It is not available, or fetched files are damaged.
        StorageError: It cannot be written.
    """
    path = _in_data_folder(named)
    if path is not None:
        return path
    folder = cached(named, hub_cache())
    if folder is None:
        return fetch_named(named, hub_cache())
    check_cached(named, folder)
    return folder


def local_path(text: str) -> str:
    """The path of the data set of that name, or the path that was given.

    Raises:
        InputError: There is no such file, and the data set of that name is not here yet.
    """
    named = next((one for one in NAMED_SETS if one.name == text), None)
    if Path(text).exists():
        return text
    if named is None:
        meant = did_you_mean(text, (one.name for one in NAMED_SETS))
        if meant:
            raise MissingFile(
                f"{text}: no such file or folder, and no data set of that name{meant}"
            )
        return text
    path = find_local(named)
    if path is None:
        raise InputError(
            f"{text}: no such file or folder, and the data set of that name is not here yet; get "
            f"it with: sbertkit data get {text}"
        )
    return str(path)


def _in_data_folder(named: NamedSet) -> Path | None:
    """The file or folder below `DATA_FOLDER`, if it exists."""
    folder = data_folder()
    if folder is None:
        return None
    paths = (folder / f"{named.path}{suffix}" for suffix in ("", ".gz"))
    return next((path for path in paths if path.exists()), None)


def data_folder() -> Path | None:
    """The folder that `DATA_FOLDER` names, if it is set.

    Raises:
        InputError: It is below an unknown home folder.
    """
    name = os.environ.get(DATA_FOLDER)
    try:
        return Path(name).expanduser() if name else None
    except RuntimeError as error:
        raise InputError(
            f"{DATA_FOLDER} names {name}, and there is no such home folder; give its whole path"
        ) from error


def hub_cache() -> Path | None:
    """Where fetched files are kept: ``hub`` below that folder, None for the hub's own cache."""
    folder = data_folder()
    return None if folder is None else folder / "hub"
