"""The precision that ``auto`` stands for, as it was measured on this machine; needs no torch."""

import json
import logging
import os
import platform
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import msgspec

from sbertkit.encoder.exports.places import cache_key, installed_version
from sbertkit.errors import InputError, StorageError
from sbertkit.files import read_regular
from sbertkit.schema import read_record
from sbertkit.storage import staged_file, storage_errors
from sbertkit.user_cache import cache_folder, is_private, without_cache

logger = logging.getLogger(__name__)

MIN_COSINE = 0.9995
"""To float32, on every probe text."""
CANDIDATES = {"cpu": ("bf16", "int8"), "cuda": ("bf16", "fp16"), "mps": ("fp16",)}
"""What may be faster than float32, by the kind of device."""


@dataclass(frozen=True, slots=True)
class ChosenPrecision:
    """A precision, its speed as a multiple of that of float32, and its lowest cosine to it."""

    precision: str
    speed: Annotated[float, msgspec.Meta(gt=0)]
    cosine: Annotated[float, msgspec.Meta(ge=MIN_COSINE, le=1.001)]

    def log(self) -> None:
        """Logs what was chosen."""
        logger.warning(
            "precision auto: %s on this machine, %.1f times as fast as fp32, lowest cosine %.5f",
            self.precision,
            self.speed,
            self.cosine,
        )


def read_choice(fingerprint: str, device: str, backend: str) -> ChosenPrecision | None:
    """What was chosen for an encoder, if it is kept by this user, and possible.

    Args:
        fingerprint: That of the encoder.
        device: The kind of device.
        backend: The backend that is asked for, or ``auto``.
    """
    path = _place(fingerprint, device, backend)
    try:
        if path is None or not is_private(path):
            return None
        found = read_record(read_regular(path), ChosenPrecision, path)
    except (OSError, InputError):
        return None
    return found if found.precision in ("fp32", *CANDIDATES.get(device, ())) else None


def keep_choice(found: ChosenPrecision, fingerprint: str, device: str, backend: str) -> None:
    """Writes what was chosen, where that is possible; else it is measured again the next time."""
    path = _place(fingerprint, device, backend)
    if path is None:
        return
    try:
        with storage_errors(path), staged_file(path, private=True) as staged:
            staged.write_text(json.dumps(asdict(found)), encoding="utf-8")
    except StorageError as error:
        without_cache(path, str(error))


def _place(fingerprint: str, device: str, backend: str) -> Path | None:
    machine = [platform.node(), platform.machine(), device, os.cpu_count()]
    which = [fingerprint, backend, installed_version("openvino")]
    folder = cache_folder("precisions")
    return None if folder is None else folder / f"{cache_key(*which, *machine)}.json"
