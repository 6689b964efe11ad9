"""The user's cache: a private folder for what can be made again, and work where there is none."""

import logging
import os
import stat
import threading
from pathlib import Path

logger = logging.getLogger(__name__)
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_logged = threading.Event()


def cache_folder(name: str) -> Path | None:
    """A folder of this user's cache, made where it is missing; it may be deleted at any time.

    Nobody else may write to it, whatever the umask. ``None`` where there is no home folder, or
    none that can be used, which is logged once per process.

    Args:
        name: What is kept there.
    """
    home = os.environ.get("XDG_CACHE_HOME")
    try:
        base = Path(home) if home else Path.home() / ".cache"
    except RuntimeError:  # neither HOME nor an entry of this user among the system's
        without_cache("~/.cache", "there is no home folder")
        return None
    folder = base / "sbertkit" / name
    try:
        base.mkdir(parents=True, exist_ok=True)
        for place in (folder.parent, folder):
            place.mkdir(mode=0o700, exist_ok=True)
            if not is_own(place):
                without_cache(place, "it belongs to another user, or is a link")
                return None
            make_private(place)
    except OSError as error:
        without_cache(folder, error.strerror or str(error))
        return None
    return folder


def use_for_matplotlib() -> None:
    """Lets matplotlib keep its list of fonts here, before it is imported.

    Else it makes folders of its own in the user's home.
    """
    if "MPLCONFIGDIR" not in os.environ:
        folder = cache_folder("matplotlib")
        if folder is not None:
            os.environ["MPLCONFIGDIR"] = str(folder)


def is_own(path: Path) -> bool:
    """Whether a file or folder, and no link, belongs to this user.

    Raises:
        OSError: It cannot be looked at.
    """
    found = path.lstat()
    if not (stat.S_ISDIR(found.st_mode) or stat.S_ISREG(found.st_mode)):
        return False
    return os.name == "nt" or found.st_uid == os.geteuid()


def is_private(path: Path) -> bool:
    """Whether a file or folder, and no link, belongs to this user and nobody else may write to it.

    Raises:
        OSError: It cannot be looked at.
    """
    return is_own(path) and (os.name == "nt" or not path.lstat().st_mode & _OTHERS_WRITE)


def make_private(path: Path) -> None:
    """Takes the right to write to a file or folder from everybody but its owner.

    Raises:
        OSError: It is somebody else's, or read-only.
    """
    mode = path.lstat().st_mode
    if os.name != "nt" and mode & _OTHERS_WRITE:
        path.chmod(stat.S_IMODE(mode) & ~_OTHERS_WRITE)


def without_cache(folder: str | os.PathLike[str], reason: str) -> None:
    """Logs, once per process, that work continues without the cache.

    Args:
        folder: What cannot be used.
        reason: Why not.
    """
    if not _logged.is_set():
        _logged.set()
        logger.warning(
            "the cache folder %s cannot be used (%s); work continues without it: name a folder of "
            "your own with XDG_CACHE_HOME",
            os.fspath(folder),
            reason,
        )
