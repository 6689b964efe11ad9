"""The folder in which a generation of an index is written, committed or undone."""

import os
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import chain
from pathlib import Path

from sbertkit.arguments import output_folder
from sbertkit.errors import DamagedIndex, InputError, SbertkitError, StorageError
from sbertkit.files import read_regular
from sbertkit.index.segment import VECTORS_FILE
from sbertkit.lock import LOCK_FILE, writer_lock
from sbertkit.retrieval import journal
from sbertkit.retrieval.manifest import (
    MANIFEST_FILE,
    TOMBSTONES_FOLDER,
    Manifest,
    is_index,
    read_any_manifest,
)
from sbertkit.retrieval.manifest_entries import ENCODER_FOLDER, NAMED_FOLDERS, SEGMENTS_FOLDER
from sbertkit.storage import clear_folder, follow_modes, storage_errors, sync_folder, sync_tree

_MAX_GENERATION = 10**12
"""No index is written so often; a name with a greater number is not ours."""

CHUNKS_FILE = "chunks.jsonl"
"""In the folder of a segment that is being built: the log of vectors that are on the disk."""


def check_target(path: Path) -> None:
    """Refuses to build over anything but an index or an empty folder.

    Raises:
        InputError: The path is a file, another folder, or inside an index.
        NewerFormat: It is an index of a newer format.
        StorageError: It cannot be read.
    """
    with storage_errors(path):
        outer = next((place for place in path.parents if is_index(place)), None)
        if outer is not None:
            raise InputError(f"{path} is inside the index {outer}; choose another place")
        if not path.exists():
            return
        if not path.is_dir():
            raise InputError(
                f"{path} is a file; expected a folder for the index, choose another name"
            )
        if all(_is_begun(place) for place in path.iterdir()):
            return
    if not is_index(path):
        raise InputError(
            f"{path} holds files and is not an sbertkit index; it was not changed: choose a new "
            "or empty folder"
        )
    # A damaged index may be rebuilt; a newer one is not replaced.
    with suppress(DamagedIndex):
        read_any_manifest(path)


def _is_begun(place: Path) -> bool:
    """Whether this is a leftover of a killed first build in an empty folder."""
    name = place.name
    if name == LOCK_FILE:
        return True
    if name == journal.JOURNAL_FILE:
        return journal.read_journal(place.parent) is not None
    return journal.SIDE_FILES.fullmatch(name) is not None and not place.is_dir()


def index_lock(path: Path) -> AbstractContextManager[None]:
    """Locks an index folder for writing for the block, also one that does not exist yet.

    The lock is in the folder, where all writers find it, and moves there with a new index.
    """

    def place() -> Path:
        if os.name == "nt":  # no folder is renamed in which a file is open
            path.mkdir(exist_ok=True)
        return path if path.is_dir() else _building(path)

    return writer_lock(path, place, queued=True)


@contextmanager
def locked_index(path: str | os.PathLike[str]) -> Iterator[tuple[Path, Manifest]]:
    """Locks an existing index for writing for the block; yields its folder and its manifest.

    It may be of the format before the present one. Without an index no lock file is left.

    Raises:
        InputError: It is no index, or has links in it.
        StorageError: The disk is full, a permission is missing or another process writes.
    """
    root = output_folder(path)
    read_any_manifest(root)
    with index_lock(root), storage_errors(root):
        refuse_links(root)
        yield root, read_any_manifest(root)


def _building(path: Path) -> Path:
    """Where a new index is built, before it is moved to its path."""
    return path.with_name(f".{path.name}.building")


