"""Graphs kept in the user's cache folder, so that each is made once a machine."""

import hashlib
import json
import shutil
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from sbertkit.encoder.backends import Backend
from sbertkit.encoder.backends.libraries import import_library
from sbertkit.encoder.encoder import Encoder
from sbertkit.encoder.graphs.engines import graph_precision, open_engine
from sbertkit.encoder.graphs.exporting import write_graph
from sbertkit.encoder.graphs.folder import read_entry
from sbertkit.errors import InputError, StorageError
from sbertkit.storage import staged_folder, storage_errors, user_cache

_LIBRARIES = ("sbertkit", "torch", "transformers", "onnxruntime")


def cached_backend(encoder: Encoder, precision: str, engine: str = "onnx") -> Backend:
    """The backend of an encoder's graph; see `cached_folder` and `open_engine`."""
    return open_engine(engine, cached_folder(encoder, graph_precision(precision)), precision)


def is_cached(encoder: Encoder, precision: str) -> bool:
    """Whether an encoder's graph is there already."""
    try:
        return (user_cache("graphs") / cache_key(encoder, precision)).is_dir()
    except OSError:
        return False


def cached_folder(encoder: Encoder, precision: str) -> Path:
    """The folder of an encoder's graph, which is made and kept where there is none yet.

    Two processes may make it at once; the first one to end is kept. A damaged one is made anew.

    Raises:
        InputError: The encoder cannot be exported.
        MissingDependency: onnxruntime or onnx is missing.
        StorageError: The cache folder cannot be written.
    """
    import_library("onnxruntime")
    folder = user_cache("graphs") / cache_key(encoder, precision)
    with storage_errors(folder):  # also where the cache may not be looked into
        if folder.exists() and not _is_whole(folder):
            shutil.rmtree(folder)
        if not folder.exists():
            _make(encoder, precision, folder)
    return folder


def cache_key(encoder: Encoder, *parts: object) -> str:
    """A name that an encoder, these parts or the version of a library changes."""
    versions = {name: _version(name) for name in _LIBRARIES}
    content = json.dumps([encoder.fingerprint, *parts, versions], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:32]


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _make(encoder: Encoder, precision: str, folder: Path) -> None:
    try:
        with staged_folder(folder, replace=False) as staged:
            write_graph(encoder, staged, precision)
    except (OSError, StorageError):
        if not (folder.exists() and _is_whole(folder)):  # else another process was faster
            raise


def _is_whole(folder: Path) -> bool:
    try:
        read_entry(folder)
    except InputError:
        return False
    return True
