"""Files and folders of scored pairs into one set, with one policy for all formats."""

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from sbertkit.arguments import path_text
from sbertkit.data.records import BadLine
from sbertkit.data.splits import ALL_SPLITS, find_split, no_split_column, no_such_split
from sbertkit.data.streams import is_folder, source_name
from sbertkit.data.sts.rows import (
    Row,
    RowReader,
    is_semeval,
    read_csv_rows,
    read_jsonl_rows,
    read_parquet_rows,
    read_semeval,
    read_tab_rows,
)
from sbertkit.data.sts.split_files import split_files
from sbertkit.data.sts.sts_set import StsPair, StsSet
from sbertkit.data.sts.subsets import places_of, read_subsets, subsets_file
from sbertkit.data.text import is_blank, printable
from sbertkit.errors import InputError

_MOST_LISTED = 10
_READERS: dict[str, RowReader] = {
    ".csv": read_csv_rows,
    ".jsonl": read_jsonl_rows,
    ".ndjson": read_jsonl_rows,
    ".parquet": read_parquet_rows,
    ".tsv": read_tab_rows,
}
"""By suffix; every other file is tab-separated, too."""


def read_sts(
    path: str | os.PathLike[str],
    *,
    split: str | None = None,
    prefer: Sequence[str] = ("test",),
    scale: tuple[float, float] | None = None,
) -> StsSet:
    r"""The scored pairs of a file or of a folder.

    A folder holds a release of SemEval's STS tasks, or a file for each split (``test.jsonl.gz``),
    as data sets lie on the hub.

    A tab-separated file has a header that names its columns, in any order and among others
    (``split``, ``score``, ``sentence1``, ``sentence2`` or a usual alias), or no header and the
    columns score, sentence, sentence, or those of the STS benchmark's release. There is no quoting:
    a ``"`` is part of the sentence. Lines end at ``\n``; empty lines are skipped. CSV, JSON Lines
    and Parquet have those names, too. A list ``NAME.subsets.tsv`` beside ``NAME.tsv`` says which
    rows are which sub-corpus. The scores and sentences of other splits are not judged.

    Args:
        path: The file, gzip when its name ends in ``.gz``, or the folder.
        split: The split to read, or ``all``. With None everything is read where there is one
            split or no split column; of several splits the first of `prefer` is.
        prefer: Names of splits, the best first.
        scale: Least and greatest score allowed; None allows all.

    Raises:
        InputError: Bad rows (one message for all), no rows, a header without a needed column, an
            unknown split, or several splits to choose from.
        MissingFile: The file does not exist.
        MissingDependency: Parquet without pyarrow.
    """
    source = path_text(path)
    _check_scale(scale)
    if is_folder(source):
        if is_semeval(source):
            return _read_release(source, split, scale)
        return _read_split_files(source, split, prefer, scale)
    name = source_name(source)
    reader = _reader(source)
    items = list(reader(source))
    rows = [item for item in items if isinstance(item, Row)]
    if any(row.split is not None for row in rows):
        items = [_with_split(item) for item in items]
    splits = tuple(dict.fromkeys(row.split for row in rows if row.split is not None))
    chosen = _choose_split(split, splits, prefer, name) if rows else None
    wanted = {
        place: item
        for place, item in enumerate(items)
        if isinstance(item, BadLine) or not splits or chosen in (ALL_SPLITS, item.split)
    }
    pairs = _judged(list(wanted.values()), scale, name, _unit(reader))
    if not pairs:
        raise InputError(f"{name}: expected scored sentence pairs, found no rows")
    places = {place: number for number, place in enumerate(wanted)}
    return StsSet(pairs, chosen, splits, os.fspath(path), _subsets(source, places, len(items)))


def _with_split(item: Row | BadLine) -> Row | BadLine:
    """A row of a file whose rows name their splits, which this one must do, too."""
    if isinstance(item, Row) and not item.split:
        return BadLine(item.number, "no split" if item.split is None else "blank split")
    return item


def _read_release(folder: str, split: str | None, scale: tuple[float, float] | None) -> StsSet:
    """The pairs of a SemEval release, each of its files a sub-corpus."""
    name = source_name(folder)
    if split not in (None, ALL_SPLITS):
        raise InputError(
            f"{name}: a SemEval release has no splits, found {split!r}; leave the split out"
        )
    pairs: list[StsPair] = []
    subsets = {}
    for part in read_semeval(folder):
        found = _judged(part.rows, scale, source_name(part.file), "line")
        subsets[part.name] = tuple(range(len(pairs), len(pairs) + len(found)))
        pairs += found
    if not pairs:
        raise InputError(f"{name}: expected scored sentence pairs, found no rows")
    return StsSet(tuple(pairs), None, (), folder, subsets)


