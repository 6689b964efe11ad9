"""The encoder that an index carries as a graph, so that a query needs neither torch nor more."""

import logging
import shutil
from importlib.util import find_spec
from pathlib import Path

from sbertkit.encoder import Encoder
from sbertkit.encoder.exports.manifest import EXPORT_FILES
from sbertkit.encoder.options import LoadOptions
from sbertkit.errors import DamagedIndex, InputError, MissingDependency, StorageError
from sbertkit.retrieval.manifest import ENCODER_FOLDER, ExportEntry, FileEntry, Manifest

logger = logging.getLogger(__name__)
_REMEDY = "restore it from a backup or build the index again"


def bundle_encoder(
    encoder: Encoder, root: Path, name: str, *, required: bool = False
) -> ExportEntry | None:
    """Copies the export of an encoder into an index folder; ``None`` where it has none.

    Args:
        encoder: The encoder that builds the index.
        root: The index folder.
        name: Of the new folder below ``encoder/``.
        required: Whether to refuse an encoder that cannot be exported, not to warn of it.

    Raises:
        InputError: It cannot be exported.
        MissingDependency: Not without a library that is missing.
        StorageError: There is no place to put it.
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
    for file in EXPORT_FILES:  # one by one, for each a mode as the umask has it
        shutil.copyfile(source / file, folder / file)
    return ExportEntry(name, tuple(FileEntry.of(root, file) for file in sorted(folder.iterdir())))


def load_bundled(root: Path, manifest: Manifest) -> Encoder | None:
    """The encoder that an index carries, whose files have been checked; ``None`` without one.

    ``None``, too, where there is no onnxruntime, or one that cannot run the graph.

    Raises:
        DamagedIndex: It gives vectors of another size.
    """
    exported = manifest.exported
    if exported is None or find_spec("onnxruntime") is None:
        return None
    folder = root / ENCODER_FOLDER / exported.id
    # The manifest's hashes do for the files it lists; beside others, all is looked at once more.
    alone = {path.name for path in folder.iterdir()} == set(EXPORT_FILES)
    try:
        encoder = Encoder.load_export(LoadOptions(model=str(folder)), hashed=alone)
    except (InputError, MissingDependency) as error:
        logger.warning("the encoder in the index is not used: %s", error)
        return None
    if encoder.dim != manifest.encoder.dim:
        raise DamagedIndex(
            f"{folder} gives vectors of size {encoder.dim}, the index has {manifest.encoder.dim}; "
            f"{_REMEDY}"
        )
    return encoder
