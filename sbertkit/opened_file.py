"""Files that are read while an index is open, and the check that none was overwritten."""

import os
from pathlib import Path
from typing import NamedTuple

from sbertkit.errors import DamagedIndex


class _State(NamedTuple):
    device: int
    inode: int
    size: int
    modified: int

    @classmethod
    def of(cls, status: os.stat_result) -> "_State":
        return cls(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


class OpenedFile:
    """A file that stays open or memory-mapped, and whose content must not change.

    Attributes:
        path: Its path.
    """

    def __init__(self, path: Path, status: os.stat_result) -> None:
        self.path = path
        self._state = _State.of(status)

    def is_in_place(self) -> bool:
        """Whether its path still names it."""
        now = self._now()
        return now is not None and now[:2] == self._state[:2]

    def check(self) -> None:
        """Refuses a file that was overwritten; one that was removed or replaced stays readable.

        Raises:
            DamagedIndex: Its size or modification time has changed.
        """
        now = self._now()
        if now is not None and now != self._state and now[:2] == self._state[:2]:
            raise DamagedIndex(
                f"{self.path} was overwritten while the index was open; open it again, and if it "
                "is damaged then, restore it from a backup or run: sbertkit repair"
            )

    def _now(self) -> _State | None:
        try:
            return _State.of(os.lstat(self.path))
        except OSError:
            return None
