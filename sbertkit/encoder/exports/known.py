"""What was found out about a model folder, so that its export serves without loading torch.

A known model is looked up by the hashes of its folder's files and by all else that decides its
vectors. What is kept are its fingerprint, by which its export is found, the hashes of the export's
files, vectors that torch gave, which those of the export must equal, and the warnings that loading
it logged.
"""

import logging
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from sbertkit.arrays import Vectors
from sbertkit.encoder.backends import EXPORT_PRECISIONS
from sbertkit.encoder.backends.libraries import backends_for
from sbertkit.encoder.exports.chosen_precision import read_choice
from sbertkit.encoder.exports.exported import ExportedRuntime, load_exported_runtime
from sbertkit.encoder.exports.manifest import EXPORT_FILES, MANIFEST_FILE, read_manifest
from sbertkit.encoder.exports.places import cache_key, export_place, is_untouched
from sbertkit.encoder.options import LoadOptions
from sbertkit.encoder.prompts import last_part
from sbertkit.errors import InputError, MissingDependency, StorageError
from sbertkit.files import read_regular
from sbertkit.schema import Digest
from sbertkit.sealed import SealedFile, read_sealed, seal
from sbertkit.storage import sha256_file, staged_file, storage_errors
from sbertkit.user_cache import cache_folder, is_private

logger = logging.getLogger(__name__)
_FORMAT = 1


class ModelSource(NamedTuple):
    """A model folder, and `files_sha256` of it before it was loaded."""

    folder: Path
    sha256: str


@dataclass(frozen=True, slots=True)
class KnownModel:
    """What loading a model has shown.

    Attributes:
        fingerprint: See `Encoder.fingerprint`.
        files: Those of its export.
        vectors: Of the texts that opening an export encodes, by torch in float32.
        warnings: See `TorchModel.warnings`.
    """

    fingerprint: Digest
    files: tuple[SealedFile, ...]
    vectors: tuple[tuple[float, ...], ...]
    warnings: tuple[str, ...]

    def __post_init__(self) -> None:
        if {file.path for file in self.files} != set(EXPORT_FILES):
            raise ValueError("expected the files of an export")
        if len({len(vector) for vector in self.vectors}) != 1:
            raise ValueError("expected vectors of one size")


def export_precision(precision: str) -> str:
    """What the ONNX model is in that serves a precision."""
    return "int8" if precision == "int8" else "fp32"


def open_known(options: LoadOptions, source: ModelSource) -> ExportedRuntime | None:
    """The runtime of a known model's export; ``None`` where there is none that serves.

    Whatever is wrong with what is in the cache, the caller then loads the model itself, which
    makes it again.
    """
    try:
        if options.precision == "auto":
            return _open_chosen(options, source)
        precision = export_precision(options.precision)
        known = _read(_place(options, source, precision))
        folder = None if known is None else export_place(known.fingerprint, precision)
        if known is None or folder is None:
            return None
        _check_files(folder, known.files)
        expected = np.array(known.vectors, np.float32)
        runtime = load_exported_runtime(options, folder, hashed=True, expected=expected)
    except (OSError, InputError, MissingDependency) as error:
        logger.info("the export of %s in the cache does not serve: %s", options.model, error)
        return None
    for warning in known.warnings:
        logger.warning("%s %s", options.model, warning)
    return runtime


def _open_chosen(options: LoadOptions, source: ModelSource) -> ExportedRuntime | None:
    """As `open_known`, in the precision that ``auto`` stands for, once that was measured."""
    for precision in EXPORT_PRECISIONS:
        known = _read(_place(options, source, precision))
        chosen = None if known is None else read_choice(known.fingerprint, "cpu", options.backend)
        if chosen is not None and backends_for(chosen.precision, options.backend):
            runtime = open_known(replace(options, precision=chosen.precision), source)
            if runtime is not None:
                chosen.log()
            return runtime
    return None


def keep_known(
    options: LoadOptions, source: ModelSource, precision: str, known: KnownModel
) -> None:
    """Keeps what was found out about a model whose export of that precision is in the cache."""
    place = _place(options, source, precision)
    if place is None:
        return
    try:
        with storage_errors(place), staged_file(place, private=True) as staged:
            staged.write_bytes(seal({"format": _FORMAT, **asdict(known)}))
    except StorageError as error:  # torch is loaded the next time, too
        logger.info("the model is not known the next time: %s", error)


def export_files(folder: Path) -> tuple[SealedFile, ...]:
    """The files of an export, as they were written.

    Raises:
        InputError: They are damaged.
        OSError: They cannot be read.
    """
    hashes = {**read_manifest(folder).files, MANIFEST_FILE: sha256_file(folder / MANIFEST_FILE)}
    return tuple(
        SealedFile(name, (folder / name).stat().st_size, digest) for name, digest in hashes.items()
    )


def as_rows(vectors: Vectors) -> tuple[tuple[float, ...], ...]:
    """Vectors (n, dim) as a `KnownModel` holds them."""
    return tuple(map(tuple, vectors.tolist()))


def _check_files(folder: Path, files: Iterable[SealedFile]) -> None:
    """Refuses a folder that others may have changed, or with other files.

    Raises:
        InputError: Such a folder.
        OSError: It cannot be read.
    """
    if not is_untouched(folder):
        raise InputError(f"{folder} may have been written by others")
    for file in files:
        if (fault := file.fault(folder)) is not None:
            raise InputError(f"{folder / file.path}: {fault}")


def _place(options: LoadOptions, source: ModelSource, precision: str) -> Path | None:
    """The file of a model by all that decides its vectors; its name for known prompts."""
    folder = cache_folder("models")
    declared = options.declared()
    del declared["revision"]  # the files are looked at
    if options.task != "embed":
        declared["task"] = options.task
    declared["model"] = last_part(options.model)
    name = f"{cache_key(source.sha256, declared, precision)}.json"
    return None if folder is None else folder / name


def _read(place: Path | None) -> KnownModel | None:
    """What is known; ``None`` where there is nothing, or others may have written it.

    Raises:
        InputError: It is damaged.
        OSError: It cannot be read.
    """
    if place is None or not place.exists() or not is_private(place):
        return None
    return read_sealed(read_regular(place), KnownModel, place, version=_FORMAT)
