"""Rows of scored pairs from each format, before they are judged."""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from sbertkit.data.formats.batches import checked_rows, open_parquet, parquet_batches
from sbertkit.data.formats.csv import read_fields
from sbertkit.data.formats.jsonl import parse_object
from sbertkit.data.formats.parquet import arrow_errors
from sbertkit.data.lines import Line, read_lines
from sbertkit.data.metadata import BadRecordError
from sbertkit.data.records import BadLine
from sbertkit.data.splits import SPLIT_COLUMNS, split_text
from sbertkit.data.streams import open_seekable, source_name
from sbertkit.data.text import is_blank, printable
from sbertkit.errors import InputError

# Column names of each role, lower-cased; where a header has several, the earliest here counts.
_ALIASES = {
    "split": SPLIT_COLUMNS,
    "score": ("score", "similarity_score", "relatedness_score", "similarity", "label"),
    "first": ("sentence1", "sentence_1", "sentence_a", "sentencea", "sent_1", "text1"),
    "second": ("sentence2", "sentence_2", "sentence_b", "sentenceb", "sent_2", "text2"),
}
_NEEDED = ("score", "first", "second")
_RELEASE_WIDTH = 7
_RELEASE_PLACES = {"score": 4, "first": 5, "second": 6}
"""STS benchmark as released: genre, file, year, number, score, sentence, sentence (and sources)."""


class Row(NamedTuple):
    """A row as it was read: nothing is known yet about its values but the split."""

    number: int
    split: str | None
    score: object
    first: object
    second: object


RowReader = Callable[[str], Iterator[Row | BadLine]]
"""Reads the rows of the file of that path, counted as its messages count them."""


class Layout(NamedTuple):
    """Which column has which role, how many columns a row has, and whether it may have more."""

    places: dict[str, int]
    width: int
    more: bool = False

    def row(self, number: int, cells: Sequence[object]) -> Row | BadLine:
        """The row in the cells of a line."""
        count = len(cells)
        if count != self.width and not (self.more and count > self.width):
            noun = "column" if count == 1 else "columns"
            return BadLine(number, f"{count} {noun}, expected {self.width}")
        split = None
        if "split" in self.places:
            split = split_text(cells[self.places["split"]])
            if not split:
                return BadLine(number, "blank split")
        return Row(number, split, *(cells[self.places[role]] for role in _NEEDED))


_WITHOUT_HEADER = Layout({"score": 0, "first": 1, "second": 2}, 3)
_RELEASE = Layout(_RELEASE_PLACES, _RELEASE_WIDTH, more=True)


def read_tab_rows(path: str) -> Iterator[Row | BadLine]:
    """A row a line, columns between tabs, no quoting.

    There is a header, or the columns are score, sentence, sentence, or those of the STS benchmark's
    release. Empty lines are passed over.

    Raises:
        InputError: A header without a needed column.
    """
    return _tab_rows(read_lines(path), source_name(path))


def _tab_rows(lines: Iterator[Line], name: str) -> Iterator[Row | BadLine]:
    layout: Layout | None = None
    for line in lines:
        if "\t" not in line.text and is_blank(line.text):
            continue
        cells = line.text.split("\t")
        if layout is None:
            layout = _of_header(cells, f"{name} line {line.number}")
            if layout is not None:
                continue
            layout = _RELEASE if _is_release(cells) else _WITHOUT_HEADER
        yield layout.row(line.number, cells)


def read_csv_rows(path: str) -> Iterator[Row | BadLine]:
    """A row a record, by the names in the header; quoted fields may hold line ends.

    A file named so whose first line has tabs is the STS benchmark's release or the like.

    Raises:
        InputError: A header without a needed column, none at all, or a quote never closed.
    """
    name = source_name(path)
    lines = read_lines(path)
    begun = list(_to_first_text(lines))  # a pipe can be read but once
    lines = chain(begun, lines)
    if begun and begun[-1].text.count("\t") >= 2:
        yield from _tab_rows(lines, name)
        return
    layout: Layout | None = None
    for first, last, cells in read_fields(lines, name):
        if layout is not None:
            row = layout.row(first, cells)
            yield row._replace(last=last) if isinstance(row, BadLine) else row
            continue
        layout = _of_header(cells, f"{name} line {first}")
        if layout is None:
            raise InputError(
                f"{name} line {first}: expected a header with score, sentence1 and sentence2, "
                f"found {printable(', '.join(cells), 200)}; add it"
            )


def read_jsonl_rows(path: str) -> Iterator[Row | BadLine]:
    """A row a line, from an object with the fields by their usual names."""
    for number, text in read_lines(path):
        if is_blank(text):
            continue
        try:
            fields = {str(key).lower(): value for key, value in parse_object(text).items()}
        except BadRecordError as error:
            yield BadLine(number, error.reason)
            continue
        found = {
            role: next((name for name in names if name in fields), None)
            for role, names in _ALIASES.items()
        }
        missing = [_ALIASES[role][0] for role in _NEEDED if found[role] is None]
        if missing:
            yield BadLine(number, f"no {' and '.join(missing)}")
            continue
        split = None if found["split"] is None else split_text(fields[found["split"]])
        yield Row(number, split, *(fields[str(found[role])] for role in _NEEDED))


