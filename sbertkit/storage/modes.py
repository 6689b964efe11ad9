"""Permissions of outputs: new files follow the umask, replaced ones keep their mode."""

import os
import shutil
import stat
import threading
from contextlib import suppress
from pathlib import Path

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_UMASK = threading.Lock()


def umask() -> int:
    """The umask of this process."""
    with suppress(OSError, ValueError, IndexError):
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
        return int(status.partition("\nUmask:")[2].split()[0], 8)
    with _UMASK:  # it can only be read by setting it; 0o077 keeps files made meanwhile private
        mask = os.umask(0o077)
        os.umask(mask)
        return mask


def mode_of(path: Path) -> int | None:
    """The permissions of a file or folder; ``None`` where there is none."""
    with suppress(FileNotFoundError, NotADirectoryError):
        found = path.lstat().st_mode
        if stat.S_ISREG(found) or stat.S_ISDIR(found):
            return found & 0o777
    return None


def follow_modes(new: Path, old: Path | None = None, *, private: bool = False) -> None:
    """Sets the modes of a written folder and all in it.

    Some libraries choose the modes of their files themselves, whatever the umask.

    Args:
        new: The folder.
        old: The folder it will replace, if any, whose modes are kept.
        private: Whether to remove write permission for others, whatever the umask.
    """
    mask, removed = umask(), OTHERS_WRITE if private else 0
    for place in (new, *new.rglob("*")):
        found = place.stat().st_mode
        mode = None if old is None else mode_of(old / place.relative_to(new))
        if mode is None:
            mode = (0o777 if stat.S_ISDIR(found) else 0o666) & ~mask
        if mode & ~removed != found & 0o777:
            place.chmod(stat.S_IMODE(found) & ~0o777 | mode & ~removed)


def copy_tree(source: Path, target: Path) -> None:
    """Copies a folder's files to a new folder, with the modes of new files.

    Raises:
        OSError: A file cannot be read or written.
    """
    target.mkdir(parents=True)
    for place in sorted(source.iterdir()):
        if place.is_dir():
            copy_tree(place, target / place.name)
        else:
            shutil.copyfile(place, target / place.name)
