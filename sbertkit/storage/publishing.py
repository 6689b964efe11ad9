"""Outputs that appear whole or not at all, in place of old ones."""

import ctypes
import os
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from sbertkit.errors import StorageError
from sbertkit.storage.disk_errors import storage_errors
from sbertkit.storage.modes import OTHERS_WRITE, follow_modes, mode_of
from sbertkit.storage.side_names import clear_leftovers, side_file, side_folder, side_name
from sbertkit.storage.syncing import sync_file, sync_folder, sync_tree

_MOUNTS = Path("/proc/self/mountinfo")
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


@contextmanager
def made_parents(path: Path) -> Iterator[None]:
    """Makes the folders above `path`; those it made are removed when the block fails.

    Raises:
        StorageError: They cannot be made.
    """
    with storage_errors(path):
        missing = [parent for parent in path.parents if not parent.exists()]
    try:
        with storage_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        yield
        with storage_errors(path):
            for parent in missing:
                sync_folder(parent.parent)
    except BaseException:
        for parent in missing:
            with suppress(OSError):  # somebody else has put something there
                parent.rmdir()
        raise


def replace_file(path: Path, content: bytes) -> None:
    """Writes a file atomically: readers and crashes see the old bytes or the new ones."""
    with staged_file(path) as staged:
        staged.write_bytes(content)


@contextmanager
def staged_file(path: Path, *, private: bool = False) -> Iterator[Path]:
    """Yields a temporary path beside `path`, which becomes `path` if the block ends well.

    The folders above are made, and removed again when the block fails. Leftovers of killed writers
    of this file are removed.

    Args:
        path: The file to make.
        private: Whether to remove write permission for others, whatever the umask.
    """
    with made_parents(path):
        clear_leftovers(path)
        with side_file(path) as staged:
            yield staged
            publish_file(staged, path, private=private)


def publish_file(new: Path, path: Path, *, private: bool = False) -> None:
    """Moves a written file to `path`; a file it replaces passes on its mode."""
    sync_file(new)
    before = mode_of(path)
    mode = new.stat().st_mode & 0o777 if before is None else before
    new.chmod(mode & ~OTHERS_WRITE if private else mode)
    new.replace(path)
    sync_folder(path.parent)


@contextmanager
def staged_folder(
    path: Path,
    *,
    replace: bool = True,
    private: bool = False,
    last: str | None = None,
    beside: Collection[str] = (),
) -> Iterator[Path]:
    """Yields a temporary folder, which replaces `path` at the end.

    An error inside the block leaves `path` unchanged. A folder that cannot be replaced, see
    `is_fixed`, must be empty; the files are then moved into it one by one.

    Args:
        path: The folder to make.
        replace: Whether it may replace a folder that is not empty.
        private: Whether to remove write permission for others, whatever the umask.
        last: The file that makes the folder valid; it is moved last, so that a kill does not leave
            a partial folder that looks complete.
        beside: Names that are allowed in a folder that cannot be replaced.

    Raises:
        StorageError: It cannot be replaced and is not empty.
    """
    with made_parents(path):
        clear_leftovers(path)
        fixed = is_fixed(path)
        if fixed:
            _check_empty(path, beside)
        with side_folder(path, path if fixed else path.parent) as staged:
            yield staged
            follow_modes(staged, path, private=private)
            sync_tree(staged)
            if fixed:
                _check_empty(path, (*beside, staged.name))
                _fill_folder(staged, path, last)
            elif replace:
                swap_folder(staged, path)
            else:
                _place_folder(staged, path)


def is_fixed(path: Path) -> bool:
    """Whether there is a folder that cannot be replaced by another one.

    That is a mount point, the working folder of this process, which would end up in a deleted
    folder, or a folder whose parent is not writable.

    Args:
        path: The folder, all links followed.
    """
    if not path.is_dir():
        return False
    with suppress(FileNotFoundError):
        if Path.cwd().is_relative_to(path):
            return True
    return _is_mounted(path) or not os.access(path.parent, os.W_OK | os.X_OK)


def _is_mounted(path: Path) -> bool:
    if os.path.ismount(path):
        return True
    try:  # a folder mounted at another place of the same file system is found here alone
        mounts = _MOUNTS.read_bytes().splitlines()
    except OSError:
        return False
    escaped = re.compile(rb"\\([0-7]{3})")
    name = os.fsencode(path)
    return any(
        escaped.sub(lambda found: bytes([int(found[1], 8)]), line.split(b" ")[4]) == name
        for line in mounts
    )


def _check_empty(path: Path, beside: Collection[str]) -> None:
    others = sorted({place.name for place in path.iterdir()} - set(beside))
    if others:
        raise StorageError(
            f"{path} is mounted, the working folder or in a folder without write permission: it "
            f"cannot be replaced in one step, and holds {others[0]}; empty it, or choose another "
            "place"
        )


def _fill_folder(new: Path, path: Path, last: str | None) -> None:
    """Moves the content of the folder `new` to the folder `path`."""
    for place in sorted(new.iterdir(), key=lambda place: (place.name == last, place.name)):
        if place.name == last:
            sync_folder(path)
        place.rename(path / place.name)
    sync_folder(path)


def swap_folder(new: Path, path: Path) -> None:
    """Moves the folder `new` to `path`; a folder that was there is at `new` afterwards."""
    if not path.exists():
        new.rename(path)
    elif not _exchange(new, path):
        old = path.with_name(side_name(path.name, mark="old"))
        path.rename(old)
        try:
            new.rename(path)
        except BaseException:
            old.rename(path)
            raise
        old.rename(new)
    sync_folder(path.parent)


def _exchange(one: Path, other: Path) -> bool:
    """Whether two folders were exchanged atomically, which not every system can do."""
    rename = _renameat2()
    if rename is None:
        return False
    names = (_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other))
    return bool(rename(*names, _RENAME_EXCHANGE) == 0)


@cache
def _renameat2() -> Any:
    """The call of Linux, or ``None``."""
    try:
        return ctypes.CDLL(None).renameat2
    except (AttributeError, OSError, TypeError):
        return None


def _place_folder(new: Path, path: Path) -> None:
    """Moves the folder `new` to `path`, which is missing or an empty folder."""
    if os.name == "nt" and path.is_dir():
        path.rmdir()  # POSIX renames over an empty folder, and over no other
    new.rename(path)
    sync_folder(path.parent)
