"""Folders of text files, one document a file."""

import os
from collections.abc import Iterator

from sbertkit.data.bad_rows import BadRow
from sbertkit.data.formats.base import CorpusFormat
from sbertkit.data.lines import TextOptions, read_text
from sbertkit.data.metadata import BadRecordError
from sbertkit.data.streams import reading, source_name
from sbertkit.data.tables import Row
from sbertkit.data.text import printable
from sbertkit.errors import InputError

_SUFFIXES = (".txt", ".md")


def read_folder(path: str, text: TextOptions) -> Iterator[Row | BadRow]:
    """A row for each file, in the order of the relative paths, which are the ids.

    Hidden files and folders and links to folders are left out.

    Raises:
        InputError: There is no text file, or one has another encoding.
    """
    number = 0
    for number, relative in enumerate(_text_files(path, ""), 1):
        file = os.path.join(path, *relative.split("/"))  # noqa: PTH118 - a path of str, as given
        try:
            row: Row | BadRow = Row(number, {"id": relative, "text": read_text(file, text)})
        except BadRecordError as error:
            row = BadRow(number, f"{printable(relative)} has {error.reason}")
        yield row
    if not number:
        raise InputError(
            f"{source_name(path)}: expected a folder with .txt or .md files, or with corpus.jsonl"
            " (BEIR), found none of them; pass a corpus file or another folder"
        )


def _text_files(path: str, prefix: str) -> Iterator[str]:
    """The paths of text files relative to the corpus, sorted as text, one folder in memory."""
    with reading(path), os.scandir(path) as entries:
        visible = [entry for entry in entries if not entry.name.startswith(".")]
        folders = {entry.name for entry in visible if entry.is_dir(follow_symlinks=False)}
        # links to nowhere are listed as well, so that reading them says so
        files = {entry.name for entry in visible if not entry.is_dir() and _is_text(entry)}
    # with its slash a folder's name sorts as the paths in it do
    for name in sorted(files | {f"{folder}/" for folder in folders}):
        if name.endswith("/"):
            yield from _text_files(os.path.join(path, name[:-1]), prefix + name)  # noqa: PTH118
        else:
            yield prefix + name


def _is_text(entry: os.DirEntry[str]) -> bool:
    name = entry.name.lower().removesuffix(".gz")
    return name.endswith(_SUFFIXES) and (entry.is_file() or entry.is_symlink())


FOLDER = CorpusFormat("folder", read_folder, unit="file")
