"""Folders of Parquet or Arrow files, as Hugging Face's datasets writes them: one corpus."""

import os
from collections.abc import Iterator
from pathlib import Path

from sbertkit.data.bad_rows import BadRow
from sbertkit.data.document_columns import DocumentColumns
from sbertkit.data.formats.base import CorpusFormat
from sbertkit.data.formats.tables import ARROW, PARQUET
from sbertkit.data.lines import TextOptions
from sbertkit.data.split_files import is_saved_set, saved_files
from sbertkit.data.streams import reading
from sbertkit.data.tables import Row, has_suffix

_FILES = (PARQUET, ARROW)


def dataset_files(folder: str) -> list[str]:
    """The files of a folder in order: those that a saved data set lists, or all by their names.

    Raises:
        InputError: The data set cannot be read by its list.
    """
    suffixes = tuple(suffix for form in _FILES for suffix in form.suffixes)
    with reading(folder), os.scandir(folder) as entries:
        names = [one.name for one in entries if one.is_file() and has_suffix(one.name, suffixes)]
    if names and is_saved_set(Path(folder)):
        return saved_files(Path(folder))
    return [os.path.join(folder, name) for name in sorted(names) if not name.startswith(".")]  # noqa: PTH118 - a path of str, as given


def read_dataset(path: str, text: TextOptions, columns: DocumentColumns) -> Iterator[Row | BadRow]:
    """The rows of all files, numbered through."""
    before = 0
    for file in dataset_files(path):
        number = 0
        form = next(one for one in _FILES if has_suffix(file, one.suffixes))
        for row in form.read(file, text, columns):
            number = row.number
            yield row._replace(number=before + number)
        before += number


DATASET = CorpusFormat("dataset", read_dataset, unit="row", has_columns=True)
