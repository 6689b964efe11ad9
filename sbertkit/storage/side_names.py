"""Temporary files and folders beside an output; those of others are never used or removed."""

import os
import re
import secrets
import shutil
import stat
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sbertkit.errors import StorageError
from sbertkit.storage.handle_locks import is_at, release_handle, try_lock
from sbertkit.storage.modes import OTHERS_WRITE, mode_of, umask

_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)


def side_name(stem: str, suffix: str = "", mark: str = "tmp") -> str:
    """A temporary name that nobody can guess."""
    return f".{stem}.{secrets.token_hex(4)}.{mark}{suffix}"


def side_pattern(name: str) -> str:
    """A regular expression for the temporary names of a file with this name."""
    return _pattern(Path(name).stem, Path(name).suffix)


def _pattern(stem: str, suffix: str = "", mark: str = "tmp") -> str:
    return rf"\.{re.escape(stem)}\.[0-9a-f]{{8}}\.{mark}{re.escape(suffix)}"


@contextmanager
def side_file(path: Path) -> Iterator[Path]:
    """Yields a new empty file beside `path`; what has its name after the block is removed.

    It has the read permissions of a file at `path`, if there is one.
    """
    mode = mode_of(path)
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | _NO_FOLLOW

    def make(place: Path) -> int:
        return os.open(place, flags, 0o666 if mode is None else 0o600 | mode)

    # The suffix stays last, since some writers choose or add it themselves.
    with _locked_side(lambda: path.with_name(side_name(path.stem, path.suffix)), make) as place:
        yield place


@contextmanager
def side_folder(path: Path, parent: Path) -> Iterator[Path]:
    """Yields a new folder in `parent`; what has its name after the block is removed.

    It has the permissions of a folder at `path`, if there is one.
    """
    mode = mode_of(path)

    def make(place: Path) -> int | None:
        place.mkdir(0o777 if mode is None else 0o700 | mode)
        return None if os.name == "nt" else os.open(place, os.O_RDONLY | _NO_FOLLOW)

    with _locked_side(lambda: parent / side_name(path.name), make) as place:
        yield place


@contextmanager
def _locked_side(name: Callable[[], Path], make: Callable[[Path], int | None]) -> Iterator[Path]:
    """Yields a new path that is locked, which shows others that its writer is alive."""
    handle = None
    while handle is None:
        place = name()
        try:
            handle = make(place)
        except FileExistsError:
            continue
        if os.name == "nt":  # an open file cannot be moved
            break
        if handle is not None and not _lock(handle, place):
            release_handle(handle)
            handle = None
    try:
        yield place
    finally:
        _remove(place)
        if handle is not None:
            release_handle(handle)


def _lock(handle: int, place: Path) -> bool:
    """Whether a new path is still there and locked, or the file system has no locks."""
    try:
        return try_lock(handle) and is_at(handle, place)
    except OSError:
        return True


def clear_leftovers(path: Path) -> None:
    """Removes what killed writers of an output have left beside it, or in it.

    Only what has such a name, belongs to this user and is locked by no living process.
    """
    if os.name == "nt":
        return
    patterns = [side_pattern(path.name), _pattern(path.name)]
    if path.exists():  # else it may be the only copy
        patterns.append(_pattern(path.name, mark="old"))
    for folder in (path.parent, path):
        with suppress(OSError):  # no permission, or no folder
            for entry in list(os.scandir(folder)):
                if any(re.fullmatch(pattern, entry.name) for pattern in patterns):
                    _remove_stale(Path(entry.path))


def _remove_stale(place: Path) -> None:
    found = place.lstat()
    ours = stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)
    if not ours or found.st_uid != os.geteuid():
        return
    handle = os.open(place, os.O_RDONLY | _NO_FOLLOW)
    try:
        if try_lock(handle) and is_at(handle, place):
            _remove(place)
    finally:
        release_handle(handle)


def _remove(place: Path) -> None:
    """Removes a file or folder; a failure is ignored, so that the first error is reported."""
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place, ignore_errors=True)
    else:
        with suppress(OSError):
            place.unlink(missing_ok=True)


def owned_folder(path: Path) -> Path:
    """A folder with a predictable name: a new one, or one that this user has left there.

    Raises:
        StorageError: Something else has the name; it is left unchanged.
    """
    try:
        path.mkdir()
    except FileExistsError:
        _check_owned(path)
    return path


def _check_owned(path: Path) -> None:
    found = path.lstat()
    fault = None
    if not stat.S_ISDIR(found.st_mode):
        fault = "is a link or a file, not a folder"
    elif hasattr(os, "geteuid") and found.st_uid != os.geteuid():
        fault = f"belongs to another user (id {found.st_uid})"
    elif found.st_mode & OTHERS_WRITE & umask():
        fault = "is writable by others"
    if fault is not None:
        raise StorageError(
            f"{path} {fault}; its name is needed for unfinished work: move it away, or choose "
            "another place"
        )


def clear_folder(folder: Path, keep: Collection[str] = ()) -> None:
    """Removes the content of a folder of ours, except these names."""
    with suppress(OSError):  # it was removed
        for place in list(folder.iterdir()):
            if place.name not in keep:
                _remove(place)
