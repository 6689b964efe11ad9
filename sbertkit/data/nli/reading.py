"""Files and folders of labeled pairs into one set, with one policy for all formats."""

import logging
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from sbertkit.data.bad_rows import BadRow, BadRows
from sbertkit.data.lines import TextOptions
from sbertkit.data.metadata import BadRecordError
from sbertkit.data.nli.labels import (
    NO_GOLD,
    LabelReader,
    UnknownLabelError,
    UnmappedNumberError,
    check_label_map,
)
from sbertkit.data.nli.nli_set import Duplicates, NliPair, NliSet, NliSource, find_duplicates
from sbertkit.data.nli_labels import NLI_LABELS
from sbertkit.data.sources import Source, find_sources
from sbertkit.data.splits import SPLIT_COLUMNS, SplitFilter
from sbertkit.data.streams import source_name
from sbertkit.data.tables import Columns, Row
from sbertkit.data.text import has_surrogates, is_blank, printable, repair_surrogates
from sbertkit.errors import InputError
from sbertkit.progress import Advance, track

logger = logging.getLogger(__name__)
_ROWS_BETWEEN_REPORTS = 1_000

_COLUMNS = Columns(
    {
        "premise": ("sentence1", "premise"),
        "hypothesis": ("sentence2", "hypothesis"),
        # In the releases, columns named label hold single annotators' labels beside the gold label.
        "gold_label": ("gold_label",),
        "label": ("label",),
        "split": SPLIT_COLUMNS,
    },
    needed=("premise", "hypothesis"),
    either=("gold_label", "label"),
    paired=("premise", "hypothesis"),
    expected="gold_label or label, and sentence1 and sentence2 or premise and hypothesis as column"
    " names",
)


def read_nli(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    labels: Mapping[int, str] | None = None,
    split: str | None = None,
    progress: bool = False,
) -> NliSet:
    """The labeled pairs of files and folders, in their order.

    A file is JSON Lines, tab-separated without quoting (``.tsv``, ``.txt``), CSV, Parquet or Arrow,
    gzip when its name ends in ``.gz``, with ``gold_label`` or else ``label``, and ``sentence1`` and
    ``sentence2`` or else ``premise`` and ``hypothesis``, among any others. Of a folder that
    Hugging Face's hub or datasets made, and of a file with a column ``split``, the train split is
    read. Rows of other splits and without a gold label are left out, exact duplicates are kept;
    one warning for the whole run counts each.

    Args:
        paths: A file or folder, or several.
        labels: What numbers mean as labels; None takes the names that a Parquet or Arrow file
            gives to its own numbers, and refuses other numbers. -1 means no gold label unless it
            is mapped.
        split: The split to read, or ``all``; None reads ``train``, and everything where a source
            has no splits. ``training`` means ``train``, ``validation`` means ``dev``.
        progress: Show how many rows are read.

    Raises:
        InputError: Bad rows (one message for all of a file), numbers without a mapping, no
            labeled pair, no row of the split, or a source that cannot be understood.
        InputTypeError: An argument of the wrong type.
        MissingFile: A source does not exist.
        StorageError: A source cannot be read.
    """
    numbers = None if labels is None else check_label_map(labels)
    readers = [_SourceReader(source, split, numbers) for source in find_sources(paths, split)]
    hashes = []
    with track("reading pairs", None, shown=progress) as advance:
        for reader in readers:
            hashes.append(reader.source.sha256())
            reader.read(advance)
    pairs = tuple(chain.from_iterable(reader.pairs for reader in readers))
    if not pairs:
        names = printable(", ".join(source_name(reader.source.path) for reader in readers), 500)
        skipped = sum(reader.skipped for reader in readers)
        raise InputError(
            f"{names}: no labeled example is left, {skipped:,} without a gold label skipped;"
            " expected entailment, neutral or contradiction in gold_label or label"
        )
    duplicates = find_duplicates(pairs)
    for line in _warnings(readers, duplicates):
        logger.warning(line)
    sources = []
    start = 0
    for reader, sha256 in zip(readers, hashes, strict=True):
        end = start + len(reader.pairs)
        sources.append(
            NliSource(
                reader.source.path,
                sha256,
                rows=len(reader.pairs),
                skipped=reader.skipped,
                duplicates=sum(start <= row < end for row in duplicates.rows),
                other_splits=reader.splits.left_out.total(),
            )
        )
        start = end
    return NliSet(pairs, tuple(sources))