def _read_split_files(
    folder: str, split: str | None, prefer: Sequence[str], scale: tuple[float, float] | None
) -> StsSet:
    """The pairs of a folder with files for each split."""
    name = source_name(folder)
    files = split_files(folder, _READERS)
    if not files:
        raise InputError(
            f"{name}: expected files of splits, such as test.jsonl or test.tsv, or of a SemEval "
            "release (STS.input.NAME.txt with STS.gs.NAME.txt) in this folder, found none; pass a "
            "file of scored pairs"
        )
    splits = tuple(files)
    chosen = _choose_split(split, splits, prefer, name)
    pairs: list[StsPair] = []
    for path in (path for one in splits if chosen in (ALL_SPLITS, one) for path in files[one]):
        reader = _reader(str(path))
        rows = list(reader(str(path)))
        pairs += _judged(rows, scale, source_name(str(path)), _unit(reader))
    if not pairs:
        raise InputError(f"{name}: expected scored sentence pairs, found no rows")
    return StsSet(tuple(pairs), chosen, splits, folder)


def _reader(path: str) -> RowReader:
    return _READERS.get(Path(path.lower().removesuffix(".gz")).suffix, read_tab_rows)


def _unit(reader: RowReader) -> str:
    return "row" if reader is read_parquet_rows else "line"


def _subsets(path: str, places: Mapping[int, int], rows: int) -> dict[str, tuple[int, ...]]:
    """Places of the pairs of each sub-corpus, where a list of them lies beside the file."""
    beside = subsets_file(path)
    if beside is None:
        return {}
    return places_of(read_subsets(beside), places, rows, source_name(str(beside)))


def _judged(
    items: Sequence[Row | BadLine], scale: tuple[float, float] | None, name: str, unit: str
) -> tuple[StsPair, ...]:
    """The pairs of rows.

    Raises:
        InputError: Rows that are none; one message for all.
    """
    judged = [item if isinstance(item, BadLine) else _pair(item, scale) for item in items]
    bad = [item for item in judged if isinstance(item, BadLine)]
    if bad:
        raise InputError(_refusal(name, bad, unit))
    return tuple(item for item in judged if isinstance(item, StsPair))


def _pair(row: Row, scale: tuple[float, float] | None) -> StsPair | BadLine:
    score = _score(row.score)
    if isinstance(score, str):
        return BadLine(row.number, score)
    if scale is not None and not scale[0] <= score <= scale[1]:
        shown = printable(str(row.score).strip(), 40)
        return BadLine(row.number, f"score {shown} outside {scale[0]:g} to {scale[1]:g}")
    for role, text in (("first", row.first), ("second", row.second)):
        if not isinstance(text, str):
            found = "nothing" if text is None else type(text).__name__
            return BadLine(row.number, f"the {role} sentence must be text, found {found}")
        if is_blank(text):
            return BadLine(row.number, f"the {role} sentence is blank")
    return StsPair(score, str(row.first), str(row.second))


def _score(value: object) -> float | str:
    """The number, or why there is none."""
    shown = printable(str(value).strip(), 40)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return f"score {shown!r} is no number"
    if isinstance(value, str) and ("_" in value or not value.strip().isascii()):
        return f"score {shown!r} is no number"  # though Python would read it
    try:
        score = float(value)
    except (ValueError, OverflowError):
        return f"score {shown!r} is no number"
    return score if math.isfinite(score) else f"score {shown!r} is no finite number"


def _choose_split(
    split: str | None, splits: Sequence[str], prefer: Sequence[str], name: str
) -> str | None:
    if not splits:
        if split not in (None, ALL_SPLITS):
            raise no_split_column(name, split)
        return None
    if split is not None:
        found = ALL_SPLITS if split == ALL_SPLITS else find_split(split, splits)
        if found is None:
            raise no_such_split(name, split, splits)
        return found
    if len(splits) == 1:
        return splits[0]
    for preferred in prefer:
        found = find_split(preferred, splits)
        if found is not None:
            return found
    choices = printable(", ".join([*splits, ALL_SPLITS]), 200)
    raise InputError(
        f"{name}: found {len(splits)} splits and no {prefer[0]!r}; choose one of {choices}"
    )


def _check_scale(scale: tuple[float, float] | None) -> None:
    if scale is None:
        return
    low, high = scale
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InputError(f"scale: expected a lower and a higher finite number, found {low}, {high}")


def _refusal(name: str, bad: Sequence[BadLine], unit: str) -> str:
    listed = [f"{line.place} ({line.reason})" for line in bad[:_MOST_LISTED]]
    if len(bad) > _MOST_LISTED:
        listed.append(f"and {len(bad) - _MOST_LISTED} more")
    noun = f"bad {unit}" if len(bad) == 1 else f"bad {unit}s"
    return f"{name}: {len(bad)} {noun}: {', '.join(listed)}; correct or remove them"
