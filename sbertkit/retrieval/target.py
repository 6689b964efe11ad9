"""The folder that an index is built in: what may be replaced, leftovers, and undoing a failure."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sbertkit.errors import DamagedIndex, InputError, StorageError
from sbertkit.index import VECTORS_FILE
from sbertkit.retrieval.manifest import ENCODER_FOLDER, SEGMENTS_FOLDER, is_index, read_manifest
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


@contextmanager
def new_segment(path: Path, *, resume: bool = False) -> Iterator[Path]:
    """Yields the folder of a new segment; when the block ends well, the index is at `path`.

    The block puts the segment's files there and commits a manifest two folders above. Where nothing
    was, all that happens beside `path` under another name. When the block fails, what it wrote goes
    again.

    Args:
        path: The index folder.
        resume: Whether the folder, else empty, holds the vectors that an interrupted build has
            written with the log of them, and whether these stay when the block fails.
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
    generation = 1 if fresh else _next_generation(path)
    folder = root / SEGMENTS_FOLDER / f"{generation:06d}-{os.urandom(4).hex()}"
    try:
        if left is None:
            folder.mkdir(parents=True)
        else:
            left.rename(folder)
        yield folder
        if fresh:
            root.replace(path)
            sync_folder(path.parent)
    except BaseException:
        if not (resume and (folder / PARTS_FILE).exists()):
            _undo(root, folder, fresh)
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


def generation_of(folder: Path) -> int:
    """The generation that a segment's folder was made for."""
    return int(folder.name.split("-")[0])


def sync_build(folder: Path) -> None:
    """Puts all that a build wrote on the disk before a manifest names it.

    Args:
        folder: The segment's; the encoder's has the same name.
    """
    root = folder.parent.parent
    for place in (folder, root / ENCODER_FOLDER / folder.name):
        if place.is_dir():
            sync_tree(place)
            sync_folder(place.parent)
    sync_folder(root)


def sweep(path: Path) -> None:
    """Removes what earlier writers left and no manifest names."""
    try:
        manifest = read_manifest(path)
    except InputError:
        return
    encoders = {manifest.exported.id} if manifest.exported is not None else set()
    _keep_only({segment.id for segment in manifest.segments}, path / SEGMENTS_FOLDER)
    _keep_only(encoders, path / ENCODER_FOLDER)
    for leftover in path.glob(".manifest.json.*.tmp"):
        with suppress(OSError):  # on Windows somebody may have it open
            leftover.unlink(missing_ok=True)


def _keep_only(names: set[str], parent: Path) -> None:
    """Removes the other folders there, and `parent` itself where none is left."""
    if not parent.is_dir():
        return
    for folder in parent.iterdir():
        if folder.name not in names:
            shutil.rmtree(folder, ignore_errors=True)
    if not names:
        with suppress(OSError):
            parent.rmdir()


def _undo(root: Path, folder: Path, fresh: bool) -> None:
    """Removes what a failed build wrote, unless it had come as far as its commit."""
    if fresh:
        shutil.rmtree(root, ignore_errors=True)
        return
    try:
        if folder.name in {segment.id for segment in read_manifest(root).segments}:
            return
    except StorageError:
        return  # what cannot be told is left to the next writer's sweep
    except InputError:
        pass  # no manifest, or a damaged one: not ours, which would be whole
    for written in (folder, root / ENCODER_FOLDER / folder.name):
        shutil.rmtree(written, ignore_errors=True)
        with suppress(OSError):  # it holds what belongs to the index that was there
            written.parent.rmdir()


def _next_generation(root: Path) -> int:
    """One more than any generation that has left a trace in the folder."""
    numbers = [0]
    with suppress(InputError):
        numbers.append(read_manifest(root).generation)
    segments = root / SEGMENTS_FOLDER
    if segments.is_dir():
        starts = (folder.name.split("-")[0] for folder in segments.iterdir())
        numbers.extend(int(start) for start in starts if start.isdecimal())
    return max(numbers) + 1
