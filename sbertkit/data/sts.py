"""Scored sentence pairs (semantic textual similarity) from tab-separated files."""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sbertkit.arguments import path_text
from sbertkit.data.lines import Line, read_lines
from sbertkit.data.streams import source_name
from sbertkit.data.text import is_blank, printable
from sbertkit.errors import InputError

ALL_SPLITS = "all"
"""The name that asks for the rows of every split."""

_MOST_LISTED = 10

# Column names of each role, lower-cased; where a header has several, the earliest here counts.
_ALIASES = {
    "split": ("split", "set", "semeval_set"),
    "score": ("score", "similarity_score", "relatedness_score", "similarity", "label"),
    "first": ("sentence1", "sentence_1", "sentence_a", "sentencea", "sent_1", "text1"),
    "second": ("sentence2", "sentence_2", "sentence_b", "sentenceb", "sent_2", "text2"),
}
_NEEDED = ("score", "first", "second")


class StsPair(NamedTuple):
    """Two sentences and how alike people judged them, on the scale of their data set."""

    score: float
    first: str
    second: str


@dataclass(frozen=True, slots=True)
class StsSet:
    """The pairs read from a file.

    Attributes:
        pairs: In the order of the file.
        split: The split that was read, ``all`` for the rows of all, None where there are none.
        splits: The splits of the file, in the order of their first rows.
        source: The path as it was given.
    """

    pairs: tuple[StsPair, ...]
    split: str | None
    splits: tuple[str, ...]
    source: str


class _Row(NamedTuple):
    number: int
    split: str | None
    score: str
    first: str
    second: str


class _BadLine(NamedTuple):
    number: int
    reason: str


@dataclass(frozen=True, slots=True)
class _Layout:
    """Which column has which role, and how many columns a row has."""

    places: dict[str, int]
    width: int

    def row(self, line: Line) -> _Row | _BadLine:
        cells = line.text.split("\t")
        if len(cells) != self.width:
            noun = "column" if len(cells) == 1 else "columns"
            return _BadLine(line.number, f"{len(cells)} {noun}, expected {self.width}")
        split = cells[self.places["split"]].strip() if "split" in self.places else None
        if split == "":
            return _BadLine(line.number, "blank split")
        return _Row(line.number, split, *(cells[self.places[role]] for role in _NEEDED))


_WITHOUT_HEADER = _Layout({"score": 0, "first": 1, "second": 2}, 3)


def read_sts(
    path: str | os.PathLike[str],
    *,
    split: str | None = None,
    prefer: Sequence[str] = ("test",),
    scale: tuple[float, float] | None = None,
) -> StsSet:
    r"""The scored pairs of a tab-separated file.

    The file has a header that names its columns, in any order and among others (``split``,
    ``score``, ``sentence1``, ``sentence2`` or a usual alias), or no header and the columns score,
    sentence, sentence. There is no quoting: a ``"`` is part of the sentence. Lines end at ``\n``;
    empty lines are skipped. The scores and sentences of other splits are not judged.

    Args:
        path: The file, gzip when its name ends in ``.gz``.
        split: The split to read, or ``all``. With None everything is read where there is one
            split or no split column; of several splits the first of `prefer` is.
        prefer: Names of splits, the best first.
        scale: Least and greatest score allowed; None allows all.

    Raises:
        InputError: Bad rows (one message for all), no rows, a header without a needed column, an
            unknown split, or several splits to choose from.
        MissingFile: The file does not exist.
    """
    name = source_name(path_text(path))
    _check_scale(scale)
    layout, lines = _take_header(_filled_lines(path), name)
    read = [layout.row(line) for line in lines]
    bad = [item for item in read if isinstance(item, _BadLine)]
    rows = [item for item in read if isinstance(item, _Row)]
    splits = tuple(dict.fromkeys(row.split for row in rows if row.split is not None))
    chosen = _choose_split(split, splits, prefer, name) if rows else None
    if splits and chosen != ALL_SPLITS:
        rows = [row for row in rows if row.split == chosen]
    faults = ((row.number, _fault(row, scale)) for row in rows)
    bad += [_BadLine(number, reason) for number, reason in faults if reason]
    if bad:
        raise InputError(_refusal(name, sorted(bad)))
    if not rows:
        raise InputError(f"{name}: expected scored sentence pairs, found no rows")
    pairs = tuple(StsPair(float(row.score), row.first, row.second) for row in rows)
    return StsSet(pairs, chosen, splits, os.fspath(path))


