"""The encoder that is bundled with an index as an ONNX model, so that queries need no torch."""

import logging
import shutil
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from sbertkit.data.streams import reading
from sbertkit.encoder import Encoder
from sbertkit.encoder.exports.manifest import EXPORT_FILES
from sbertkit.encoder.options import LoadOptions
from sbertkit.errors import DamagedIndex, InputError, MissingDependency, StorageError
from sbertkit.retrieval.manifest import Manifest
from sbertkit.retrieval.manifest_entries import ENCODER_FOLDER, ExportEntry
from sbertkit.sealed import SealedFile

logger = logging.getLogger(__name__)
_REMEDY = "restore it from a backup or build the index again"


def bundle_encoder(
    encoder: Encoder, root: Path, name: str, *, required: bool = False
) -> ExportEntry | None:
    """Copies the export of an encoder into an index folder; ``None`` if it has none.

    Args:
        encoder: The encoder that builds the index.
        root: The index folder.
        name: The name of the new folder in ``encoder/``.
        required: Whether an encoder that cannot be exported is refused; otherwise a warning is
            logged.

    Raises:
        InputError: It cannot be exported.
        MissingDependency: A library is missing for it.
        StorageError: It cannot be written.
    """
    try:
        source = encoder.export_folder()
    except (InputError, MissingDependency, StorageError) as error:
        if required:
            raise
        logger.warning("the index is built without its encoder: %s", error)
        return None
    folder = root / ENCODER_FOLDER / name
    folder.mkdir(parents=True)
    for file in EXPORT_FILES:  # one by one, so that their modes follow the umask
        shutil.copyfile(source / file, folder / file)
    return ExportEntry(name, tuple(SealedFile.of(root, file) for file in sorted(folder.iterdir())))


def fill_cache(encoder: Encoder) -> None:
    """Puts the export of an encoder into the user's cache, so that a search finds it there."""
    try:
        encoder.export_folder()
    except (InputError, MissingDependency, StorageError) as error:
        logger.info("the encoder was not exported: %s", error)


def import_runtime(manifest: Manifest) -> None:
    """Imports what `load_bundled` needs for an index, if it has an encoder."""
    if manifest.exported is not None and find_spec("onnxruntime") is not None:
        from sbertkit.encoder.backends.libraries import import_library
        from sbertkit.encoder.exports import exported  # noqa: F401

        with suppress(MissingDependency):  # which is said when it is loaded
            import_library("onnx")


def load_bundled(root: Path, manifest: Manifest) -> Encoder | None:
    """The bundled encoder of an index, whose files have been checked; ``None`` if it has none.

    ``None``, too, without an onnxruntime that can run it.

    Raises:
        DamagedIndex: It gives vectors of another size.
    """
    exported = manifest.exported
    if exported is None or find_spec("onnxruntime") is None:
        return None
    folder = root / ENCODER_FOLDER / exported.id
    # The manifest's hashes cover the files it lists; if there are others, all are checked again.
    with reading(str(folder)):
        only_listed = {path.name for path in folder.iterdir()} == set(EXPORT_FILES)
    try:
        encoder = Encoder.load_export(LoadOptions(model=str(folder)), hashed=only_listed)
    except (InputError, MissingDependency) as error:
        logger.warning("the bundled encoder is not used: %s", error)
        return None
    if encoder.dim != manifest.encoder.dim:
        raise DamagedIndex(
            f"{folder} gives vectors of size {encoder.dim}, the index has {manifest.encoder.dim}; "
            f"{_REMEDY}"
        )
    return encoder