def read_parquet_rows(path: str) -> Iterator[Row | BadLine]:
    """The rows of a Parquet file, by the names of its columns.

    Raises:
        InputError: Not Parquet, damaged, or without a needed column.
        MissingDependency: pyarrow is not installed.
    """
    name = source_name(path)
    with open_seekable(path) as stream, arrow_errors(name):
        file = open_parquet(stream)
        names: list[str] = file.schema_arrow.names
        layout = _of_header(names, name)
        if layout is None:
            raise InputError(
                f"{name}: expected columns named score, sentence1 and sentence2, found "
                f"{printable(', '.join(names), 200)}; rename them"
            )
        wanted = [names[place] for place in layout.places.values()]
        for first, batch in checked_rows(parquet_batches(file, wanted), name):
            rows = zip(*_columns(batch, wanted, name), strict=True)
            for number, cells in enumerate(rows, first):
                by_role = dict(zip(layout.places, cells, strict=True))
                split = split_text(by_role["split"]) if "split" in by_role else None
                yield Row(number, split, *(by_role[role] for role in _NEEDED))


class SubCorpus(NamedTuple):
    """A file of a SemEval release: the sub-corpus's name, the file, and its judged rows."""

    name: str
    file: str
    rows: list[Row | BadLine]


def read_semeval(folder: str) -> Iterator[SubCorpus]:
    """The sub-corpora of a SemEval release.

    Of each ``STS.input.NAME.txt`` (sentence, tab, sentence) with ``STS.gs.NAME.txt`` (a score a
    line); pairs whose score is blank were not judged and are passed over.

    Raises:
        InputError: A file without its other, or of another length.
    """
    for inputs in sorted(Path(folder).glob("STS.input.*.txt")):
        name = inputs.name.removeprefix("STS.input.").removesuffix(".txt")
        scores = inputs.with_name(f"STS.gs.{name}.txt")
        if not scores.is_file():
            raise InputError(f"{source_name(str(scores))}: the scores of {inputs.name} are missing")
        pairs, gold = list(read_lines(inputs)), list(read_lines(scores))
        if len(pairs) != len(gold):
            raise InputError(
                f"{source_name(str(scores))}: expected a score for each of the {len(pairs):,} "
                f"lines of {inputs.name}, found {len(gold):,} lines"
            )
        rows = [
            _semeval_row(pair, score)
            for pair, score in zip(pairs, gold, strict=True)
            if not is_blank(score.text)
        ]
        yield SubCorpus(name, str(inputs), rows)


def is_semeval(folder: str) -> bool:
    """Whether a folder is a SemEval release."""
    return any(Path(folder).glob("STS.input.*.txt"))


def _semeval_row(pair: Line, score: Line) -> Row | BadLine:
    cells = pair.text.split("\t")
    if len(cells) < 2:
        return BadLine(pair.number, f"{len(cells)} column, expected 2")
    return Row(pair.number, None, score.text, cells[0], cells[1])


def _of_header(cells: Sequence[str], where: str) -> Layout | None:
    """The layout that a header gives; None for cells that are no header.

    Raises:
        InputError: A header without a needed column.
    """
    names = [cell.strip().lower() for cell in cells]
    places = {}
    for role, aliases in _ALIASES.items():
        found = next((alias for alias in aliases if alias in names), None)
        if found is not None:
            places[role] = names.index(found)
    # One such word could be a sentence of its own; two in their columns are a header.
    if len(places) < 2:
        return None
    missing = [_ALIASES[role][0] for role in _NEEDED if role not in places]
    if missing:
        raise InputError(
            f"{where}: expected columns named score, sentence1 and sentence2, found "
            f"{printable(', '.join(names), 200)}; name {' and '.join(missing)} too"
        )
    return Layout(places, len(cells))


def _is_release(cells: Sequence[str]) -> bool:
    if len(cells) < _RELEASE_WIDTH:
        return False
    try:
        float(cells[_RELEASE_PLACES["score"]])
    except ValueError:
        return False
    return True


def _to_first_text(lines: Iterator[Line]) -> Iterator[Line]:
    """The lines up to the first that is not blank."""
    for line in lines:
        yield line
        if not is_blank(line.text):
            return


def _columns(batch: Any, names: Sequence[str], source: str) -> list[list[Any]]:
    try:
        return [batch.column(batch.schema.get_field_index(name)).to_pylist() for name in names]
    except (ValueError, OverflowError) as error:  # bytes that are not UTF-8
        raise InputError(f"{source}: {printable(str(error), 200)}; mend the file") from error
