"""What the vector index has learnt for all segments: arrays in a folder that the manifest names."""

from pathlib import Path

from sbertkit.arrays import Vectors
from sbertkit.index.kinds.base import IndexKind
from sbertkit.index.npy_files import map_array, write_array
from sbertkit.retrieval.manifest_entries import TRAINED_FOLDER, TrainedEntry
from sbertkit.retrieval.workspace import Workspace
from sbertkit.sealed import SealedFile
from sbertkit.storage import storage_errors

Learnt = dict[str, Vectors]
"""The arrays of a trained kind, by name."""


def write_learnt(workspace: Workspace, kind: IndexKind, learnt: Learnt, rows: int) -> TrainedEntry:
    """Writes what a kind has learnt; gives its entry for the manifest.

    Args:
        workspace: Where it is written.
        kind: The kind.
        learnt: What `IndexKind.train` gave.
        rows: Number of vectors of the index.
    """
    folder = workspace.root / TRAINED_FOLDER / workspace.new_name()
    folder.mkdir(parents=True)
    with storage_errors(folder):
        for name, array in learnt.items():
            write_array(folder / f"{name}.npy", array)
    files = tuple(SealedFile.of(workspace.root, folder / f"{name}.npy") for name in sorted(learnt))
    return TrainedEntry.of(folder.name, kind, files, rows)


def read_learnt(root: Path, entry: TrainedEntry | None, dim: int) -> Learnt:
    """The arrays of an entry, whose files' hashes have been checked.

    Raises:
        DamagedIndex: They do not fit it.
    """
    if entry is None:
        return {}
    folder = root / TRAINED_FOLDER / entry.id
    return {
        name: map_array(folder / f"{name}.npy", "<f4", shape)
        for name, shape in entry.kind.learnt_shapes(dim).items()
    }
