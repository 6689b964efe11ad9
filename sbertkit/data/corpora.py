"""Corpora from files, folders and standard input, by format and with one policy for all."""

import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sbertkit.arguments import path_text
from sbertkit.data.documents import Document, ReadOptions, ReadReport, SourcedDocument
from sbertkit.data.formats.csv import read_csv
from sbertkit.data.formats.folder import read_folder
from sbertkit.data.formats.jsonl import read_beir, read_jsonl
from sbertkit.data.formats.lines import read_tsv, read_txt
from sbertkit.data.formats.parquet import read_parquet
from sbertkit.data.metadata import BadRecordError
from sbertkit.data.records import BadLine, Reader, Record, admit
from sbertkit.data.streams import STDIN, is_folder, reading, source_name
from sbertkit.errors import InputError, MissingFile

logger = logging.getLogger(__name__)
_DEFAULT = ReadOptions()
_BEIR_FILES = ("corpus.jsonl", "corpus.jsonl.gz")


@dataclass(frozen=True, slots=True)
class _Format:
    read: Reader
    suffixes: tuple[str, ...] = ()
    unit: str = "line"


READERS: dict[str, _Format] = {
    "txt": _Format(read_txt, (".txt",)),
    "jsonl": _Format(read_jsonl, (".jsonl", ".ndjson")),
    "tsv": _Format(read_tsv, (".tsv",)),
    "csv": _Format(read_csv, (".csv",)),
    "parquet": _Format(read_parquet, (".parquet",), "row"),
    "beir": _Format(read_beir),
    "folder": _Format(read_folder, unit="file"),
}
"""The formats by the names of `FORMATS`."""


def read_corpus(
    source: str | os.PathLike[str],
    options: ReadOptions = _DEFAULT,
    report: ReadReport | None = None,
    *,
    keep_blank: bool = False,
) -> Iterator[SourcedDocument]:
    """The documents of a corpus, one at a time in constant memory.

    A document with blank text is given out only on demand. That two documents have one id is not
    noticed here. What can be told from the path alone is refused at once, the rest while reading.

    Args:
        source: A file (gzip when its name ends in ``.gz``), a folder, or ``-`` for standard input.
        options: Format, encoding, and what to do with bad bytes and lines.
        report: Filled while documents are drawn.
        keep_blank: Give out documents with blank text too, for what counts rows.

    Raises:
        InputError: A format that cannot be told, a bad line, undecodable bytes, a broken file.
        InputTypeError: The source is not a path.
        MissingFile: The source does not exist.
        StorageError: The source cannot be read.
        MissingDependency: Parquet without pyarrow.
    """
    path = path_text(source)
    path, name = _resolve(path, options.format)
    policy = _Policy(options, ReadReport() if report is None else report, keep_blank)
    return _documents(path, READERS[name], policy)


@dataclass(frozen=True, slots=True)
class _Policy:
    options: ReadOptions
    report: ReadReport
    keep_blank: bool


def _documents(path: str, form: _Format, policy: _Policy) -> Iterator[SourcedDocument]:
    options, report = policy.options, policy.report
    name = source_name(path)
    for record in form.read(path, options, report):
        outcome = record if isinstance(record, BadLine) else _admitted(record, policy)
        if isinstance(outcome, BadLine):
            message = f"{name} {form.unit} {outcome.place}: {outcome.reason}"
            if not options.skip_bad_lines:
                raise InputError(f"{message}; fix the {form.unit} or pass --skip-bad-lines")
            logger.debug("skipped %s", message)
            report.bad_lines.add(outcome.place)
            report.first_bad = report.first_bad or message
        elif outcome is not None:
            yield SourcedDocument(outcome, record.line)


def _admitted(record: Record, policy: _Policy) -> Document | BadLine | None:
    try:
        return admit(record, policy.report, keep_blank=policy.keep_blank)
    except BadRecordError as error:
        return BadLine(record.line, error.reason)


def _resolve(path: str, name: str | None) -> tuple[str, str]:
    """The path to read and the format's name, both checked against what is there."""
    folder = is_folder(path)
    if folder and name in (None, "beir"):
        inside = _beir_file(path)
        if inside is not None:
            return inside, "beir"
        if name == "beir":
            raise MissingFile(
                f"{source_name(path)}: no corpus.jsonl in this folder, which the format beir needs"
            )
        return path, "folder"
    if folder != (name == "folder"):
        expected, found = ("file", "folder") if folder else ("folder", "file")
        what = "standard input" if path == STDIN else f"a {found}"
        raise InputError(
            f"{source_name(path)}: the format {name} needs a {expected}, found {what};"
            " pass another --format"
        )
    return path, name or _format_by_name(path)


def _beir_file(folder: str) -> str | None:
    with reading(folder):
        for name in _BEIR_FILES:
            file = Path(folder) / name
            if file.is_file():
                return str(file)
    return None


def _format_by_name(path: str) -> str:
    if path == STDIN:
        return "txt"
    suffix = Path(path.lower().removesuffix(".gz")).suffix
    for name, form in READERS.items():
        if suffix in form.suffixes:
            return name
    known = ", ".join(
        f"{name} ({', '.join(form.suffixes)})" for name, form in READERS.items() if form.suffixes
    )
    raise InputError(
        f"{source_name(path)}: the format cannot be told from the name; pass --format with one of"
        f" {known}, beir, or rename the file"
    )
