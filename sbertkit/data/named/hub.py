"""Files of named data sets from the Hugging Face hub: pinned, cached, checked by their hashes."""

import hashlib
import re
from pathlib import Path

from sbertkit.data.named.sets import HubSource, NamedSet
from sbertkit.errors import InputError
from sbertkit.hub import HubError, snapshot

_CHUNK = 1 << 20
_SHA256 = re.compile("[0-9a-f]{64}")
_GIT = re.compile("[0-9a-f]{40}")


def cached(named: NamedSet, cache: Path | None) -> Path | None:
    """The folder of a set whose files were all fetched before; None where they were not.

    Args:
        named: The set.
        cache: The cache's folder; None for the hub client's own.
    """
    source = named.hub
    if source is None:
        return None
    try:
        found = _snapshot(source, cache, local=True)
    except HubError:
        return None
    return None if _missing(source, found) else found / source.folder


def fetch_named(named: NamedSet, cache: Path | None) -> Path:
    """The folder of a set from the hub, with all its files; a broken download is resumed.

    Args:
        named: The set.
        cache: The cache's folder; None for the hub client's own.

    Raises:
        InputError: The hub has no such files, cannot be reached, or its bytes were damaged.
    """
    source = named.hub
    if source is None:
        raise InputError(
            f"data set '{named.name}' is not on the hub: get it from {named.source} and put it at "
            f"{named.path} below a folder that SBERTKIT_DATA names"
        )
    try:
        found = _snapshot(source, cache, local=False)
        missing = _missing(source, found)
        if missing:
            raise HubError(f"the hub has no {missing[0]} in it")
    except HubError as error:
        raise InputError(
            f"data set '{named.name}' ({source.repository}) was not found: not in the local hub "
            f"cache, and {error}; try again, or download it elsewhere and pass its files"
        ) from error
    check_cached(named, found / source.folder)
    return found / source.folder


def check_cached(named: NamedSet, folder: Path) -> None:
    """Compares fetched files with the hashes that the hub stated for them.

    The cache names a file's bytes by that hash: SHA-256 of large files, git's of small ones.

    Raises:
        InputError: A file is damaged; it is taken out of the cache.
    """
    for file in named.hub.files if named.hub is not None else ():
        path = folder / file
        blob = path.resolve()
        found = _hash(blob)
        if found not in (None, blob.name):
            blob.unlink()
            path.unlink(missing_ok=True)
            raise InputError(
                f"data set '{named.name}': {file} was damaged, so it was removed; download it "
                f"again with: sbertkit data get {named.name}"
            )


def _missing(source: HubSource, folder: Path) -> list[str]:
    # Other programs fetch other parts of the repository into the same cache.
    return [path for path in source.paths if not (folder / path).is_file()]


def _snapshot(source: HubSource, cache: Path | None, *, local: bool) -> Path:
    return snapshot(
        source.repository,
        kind="dataset",
        revision=source.revision,
        local=local,
        wanted=source.paths,
        cache=cache,
    )


def _hash(blob: Path) -> str | None:
    """The hash by which the cache should have named these bytes; None where it named them else."""
    with blob.open("rb") as file:
        if _SHA256.fullmatch(blob.name):
            return hashlib.file_digest(file, "sha256").hexdigest()
        if not _GIT.fullmatch(blob.name):
            return None  # a copy, where the system has no links
        digest = hashlib.sha1(b"blob %d\0" % blob.stat().st_size, usedforsecurity=False)
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
        return digest.hexdigest()
