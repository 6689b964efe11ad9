"""Folders with a file or more for each split, as data sets lie on the hub."""

import re
from collections.abc import Container
from pathlib import Path

_NAME = re.compile(r"(train|dev|validation|valid|val|test)([-_.].*)?", re.IGNORECASE)


def split_files(folder: str, suffixes: Container[str]) -> dict[str, list[Path]]:
    """The files of each split, told by their names: ``test.jsonl.gz``, ``dev-00000-of-00001.csv``.

    Args:
        folder: Where they are.
        suffixes: Of the files that count, without ``.gz``.
    """
    found: dict[str, list[Path]] = {}
    for path in sorted(Path(folder).iterdir()):
        name = path.name.lower().removesuffix(".gz")
        split = _NAME.fullmatch(Path(name).stem)
        if split is not None and Path(name).suffix in suffixes and path.is_file():
            found.setdefault(split[1], []).append(path)
    return found
