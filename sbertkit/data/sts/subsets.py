"""Sub-corpora of a file of pairs, from the list beside it."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from sbertkit.data.lines import read_lines
from sbertkit.data.streams import source_name
from sbertkit.data.text import is_blank, printable
from sbertkit.errors import InputError

_HEADER = ("subset", "split", "first_row", "rows")
_ROW_NUMBER = re.compile("[0-9]{1,15}")


class Run(NamedTuple):
    """Rows of a file, counted from 0 after its header, that belong to a sub-corpus."""

    subset: str
    split: str
    first: int
    rows: int


def subsets_file(path: str) -> Path | None:
    """The list beside a file: ``sts12.subsets.tsv`` for ``sts12.tsv`` or ``sts12.tsv.gz``."""
    file = Path(path)
    stem = file.name.removesuffix(".gz")
    beside = file.with_name(f"{Path(stem).stem}.subsets.tsv")
    return beside if beside.is_file() else None


def read_subsets(path: Path) -> list[Run]:
    """The runs of rows that a list names: ``subset split first_row rows``, between tabs.

    Raises:
        InputError: Another header, or a line that is none such.
    """
    name = source_name(str(path))
    lines = [line for line in read_lines(path) if not is_blank(line.text)]
    header = tuple(lines[0].text.split("\t")) if lines else ()
    if header != _HEADER:
        raise InputError(
            f"{name}: expected the columns {', '.join(_HEADER)} in the first line, found "
            f"{printable(', '.join(header), 100)}"
        )
    runs = []
    for line in lines[1:]:
        cells = line.text.split("\t")
        if len(cells) != len(_HEADER) or not all(map(_ROW_NUMBER.fullmatch, cells[2:])):
            raise InputError(
                f"{name} line {line.number}: expected a name, a split and two numbers, found "
                f"{printable(line.text, 100)!r}"
            )
        runs.append(Run(cells[0], cells[1], int(cells[2]), int(cells[3])))
    return runs


def places_of(
    runs: Sequence[Run], places: Mapping[int, int], rows: int, name: str
) -> dict[str, tuple[int, ...]]:
    """Places of the kept pairs by sub-corpus.

    Args:
        runs: From the list.
        places: From a row of the file, counted from 0, to the place of its pair.
        rows: How many rows the file has.
        name: Of the list, for messages.

    Raises:
        InputError: A run beyond the file, or a row in two runs.
    """
    owner: dict[int, str] = {}
    found: dict[str, list[int]] = {}
    for run in runs:
        if run.first + run.rows > rows:
            raise InputError(
                f"{name}: {printable(run.subset, 40)} has rows {run.first} to "
                f"{run.first + run.rows - 1}, but there are {rows:,} rows; download both again"
            )
        for row in range(run.first, run.first + run.rows):
            if row in owner:
                raise InputError(
                    f"{name}: row {row} is in {printable(owner[row], 40)} and in "
                    f"{printable(run.subset, 40)}"
                )
            owner[row] = run.subset
            if row in places:
                found.setdefault(run.subset, []).append(places[row])
    return {subset: tuple(where) for subset, where in found.items()}
