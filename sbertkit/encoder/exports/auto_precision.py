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
import torch

from sbertkit.encoder.backends import Backend
from sbertkit.encoder.backends.torch import TorchBackend
from sbertkit.encoder.encoder import Encoder
from sbertkit.encoder.exports.cache import cache_key, cached_backend
from sbertkit.encoder.exports.probes import PROBES, least_cosine, probe_vectors
from sbertkit.encoder.exports.runtimes import engines_for
from sbertkit.errors import InputError, SbertkitError, StorageError
from sbertkit.files import read_regular
from sbertkit.schema import read_record
from sbertkit.storage import staged_file, storage_errors
from sbertkit.user_cache import cache_folder, is_private, without_cache

logger = logging.getLogger(__name__)

LEAST_COSINE = 0.9995
"""To float32, on every probe text."""
_CANDIDATES = {"cpu": ("bf16", "int8"), "cuda": ("bf16", "fp16"), "mps": ("fp16",)}
_TIMED = tuple(f"{number}: {text}" for number in range(4) for text in PROBES[1:])
_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class _Found:
    """A precision, how many times as fast as float32 it is, and its least cosine to it."""

    precision: str
    speed: Annotated[float, msgspec.Meta(gt=0)]
    cosine: Annotated[float, msgspec.Meta(ge=LEAST_COSINE, le=1.001)]


def choose_precision(encoder: Encoder, device: str) -> str:
    """The fastest precision whose least cosine to float32 is 0.9995 or more, said aloud.

    Measured once for each machine, model and version of the libraries; kept in the user's cache.

    Args:
        encoder: Loaded with precision ``auto``.
        device: The kind of device that it runs on.
    """
    path = _place(encoder, device)
    found = None if path is None else _read(path, device)
    if found is None:
        found = _measure(encoder, device)
        if path is not None:
            _keep(found, path)
    logger.warning(
        "precision auto: %s on this machine, %.1f times as fast as fp32, least cosine %.5f",
        found.precision,
        found.speed,
        found.cosine,
    )
    return found.precision


def _measure(encoder: Encoder, device: str) -> _Found:
    by_torch = TorchBackend(encoder.network, torch.device(device))
    expected = probe_vectors(encoder, by_torch)
    seconds = _seconds(encoder, _backend(encoder, device, "fp32"))
    best = _Found("fp32", 1.0, 1.0)
    for precision in _CANDIDATES.get(device, ()):
        try:
            backend = _backend(encoder, device, precision)
            cosine = least_cosine(expected, probe_vectors(encoder, backend))
        except (SbertkitError, RuntimeError) as error:  # what the model or device cannot do
            logger.info("precision %s is not possible: %s", precision, error)
            continue
        if cosine >= LEAST_COSINE:
            speed = seconds / _seconds(encoder, backend)
            best = max(best, _Found(precision, speed, cosine), key=lambda one: one.speed)
    return best


def _backend(encoder: Encoder, device: str, precision: str) -> Backend:
    for engine in engines_for(precision, "auto") if device == "cpu" else ():
        with suppress(SbertkitError):  # another one may do
            return cached_backend(encoder, precision, engine)
    if precision == "int8":
        raise InputError("nothing here runs a graph in 8 bits")
    return TorchBackend(encoder.network, torch.device(device), precision)


def _seconds(encoder: Encoder, backend: Backend) -> float:
    """The least time of some rounds over the timed texts."""
    return min(_timed(lambda: probe_vectors(encoder, backend, _TIMED)) for _ in range(_ROUNDS))


def _timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _place(encoder: Encoder, device: str) -> Path | None:
    machine = [platform.node(), platform.machine(), device, os.cpu_count()]
    folder = cache_folder("precisions")
    return None if folder is None else folder / f"{cache_key(encoder, *machine)}.json"


def _keep(found: _Found, path: Path) -> None:
    """Writes what was found, where that is possible; else it is measured again the next time."""
    try:
        with storage_errors(path), staged_file(path, private=True) as staged:
            staged.write_text(json.dumps(asdict(found)), encoding="utf-8")
    except StorageError as error:
        without_cache(path, str(error))


def _read(path: Path, device: str) -> _Found | None:
    """What was kept, if it is this user's and says something that can be."""
    try:
        if not is_private(path):
            return None
        found = read_record(read_regular(path), _Found, path)
    except (OSError, InputError):
        return None
    return found if found.precision in ("fp32", *_CANDIDATES.get(device, ())) else None
