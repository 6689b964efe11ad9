"""Arrays in .npy files, whose type and shape are known before they are read."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sbertkit.errors import DamagedIndex
from sbertkit.files import open_regular

_MAGIC = b"\x93NUMPY\x01\x00"


def write_array(path: Path, array: npt.NDArray[Any]) -> None:
    """Writes an array."""
    with path.open("wb") as file:
        np.lib.format.write_array(file, array, version=(1, 0), allow_pickle=False)


def map_array(path: Path, dtype: Any, shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """The array of a file, memory-mapped; nothing of its header but the length is read.

    Raises:
        DamagedIndex: The file does not have so many bytes.
    """
    size = np.dtype(dtype).itemsize * int(np.prod(shape))
    with open_regular(path) as file:
        start = os.fstat(file.fileno()).st_size - size
        begin = file.read(len(_MAGIC) + 2)
        length = len(begin) + int.from_bytes(begin[len(_MAGIC) :], "little")
        if not begin.startswith(_MAGIC) or start != length or size == 0:
            raise DamagedIndex(f"{path} does not hold an array of shape {shape}")
        return np.memmap(
            file, dtype=np.dtype(dtype).newbyteorder("<"), mode="r", offset=start, shape=shape
        )