class _SourceReader:
    """Reads the rows of one source.

    Args:
        source: What is read.
        split: Which rows, see `read_nli`.
        numbers: What numbers mean as labels.

    Attributes:
        pairs: The labeled pairs of the split.
        skipped: Rows without a gold label.
        repaired: Texts with unpaired surrogates.
        splits: Which rows are read.
    """

    def __init__(
        self, source: Source, split: str | None, numbers: Mapping[int, str] | None
    ) -> None:
        self.source = source
        self.pairs: list[NliPair] = []
        self.skipped = self.repaired = 0
        self.splits = SplitFilter(split)
        self._numbers = numbers

    def read(self, advance: Advance) -> None:
        """Reads all rows, and reports how many.

        Raises:
            InputError: Bad rows, no rows, or none of the split.
        """
        for file in self.source.files:
            rows = self.source.table.read(file, _COLUMNS, TextOptions())
            self._read_file(source_name(file), _counted(rows, advance))
        name = source_name(self.source.path)
        self.splits.check(name, self.source.table.unit, folder=self.source.folder)
        if not self.pairs and not self.skipped:
            raise InputError(f"{name}: expected pairs of premise and hypothesis, found no rows")

    def _read_file(self, name: str, rows: Iterator[Row | BadRow]) -> None:
        bad = BadRows(name, self.source.table.unit)
        labels = LabelReader(self._numbers, name)
        column, unknown = "label", False
        for row in bad.removed_from(rows):
            if "gold_label" in row.values:
                column = "gold_label"  # from here on, label no longer counts
            try:
                if self.splits.takes(row.values):
                    value, classes = row.values.get(column), row.classes.get(column, ())
                    self._admit(row, labels.read(value, classes))
            except BadRecordError as error:
                bad.add(BadRow(row.number, error.reason))
                unknown |= isinstance(error, UnknownLabelError)
            except UnmappedNumberError as error:
                raise InputError(f"{name} {bad.unit} {row.number}: {error}") from error
        bad.refuse(f"; a label is one of {', '.join(NLI_LABELS)}" if unknown else "")

    def _admit(self, row: Row, label: int) -> None:
        """Makes a pair of a row that has a gold label."""
        if label == NO_GOLD:
            self.skipped += 1
            return
        premise = self._text(row.values["premise"], "premise")
        hypothesis = self._text(row.values["hypothesis"], "hypothesis")
        if self.pairs and self.pairs[-1].premise == premise:
            premise = self.pairs[-1].premise  # most sets have each premise in a run of rows
        self.pairs.append(NliPair(premise, hypothesis, label))

    def _text(self, value: object, role: str) -> str:
        if not isinstance(value, str):
            found = "nothing" if value is None else type(value).__name__
            raise BadRecordError(f"the {role} must be text, found {found}")
        if is_blank(value):
            raise BadRecordError(f"the {role} is blank")
        if not has_surrogates(value):
            return value
        self.repaired += 1
        return repair_surrogates(value)


def _counted(rows: Iterator[Row | BadRow], advance: Advance) -> Iterator[Row | BadRow]:
    number = 0
    for number, row in enumerate(rows, 1):
        yield row
        if not number % _ROWS_BETWEEN_REPORTS:
            advance(_ROWS_BETWEEN_REPORTS)
    advance(number % _ROWS_BETWEEN_REPORTS)


def _warnings(readers: Sequence[_SourceReader], duplicates: Duplicates) -> Iterator[str]:
    """One line for each kind of issue."""
    left_out: Counter[str] = sum((reader.splits.left_out for reader in readers), Counter())
    if left_out:
        listed = printable(", ".join(f"{n:,} {split}" for split, n in left_out.items()), 200)
        noun = "row" if left_out.total() == 1 else "rows"
        yield f"{left_out.total():,} {noun} of other splits left out ({listed})"
    skipped = sum(reader.skipped for reader in readers)
    if skipped:
        yield f"{skipped:,} without a gold label skipped"
    count = len(duplicates.rows)
    if count:
        noun = "row repeats an earlier one" if count == 1 else "rows repeat earlier ones"
        yield f"{count:,} {noun} exactly"
    count = duplicates.contradictory
    if count:
        noun, verb = ("pair", "has") if count == 1 else ("pairs", "have")
        yield f"{count:,} {noun} of premise and hypothesis {verb} more than one label"
    repaired = sum(reader.repaired for reader in readers)
    if repaired:
        noun = "text" if repaired == 1 else "texts"
        yield f"{repaired:,} {noun} with unpaired surrogates, which became U+FFFD"
