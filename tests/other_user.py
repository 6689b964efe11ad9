"""Child processes with fewer rights than root, whom no permission holds back.

Run as a script it does so to a command: ``python other_user.py obey_permissions COMMAND...``. The
fixtures `obey_permissions` and `become_other_user` skip a test where the system does not allow it,
or where the package could not be read afterwards.
"""

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

NOBODY = 65_534

_DAC_OVERRIDE, _DAC_READ_SEARCH = 1, 2
"""Capabilities: to pass over all permissions, and over those for reading alone."""
_KEEP_CAPABILITIES, _DROP_FROM_BOUNDS, _AMBIENT, _RAISE = 8, 24, 47, 2
"""Numbers of prctl."""
_VERSION = 0x20080522
"""Of the structures of capget and capset."""

_PROBE = "from importlib.metadata import version; import sbertkit; version('sbertkit')"


def obey_permissions() -> None:
    """Holds this process, and those it starts, to the permissions of its own user.

    Threads that run already are not held.

    Raises:
        OSError: The system does not do that for root.
    """
    if os.geteuid() != 0:
        return
    for capability in (_DAC_OVERRIDE, _DAC_READ_SEARCH):
        _call("prctl", _DROP_FROM_BOUNDS, capability, 0, 0, 0)
    held = ~(1 << _DAC_OVERRIDE | 1 << _DAC_READ_SEARCH)
    _set_capabilities(lambda bits: bits & held, inherited=False)


def become_other_user(uid: int = NOBODY) -> None:
    """Makes this process, and those it starts, those of a user who owns nothing.

    It may still read all, since interpreter and package may lie in a folder that others may not
    enter.

    Raises:
        OSError: This is not root, or may not do that.
    """
    if sys.platform == "linux":
        _call("prctl", _KEEP_CAPABILITIES, 1, 0, 0, 0)
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)
    if sys.platform == "linux" and _set_capabilities(
        lambda bits: bits & 1 << _DAC_READ_SEARCH, inherited=True
    ):
        _call("prctl", _AMBIENT, _RAISE, _DAC_READ_SEARCH, 0, 0)


def restricted(change: Callable[[], None], *command: str) -> list[str]:
    """A command line that gives up rights by a function of this module before it runs another."""
    return [sys.executable, __file__, change.__name__, *command]


@cache
def why_not(change: Callable[[], None]) -> str | None:
    """The reason why rights cannot be given up here by a function of this module, if there is one.

    What is left must be enough to import the package and to read its metadata.
    """
    if os.name == "nt":
        return "POSIX permissions"
    if change is become_other_user and os.geteuid() != 0:
        return "only root may become another user"
    tried = subprocess.run(
        restricted(change, sys.executable, "-c", _PROBE), capture_output=True, text=True
    )
    if tried.returncode == 0:
        return None
    reason = (tried.stderr.splitlines() or ["no reason"])[-1]
    return f"without the rights of root the package cannot be used here: {reason}"


@contextmanager
def public_folder() -> Iterator[Path]:
    """A folder that every user can reach and look into, which those of pytest are not."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        folders = [folder]
        for place in folders:  # those within become visible one by one
            place.chmod(0o755)
            folders += (path for path in place.iterdir() if path.is_dir() and not path.is_symlink())
        shutil.rmtree(folder)


def _set_capabilities(wanted: Callable[[int], int], *, inherited: bool) -> int:
    """Sets the capabilities of this thread, numbers 0 to 31, from the permitted ones."""
    header = (ctypes.c_uint32 * 2)(_VERSION, 0)
    sets = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable; then 32 and more
    _call("capget", header, sets)
    bits = wanted(sets[1])
    sets[0] = sets[1] = bits
    if inherited:
        sets[2] = bits
        sets[3] = sets[4] = sets[5] = 0
    _call("capset", header, sets)
    return bits


def _call(name: str, *arguments: object) -> None:
    function = getattr(ctypes.CDLL(None, use_errno=True), name, None)
    if function is None:
        raise OSError(f"this system has no {name}")
    if function(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


if __name__ == "__main__":
    {"obey_permissions": obey_permissions, "become_other_user": become_other_user}[sys.argv[1]]()
    os.execv(sys.argv[2], sys.argv[2:])
