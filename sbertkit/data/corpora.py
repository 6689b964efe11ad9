"""Corpora from files, folders and standard input, by format and with one policy for all."""

import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sbertkit.arguments import path_text
from sbertkit.data.bad_rows import BadRow
from sbertkit.data.document import Document, SourcedDocument
from sbertkit.data.document_columns import DocumentColumns
from sbertkit.data.documents import ReadOptions, ReadReport, admit
from sbertkit.data.formats import FORMATS, CorpusFormat
from sbertkit.data.formats.dataset import dataset_files
from sbertkit.data.lines import TextOptions
from sbertkit.data.metadata import BadRecordError
from sbertkit.data.streams import STDIN, is_folder, reading, source_name
from sbertkit.data.tables import Row, has_suffix
from sbertkit.errors import InputError, MissingFile

logger = logging.getLogger(__name__)
_DEFAULT = ReadOptions()
_BEIR_FILES = ("corpus.jsonl", "corpus.jsonl.gz")


def read_corpus(
    source: str | os.PathLike[str],
    options: ReadOptions = _DEFAULT,
    report: ReadReport | None = None,
    *,
    keep_blank: bool = False,
) -> Iterator[SourcedDocument]:
    """The documents of a corpus, one at a time in constant memory.

    A document with blank text is given out only on demand. Duplicate ids are not noticed here. What
    the path alone shows is refused at once, the rest while reading.

    Args:
        source: A file (gzip when its name ends in ``.gz``), a folder, or ``-`` for standard input.
        options: Format, encoding, and what to do with bad bytes and lines.
        report: Filled while documents are drawn.
        keep_blank: Give out documents with blank text too, for what counts rows.

    Raises:
        InputError: An unknown format, a bad line, undecodable bytes, a broken file.
        InputTypeError: The source is not a path.
        MissingFile: The source does not exist.
        StorageError: The source cannot be read.
    """
    path = path_text(source)
    path, name = _resolve(path, options)
    policy = _Policy(options, ReadReport() if report is None else report, keep_blank)
    return _documents(path, FORMATS[name], policy)


def has_columns(source: str | os.PathLike[str], options: ReadOptions) -> bool:
    """Whether the format of a corpus has columns to choose from; errors are as `read_corpus`'s."""
    return FORMATS[_format(path_text(source), options)[1]].has_columns


def is_lines(source: str | os.PathLike[str], options: ReadOptions) -> bool:
    """Whether each line of a corpus is a document; errors are as `read_corpus`'s."""
    return FORMATS[_format(path_text(source), options)[1]].is_lines


@dataclass(frozen=True, slots=True)
class _Policy:
    options: ReadOptions
    report: ReadReport
    keep_blank: bool


def _documents(path: str, form: CorpusFormat, policy: _Policy) -> Iterator[SourcedDocument]:
    options, report = policy.options, policy.report
    name = source_name(path)

    def count(place: int | str) -> None:
        report.replaced.add(str(place))

    text = TextOptions(
        options.encoding, options.errors, options.max_text_bytes, count, options.delimiter
    )
    columns = DocumentColumns(options.columns, with_id=form.needs_id)
    for row in form.read(path, text, columns):
        outcome = row if isinstance(row, BadRow) else _admitted(row, policy)
        if isinstance(outcome, BadRow):
            message = f"{name} {form.unit} {outcome.place}: {outcome.reason}"
            if not options.skip_bad_lines:
                raise InputError(
                    f"{message}; fix the {form.unit} or pass skip_bad_lines (--skip-bad-lines)"
                )
            logger.debug("skipped %s", message)
            report.bad_lines.add(outcome.place)
            report.first_bad = report.first_bad or message
        elif outcome is not None:
            yield SourcedDocument(outcome, row.number)
    columns.check_found(name)
    report.columns = columns.describe()


def _admitted(row: Row, policy: _Policy) -> Document | BadRow | None:
    try:
        return admit(row, policy.report, keep_blank=policy.keep_blank)
    except BadRecordError as error:
        return BadRow(row.number, error.reason)


def _resolve(path: str, options: ReadOptions) -> tuple[str, str]:
    """The path to read and the format's name, checked against the file system and the options."""
    path, name = _format(path, options)
    if options.delimiter is not None and name != "csv":
        raise InputError(f"{source_name(path)}: only csv has a delimiter, not the format {name}")
    if options.columns.made and not FORMATS[name].has_columns:
        raise InputError(
            f"{source_name(path)}: the format {name} has no columns to choose from; pass another "
            "format (--input-format), or none of text_columns (--text-column), id_column "
            "(--id-column) and metadata_columns (--metadata-columns)"
        )
    return path, name


def _format(path: str, options: ReadOptions) -> tuple[str, str]:
    name = options.format
    folder = is_folder(path)
    if folder and name in (None, "beir"):
        inside = _beir_file(path)
        if inside is not None:
            return inside, "beir"
        if name == "beir":
            raise MissingFile(
                f"{source_name(path)}: no corpus.jsonl in this folder, which the format beir needs"
            )
        return path, "dataset" if dataset_files(path) else "folder"
    if folder != (name in ("folder", "dataset")):
        expected, found = ("file", "folder") if folder else ("folder", "file")
        what = "standard input" if path == STDIN else f"a {found}"
        raise InputError(
            f"{source_name(path)}: the format {name} needs a {expected}, found {what};"
            " pass another format (--input-format)"
        )
    if name is None and options.delimiter is not None and not _is_of_objects(path):
        return path, "csv"
    return path, name or _format_by_name(path)


def _is_of_objects(path: str) -> bool:
    """Whether a file has no cells that a delimiter could be between."""
    return any(has_suffix(path, FORMATS[name].suffixes) for name in ("jsonl", "parquet", "arrow"))


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
    for name, form in FORMATS.items():
        if has_suffix(path, form.suffixes):
            return name
    known = ", ".join(
        f"{name} ({', '.join(form.suffixes)})" for name, form in FORMATS.items() if form.suffixes
    )
    raise InputError(
        f"{source_name(path)}: unknown format; pass format (--input-format) with one of {known},"
        " or rename the file"
    )
