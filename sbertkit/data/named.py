"""Data sets by name: what is known of them, and their files from the Hugging Face hub's cache."""

import errno
from dataclasses import dataclass
from pathlib import Path

from sbertkit.data.nli.labels import NLI_LABELS
from sbertkit.data.text import printable
from sbertkit.errors import InputError, InputTypeError, MissingDependency

_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS)
_SECONDS = 10.0  # to wait for the hub's first answer


@dataclass(frozen=True, slots=True)
class NamedNli:
    """A published set of labelled pairs.

    Attributes:
        name: What it is called here.
        repository: The data set's name on the hub.
        revision: The commit that is read, so that a name always means the same bytes.
        folder: The folder in the repository.
        pattern: The files in that folder.
        label_names: What the numbers 0, 1, ... mean where the files do not say it.
        licence: That of its texts.
        source: Where it is described.
    """

    name: str
    repository: str
    revision: str
    folder: str
    pattern: str
    label_names: tuple[str, ...]
    licence: str
    source: str

    @property
    def labels(self) -> dict[int, str]:
        """The mapping from numbers to names, as `read_nli` takes it."""
        return dict(enumerate(self.label_names))


NAMED_NLI = (
    NamedNli(
        name="all-nli",
        repository="sentence-transformers/all-nli",
        revision="d482672c8e74ce18da116f430137434ba2e52fab",
        folder="pair-class",
        pattern="train-*.parquet",
        label_names=NLI_LABELS,
        licence=(
            "SNLI: CC BY-SA 4.0; MultiNLI: the OANC's licence, its fiction in part CC BY 3.0, "
            "CC BY-SA 3.0 or public domain in the USA"
        ),
        source="https://huggingface.co/datasets/sentence-transformers/all-nli",
    ),
)
"""The sets that have names."""


def find_named(name: str) -> NamedNli:
    """What is known of the set of that name.

    Raises:
        InputError: No set has that name.
        InputTypeError: The name is not a str.
    """
    if not isinstance(name, str):
        raise InputTypeError(f"a data set's name must be a str, found {type(name).__name__}")
    for known in NAMED_NLI:
        if known.name == name:
            return known
    names = ", ".join(known.name for known in NAMED_NLI)
    raise InputError(
        f"there is no data set named '{printable(name)}'; choose one of {names}, or pass files"
    )


def named_nli(name: str) -> Path:
    """The local folder of a named set, for `read_nli`; fetched from the hub unless cached.

    Args:
        name: The name of an entry of `NAMED_NLI`.

    Raises:
        InputError: No set has that name, or it is neither in the cache nor to be had.
        InputTypeError: The name is not a str.
        MissingDependency: huggingface-hub is not installed.
    """
    known = find_named(name)
    reason = "it is not there"
    for local in (True, False):
        snapshot = _snapshot(known, local=local)
        if isinstance(snapshot, Path):
            folder = snapshot / known.folder
            # other programs fetch other parts of the repository into the same cache
            if any(file.is_file() for file in folder.glob(known.pattern)):
                return folder
            reason = f"the hub has no {known.folder}/{known.pattern} in it"
        elif not local:
            reason = snapshot
    raise InputError(
        f"data set '{name}' ({known.repository}) was not found: not in the local hub cache, and"
        f" {reason}; try again, or download it elsewhere and pass its files"
    )


def _snapshot(known: NamedNli, *, local: bool) -> Path | str:
    """The folder of the repository in the hub cache, filled from the hub unless `local`.

    Else why there is none.
    """
    try:
        from huggingface_hub import HfApi, constants, errors, snapshot_download
    except ImportError as error:
        raise MissingDependency(
            "a data set by name needs huggingface-hub: pip install huggingface-hub"
        ) from error
    try:
        if not local:
            # asks once; for a pinned commit the client asks a dead hub for half a minute
            HfApi().dataset_info(known.repository, revision=known.revision, timeout=_SECONDS)
        return Path(
            snapshot_download(
                known.repository,
                repo_type="dataset",
                revision=known.revision,
                allow_patterns=[f"{known.folder}/{known.pattern}"],
                local_files_only=local,
            )
        )
    except errors.GatedRepoError:
        return "it is gated: accept its terms on the hub and log in with: hf auth login"
    except errors.RepositoryNotFoundError:
        return "no such data set is on the hub"
    except errors.RevisionNotFoundError:
        return f"the hub has no revision '{known.revision}' of it"
    # Errors of the connection reach us as they are, and are no OSErrors.
    except (errors.HTTPError, OSError, ValueError) as error:
        if constants.is_offline_mode():
            return "the hub is switched off (HF_HUB_OFFLINE)"
        if isinstance(error, OSError) and error.errno in _DISK:
            return f"the cache cannot be written ({error.strerror})"
        return f"the hub cannot be reached ({type(error).__name__})"
