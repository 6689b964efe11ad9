"""The files of a model folder that may decide its vectors, and one hash over all of them."""

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sbertkit.encoder.file_hashes import file_sha256
from sbertkit.errors import InputError
from sbertkit.files import inside, read_regular
from sbertkit.schema import parse_json, read_record

MODULES_FILE = "modules.json"
"""The file without which a folder is no model of sentence-transformers."""
LINEAGE_FILE = "sbertkit.json"
"""Beside a model that sbertkit saved: how it came about."""
_TOKENIZER_CONFIG = "tokenizer_config.json"
_NEVER_READ = {
    *(".bin", ".ckpt", ".gguf", ".h5", ".msgpack", ".onnx", ".onnx_data", ".ot", ".pt", ".pth"),
    *(".jpg", ".md", ".pdf", ".png", ".svg", ".xml"),
}
"""Weights in formats that are never loaded, and what only people read."""
_MAX_BYTES = 2**32
"""Of all files: twice what an ONNX file can hold, as some folders have the weights twice."""


@dataclass(frozen=True, slots=True)
class Module:
    """An entry of modules.json."""

    type: str
    path: str


def read_modules(folder: Path) -> list[Module]:
    """The entries of modules.json; none where there is no such file.

    Raises:
        InputError: It is no list of modules.
        OSError: It cannot be read.
    """
    path = folder / MODULES_FILE
    if not path.is_file():
        return []
    return read_record(read_regular(path, follow=True), list[Module], path)


def files_sha256(folder: Path, *, remembered: bool = True) -> str:
    """The SHA-256 over names and contents of the files that may decide a model's vectors.

    These are all files of the folder and of the folders of its modules but those that no loader
    reads, and files elsewhere that the tokenizer's config names.

    Args:
        folder: The model folder.
        remembered: See `file_sha256`.

    Raises:
        InputError: A module that leads out of the folder, something that is no regular file, or
            more than 4 GB.
        OSError: A file cannot be read.
    """
    files = dict(_files(folder))
    if sum(path.stat().st_size for path in files.values()) > _MAX_BYTES:
        raise InputError(f"{folder} has more than {_MAX_BYTES:,} bytes")
    hashes = [[name, file_sha256(files[name], remembered=remembered)] for name in sorted(files)]
    return hashlib.sha256(json.dumps(hashes).encode("ascii")).hexdigest()


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    """The files, each by a name that is the same wherever the folder lies."""
    for part in {"", *(module.path for module in read_modules(folder))}:
        place = inside(folder, part) if part else folder
        if not place.is_dir():  # that of a module without settings
            continue
        with os.scandir(place) as entries:
            for entry in entries:
                path = Path(entry.path)
                hidden = path.name.startswith(".")
                if entry.is_file() and not hidden and path.suffix.lower() not in _NEVER_READ:
                    yield f"{part}/{path.name}", path
        yield from _named_files(place / _TOKENIZER_CONFIG)


def _named_files(config: Path) -> Iterator[tuple[str, Path]]:
    """The files that a tokenizer's config names; some are read wherever they are."""
    if not config.is_file():
        return
    for text in _strings(parse_json(read_regular(config, follow=True), config)):
        for base in (config.parent, Path()):
            with suppress(OSError, ValueError):  # too long for a path, or with a NUL
                path = base / text
                if path.is_file() and path.stat().st_size > 0:  # no file of the system's own
                    yield f"{base == Path()} {text}", path


def _strings(content: Any) -> Iterator[str]:
    """All strings in a JSON document but its keys."""
    pending = [content]
    while pending:
        one = pending.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict):
            pending.extend(one.values())
        elif isinstance(one, list):
            pending.extend(one)
