"""Which precision is the fastest that changes the vectors next to nothing, measured once."""

import json
import logging
import os
import platform
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import msgspec

from sbertkit.encoder.backends.base import Backend
from sbertkit.encoder.backends.libraries import backends_for
from sbertkit.encoder.exports.cache import cached_backend
from sbertkit.encoder.exports.places import cache_key
from sbertkit.encoder.exports.probes import PROBES, min_cosine, probe_vectors
from sbertkit.encoder.torch_model import TorchModel
from sbertkit.errors import InputError, SbertkitError, StorageError
from sbertkit.files import read_regular
from sbertkit.schema import read_record
from sbertkit.storage import staged_file, storage_errors
from sbertkit.user_cache import cache_folder, is_private, without_cache

logger = logging.getLogger(__name__)

MIN_COSINE = 0.9995
"""To float32, on every probe text."""
_CANDIDATES = {"cpu": ("bf16", "int8"), "cuda": ("bf16", "fp16"), "mps": ("fp16",)}
_TIMED = tuple(f"{number}: {text}" for number in range(4) for text in PROBES[1:])
_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class _Found:
    """A precision, its speed as a multiple of that of float32, and its lowest cosine to it."""

    precision: str
    speed: Annotated[float, msgspec.Meta(gt=0)]
    cosine: Annotated[float, msgspec.Meta(ge=MIN_COSINE, le=1.001)]


def choose_precision(model: TorchModel) -> str:
    """The fastest precision whose lowest cosine to float32 is 0.9995 or more; it is logged.

    Measured once per machine, model and version of the libraries; kept in the user's cache.
    """
    path = _cache_path(model)
    found = None if path is None else _read(path, model.device.type)
    if found is None:
        found = _measure(model)
        if path is not None:
            _keep(found, path)
    logger.warning(
        "precision auto: %s on this machine, %.1f times as fast as fp32, lowest cosine %.5f",
        found.precision,
        found.speed,
        found.cosine,
    )
    return found.precision


def _measure(model: TorchModel) -> _Found:
    expected = probe_vectors(model.spec, model.backend())
    seconds = _seconds(model, _backend(model, "fp32"))
    best = _Found("fp32", 1.0, 1.0)
    for precision in _CANDIDATES.get(model.device.type, ()):
        try:
            backend = _backend(model, precision)
            cosine = min_cosine(expected, probe_vectors(model.spec, backend))
        except (SbertkitError, RuntimeError) as error:  # what the model or device cannot do
            logger.info("precision %s is not possible: %s", precision, error)
            continue
        if cosine >= MIN_COSINE:
            speed = seconds / _seconds(model, backend)
            best = max(best, _Found(precision, speed, cosine), key=lambda one: one.speed)
    return best


def _backend(model: TorchModel, precision: str) -> Backend:
    for name in backends_for(precision, "auto") if model.device.type == "cpu" else ():
        with suppress(SbertkitError):  # another one may do
            return cached_backend(model, precision, name)
    if precision == "int8":
        raise InputError("no library here runs an export in 8 bits")
    return model.backend(precision)


def _seconds(model: TorchModel, backend: Backend) -> float:
    """The shortest time of some rounds over the timed texts."""
    return min(_timed(lambda: probe_vectors(model.spec, backend, _TIMED)) for _ in range(_ROUNDS))


def _timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _cache_path(model: TorchModel) -> Path | None:
    machine = [platform.node(), platform.machine(), model.device.type, os.cpu_count()]
    folder = cache_folder("precisions")
    return None if folder is None else folder / f"{cache_key(model.fingerprint, *machine)}.json"


def _keep(found: _Found, path: Path) -> None:
    """Writes what was found, where that is possible; else it is measured again the next time."""
    try:
        with storage_errors(path), staged_file(path, private=True) as staged:
            staged.write_text(json.dumps(asdict(found)), encoding="utf-8")
    except StorageError as error:
        without_cache(path, str(error))


def _read(path: Path, device: str) -> _Found | None:
    """What was kept, if it is this user's and possible."""
    try:
        if not is_private(path):
            return None
        found = read_record(read_regular(path), _Found, path)
    except (OSError, InputError):
        return None
    return found if found.precision in ("fp32", *_CANDIDATES.get(device, ())) else None
