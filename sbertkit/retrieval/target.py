"""The folder that an index is built in: what may be replaced, leftovers, and undoing a failure."""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sbertkit.errors import DamagedIndex, InputError, StorageError
from sbertkit.index import VECTORS_FILE
from sbertkit.retrieval.manifest import (
    ENCODER_FOLDER,
    SEGMENTS_FOLDER,
    TOMBSTONES_FOLDER,
    is_index,
    read_manifest,
    unfinished,
)
from sbertkit.storage import storage_errors, sync_folder, sync_tree

PARTS_FILE = "parts.jsonl"
"""In the folder of a segment that is being built: which of its vectors are on the disk."""


def check_target(path: Path) -> None:
    """Refuses to build where something else than an index is.

    Raises:
        InputError: The path is a file, or a folder of somebody else's.
        NewerFormat: It is an index of a newer format.
        StorageError: It cannot be looked at.
    """
    with storage_errors(path):
        if not path.exists():
            return
        if not path.is_dir():
            raise InputError(
                f"{path} is a file; expected a folder for the index, choose another name"
            )
        if not any(path.iterdir()):
            return
    if not is_index(path):
        raise InputError(
            f"{path} holds files and is not an sbertkit index; it was left as it is: choose a new "
            "or empty folder"
        )
    # A damaged index may be built anew, a newer one is not ours to replace.
    with suppress(DamagedIndex):
        read_manifest(path)


class Workspace:
    """Where the files of a generation that is being made go.

    Attributes:
        root: The index folder, or what will become it.
        generation: The generation.
        names: Of the new folders, of segments and encoders.
    """

    def __init__(self, root: Path, generation: int, left: Path | None) -> None:
        self.root = root
        self.generation = generation
        self.names: list[str] = []
        self._left = left

    def new_name(self) -> str:
        """The name of a new folder, of a segment or an encoder."""
        name = f"{self.generation:06d}-{os.urandom(4).hex()}"
        self.names.append(name)
        return name

    def new_segment(self) -> Path:
        """The folder of a new segment.

        It is empty, or has the vectors that an interrupted build has written with the log of them.
        """
        folder = self.root / SEGMENTS_FOLDER / self.new_name()
        if self._left is None:
            folder.mkdir(parents=True)
        else:
            self._left.rename(folder)
            self._left = None
        return folder

    def sync(self) -> None:
        """Puts the new folders on the disk, before a manifest names them."""
        for place in self.places():
            if place.is_dir():
                sync_tree(place)
                sync_folder(place.parent)
        sync_folder(self.root)

    def places(self) -> list[Path]:
        """Where the new folders may be."""
        parents = (self.root / SEGMENTS_FOLDER, self.root / ENCODER_FOLDER)
        return [parent / name for name in self.names for parent in parents]


@contextmanager
def new_generation(path: Path, *, resume: bool = False) -> Iterator[Workspace]:
    """Yields a place for a new generation; when the block ends well, the index is at `path`.

    The block puts files there and commits a manifest to the workspace's root. Where nothing was,
    all that happens beside `path` under another name. When the block fails, what it wrote goes
    again.

    Args:
        path: The index folder.
        resume: Whether to go on with the vectors that an interrupted build has written, and whether
            those of this one stay when the block fails.
    """
    fresh = not path.exists()
    root = path.with_name(f".{path.name}.building") if fresh else path
    left = _interrupted(root) if resume else None
    if left is not None:
        _keep_vectors(left)
    elif fresh:
        shutil.rmtree(root, ignore_errors=True)
    else:
        sweep(path)
    workspace = Workspace(root, 1 if fresh else _next_generation(path), left)
    try:
        yield workspace
        if fresh:
            root.replace(path)
            sync_folder(path.parent)
    except BaseException:
        if not (resume and any((place / PARTS_FILE).exists() for place in workspace.places())):
            _undo(workspace, fresh)
        raise
    sweep(path)


def _interrupted(root: Path) -> Path | None:
    """The folder of a segment that no manifest names, whose encoding was begun."""
    named: set[str] = set()
    with suppress(InputError):
        named = {segment.id for segment in read_manifest(root).segments}
    begun = (log.parent for log in (root / SEGMENTS_FOLDER).glob(f"*/{PARTS_FILE}"))
    return max((folder for folder in begun if folder.name not in named), default=None)


def _keep_vectors(folder: Path) -> None:
    """Removes all that an interrupted build has written besides its vectors."""
    for file in folder.iterdir():
        if file.name not in (VECTORS_FILE, PARTS_FILE):
            file.unlink()
    shutil.rmtree(folder.parent.parent / ENCODER_FOLDER / folder.name, ignore_errors=True)


def sweep(path: Path) -> None:
    """Removes what earlier writers left and no manifest names."""
    try:
        manifest = read_manifest(path)
    except InputError:
        return
    named = {entry.path.rpartition("/")[0] for entry in manifest.files()}
    if manifest.tombstones is not None:
        named.add(manifest.tombstones.path)
    for leftover in unfinished(path):
        if leftover.relative_to(path).as_posix() in named:
            continue
        if leftover.is_dir():
            shutil.rmtree(leftover, ignore_errors=True)
        else:
            with suppress(OSError):  # on Windows somebody may have it open
                leftover.unlink(missing_ok=True)
    for parent in (SEGMENTS_FOLDER, ENCODER_FOLDER, TOMBSTONES_FOLDER):
        with suppress(OSError):  # there is none, or something is left in it
            (path / parent).rmdir()


def _undo(workspace: Workspace, fresh: bool) -> None:
    """Removes what a failed change wrote, unless it had come as far as its commit."""
    root = workspace.root
    if fresh:
        shutil.rmtree(root, ignore_errors=True)
        return
    try:
        if read_manifest(root).generation == workspace.generation:
            return
    except StorageError:
        return  # what cannot be told is left to the next writer's sweep
    except InputError:
        pass  # no manifest, or a damaged one: not ours, which would be whole
    written = workspace.places()
    for folder in written:
        shutil.rmtree(folder, ignore_errors=True)
    tombstones = root / TOMBSTONES_FOLDER / f"{workspace.generation:06d}.npy"
    with suppress(OSError):
        tombstones.unlink(missing_ok=True)
    for parent in {place.parent for place in (*written, tombstones)}:
        with suppress(OSError):  # it holds what belongs to the index that was there
            parent.rmdir()


def _next_generation(root: Path) -> int:
    """One more than any generation that has left a trace in the folder."""
    numbers = [0]
    with suppress(InputError):
        numbers.append(read_manifest(root).generation)
    for parent in (SEGMENTS_FOLDER, TOMBSTONES_FOLDER):
        if (root / parent).is_dir():
            starts = (re.split(r"[-.]", place.name)[0] for place in (root / parent).iterdir())
            numbers.extend(int(start) for start in starts if start.isdecimal())
    return max(numbers) + 1
