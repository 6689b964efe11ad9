"""Runs a torch model: by torch itself, or by an export of it where that is faster."""

import logging
import threading
from pathlib import Path
from typing import Any

from sbertkit.encoder.backends.base import Backend
from sbertkit.encoder.backends.libraries import backends_for
from sbertkit.encoder.backends.torch import choose_device
from sbertkit.encoder.exports.auto_precision import choose_precision
from sbertkit.encoder.exports.cache import cached_backend, cached_folder, is_cached
from sbertkit.encoder.exports.probes import FEW_PROBES, check_equal, probe_vectors
from sbertkit.encoder.options import LoadOptions
from sbertkit.encoder.spec import EncoderSpec
from sbertkit.encoder.torch_model import TorchModel, load_torch_model
from sbertkit.errors import InputError, MissingDependency, StorageError

logger = logging.getLogger(__name__)

EXPORT_FROM = 10_000
"""Texts from which making an export first is faster than torch; it takes some seconds."""
CACHED_FROM = 1_000
"""Texts from which an export made before is faster; to read it takes part of a second."""


class TorchRuntime:
    """Chooses the backend for each job of a model."""

    def __init__(self, model: TorchModel) -> None:
        self.model = model
        self._options = model.spec.options
        self._precision = self._options.precision
        self._export_allowed = self._options.backend != "torch"
        self._choosing = threading.RLock()
        self._version = model.version
        self._torch: Backend | None = None
        self._export: Backend | None = None

    def __getstate__(self) -> dict[str, Any]:
        """What a copy has; it makes its own backends."""
        return {**self.__dict__, "_choosing": None, "_torch": None, "_export": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({**state, "_choosing": threading.RLock()})

    @property
    def spec(self) -> EncoderSpec:
        """Tokenizer, prompts and limits."""
        return self.model.spec

    @property
    def device(self) -> str:
        """The kind of device that it runs on."""
        return self.model.device.type

    @property
    def fingerprint(self) -> str:
        """See `Encoder.fingerprint`."""
        return self.model.fingerprint

    @property
    def precision(self) -> str:
        """What it computes in; ``auto`` is decided at the first call."""
        with self._choosing:
            if self._precision == "auto":
                self._precision = choose_precision(self.model)
            return self._precision

    def set_max_tokens(self, limit: int) -> None:
        """Sets the token limit; see `TorchModel.set_max_tokens`."""
        self.model.set_max_tokens(limit)

    def export_folder(self) -> Path:
        """See `Encoder.export_folder`."""
        with self._choosing:
            return cached_folder(self.model, "fp32")

    def backend(self, texts: int) -> Backend:
        """The backend for a job of at least so many texts.

        ``auto`` takes an export on the CPU once a job is long enough to make one first.
        """
        with self._choosing:
            if self.model.network.training:
                self.model.network.eval()  # no vector is encoded with dropout
            if self._version != self.model.version:
                self._drop_backends()
            if self._export is None and self._export_serves(texts):
                self._export = self._open_export()
            if self._export is not None:
                return self._export
            if self._torch is None:
                self._torch = self.model.backend(self.precision)
            return self._torch

    def _drop_backends(self) -> None:
        """Forgets exports and half-precision copies, which training makes stale."""
        self._version = self.model.version
        self._torch = self._export = None
        if self._options.backend == "auto":
            self._export_allowed = False  # one of weights that change would serve only once

    def _needs_export(self) -> bool:
        """Whether nothing else than an export will do."""
        return self.precision == "int8" or self._options.backend in ("onnx", "openvino")

    def _export_serves(self, texts: int) -> bool:
        if self._needs_export():
            return True
        if (
            not self._export_allowed
            or self.device != "cpu"
            or texts < min(CACHED_FROM, EXPORT_FROM)
        ):
            return False
        if not backends_for(self.precision, "auto"):
            return False
        return texts >= EXPORT_FROM or is_cached(self.model, "fp32")

    def _open_export(self) -> Backend | None:
        """The export in the fastest library that runs it; ``None`` if torch has to do.

        Raises:
            InputError: Nothing runs it, and nothing else will do.
            MissingDependency: So is it, since a library is missing.
            StorageError: So is it, since the export cannot be kept.
        """
        names = backends_for(self.precision, self._options.backend) or ("onnx",)
        for name in names:
            try:
                backend = cached_backend(self.model, self.precision, name)
                if name != "onnx":  # with which exports are compared when made or found
                    expected = probe_vectors(self.spec, self.model.backend(), FEW_PROBES)
                    found = probe_vectors(self.spec, backend, FEW_PROBES)
                    check_equal(expected, found, self.precision, self._options.model)
                return backend
            except (InputError, MissingDependency, StorageError) as error:
                if self._needs_export() and name == names[-1]:
                    raise
                logger.info("no export with %s: %s", name, error)
        self._export_allowed = False
        return None


def load_torch_runtime(options: LoadOptions, *, trust_remote_code: bool = False) -> TorchRuntime:
    """The runtime of a model folder or hub name; see `Encoder.load`."""
    device = choose_device(options.device)
    _check_device(options, device.type)
    return TorchRuntime(load_torch_model(options, device, trust_remote_code=trust_remote_code))


def _check_device(options: LoadOptions, device: str) -> None:
    """Refuses what a device cannot do.

    Raises:
        InputError: Such options.
    """
    exported = options.backend in ("onnx", "openvino") or options.precision == "int8"
    if exported and device != "cpu":
        raise InputError(
            f"backends onnx and openvino and precision int8 run on the CPU, not on {device}; "
            "choose device cpu (--device cpu)"
        )
    if options.precision == "fp16" and device == "cpu":
        raise InputError("precision fp16 needs a GPU; on the CPU choose bf16, int8 or auto")
