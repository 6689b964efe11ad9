"""Rows of JSON Lines, tab-separated and comma-separated files, before they are judged."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from sbertkit.data.formats.csv import read_fields
from sbertkit.data.formats.jsonl import parse_object
from sbertkit.data.lines import read_lines
from sbertkit.data.metadata import BadRecordError
from sbertkit.data.records import BadLine
from sbertkit.data.splits import SPLIT_COLUMNS, split_text
from sbertkit.data.streams import source_name
from sbertkit.data.text import is_blank, printable
from sbertkit.errors import InputError

# In the releases, columns named label hold single annotators' labels beside the gold label.
_LABELS = ("gold_label", "label")
_TEXTS = (("sentence1", "sentence2"), ("premise", "hypothesis"))
_EXPECTED = (
    "gold_label or label, and sentence1 and sentence2 or premise and hypothesis as column names"
)


class Row(NamedTuple):
    """A row as it was read: nothing is known yet about the types of its values."""

    number: int
    label: object
    premise: object
    hypothesis: object
    split: str | None = None
    """Of the data set, as the row names it; None without a column for it."""


RowReader = Callable[[str, bool], Iterator[Row | BadLine]]
"""Reads the rows of the file of that path; numbers that the file itself names become their names
when the second argument is true."""


class Places(NamedTuple):
    """Which columns are needed, counted from 0."""

    label: int
    premise: int
    hypothesis: int
    split: int | None

    @property
    def columns(self) -> tuple[int, ...]:
        """The places of all columns that are there: label, premise, hypothesis, split."""
        return tuple(place for place in self if place is not None)

    def row(self, number: int, cells: Sequence[object]) -> Row:
        """The row in the cells of a line."""
        split = None if self.split is None else split_text(cells[self.split])
        return Row(number, cells[self.label], cells[self.premise], cells[self.hypothesis], split)


def find_columns(header: Sequence[str], where: str) -> Places:
    """The places of the columns that count: ``gold_label`` before ``label``, and so on.

    Args:
        header: The names of all columns; case and blanks around them do not count.
        where: File and line, for the message.

    Raises:
        InputError: A needed column is missing or there twice.
    """
    names = [name.strip().lower() for name in header]
    label = next((name for name in _LABELS if name in names), None)
    texts = next((pair for pair in _TEXTS if pair[0] in names and pair[1] in names), None)
    found = printable(", ".join(names), 200)
    if label is None or texts is None:
        raise InputError(f"{where}: expected {_EXPECTED}, found {found}; rename the columns")
    split = next((name for name in SPLIT_COLUMNS if name in names), None)
    needed = (label, *texts) if split is None else (label, *texts, split)
    if any(names.count(name) > 1 for name in needed):
        raise InputError(f"{where}: a column name is there twice ({found}); rename it")
    first, second = (names.index(name) for name in texts)
    return Places(names.index(label), first, second, None if split is None else names.index(split))


def read_jsonl_rows(path: str, _named: bool) -> Iterator[Row | BadLine]:
    """A row a line, from an object with the fields; without a label field it has no gold label.

    Once an object has a ``gold_label``, ``label`` no longer counts.
    """
    label = "label"
    for number, line in read_lines(path):
        if not line.strip():
            continue
        try:
            fields = parse_object(line)
        except BadRecordError as error:
            yield BadLine(number, error.reason)
            continue
        if "gold_label" in fields:
            label = "gold_label"
        for premise, hypothesis in _TEXTS:
            if premise in fields and hypothesis in fields:
                texts = fields[premise], fields[hypothesis]
                yield Row(number, fields.get(label), *texts, _split_of(fields))
                break
        else:
            yield BadLine(number, "no sentence1 and sentence2, nor premise and hypothesis")


def _split_of(fields: Mapping[str, object]) -> str | None:
    return next((split_text(fields[name]) for name in SPLIT_COLUMNS if name in fields), None)


def read_tsv_rows(path: str, _named: bool) -> Iterator[Row | BadLine]:
    """A row a line, by the names in the header; there is no quoting.

    Blank lines without a tab are passed over.

    Raises:
        InputError: A header without a needed column.
    """
    places: Places | None = None
    width = 0
    for number, line in read_lines(path):
        if "\t" not in line and is_blank(line):
            continue
        cells = line.split("\t")
        if places is None:
            places = find_columns(cells, f"{source_name(path)} line {number}")
            width = len(cells)
        elif len(cells) == width:
            yield places.row(number, cells)
        else:
            yield BadLine(number, _width_fault(len(cells), width))


def read_csv_rows(path: str, _named: bool) -> Iterator[Row | BadLine]:
    """A row a record, by the names in the header; quoted fields may hold line ends.

    Raises:
        InputError: A header without a needed column, or a quote never closed.
    """
    places: Places | None = None
    width = 0
    name = source_name(path)
    for first, last, values in read_fields(read_lines(path), name):
        if places is None:
            places = find_columns(values, f"{name} line {first}")
            width = len(values)
        elif len(values) == width:
            yield places.row(first, values)
        else:
            yield BadLine(first, _width_fault(len(values), width), last)


def _width_fault(found: int, expected: int) -> str:
    return f"{found} {'column' if found == 1 else 'columns'}, expected {expected}"
