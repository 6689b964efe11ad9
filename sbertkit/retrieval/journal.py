"""The journal: what a writer makes and replaces, written before it starts.

A folder or file of an index is deleted only if a journal names it: one that a killed writer was
making, or one that it had replaced. Anything else that no manifest names, such as the segments of a
newer manifest that an older one has overwritten, may not be garbage.
"""

import hashlib
import json
import os
import re
import shutil
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import msgspec

from sbertkit.data.streams import reading
from sbertkit.errors import InputError
from sbertkit.files import inside, read_regular
from sbertkit.retrieval.manifest import (
    MANIFEST_FILE,
    TOMBSTONES_FOLDER,
    Manifest,
    read_any_manifest,
)
from sbertkit.retrieval.manifest_entries import NAMED_FOLDERS
from sbertkit.schema import Digest, Positive, read_record
from sbertkit.storage import clear_leftovers, replace_file, side_pattern, sync_folder

JOURNAL_FILE = "journal.json"
SIDE_FILES = re.compile("|".join(side_pattern(name) for name in (MANIFEST_FILE, JOURNAL_FILE)))
"""The temporary names of a manifest or a journal."""

_MADE = re.compile(
    rf"(?:{'|'.join(NAMED_FOLDERS)})/[0-9]{{6,16}}-[0-9a-f]{{8}}"
    rf"|{TOMBSTONES_FOLDER}/[0-9]{{6,16}}\.npy"
)
"""The paths of what a writer makes; each name begins with the generation."""

Made = Annotated[str, msgspec.Meta(pattern=rf"\A(?:{_MADE.pattern})\Z")]


@dataclass(frozen=True, slots=True)
class Journal:
    """What a writer is doing.

    Attributes:
        begun: SHA-256 of the manifest that it started from; ``None`` if there was none.
        generation: The generation that it makes.
        replaced: What that manifest names.
        stale: Leftovers of killed writers before it.
    """

    begun: Digest | None
    generation: Positive
    replaced: tuple[Made, ...]
    stale: tuple[Made, ...]


def content(root: Path) -> bytes | None:
    """The bytes of the journal of a folder, if there is one that can be read."""
    return None if read_journal(root) is None else (root / JOURNAL_FILE).read_bytes()


def begin(root: Path, generation: int) -> None:
    """Writes which generation is being made, and from which state of the folder."""
    named: set[str] = set()
    with suppress(InputError):
        named = named_by(read_any_manifest(root))
    journal = Journal(_manifest_hash(root), generation, tuple(sorted(named)), leftovers(root))
    text = json.dumps(asdict(journal), indent=2) + "\n"
    replace_file(root / JOURNAL_FILE, text.encode("ascii"))


def withdraw(root: Path, generation: int, old: bytes | None) -> None:
    """Removes the files of a generation that was not committed, and restores the old journal."""
    if not _remove(root, _made(root, generation)):
        return
    if old is None:
        _end(root)
    else:
        replace_file(root / JOURNAL_FILE, old)


def clear(root: Path) -> None:
    """Removes what a commit has replaced, leftovers of killed writers, and then the journal."""
    removed = _remove(root, leftovers(root))
    for name in (MANIFEST_FILE, JOURNAL_FILE):
        clear_leftovers(root / name)
    if removed:
        _end(root)


def read_journal(root: Path) -> Journal | None:
    """The journal of a folder; ``None`` if there is none that can be read."""
    path = root / JOURNAL_FILE
    try:
        with reading(str(path)):
            return read_record(read_regular(path), Journal, path)
    except InputError:
        return None


def leftovers(root: Path) -> tuple[str, ...]:
    """The paths that the writer of the journal, or one before it, has left when it was killed.

    Empty if the manifest is neither the one that it started from nor the one that it wrote.
    """
    journal = read_journal(root)
    if journal is None:
        return ()
    manifest: Manifest | None = None
    with suppress(InputError):
        manifest = read_any_manifest(root)
    made = set(_made(root, journal.generation))
    if journal.begun == _manifest_hash(root):
        garbage = made.union(journal.stale)
    elif manifest is not None and manifest.generation == journal.generation:
        garbage = made.union(journal.stale, journal.replaced)
    else:
        return ()
    named = set() if manifest is None else named_by(manifest)
    return tuple(sorted(garbage - named))


def _remove(root: Path, paths: Collection[str]) -> bool:
    """Removes folders and files of an index, never through a link; whether all are removed."""
    for path in paths:
        with suppress(OSError, InputError):
            place = inside(root, path)
            if place.is_dir():
                shutil.rmtree(place, ignore_errors=True)
            else:
                place.unlink(missing_ok=True)
    for parent in [root / name for name in (*NAMED_FOLDERS, TOMBSTONES_FOLDER)]:
        with suppress(OSError):  # there is none
            # Before the journal is removed, which alone names them.
            sync_folder(parent)
        with suppress(OSError):  # it is not empty
            parent.rmdir()
    return not any(os.path.lexists(root / path) for path in paths)


def is_made(path: str) -> bool:
    """Whether a path in an index folder has a name that writers give."""
    return _MADE.fullmatch(path) is not None


def named_by(manifest: Manifest) -> set[str]:
    """The paths of the folders, and of the file of tombstones, that belong to an index."""
    paths = {entry.path for entry in manifest.files()}
    return {path if is_made(path) else path.rpartition("/")[0] for path in paths}


def present(root: Path) -> Iterator[str]:
    """All paths with a name that writers give."""
    for name in (*NAMED_FOLDERS, TOMBSTONES_FOLDER):
        parent = root / name
        if parent.is_dir() and not parent.is_symlink():
            paths = (f"{name}/{place.name}" for place in parent.iterdir())
            yield from (path for path in paths if is_made(path))


def generation_of(path: str) -> int:
    """The generation in a name that a writer gave."""
    return int(re.split("[-.]", path.rpartition("/")[2])[0])


def _made(root: Path, generation: int) -> list[str]:
    return [path for path in present(root) if generation_of(path) == generation]


def _end(root: Path) -> None:
    with suppress(OSError):  # on Windows it may be open elsewhere; it does no harm
        (root / JOURNAL_FILE).unlink(missing_ok=True)


def _manifest_hash(root: Path) -> str | None:
    path = root / MANIFEST_FILE
    try:
        with reading(str(path)):
            return hashlib.sha256(read_regular(path)).hexdigest()
    except InputError:
        return None
