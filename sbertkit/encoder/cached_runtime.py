"""Runs a known model by its export in the user's cache, and loads the model once it is needed."""

import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sbertkit.encoder.backends.base import Backend
from sbertkit.encoder.backends.libraries import backends_for
from sbertkit.encoder.devices import may_have_gpu
from sbertkit.encoder.exports.exported import ExportedRuntime
from sbertkit.encoder.exports.known import ModelSource, open_known
from sbertkit.encoder.model_files import files_sha256
from sbertkit.encoder.options import LoadOptions
from sbertkit.encoder.resolve import resolve_options
from sbertkit.encoder.spec import EncoderSpec
from sbertkit.errors import InputError
from sbertkit.forks import RenewedLock

if TYPE_CHECKING:
    from sbertkit.encoder.torch_model import TorchModel
    from sbertkit.encoder.torch_runtime import TorchRuntime

logger = logging.getLogger(__name__)


class CachedRuntime:
    """An export for all that it can do; what only torch can do loads the model.

    Args:
        exported: Runs the export.
        load: Loads the model.
    """

    def __init__(self, exported: ExportedRuntime, load: "Callable[[], TorchRuntime]") -> None:
        self._exported = exported
        self._load = load
        self._torch: TorchRuntime | None = None
        self._loading = RenewedLock()

    def __getstate__(self) -> dict[str, Any]:
        """What a copy has."""
        return {**self.__dict__, "_loading": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({**state, "_loading": RenewedLock()})

    @property
    def _runtime(self) -> "ExportedRuntime | TorchRuntime":
        return self._torch or self._exported

    @property
    def spec(self) -> EncoderSpec:
        """Tokenizer, prompts and limits."""
        return self._runtime.spec

    @property
    def device(self) -> str:
        """The kind of device that it runs on."""
        return self._runtime.device

    @property
    def fingerprint(self) -> str:
        """See `Encoder.fingerprint`."""
        return self._runtime.fingerprint

    @property
    def precision(self) -> str:
        """What it computes in."""
        return self._runtime.precision

    @property
    def model(self) -> "TorchModel":
        """The model, loaded now if need be."""
        return self._loaded().model

    def set_max_tokens(self, limit: int) -> None:
        """Sets the token limit; see `TorchModel.set_max_tokens`."""
        self._loaded().set_max_tokens(limit)

    def export_folder(self, precision: str = "fp32") -> Path:
        """See `Encoder.export_folder`."""
        if self._torch is None and precision == self._exported.export_precision:
            return self._exported.export_folder()
        return self._loaded().export_folder(precision)

    def backend(self, texts: int) -> Backend:
        """The backend for a job of at least so many texts."""
        return self._runtime.backend(texts)

    def _loaded(self) -> "TorchRuntime":
        """The runtime of the model itself, which serves from now on.

        Raises:
            InputError: The model's files were changed since the export was opened.
        """
        with self._loading:
            if self._torch is None:
                loaded = self._load()
                if loaded.fingerprint != self._exported.fingerprint:
                    raise InputError(
                        f"{self.spec.options.model} was changed since it was loaded; load it again"
                    )
                self._torch = loaded
            return self._torch


def load_runtime(
    options: LoadOptions, *, trust_remote_code: bool = False
) -> "CachedRuntime | TorchRuntime":
    """The runtime of a model folder or hub name, without torch if its export is known.

    Raises:
        InputError: See `Encoder.load`.
    """
    source = None
    # Code that comes with a model may read files that nobody hashes.
    if _export_serves(options) and not trust_remote_code:
        source = _source(resolve_options(options))
    load = partial(_load_with_torch, options, source, trust_remote_code=trust_remote_code)
    exported = None if source is None else open_known(options, source)
    return load() if exported is None else CachedRuntime(exported, load)


def _load_with_torch(
    options: LoadOptions, source: ModelSource | None, *, trust_remote_code: bool
) -> "TorchRuntime":
    from sbertkit.encoder.torch_runtime import load_torch_runtime

    return load_torch_runtime(options, source, trust_remote_code=trust_remote_code)


def _export_serves(options: LoadOptions) -> bool:
    """Whether an export could do what is asked for."""
    precision = "fp32" if options.precision == "auto" else options.precision
    if options.device not in ("auto", "cpu") or not backends_for(precision, options.backend):
        return False
    return options.device == "cpu" or not may_have_gpu()


def _source(folder: Path) -> ModelSource | None:
    """The folder and the hash of its files; ``None`` where they cannot be hashed."""
    try:
        return ModelSource(folder, files_sha256(folder))
    except (OSError, InputError) as error:  # whoever loads them says what is wrong
        logger.info("the files of %s were not hashed: %s", folder, error)
        return None
