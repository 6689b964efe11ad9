"""Where an index is built when nobody says where."""

import os
from pathlib import Path

from sbertkit.arguments import path_text
from sbertkit.data.streams import is_folder
from sbertkit.errors import DamagedIndex, InputError
from sbertkit.retrieval.manifest import is_index, read_manifest

_DEFAULT_FOLDER = Path("indexes")


def default_index_path(corpus: str | os.PathLike[str]) -> Path:
    """``indexes/<name of the corpus>``, without the endings that tell format and compression.

    Raises:
        MissingFile: There is no such corpus.
        InputError: An index of another corpus is there, or one whose corpus cannot be told.
    """
    text = path_text(corpus)
    folder = is_folder(text)
    source = Path(text).resolve()
    stem = source.name if folder else Path(source.name.removesuffix(".gz")).stem
    path = _DEFAULT_FOLDER / stem
    if is_index(path):
        try:
            built_from = read_manifest(path).corpus
        except DamagedIndex as error:
            raise InputError(
                f"{path} holds a damaged index of a corpus that cannot be told; replace it with: "
                f"-o {path}, or give this one a place of its own with: -o {_free_path(path)}"
            ) from error
        if built_from != str(source):
            raise InputError(
                f"{path} holds an index of {built_from or 'another corpus'}; give this one a place "
                f"of its own with: -o {_free_path(path)}"
            )
    return path


def _free_path(path: Path) -> Path:
    number = 2
    while path.with_name(f"{path.name}-{number}").exists():
        number += 1
    return path.with_name(f"{path.name}-{number}")
