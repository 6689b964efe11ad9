"""Whether torch might find a GPU, found out without loading it."""

import platform
import sys
from ctypes.util import find_library
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_LINUX_DEVICES = ("/dev/nvidiactl", "/dev/nvmap", "/dev/kfd", "/dev/dxg")
"""Those of NVIDIA's driver, of its small boards, of AMD's driver, and of Windows below Linux."""


def may_have_gpu() -> bool:
    """Whether device ``auto`` might be another than the CPU."""
    try:
        if version("torch").endswith("+cpu"):
            return False
    except PackageNotFoundError:
        return False
    if sys.platform == "darwin":
        return platform.machine() == "arm64"
    if sys.platform == "win32":
        return find_library("nvcuda") is not None
    return any(Path(device).exists() for device in _LINUX_DEVICES)
