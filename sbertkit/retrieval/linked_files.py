"""Files of a new segment that are those of an old one."""

import os
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from sbertkit.storage import storage_errors


def link_files(old: Path, folder: Path, names: Iterable[str]) -> None:
    """Puts files of one folder into another, too; as hard links where that can be.

    Args:
        old: The folder that has them.
        folder: The other.
        names: Their names; those that are not there are left out.

    Raises:
        StorageError: The disk is full or a permission is missing.
    """
    for name in names:
        source, target = old / name, folder / name
        with storage_errors(folder):
            if not source.exists():
                continue
            with suppress(OSError):  # no links here, or none to files of others
                os.link(source, target)
                continue
            shutil.copyfile(source, target)
