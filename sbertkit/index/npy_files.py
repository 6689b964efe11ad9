"""Arrays in .npy files, whose type and shape are known before they are read."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sbertkit.errors import DamagedIndex
from sbertkit.files import open_regular
from sbertkit.opened_file import OpenedFile

_MAGIC = b"\x93NUMPY\x01\x00"


def write_array(path: Path, array: npt.NDArray[Any]) -> None:
    """Writes an array."""
    with path.open("wb") as file:
        np.lib.format.write_array(file, array, version=(1, 0), allow_pickle=False)


def map_array(path: Path, dtype: Any, shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """The array of a file, as `map_opened` gives it."""
    return map_opened(path, dtype, shape)[0]


def map_opened(
    path: Path, dtype: Any, shape: tuple[int, ...]
) -> tuple[npt.NDArray[Any], OpenedFile]:
    """The array of a file, memory-mapped, and the file.

    Nothing of the header but its length is read, since the hash of a large file may be unchecked.

    Raises:
        DamagedIndex: The file does not have so many bytes.
    """
    size = np.dtype(dtype).itemsize * int(np.prod(shape))
    with open_regular(path) as file:
        status = os.fstat(file.fileno())
        start = status.st_size - size
        begin = file.read(len(_MAGIC) + 2)
        length = len(begin) + int.from_bytes(begin[len(_MAGIC) :], "little")
        if not begin.startswith(_MAGIC) or start != length or size == 0:
            raise DamagedIndex(f"{path} does not hold an array of shape {shape}")
        order = np.dtype(dtype).newbyteorder("<")
        array = np.memmap(file, dtype=order, mode="r", offset=start, shape=shape)
    return array, OpenedFile(path, status)
