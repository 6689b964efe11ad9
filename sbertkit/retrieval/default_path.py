"""The default folder of an index."""

import os
import stat
from pathlib import Path

from sbertkit.arguments import path_text
from sbertkit.data.streams import STDIN, is_folder
from sbertkit.data.text import printable
from sbertkit.errors import DamagedIndex, InputError
from sbertkit.retrieval.manifest import is_index, read_any_manifest

_DEFAULT_FOLDER = Path("indexes")


def default_index_path(corpus: str | os.PathLike[str]) -> Path:
    """``indexes/<name of the corpus>``, without the suffixes for format and compression.

    The name is the one that was given; links are not followed.

    Raises:
        MissingFile: There is no such corpus.
        InputError: The corpus is a pipe or a device, which has no name; or the folder has an index
            of another or an unknown corpus.
    """
    text = path_text(corpus)
    folder = is_folder(text)
    source = Path(os.path.abspath(text))  # noqa: PTH100  # Path.absolute keeps ".."
    if _is_nameless(source):
        raise InputError(
            f"{printable(text, 500)} is a pipe or a device, whose name is not that of a corpus; "
            "give the index folder with -o DIR"
        )
    stem = source.name if folder else Path(source.name.removesuffix(".gz")).stem
    path = _DEFAULT_FOLDER / stem
    _refuse_other(path, source)
    return path


def check_same_corpus(path: str, corpus: str) -> None:
    """Refuses to replace the index of another corpus than this one.

    Args:
        path: Where the index is to be.
        corpus: The corpus as it was given.

    Raises:
        InputError: An index of another corpus is there.
    """
    source = None if corpus == STDIN else Path(os.path.abspath(corpus))  # noqa: PTH100  # Path.absolute keeps ".."
    _refuse_other(Path(path), source)


def _refuse_other(path: Path, source: Path | None) -> None:
    """Refuses a folder with an index that was built from another file or folder, or an unknown."""
    if not is_index(path):
        return
    try:
        built_from = read_any_manifest(path).corpus
    except DamagedIndex as error:
        raise InputError(
            f"{path} holds a damaged index of an unknown corpus; replace it with: -o {path} "
            f"--replace, or give this one a folder of its own with: -o {_free_path(path)}"
        ) from error
    same = source is None if built_from is None else source and _resolved(built_from, source)
    if not same:
        raise InputError(
            f"{path} holds an index of {built_from or 'another corpus'}; give this one a folder "
            f"of its own with: -o {_free_path(path)}, or replace that one with: -o {path} --replace"
        )


def _resolved(first: str, second: Path) -> bool:
    """Whether two paths are those of one file or folder."""
    return Path(first).resolve() == second.resolve()


def _is_nameless(source: Path) -> bool:
    """Whether a path is a pipe, a device or the number of an open file."""
    mode = source.stat().st_mode
    by_number = {"dev", "proc"} & set(source.parts[1:2])
    return bool(by_number) or not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _free_path(path: Path) -> Path:
    number = 2
    while path.with_name(f"{path.name}-{number}").exists():
        number += 1
    return path.with_name(f"{path.name}-{number}")
