"""Snapshots of repositories on the Hugging Face hub, with the client's errors in words."""

import errno
from collections.abc import Sequence
from pathlib import Path

_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS)
_SECONDS = 10.0  # to wait for the hub's first answer
_KINDS = {"model": "model", "dataset": "data set"}


class HubError(Exception):
    """Why there is no snapshot; caught inside this package.

    Attributes:
        unknown: Whether the hub has no repository of that name.
    """

    def __init__(self, reason: str, *, unknown: bool = False) -> None:
        super().__init__(reason)
        self.unknown = unknown


def snapshot(
    repository: str,
    *,
    kind: str,
    revision: str | None,
    local: bool,
    wanted: Sequence[str],
    unwanted: Sequence[str] = (),
    cache: Path | None = None,
) -> Path:
    """The folder of a repository in the hub's cache, filled from the hub unless `local`.

    Args:
        repository: Its name.
        kind: ``model`` or ``dataset``.
        revision: Branch, tag or commit; None for the main branch.
        local: Look into the cache alone.
        wanted: Patterns of the files to fetch.
        unwanted: Patterns of files to leave out.
        cache: The cache's folder; None for the client's own.

    Raises:
        HubError: It is not available.
    """
    from huggingface_hub import HfApi, constants, errors, snapshot_download

    try:
        if not local and kind == "dataset":
            # asks once; for a pinned commit the client asks a dead hub for half a minute
            HfApi().dataset_info(repository, revision=revision, timeout=_SECONDS)
        return Path(
            snapshot_download(
                repository,
                repo_type=kind,
                revision=revision,
                allow_patterns=list(wanted),
                ignore_patterns=list(unwanted),
                local_files_only=local,
                **({} if cache is None else {"cache_dir": cache}),
            )
        )
    # Errors of the connection reach us as they are, and are no OSErrors.
    except (errors.HTTPError, OSError, ValueError, RuntimeError) as error:
        reasons: dict[type[Exception], str] = {
            errors.GatedRepoError: "it is gated: accept its terms on the hub and log in with:"
            " hf auth login",
            errors.RepositoryNotFoundError: f"no such {_KINDS[kind]} is on the hub",
            errors.RevisionNotFoundError: f"the hub has no revision {revision!r} of it",
            errors.HFValidationError: "it is no valid hub name",
            # such as a cache below a home folder that nobody has
            RuntimeError: f"the hub's client failed ({error}); name a folder for its cache with"
            " HF_HOME",
        }
        found = next((one for one in reasons if isinstance(error, one)), None)
        if found is not None:
            raise HubError(
                reasons[found], unknown=found is errors.RepositoryNotFoundError
            ) from error
        if constants.is_offline_mode():
            raise HubError("the hub is switched off (HF_HUB_OFFLINE)") from error
        if isinstance(error, OSError) and error.errno in _DISK:
            raise HubError(f"the cache cannot be written ({error.strerror})") from error
        raise HubError(f"the hub cannot be reached ({type(error).__name__})") from error
