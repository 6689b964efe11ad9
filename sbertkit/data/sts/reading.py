"""Files and folders of scored pairs into one set, with one policy for all formats."""

import math
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from sbertkit.arguments import path_text
from sbertkit.data.bad_rows import BadRow, BadRows
from sbertkit.data.lines import TextOptions
from sbertkit.data.metadata import BadRecordError
from sbertkit.data.split_files import find_splits
from sbertkit.data.splits import (
    ALL_SPLITS,
    SPLIT_COLUMNS,
    find_split,
    no_split_column,
    no_such_split,
    split_key,
    split_text,
)
from sbertkit.data.streams import is_folder, source_name
from sbertkit.data.sts.semeval import is_semeval, read_semeval
from sbertkit.data.sts.sts_set import StsPair, StsSet
from sbertkit.data.sts.subsets import places_of, read_subsets, subsets_file
from sbertkit.data.tables import TABLES, Columns, Layout, Row, Table, has_suffix
from sbertkit.data.text import is_blank, printable
from sbertkit.errors import InputError

Scale = tuple[float, float] | None

_KNOWN_SPLITS = ("train", "dev", "test")
_SUFFIXES = tuple(suffix for table in TABLES.values() for suffix in table.suffixes)
_WITHOUT_HEADER = Layout({"score": 0, "first": 1, "second": 2}, 3)
_RELEASE = Layout({"score": 4, "first": 5, "second": 6}, 7, more=True)
"""STS benchmark as released: genre, file, year, number, score, sentence, sentence (and sources)."""


def _headerless(cells: Sequence[str]) -> Layout | None:
    """The layout of a file without header that begins with these cells."""
    # One name of a column could be a sentence of its own; two in their columns are a header.
    if len(_COLUMNS.positions(cells)) > 1:
        return None
    if len(cells) < _RELEASE.width:
        return _WITHOUT_HEADER
    try:
        float(cells[_RELEASE.positions["score"]])
    except ValueError:
        return _WITHOUT_HEADER
    return _RELEASE


_COLUMNS = Columns(
    {
        "split": SPLIT_COLUMNS,
        "score": ("score", "similarity_score", "relatedness_score", "similarity", "label"),
        "first": ("sentence1", "sentence_1", "sentence_a", "sentencea", "sent_1", "text1"),
        "second": ("sentence2", "sentence_2", "sentence_b", "sentenceb", "sent_2", "text2"),
    },
    needed=("score", "first", "second"),
    expected="columns named score, sentence1 and sentence2",
    headerless=_headerless,
)


def read_sts(
    path: str | os.PathLike[str],
    *,
    split: str | None = None,
    prefer: Sequence[str] = ("test",),
    scale: Scale = None,
) -> StsSet:
    r"""The scored pairs of a file or of a folder.

    A folder holds a release of SemEval's STS tasks, or files for each split (``test.jsonl.gz``),
    as data sets lie on the hub.

    A tab-separated file has a header that names its columns, in any order and among others
    (``split``, ``score``, ``sentence1``, ``sentence2`` or a usual alias), or no header and the
    columns score, sentence, sentence, or those of the STS benchmark's release. There is no quoting:
    a ``"`` is part of the sentence. Lines end at ``\n``; empty lines are skipped. CSV, JSON Lines,
    Parquet and Arrow have those names, too. A list ``NAME.subsets.tsv`` beside ``NAME.tsv`` says
    which rows are which sub-corpus. The scores and sentences of other splits are not judged.

    Args:
        path: The file, gzip when its name ends in ``.gz``, or the folder.
        split: The split to read, or ``all``. With None everything is read where there is one
            split or no split column; of several splits the first of `prefer` is.
        prefer: Names of splits, the best first.
        scale: Lowest and highest score allowed; None allows all.

    Raises:
        InputError: Bad rows (one message for all), no rows, a header without a needed column, an
            unknown split, or several splits to choose from.
        MissingFile: The file does not exist.
    """
    source = path_text(path)
    _check_scale(scale)
    if not is_folder(source):
        found = _read_file(source, split, prefer, scale)
    elif is_semeval(source):
        found = _read_release(source, split, scale)
    else:
        found = _read_split_files(source, split, prefer, scale)
    if not found.pairs:
        raise InputError(f"{source_name(source)}: expected scored sentence pairs, found no rows")
    return found


def _read_file(source: str, split: str | None, prefer: Sequence[str], scale: Scale) -> StsSet:
    name = source_name(source)
    table = _table(source)
    items = list(table.read(source, _COLUMNS, TextOptions()))
    rows = [item for item in items if isinstance(item, Row)]
    if any("split" in row.values for row in rows):
        items = [_with_split(item) for item in items]
    named = [item for item in items if isinstance(item, Row) and "split" in item.values]
    splits = tuple(dict.fromkeys(str(row.values["split"]) for row in named))
    chosen = _choose_split(split, splits, prefer, name) if rows else None
    wanted = {
        place: item
        for place, item in enumerate(items)
        if isinstance(item, BadRow) or not splits or chosen in (ALL_SPLITS, item.values["split"])
    }
    pairs = _judged(wanted.values(), scale, BadRows(name, table.unit))
    places = {place: number for number, place in enumerate(wanted)}
    return StsSet(pairs, chosen, splits, source, _subsets(source, places, len(items)))


