"""Text files as they are, one document per file: a folder of them, or a single one."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import PurePath

from sbertkit.data.bad_rows import BadRow
from sbertkit.data.document_columns import DocumentColumns
from sbertkit.data.formats.base import CorpusFormat
from sbertkit.data.lines import TextOptions, UndecodableText, read_text
from sbertkit.data.metadata import BadRecordError
from sbertkit.data.streams import STDIN, reading, source_name
from sbertkit.data.tables import Row
from sbertkit.data.text import printable
from sbertkit.errors import InputError

_SUFFIXES = (".txt", ".md", ".markdown")


def read_file(path: str, text: TextOptions, _: DocumentColumns) -> Iterator[Row | BadRow]:
    """One row, whose text is the whole file and whose id is its name."""
    yield _whole_file(path, 1, "stdin" if path == STDIN else PurePath(path).name, text)


def read_folder(path: str, text: TextOptions, _: DocumentColumns) -> Iterator[Row | BadRow]:
    """A row for each file, in the order of the relative paths, which are the ids.

    Hidden files and folders and links to folders are left out.

    Raises:
        InputError: There is no text file.
    """
    number = 0
    for number, relative in enumerate(_text_files(path, ""), 1):
        file = os.path.join(path, *relative.split("/"))  # noqa: PTH118 - a path of str, as given
        yield _whole_file(file, number, relative, text)
    if not number:
        raise InputError(
            f"{source_name(path)}: expected a folder with .txt or .md files, with Parquet or"
            " Arrow files, or with corpus.jsonl (BEIR), found none of them; pass a corpus file or"
            " another folder"
        )


def _whole_file(path: str, number: int, identifier: str, text: TextOptions) -> Row | BadRow:
    noted = text.on_replaced
    if noted is not None:
        text = replace(text, on_replaced=lambda line: noted(f"{identifier} line {line}"))
    try:
        return Row(number, {"id": identifier, "text": read_text(path, text)})
    except BadRecordError as error:
        return BadRow(number, f"{printable(identifier)} has {error.reason}")
    except UndecodableText as error:
        return BadRow(number, f"{error}")  # with both names of an option


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
FILE = CorpusFormat("file", read_file, (".md", ".markdown"), unit="file")
