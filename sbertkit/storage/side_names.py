"""Files and folders that a writer makes beside its output: nobody else's are used or removed."""

import os
import re
import secrets
import shutil
import stat
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sbertkit.errors import StorageError
from sbertkit.storage.handle_locks import is_at, let_go, try_hold
from sbertkit.storage.modes import OTHERS_WRITE, mode_of, umask

_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)


def side_name(stem: str, suffix: str = "", mark: str = "tmp") -> str:
    """A name that nobody can foresee."""
    return f".{stem}.{secrets.token_hex(4)}.{mark}{suffix}"


def side_pattern(name: str) -> str:
    """A regular expression for the names of what becomes a file of this name when it is whole."""
    return _pattern(Path(name).stem, Path(name).suffix)


def _pattern(stem: str, suffix: str = "", mark: str = "tmp") -> str:
    return rf"\.{re.escape(stem)}\.[0-9a-f]{{8}}\.{mark}{re.escape(suffix)}"


@contextmanager
def side_file(path: Path) -> Iterator[Path]:
    """Yields a new empty file beside `path`; what bears its name after the block is removed.

    Where there is a file at `path`, only those may read the new one who may read that.
    """
    mode = mode_of(path)
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | _NO_FOLLOW

    def make(place: Path) -> int:
        return os.open(place, flags, 0o666 if mode is None else 0o600 | mode)

    # The suffix stays last, since some writers choose or add it themselves.
    with _held_side(lambda: path.with_name(side_name(path.stem, path.suffix)), make) as place:
        yield place


@contextmanager
def side_folder(path: Path, parent: Path) -> Iterator[Path]:
    """Yields a new folder in `parent`; what bears its name after the block is removed.

    Where there is a folder at `path`, only those may look into the new one who may into that.
    """
    mode = mode_of(path)

    def make(place: Path) -> int | None:
        place.mkdir(0o777 if mode is None else 0o700 | mode)
        return None if os.name == "nt" else os.open(place, os.O_RDONLY | _NO_FOLLOW)

    with _held_side(lambda: parent / side_name(path.name), make) as place:
        yield place


@contextmanager
def _held_side(name: Callable[[], Path], make: Callable[[Path], int | None]) -> Iterator[Path]:
    """Yields a place that was made and is held, which tells others that its writer lives."""
    handle = None
    while handle is None:
        place = name()
        try:
            handle = make(place)
        except FileExistsError:
            continue
        if os.name == "nt":  # where an open file cannot be moved to its place
            break
        if handle is not None and not _hold(handle, place):
            let_go(handle)
            handle = None
    try:
        yield place
    finally:
        _remove(place)
        if handle is not None:
            let_go(handle)


def _hold(handle: int, place: Path) -> bool:
    """Whether a place that was made is still there and held, or cannot be held here at all."""
    try:
        return try_hold(handle) and is_at(handle, place)
    except OSError:
        return True


def clear_leftovers(path: Path) -> None:
    """Removes what killed writers of an output have left beside it, or in it.

    Only what bears such a name, is this user's and is held by no process that lives.
    """
    if os.name == "nt":
        return
    patterns = [side_pattern(path.name), _pattern(path.name)]
    if path.exists():  # or else this may be all that is left of it
        patterns.append(_pattern(path.name, mark="old"))
    for folder in (path.parent, path):
        with suppress(OSError):  # it cannot be looked into, or is no folder
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
        if try_hold(handle) and is_at(handle, place):
            _remove(place)
    finally:
        let_go(handle)


def _remove(place: Path) -> None:
    """Removes a file or folder; what led here is the error to report, not that this failed too."""
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place, ignore_errors=True)
    else:
        with suppress(OSError):
            place.unlink(missing_ok=True)


def owned_folder(path: Path) -> Path:
    """A folder under a name that others can foresee: a new one, or what this user has left there.

    Raises:
        StorageError: Something else has the name, which is left as it is.
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
        fault = "is no folder of its own, but a link or a file"
    elif hasattr(os, "geteuid") and found.st_uid != os.geteuid():
        fault = f"belongs to another user (id {found.st_uid})"
    elif found.st_mode & OTHERS_WRITE & umask():
        fault = "may be written to by others"
    if fault is not None:
        raise StorageError(
            f"{path} {fault}; its name is needed for unfinished work: move it away, or choose "
            "another place"
        )


def clear_folder(folder: Path, keep: Collection[str] = ()) -> None:
    """Removes all that is in a folder of ours but what has one of these names."""
    with suppress(OSError):  # it is gone
        for place in list(folder.iterdir()):
            if place.name not in keep:
                _remove(place)
