"""Pairs of texts that nobody has scored: rows of tables, or files whose lines belong together."""

import hashlib
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

from sbertkit.arguments import Paths, path_list, path_text
from sbertkit.data.bad_rows import BadRow, BadRows
from sbertkit.data.lines import TextOptions, read_lines
from sbertkit.data.metadata import BadRecordError
from sbertkit.data.sources import Source, find_sources
from sbertkit.data.splits import SPLIT_COLUMNS, SplitFilter
from sbertkit.data.streams import is_folder, source_name
from sbertkit.data.tables import TABLES, Columns, Layout, Row, has_suffix
from sbertkit.data.text import has_surrogates, is_blank, repair_surrogates
from sbertkit.errors import InputError

Pair = tuple[str, str]

_MORE = 31
"""Columns after the second that a file without header may have."""
_MORE_NAMES = tuple(f"second_{number}" for number in range(2, _MORE + 2))
_LINES = (".txt",)
"""Files of a text per line, as of tables without columns."""


class PairFile(NamedTuple):
    """The pairs of a file or folder.

    Attributes:
        source: The path as it was given.
        sha256: A hash of its content.
        pairs: Pairs of texts, none of them blank.
        skipped: Pairs left out since one of their texts is blank.
    """

    source: str
    sha256: str
    pairs: list[Pair]
    skipped: int = 0


def _headerless(cells: Sequence[str]) -> Layout | None:
    """The layout of a file without header: a text, and others that belong to it."""
    if _COLUMNS.positions(cells):
        return None
    names = ("first", "second", *_MORE_NAMES)[: len(cells)]
    return Layout({name: place for place, name in enumerate(names)}, len(cells))


_COLUMNS = Columns(
    {
        "split": SPLIT_COLUMNS,
        "first": (
            # Each beside its partner below, of which source has two.
            *("source", "source", "english", "sentence1", "sentence_1", "sentence_a", "text1"),
            *("anchor", "query", "question", "premise"),
        ),
        "second": (
            *("translation", "translations", "non_english"),
            *("sentence2", "sentence_2", "sentence_b", "text2"),
            *("positive", "document", "answer", "hypothesis"),
        ),
        **{name: (name,) for name in _MORE_NAMES},
    },
    needed=("first", "second"),
    paired=("first", "second"),
    expected="two columns of texts, such as source and translation, or sentence1 and sentence2",
    headerless=_headerless,
)


def read_text_pairs(paths: Paths, *, split: str | None = None) -> list[PairFile]:
    """The pairs of files and data set folders.

    A file is TSV, CSV, JSON Lines, Parquet or Arrow, gzip when its name ends in ``.gz``. Columns
    are ``source`` and ``translation``, ``sentence1`` and ``sentence2``, ``anchor`` and ``positive``
    or the like; the second may hold a list of texts, each of which makes a pair. A tab-separated
    file without header has a text and those that belong to it. Of rows with a column ``split``
    those of ``train`` are read.

    Args:
        paths: A file or folder, or several.
        split: Another split, or ``all``; see `read_nli`.

    Raises:
        InputError: Bad rows (one message for all of a file), none of the split, or an unknown
            format.
        MissingFile: A path does not exist.
        StorageError: A path cannot be read.
    """
    return [_of_source(source, split) for source in find_sources(paths, split)]


def read_parallel(paths: Paths) -> list[PairFile]:
    """Source sentences with their translations, as pairs.

    Args:
        paths: Tables as for `read_text_pairs`; or at least two files of lines, of which the first
            has the source sentences, and each other one their translations line by line.

    Raises:
        InputError: Files of different lengths, or see `read_text_pairs`.
        MissingFile: A path does not exist.
        StorageError: A path cannot be read.
    """
    given = path_list(paths)
    names = [path_text(path) for path in given]
    tables = [name for name in names if _is_table(name)]
    if len(names) < 2 or len(tables) == len(names):
        return read_text_pairs(names)
    if tables:
        lines = next(name for name in names if name not in tables)
        raise InputError(
            f"{source_name(tables[0])} is a table and {source_name(lines)} has a text per line; "
            "pass tables alone, or files of lines alone, the sources first"
        )
    return [_aligned(names[0], other) for other in names[1:]]


def _is_table(name: str) -> bool:
    """Whether a path is that of a table with columns."""
    suffixes = {one for table in TABLES.values() for one in table.suffixes} - set(_LINES)
    return is_folder(name) or has_suffix(name, tuple(suffixes))


def _aligned(source: str, other: str) -> PairFile:
    """The pairs of two files, line by line; those with a blank line are left out."""
    pairs: list[Pair] = []
    skipped = 0
    digest = hashlib.sha256()
    for number, (one, two) in enumerate(zip_longest(read_lines(source), read_lines(other)), 1):
        if one is None or two is None:
            longer, shorter = (other, source) if one is None else (source, other)
            raise InputError(
                f"{source_name(shorter)} has {number - 1:,} lines and {source_name(longer)} has "
                f"more: line {number} has no translation; the lines of parallel files must belong "
                "together"
            )
        digest.update(repr((one.text, two.text)).encode("utf-8", "surrogatepass"))
        if is_blank(one.text) or is_blank(two.text):
            skipped += 1
        else:
            pairs.append((one.text, two.text))
    return PairFile(other, digest.hexdigest(), pairs, skipped)


def _of_source(source: Source, split: str | None) -> PairFile:
    pairs: list[Pair] = []
    skipped = 0
    splits = SplitFilter(split)
    for file in source.files:
        bad = BadRows(source_name(file), source.table.unit)
        for row in bad.removed_from(source.table.read(file, _COLUMNS, TextOptions())):
            try:
                if not splits.takes(row.values):
                    continue
                for pair in _pairs_of(row):
                    if is_blank(pair[1]):
                        skipped += 1
                    else:
                        pairs.append(pair)
            except BadRecordError as error:
                bad.add(BadRow(row.number, error.reason))
        bad.refuse()
    name = source_name(source.path)
    splits.check(name, source.table.unit, folder=source.folder)
    if not pairs:
        raise InputError(f"{name}: expected pairs of texts, found none")
    return PairFile(source.path, source.sha256(), pairs, skipped)


def _pairs_of(row: Row) -> Iterator[Pair]:
    """The first text of a row with each of the others.

    Raises:
        BadRecordError: A value is no text, or the first is blank.
    """
    first = _text(row.values["first"])
    if is_blank(first):
        raise BadRecordError("the first text is blank")
    for field in ("second", *_MORE_NAMES):
        value = row.values.get(field, ())
        for one in value if isinstance(value, list | tuple) else [value]:
            yield first, _text(one)


def _text(value: object) -> str:
    if not isinstance(value, str):
        found = "nothing" if value is None else type(value).__name__
        raise BadRecordError(f"expected texts, found {found}")
    return repair_surrogates(value) if has_surrogates(value) else value
