"""Which precision is the fastest that changes the vectors next to nothing, measured once."""

import logging
import time
from collections.abc import Callable
from contextlib import suppress

from sbertkit.encoder.backends import BACKENDS
from sbertkit.encoder.backends.base import Backend
from sbertkit.encoder.backends.libraries import backends_for
from sbertkit.encoder.exports.cache import cached_backend
from sbertkit.encoder.exports.chosen_precision import (
    CANDIDATES,
    MIN_COSINE,
    ChosenPrecision,
    keep_choice,
    read_choice,
)
from sbertkit.encoder.exports.probes import PROBES, min_cosine, probe_vectors
from sbertkit.encoder.torch_model import TorchModel
from sbertkit.errors import InputError, SbertkitError

logger = logging.getLogger(__name__)

_TIMED = tuple(f"{number}: {text}" for number in range(4) for text in PROBES[1:])
_ROUNDS = 3


def choose_precision(model: TorchModel) -> str:
    """The fastest precision whose lowest cosine to float32 is 0.9995 or more; it is logged.

    Of those that the backend that is asked for has. Measured once per machine, model, backend and
    version of the libraries; kept in the user's cache.
    """
    which = (model.fingerprint, model.device.type, model.spec.options.backend)
    found = read_choice(*which)
    if found is None:
        found = _measure(model)
        keep_choice(found, *which)
    found.log()
    return found.precision


def _measure(model: TorchModel) -> ChosenPrecision:
    expected = probe_vectors(model.spec, model.backend())
    seconds = _seconds(model, _backend(model, "fp32"))
    best = ChosenPrecision("fp32", 1.0, 1.0)
    for precision in CANDIDATES.get(model.device.type, ()):
        try:
            backend = _backend(model, precision)
            cosine = min_cosine(expected, probe_vectors(model.spec, backend))
        except (SbertkitError, RuntimeError) as error:  # what the model or device cannot do
            logger.info("precision %s is not possible: %s", precision, error)
            continue
        if cosine >= MIN_COSINE:
            speed = seconds / _seconds(model, backend)
            best = max(best, ChosenPrecision(precision, speed, cosine), key=lambda one: one.speed)
    return best


def _backend(model: TorchModel, precision: str) -> Backend:
    asked = model.spec.options.backend
    names = backends_for(precision, asked) if model.device.type == "cpu" else ()
    for name in names:
        with suppress(SbertkitError):  # another one may do
            if precision in BACKENDS[name].precisions:
                return cached_backend(model, precision, name)
    if asked not in ("auto", "torch") or precision == "int8":
        raise InputError(f"no library here runs an export in {precision}")
    return model.backend(precision)


def _seconds(model: TorchModel, backend: Backend) -> float:
    """The shortest time of some rounds over the timed texts."""
    return min(_timed(lambda: probe_vectors(model.spec, backend, _TIMED)) for _ in range(_ROUNDS))


def _timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
