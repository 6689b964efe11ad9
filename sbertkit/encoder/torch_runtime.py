"""Runs a torch model: by torch itself, or by an export of it where that is faster."""

import logging
from contextlib import suppress
from pathlib import Path
from typing import Any

from sbertkit.encoder.backends.base import Backend
from sbertkit.encoder.backends.libraries import backends_for
from sbertkit.encoder.backends.torch import choose_device
from sbertkit.encoder.exports.auto_precision import choose_precision
from sbertkit.encoder.exports.cache import cached_backend, cached_folder, is_cached
from sbertkit.encoder.exports.known import (
    KnownModel,
    ModelSource,
    as_rows,
    export_files,
    export_precision,
    keep_known,
)
from sbertkit.encoder.exports.places import export_place
from sbertkit.encoder.exports.probes import (
    FEW_PROBES,
    OPENING_PROBES,
    check_equal,
    probe_vectors,
)
from sbertkit.encoder.model_files import files_sha256
from sbertkit.encoder.options import LoadOptions
from sbertkit.encoder.spec import EncoderSpec
from sbertkit.encoder.torch_model import TorchModel, load_torch_model
from sbertkit.errors import InputError, MissingDependency, StorageError
from sbertkit.forks import RenewedLock

logger = logging.getLogger(__name__)

EXPORT_FROM = 10_000
"""Texts from which making an export first is faster than torch; it takes some seconds."""
CACHED_FROM = 1_000
"""Texts from which an export made before is faster where nothing is gained for the next time."""


class TorchRuntime:
    """Chooses the backend for each job of a model.

    Args:
        model: The model.
        source: The folder that it was just loaded from, so that its export is found the next time
            without loading it; ``None`` for a model that is not to be found so.
    """

    def __init__(self, model: TorchModel, source: ModelSource | None = None) -> None:
        self.model = model
        self._source = source
        self._noted: set[str] = set()
        # Before anybody can change its weights.
        self._loaded = None if source is None else (model.spec.options, model.fingerprint)
        self._options = model.spec.options
        self._precision = self._options.precision
        self._export_allowed = self._options.backend != "torch"
        self._choosing = RenewedLock()
        self._version = model.version
        self._torch: Backend | None = None
        self._export: Backend | None = None

    def __getstate__(self) -> dict[str, Any]:
        """What a copy has; it makes its own backends."""
        return {**self.__dict__, "_choosing": None, "_torch": None, "_export": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({**state, "_choosing": RenewedLock()})

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

    def export_folder(self, precision: str = "fp32") -> Path:
        """See `Encoder.export_folder`."""
        with self._choosing:
            folder = cached_folder(self.model, precision)
            self._keep_known(precision)
            return folder

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
            or texts < min(EXPORT_FROM, CACHED_FROM if self._source is None else 1)
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
                self._keep_known(export_precision(self.precision))
                return backend
            except (InputError, MissingDependency, StorageError) as error:
                if self._needs_export() and name == names[-1]:
                    raise
                logger.info("no export with %s: %s", name, error)
        self._export_allowed = False
        return None

    def _keep_known(self, precision: str) -> None:
        """Notes that the model has an export, if it is still the one that its files hold."""
        model, source = self.model, self._source
        if source is None or precision in self._noted:
            return
        self._noted.add(precision)
        if self._loaded != (model.spec.options, model.compute_fingerprint()):
            return
        folder = export_place(model.fingerprint, precision)
        with suppress(OSError, InputError):  # torch will be loaded the next time, too
            if folder is None or files_sha256(source.folder, remembered=False) != source.sha256:
                return
            vectors = probe_vectors(model.spec, model.backend(), OPENING_PROBES)
            known = KnownModel(
                model.fingerprint, export_files(folder), as_rows(vectors), model.warnings
            )
            keep_known(self._options, source, precision, known)


def load_torch_runtime(
    options: LoadOptions, source: ModelSource | None = None, *, trust_remote_code: bool = False
) -> TorchRuntime:
    """The runtime of a model folder or hub name; see `Encoder.load` and `TorchRuntime`."""
    device = choose_device(options.device)
    _check_device(options, device.type)
    folder = None if source is None else source.folder
    model = load_torch_model(options, device, folder, trust_remote_code=trust_remote_code)
    return TorchRuntime(model, source)


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
