"""Corpora of plain texts as rows to train on."""

import hashlib
import logging
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

from sbertkit.arguments import Paths, path_list, path_text
from sbertkit.data import ReadOptions, ReadReport, read_corpus
from sbertkit.data.corpora import is_lines
from sbertkit.data.text import is_blank
from sbertkit.errors import InputError
from sbertkit.storage import sha256_file
from sbertkit.training.data_forms import DataForm, DataSource, TrainingData

logger = logging.getLogger(__name__)


def given_paths(paths: Paths | None) -> list[str]:
    """One path, several or none, as texts."""
    if paths is None:
        return []
    return [path_text(one) for one in path_list(paths)]


def read_texts(
    form: DataForm, paths: Sequence[str], read: ReadOptions, *, documents: bool = False
) -> TrainingData:
    """The texts of corpora.

    Args:
        form: What a row is.
        paths: The corpora.
        read: How they are read.
        documents: Lines of a text file up to a blank one are one text.

    Raises:
        InputError: There are none, or see `read_corpus`.
    """
    rows: list[tuple[str]] = []
    sources = []
    for path in paths:
        report = ReadReport()
        if documents and is_lines(path, read):
            found = read_corpus(path, read, report, keep_blank=True)
            texts = list(_divided_by_blank(one.document.text for one in found))
        else:
            texts = [one.document.text for one in read_corpus(path, read, report)]
        for warning in report.warnings():
            logger.warning("%s: %s", path, warning)
        if Path(path).is_file():
            sha256 = sha256_file(Path(path))
        else:
            sha256 = hashlib.sha256(repr(texts).encode()).hexdigest()
        sources.append(DataSource(path, sha256, len(texts)))
        rows += [(text,) for text in texts]
    if not rows:
        raise InputError(f"{paths[0]}: expected texts, found none that is not blank")
    return TrainingData(form, rows, tuple(sources))


def _divided_by_blank(lines: Iterable[str]) -> Iterator[str]:
    """The lines between blank ones as one text each."""
    for blank, group in groupby(lines, is_blank):
        if not blank:
            yield "\n".join(group)