def _filled_lines(path: str | os.PathLike[str]) -> list[Line]:
    return [line for line in read_lines(path) if "\t" in line.text or not is_blank(line.text)]


def _take_header(lines: list[Line], name: str) -> tuple[_Layout, list[Line]]:
    if not lines:
        return _WITHOUT_HEADER, lines
    cells = [cell.strip().lower() for cell in lines[0].text.split("\t")]
    places = {}
    for role, aliases in _ALIASES.items():
        found = next((alias for alias in aliases if alias in cells), None)
        if found is not None:
            places[role] = cells.index(found)
    # One such word could be a sentence of its own; two in their columns are a header.
    if len(places) < 2:
        return _WITHOUT_HEADER, lines
    missing = [_ALIASES[role][0] for role in _NEEDED if role not in places]
    if missing:
        raise InputError(
            f"{name} line {lines[0].number}: expected columns named score, sentence1 and "
            f"sentence2, found {printable(', '.join(cells), 200)}; name {' and '.join(missing)} too"
        )
    return _Layout(places, len(cells)), lines[1:]


def _choose_split(
    split: str | None, splits: Sequence[str], prefer: Sequence[str], name: str
) -> str | None:
    if not splits:
        if split not in (None, ALL_SPLITS):
            raise InputError(
                f"{name}: expected a column with the split {split!r}, found no split column; "
                "leave the split out to read every row"
            )
        return None
    choices = printable(", ".join([*splits, ALL_SPLITS]), 200)
    if split is not None:
        if split != ALL_SPLITS and split not in splits:
            raise InputError(f"{name}: no split {split!r}; choose one of {choices}")
        return split
    if len(splits) == 1:
        return splits[0]
    for preferred in prefer:
        if preferred in splits:
            return preferred
    raise InputError(
        f"{name}: found {len(splits)} splits and no {prefer[0]!r}; choose one of {choices}"
    )


def _fault(row: _Row, scale: tuple[float, float] | None) -> str | None:
    reason = _score_fault(row.score.strip(), scale)
    if reason:
        return reason
    if is_blank(row.first):
        return "the first sentence is blank"
    if is_blank(row.second):
        return "the second sentence is blank"
    return None


def _score_fault(text: str, scale: tuple[float, float] | None) -> str | None:
    shown = printable(text, 40)
    try:
        score = float(text)
    except ValueError:
        return f"score {shown!r} is no number"
    if "_" in text or not text.isascii():  # Python's own spellings of numbers
        return f"score {shown!r} is no number"
    if not math.isfinite(score):
        return f"score {shown!r} is no finite number"
    if scale is not None and not scale[0] <= score <= scale[1]:
        return f"score {shown} outside {scale[0]:g} to {scale[1]:g}"
    return None


def _check_scale(scale: tuple[float, float] | None) -> None:
    if scale is None:
        return
    low, high = scale
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InputError(f"scale: expected a lower and a higher finite number, found {low}, {high}")


def _refusal(name: str, bad: Sequence[_BadLine]) -> str:
    listed = [f"{number} ({reason})" for number, reason in bad[:_MOST_LISTED]]
    if len(bad) > _MOST_LISTED:
        listed.append(f"and {len(bad) - _MOST_LISTED} more")
    noun = "bad line" if len(bad) == 1 else "bad lines"
    return f"{name}: {len(bad)} {noun}: {', '.join(listed)}; correct or remove them"
