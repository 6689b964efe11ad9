"""The encoder that an index carries as a graph, so that a query needs neither torch nor more."""

import logging
import shutil
from importlib.util import find_spec
from pathlib import Path

from sbertkit.encoder import Encoder
from sbertkit.encoder.graphs.source import load_graph_encoder
from sbertkit.encoder.options import LoadOptions
from sbertkit.errors import InputError, MissingDependency, StorageError
from sbertkit.retrieval.manifest import ENCODER_FOLDER, ExportEntry, FileEntry, Manifest

logger = logging.getLogger(__name__)


def carry_encoder(encoder: Encoder, root: Path, name: str) -> ExportEntry | None:
    """Copies the graph of an encoder into an index folder; ``None`` where it has no graph.

    Args:
        encoder: The encoder that builds the index.
        root: The index folder.
        name: Of the new folder below ``encoder/``.
    """
    try:
        source = encoder.graph_folder()
    except (InputError, MissingDependency, StorageError) as error:
        logger.info("the index does not carry its encoder: %s", error)
        return None
    folder = root / ENCODER_FOLDER / name
    shutil.copytree(source, folder)
    return ExportEntry(name, tuple(FileEntry.of(root, file) for file in sorted(folder.iterdir())))


def load_carried(root: Path, manifest: Manifest) -> Encoder | None:
    """The encoder that an index carries, whose files have been checked; ``None`` without one.

    ``None``, too, where there is no onnxruntime, or one that cannot run the graph.
    """
    if manifest.exported is None or find_spec("onnxruntime") is None:
        return None
    folder = root / ENCODER_FOLDER / manifest.exported.id
    try:
        return load_graph_encoder(LoadOptions(model=str(folder)), hashed=True)
    except (InputError, MissingDependency) as error:
        logger.info("the encoder in the index cannot be run: %s", error)
        return None
