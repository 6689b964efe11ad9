"""Exports kept in the user's cache, so that each is made once per machine."""

import atexit
import logging
import os
import shutil
import tempfile
import weakref
from functools import cache
from pathlib import Path

from sbertkit.encoder.backends.base import Backend
from sbertkit.encoder.backends.libraries import import_library, open_backend
from sbertkit.encoder.backends.onnx import OnnxBackend
from sbertkit.encoder.exports.exporting import check_precision, write_export
from sbertkit.encoder.exports.manifest import MODEL_FILE, read_manifest
from sbertkit.encoder.exports.places import export_place, is_untouched
from sbertkit.encoder.exports.probes import FEW_PROBES, MIN_COSINE, min_cosine, probe_vectors
from sbertkit.encoder.torch_model import TorchModel
from sbertkit.errors import InputError, StorageError
from sbertkit.storage import staged_folder, storage_errors
from sbertkit.user_cache import is_own, without_cache

logger = logging.getLogger(__name__)
_compared: "weakref.WeakKeyDictionary[TorchModel, set[Path]]" = weakref.WeakKeyDictionary()
"""The exports that gave a model's vectors in this process; to find out takes about a second."""


def cached_backend(model: TorchModel, precision: str, name: str = "onnx") -> Backend:
    """The backend of that name for a model's export; see `cached_folder` and `open_backend`."""
    folder = cached_folder(model, "int8" if precision == "int8" else "fp32")
    return open_backend(name, folder / MODEL_FILE, precision)


def is_cached(model: TorchModel, precision: str) -> bool:
    """Whether a model's export seems to be in the cache."""
    place = export_place(model.fingerprint, precision)
    return place is not None and place.is_dir()


def cached_folder(model: TorchModel, precision: str) -> Path:
    """The folder of a model's export, which is made and kept where there is none yet.

    One that is kept counts only if it is this user's own, nobody else may write to it, it is whole,
    and it gives the model's vectors; else it is made again, or left alone where it is somebody
    else's. Without a cache the export lasts as long as this process. Two processes may make one at
    once; the first to end is kept.

    Raises:
        InputError: The model cannot be exported, or not in that precision.
        MissingDependency: onnxruntime or onnx is missing.
        StorageError: It can be written neither to the cache nor to a temporary folder.
    """
    check_precision(precision)
    import_library("onnx")
    place = export_place(model.fingerprint, precision)
    if place is not None and _is_kept(model, precision, place):
        return place
    folder = _temporary_folder() / f"{model.fingerprint}-{precision}"
    if not folder.exists():
        _make(model, precision, folder)
    return folder


def _is_kept(model: TorchModel, precision: str, folder: Path) -> bool:
    """Whether the export is in the cache, be it that it was made just now."""
    try:
        if _is_found(model, precision, folder):
            return True
        if folder.exists():
            shutil.rmtree(folder)
        try:
            _make(model, precision, folder)
        except (OSError, StorageError):
            if not _is_found(model, precision, folder):  # else another process was faster
                raise
    except (OSError, StorageError) as error:
        without_cache(folder, str(error))
        return False
    return True


def _is_found(model: TorchModel, precision: str, folder: Path) -> bool:
    """Whether the export is there and counts.

    Raises:
        OSError: It cannot be looked at.
        StorageError: What is there is not this user's.
    """
    if not os.path.lexists(folder):
        return False
    if not is_own(folder):
        raise StorageError("it belongs to another user, or is a link")
    fault = _fault(model, precision, folder)
    if fault is not None:
        logger.warning("the export in %s %s; it is made again", folder, fault)
    return fault is None


def _fault(model: TorchModel, precision: str, folder: Path) -> str | None:
    """Why an export in the cache does not count, if it does not."""
    if not is_untouched(folder):
        return "may have been written by others, or not whole"
    try:
        manifest = read_manifest(folder)
        if (manifest.fingerprint, manifest.precision) != (model.fingerprint, precision):
            return "is that of another encoder"
        if folder in _compared.get(model, ()):
            return None
        exported = OnnxBackend(folder / MODEL_FILE, precision)
        found = probe_vectors(model.spec, exported, FEW_PROBES)
    except InputError:
        return "is damaged"
    expected = probe_vectors(model.spec, model.backend(), FEW_PROBES)
    if min_cosine(expected, found) < MIN_COSINE[precision]:
        return "gives other vectors than its model"
    _compared.setdefault(model, set()).add(folder)
    return None


def _make(model: TorchModel, precision: str, folder: Path) -> None:
    with storage_errors(folder), staged_folder(folder, replace=False, private=True) as staged:
        write_export(model, staged, precision)


@cache
def _temporary_folder() -> Path:
    """A folder that goes when this process ends.

    Raises:
        StorageError: There is none that can be written to.
    """
    with storage_errors("a temporary folder"):
        folder = Path(tempfile.mkdtemp(prefix="sbertkit-"))
    atexit.register(_remove, folder, os.getpid())
    return folder


def _remove(folder: Path, process: int) -> None:
    """Removes the temporary folder, unless this is a fork of the process that made it."""
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)
