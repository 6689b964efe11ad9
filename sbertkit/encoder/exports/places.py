"""Where exports are in the user's cache; needs no torch."""

import hashlib
import json
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from sbertkit.encoder.exports.manifest import EXPORT_FILES
from sbertkit.user_cache import cache_folder, is_private

_LIBRARIES = ("sbertkit", "torch", "transformers", "tokenizers", "onnxruntime")


def cache_key(*parts: object) -> str:
    """A name that these parts, as JSON can hold them, and the versions of the libraries decide."""
    versions = {name: installed_version(name) for name in _LIBRARIES}
    content = json.dumps([*parts, versions], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:32]


def export_place(fingerprint: str, precision: str) -> Path | None:
    """Where the export of the encoder with that fingerprint is kept; ``None`` without a cache."""
    folder = cache_folder("exports")
    return None if folder is None else folder / cache_key(fingerprint, precision)


def is_untouched(folder: Path) -> bool:
    """Whether a folder holds an export alone, is this user's, and nobody else may write there.

    Raises:
        OSError: It cannot be looked at.
    """
    places = list(folder.iterdir())
    names = {place.name for place in places}
    return names == set(EXPORT_FILES) and all(map(is_private, (folder, *places)))


def installed_version(name: str) -> str | None:
    """The version of a package; ``None`` if it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None
