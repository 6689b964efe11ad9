"""Files of named data sets from the Hugging Face hub: pinned, cached, checked by their hashes."""

import errno
import hashlib
import re
from pathlib import Path
from typing import Any

from sbertkit.data.named.sets import HubSource, NamedSet
from sbertkit.errors import InputError, MissingDependency

_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS)
_SECONDS = 10.0  # to wait for the hub's first answer
_CHUNK = 1 << 20
_SHA256 = re.compile("[0-9a-f]{64}")
_GIT = re.compile("[0-9a-f]{40}")


def cached(named: NamedSet, cache: Path | None) -> Path | None:
    """The folder of a set whose files were all fetched before; None where they were not.

    Args:
        named: The set.
        cache: The cache's folder; None for the hub client's own.
    """
    if named.hub is None:
        return None
    snapshot = _snapshot(named.hub, cache, local=True)
    if not isinstance(snapshot, Path) or _missing(named.hub, snapshot):
        return None
    return snapshot / named.hub.folder


def fetch_named(named: NamedSet, cache: Path | None) -> Path:
    """The folder of a set from the hub, with all its files; a broken download is resumed.

    Args:
        named: The set.
        cache: The cache's folder; None for the hub client's own.

    Raises:
        InputError: The hub has no such files, cannot be reached, or its bytes were damaged.
        MissingDependency: huggingface-hub is not installed.
    """
    source = named.hub
    if source is None:
        raise InputError(
            f"data set '{named.name}' is not on the hub: get it from {named.source} and put it at "
            f"{named.place} below a folder that SBERTKIT_DATA names"
        )
    snapshot = _snapshot(source, cache, local=False)
    if isinstance(snapshot, Path):
        missing = _missing(source, snapshot)
        if not missing:
            check_cached(named, snapshot / source.folder)
            return snapshot / source.folder
        reason = f"the hub has no {missing[0]} in it"
    else:
        reason = snapshot
    raise InputError(
        f"data set '{named.name}' ({source.repository}) was not found: not in the local hub cache, "
        f"and {reason}; try again, or download it elsewhere and pass its files"
    )


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
                f"data set '{named.name}': {file} was damaged, so it was removed; get it again "
                f"with: sbertkit data get {named.name}"
            )


def _missing(source: HubSource, snapshot: Path) -> list[str]:
    # Other programs fetch other parts of the repository into the same cache.
    return [path for path in source.paths if not (snapshot / path).is_file()]


def _snapshot(source: HubSource, cache: Path | None, *, local: bool) -> Path | str:
    """The folder of the repository in the cache, filled from the hub unless `local`.

    Else why there is none.
    """
    try:
        from huggingface_hub import HfApi, constants, errors, snapshot_download
    except ImportError as error:
        raise MissingDependency(
            "a data set by name needs huggingface-hub: pip install huggingface-hub"
        ) from error
    options: dict[str, Any] = {} if cache is None else {"cache_dir": cache}
    try:
        if not local:
            # asks once; for a pinned commit the client asks a dead hub for half a minute
            HfApi().dataset_info(source.repository, revision=source.revision, timeout=_SECONDS)
        return Path(
            snapshot_download(
                source.repository,
                repo_type="dataset",
                revision=source.revision,
                allow_patterns=source.paths,
                local_files_only=local,
                **options,
            )
        )
    except errors.GatedRepoError:
        return "it is gated: accept its terms on the hub and log in with: hf auth login"
    except errors.RepositoryNotFoundError:
        return "no such data set is on the hub"
    except errors.RevisionNotFoundError:
        return f"the hub has no revision '{source.revision}' of it"
    except RuntimeError as error:  # such as a cache below a home folder that nobody has
        return f"the hub's client failed ({error}); name a folder for its cache with HF_HOME"
    # Errors of the connection reach us as they are, and are no OSErrors.
    except (errors.HTTPError, OSError, ValueError) as error:
        if constants.is_offline_mode():
            return "the hub is switched off (HF_HUB_OFFLINE)"
        if isinstance(error, OSError) and error.errno in _DISK:
            return f"the cache cannot be written ({error.strerror})"
        return f"the hub cannot be reached ({type(error).__name__})"


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