class Workspace:
    """Where the files of a new generation are written.

    Attributes:
        root: The index folder, or what will become it.
        generation: The generation.
        names: The names of the new folders, of segments and encoders.
    """

    def __init__(self, root: Path, generation: int, interrupted: Path | None) -> None:
        self.root = root
        self.generation = generation
        self.names: list[str] = []
        self._interrupted = interrupted
        self._begun = _manifest_bytes(root)
        self._committed = False

    def new_name(self) -> str:
        """The name of a new folder, of a segment or an encoder."""
        name = f"{self.generation:06d}-{os.urandom(4).hex()}"
        self.names.append(name)
        return name

    def new_segment(self) -> Path:
        """The folder of a new segment.

        It is empty, or has the vectors of an interrupted build and their log.
        """
        folder = self.root / SEGMENTS_FOLDER / self.new_name()
        if self._interrupted is None:
            folder.mkdir(parents=True)
        else:
            self._interrupted.rename(folder)
            self._interrupted = None
        return folder

    def sync(self) -> None:
        """Syncs the new folders to the disk, before a manifest names them.

        What an interrupted build would be resumed from is no longer needed then.
        """
        self.check_alone()
        for place in self.places():
            if place.is_dir():
                (place / CHUNKS_FILE).unlink(missing_ok=True)
                follow_modes(place)
                sync_tree(place)
                sync_folder(place.parent)
        sync_folder(self.root)

    def commit(self, manifest: Manifest) -> None:
        """Makes a manifest the state of the index folder, in one step.

        Raises:
            StorageError: The folder is not in the state that the change started from.
        """
        self.check_alone()
        self._committed = True
        manifest.commit(self.root)

    def check_alone(self) -> None:
        """Refuses to continue if another writer has changed the folder despite the lock.

        Raises:
            StorageError: One has.
        """
        if self.is_overtaken():
            raise StorageError(
                f"another writer has changed {self.root} meanwhile, which this file system did not "
                "prevent; nothing of this change was kept: repeat it"
            )

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Reports another writer as the cause of errors in the block, if there was one."""
        try:
            yield
        except (OSError, SbertkitError):
            self.check_alone()
            raise

    def is_overtaken(self) -> bool:
        """Whether the folder is in another state than the one that this change started from."""
        return not self._committed and _manifest_bytes(self.root) != self._begun

    def discard(self) -> None:
        """Removes the new folders."""
        for place in self.places():
            shutil.rmtree(place, ignore_errors=True)

    def places(self) -> list[Path]:
        """The possible paths of the new folders."""
        parents = [self.root / name for name in NAMED_FOLDERS]
        return [parent / name for name in self.names for parent in parents]


@contextmanager
def new_generation(path: Path, *, resume: bool = False) -> Iterator[Workspace]:
    """Yields a workspace for a new generation; when the block ends well, the index is at `path`.

    The block writes files there and commits a manifest. A new index is written beside `path` under
    another name. If the block fails or commits nothing, its files are removed. Only a commit
    removes anything else: what it has replaced, and leftovers of killed writers.

    Args:
        path: The index folder.
        resume: Whether to continue with the vectors of an interrupted build, and to keep those of
            this one if the block fails.

    Raises:
        InputError: There is a link in the folder.
    """
    fresh = not path.exists()
    root = _building(path) if fresh else path
    refuse_links(root)
    left = _interrupted(root) if resume else None
    if fresh and left is None:
        clear_folder(root, (LOCK_FILE,))
    workspace = Workspace(root, 1 if fresh else _next_generation(path), left)
    old = None if fresh else journal.content(path)
    try:
        if not fresh:
            journal.begin(path, workspace.generation)
        if left is not None:
            _keep_vectors(left)
        with workspace.alone():
            yield workspace
        if fresh:
            root.replace(path)
            sync_folder(path.parent)
    except BaseException:
        if not (resume and any((place / CHUNKS_FILE).exists() for place in workspace.places())):
            _undo(workspace, old, fresh=fresh)
        raise
    if fresh:
        return
    if _is_committed(workspace):
        journal.clear(path)
    else:
        journal.withdraw(path, workspace.generation, old)


def refuse_links(root: Path) -> None:
    """Refuses links in an index folder, through which writes would leave it.

    Raises:
        InputError: One of the folders of the index is a link, or has one in it.
    """
    for name in (*NAMED_FOLDERS, TOMBSTONES_FOLDER):
        top = root / name
        below = (Path(at) / one for at, *names in os.walk(top) for one in chain(*names))
        link = next((place for place in (top, *below) if place.is_symlink()), None)
        if link is not None:
            raise InputError(
                f"{link} is a symbolic link, and nothing is written or deleted through one; put "
                "the files themselves there. To keep an index elsewhere, move its whole folder and "
                "link that"
            )


def _interrupted(root: Path) -> Path | None:
    """The folder of a segment of an interrupted build, if there is one."""
    named: set[str] = set()
    with suppress(InputError):
        named = {segment.id for segment in read_any_manifest(root).segments}
    begun = (log.parent for log in (root / SEGMENTS_FOLDER).glob(f"*/{CHUNKS_FILE}"))
    return max((folder for folder in begun if folder.name not in named), default=None)


def _keep_vectors(folder: Path) -> None:
    """Removes everything that an interrupted build has written but its vectors."""
    for file in folder.iterdir():
        if file.name not in (VECTORS_FILE, CHUNKS_FILE):
            file.unlink()
    shutil.rmtree(folder.parent.parent / ENCODER_FOLDER / folder.name, ignore_errors=True)


def _undo(workspace: Workspace, old: bytes | None, *, fresh: bool) -> None:
    """Removes the files of a failed change, unless it was committed."""
    if fresh:
        clear_folder(workspace.root, (LOCK_FILE,))
        return
    # What cannot be read or removed now is left to the next writer.
    with suppress(OSError):
        if workspace.is_overtaken():
            workspace.discard()
        elif not _is_committed(workspace):
            journal.withdraw(workspace.root, workspace.generation, old)


def _is_committed(workspace: Workspace) -> bool:
    try:
        return read_any_manifest(workspace.root).generation == workspace.generation
    except StorageError:
        raise
    except InputError:
        return False  # no manifest, or a damaged one: not ours, which would be whole


def _manifest_bytes(root: Path) -> bytes | None:
    """The bytes of the manifest; ``None`` if there is none, or no regular file.

    Raises:
        OSError: It cannot be read.
    """
    try:
        return read_regular(root / MANIFEST_FILE)
    except (FileNotFoundError, NotADirectoryError, InputError):
        return None


def _next_generation(root: Path) -> int:
    """One more than any generation that is found in the folder."""
    numbers = [0, *map(journal.generation_of, journal.present(root))]
    with suppress(InputError):
        numbers.append(read_any_manifest(root).generation)
    return max(number for number in numbers if number < _MAX_GENERATION) + 1