def _with_split(item: Row | BadRow) -> Row | BadRow:
    """A row of a file whose rows name their splits, which this one must do, too."""
    if isinstance(item, BadRow):
        return item
    if "split" not in item.values:
        return BadRow(item.number, "no split")
    item.values["split"] = split_text(item.values["split"])
    return item if item.values["split"] else BadRow(item.number, "blank split")


def _read_release(folder: str, split: str | None, scale: Scale) -> StsSet:
    """The pairs of a SemEval release, each of its files a sub-corpus."""
    if split not in (None, ALL_SPLITS):
        raise InputError(
            f"{source_name(folder)}: a SemEval release has no splits, found {split!r}; leave the"
            " split out"
        )
    pairs: list[StsPair] = []
    subsets = {}
    for part in read_semeval(folder):
        found = _judged(part.rows, scale, BadRows(source_name(part.file)))
        subsets[part.name] = tuple(range(len(pairs), len(pairs) + len(found)))
        pairs += found
    return StsSet(tuple(pairs), None, (), folder, subsets)


def _read_split_files(
    folder: str, split: str | None, prefer: Sequence[str], scale: Scale
) -> StsSet:
    """The pairs of a folder with files for each split."""
    name = source_name(folder)
    found = find_splits(folder, _SUFFIXES)
    files: dict[str, list[Callable[[], list[str]]]] = {}
    for file_split, give in sorted(found.files.items()):
        if file_split.endswith(".subsets"):  # lists of the sub-corpora of others
            continue
        known = file_split if found.single else re.split(r"[-_.]", file_split)[0]  # test-news
        if found.single or split_key(known) in _KNOWN_SPLITS:
            files.setdefault(known, []).append(give)
    if not files:
        raise InputError(
            f"{name}: expected files of splits, such as test.jsonl or test.tsv, or of a SemEval "
            "release (STS.input.NAME.txt with STS.gs.NAME.txt) in this folder, found none; pass a "
            "file of scored pairs"
        )
    splits = tuple(files)
    chosen = _choose_split(split, splits, prefer, name)
    pairs: list[StsPair] = []
    for path in (
        path
        for one in splits
        if chosen in (ALL_SPLITS, one)
        for give in files[one]
        for path in give()
    ):
        table = _table(path)
        rows = table.read(path, _COLUMNS, TextOptions())
        pairs += _judged(rows, scale, BadRows(source_name(path), table.unit))
    return StsSet(tuple(pairs), chosen, splits, folder)


def _table(path: str) -> Table:
    """The format of a file by its suffix, tab-separated where that says nothing."""
    known = (table for table in TABLES.values() if has_suffix(path, table.suffixes))
    return next(known, TABLES["tsv"])


def _subsets(path: str, places: Mapping[int, int], rows: int) -> dict[str, tuple[int, ...]]:
    """Places of the pairs of each sub-corpus, where a list of them lies beside the file."""
    beside = subsets_file(path)
    if beside is None:
        return {}
    return places_of(read_subsets(beside), places, rows, source_name(str(beside)))


class _OutsideScaleError(BadRecordError):
    """A score that is not on the scale."""


def _judged(rows: Iterable[Row | BadRow], scale: Scale, bad: BadRows) -> tuple[StsPair, ...]:
    """The pairs of rows.

    Raises:
        InputError: Rows that are none; one message for all.
    """
    pairs, outside = [], False
    for row in bad.removed_from(rows):
        try:
            pairs.append(_pair(row.values, scale))
        except BadRecordError as error:
            bad.add(BadRow(row.number, error.reason))
            outside |= isinstance(error, _OutsideScaleError)
    bad.refuse(
        f"; the scale (--scale) is {scale[0]:g} to {scale[1]:g}" if scale and outside else ""
    )
    return tuple(pairs)


def _pair(values: Mapping[str, object], scale: Scale) -> StsPair:
    score = _score(values["score"])
    if scale is not None and not scale[0] <= score <= scale[1]:
        shown = printable(str(values["score"]).strip(), 40)
        raise _OutsideScaleError(f"score {shown} outside {scale[0]:g} to {scale[1]:g}")
    return StsPair(score, _sentence(values, "first"), _sentence(values, "second"))


def _sentence(values: Mapping[str, object], field: str) -> str:
    text = values[field]
    if not isinstance(text, str):
        found = "nothing" if text is None else type(text).__name__
        raise BadRecordError(f"the {field} sentence must be text, found {found}")
    if is_blank(text):
        raise BadRecordError(f"the {field} sentence is blank")
    return text


def _score(value: object) -> float:
    shown = printable(str(value).strip(), 40)
    no_number = BadRecordError(f"score {shown!r} is no number")
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise no_number
    if isinstance(value, str) and ("_" in value or not value.strip().isascii()):
        raise no_number  # though Python would read it
    try:
        score = float(value)
    except (ValueError, OverflowError) as error:
        raise no_number from error
    if not math.isfinite(score):
        raise BadRecordError(f"score {shown!r} is no finite number")
    return score


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
        f"{name}: found {len(splits)} splits and no {prefer[0]!r}; pass one as split (--split): "
        f"{choices}"
    )


def _check_scale(scale: tuple[float, float] | None) -> None:
    if scale is None:
        return
    low, high = scale
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InputError(f"scale: expected a lower and a higher finite number, found {low}, {high}")
