"""Files and folders of labelled pairs into one set, with one policy for all formats."""

import logging
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sbertkit.data.bad_rows import BadRow, BadRows
from sbertkit.data.lines import TextOptions
from sbertkit.data.metadata import BadRecordError
from sbertkit.data.nli.labels import (
    NLI_LABELS,
    NO_GOLD,
    LabelReader,
    UnknownLabelError,
    UnmappedNumberError,
    check_label_map,
)
from sbertkit.data.nli.nli_set import Duplicates, NliPair, NliSet, NliSource, find_duplicates
from sbertkit.data.nli.sources import Source, find_sources
from sbertkit.data.splits import (
    ALL_SPLITS,
    SPLIT_COLUMNS,
    no_split_column,
    no_such_split,
    split_key,
    split_text,
)
from sbertkit.data.streams import source_name
from sbertkit.data.tables import Columns, Row
from sbertkit.data.text import has_surrogates, is_blank, printable, repair_surrogates
from sbertkit.errors import InputError
from sbertkit.progress import Advance, track

logger = logging.getLogger(__name__)
_ROWS_BETWEEN_REPORTS = 1_000
_TRAIN = "train"

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
    """The labelled pairs of files and folders, in their order.

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
            labelled pair, no row of the split, or a source that cannot be understood.
        InputTypeError: An argument of the wrong type.
        MissingFile: A source does not exist.
        StorageError: A source cannot be read.
    """
    numbers = None if labels is None else check_label_map(labels)
    sources = find_sources(paths, split)
    found = _Found(split)
    hashes = []
    with track("reading pairs", None, shown=progress) as advance:
        for source in sources:
            hashes.append(source.sha256())
            _read_source(source, numbers, found, advance)
    if not found.pairs:
        names = printable(", ".join(source_name(source.path) for source in sources), 500)
        raise InputError(
            f"{names}: no labelled example is left, {sum(found.skipped):,} without a gold label"
            " skipped; expected entailment, neutral or contradiction in gold_label or label"
        )
    duplicates = find_duplicates(found.pairs)
    for line in _warnings(found, duplicates):
        logger.warning(line)
    return NliSet(tuple(found.pairs), _summaries(sources, hashes, found, duplicates))


@dataclass(slots=True)
class _Found:
    """What reading has met so far; the lists of numbers have an item for each source."""

    split: str | None
    pairs: list[NliPair] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    skipped: list[int] = field(default_factory=list)
    left_out: list[Counter[str]] = field(default_factory=list)
    """Rows of other splits, by the split."""
    repaired: int = 0

    def admit(self, row: Row, label: int) -> bool:
        """Whether the row has a gold label; then it becomes a pair.

        Raises:
            BadRecordError: A text that is not accepted.
        """
        if label == NO_GOLD:
            return False
        premise = self._text(row.values["premise"], "premise")
        hypothesis = self._text(row.values["hypothesis"], "hypothesis")
        if self.pairs and self.pairs[-1].premise == premise:
            premise = self.pairs[-1].premise  # most sets have each premise in a run of rows
        self.pairs.append(NliPair(premise, hypothesis, label))
        return True

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


def _read_source(
    source: Source, numbers: Mapping[int, str] | None, found: _Found, advance: Advance
) -> None:
    before = len(found.pairs)
    splits = _Splits(found.split, source)
    skipped = 0
    for file in source.files:
        labels = _FileLabels(numbers, source_name(file))
        rows = _counted(source.table.read(file, _COLUMNS, TextOptions()), advance)
        skipped += _read_rows(rows, labels, found, splits, source.table.unit)
    found.left_out.append(splits.left_out())
    if len(found.pairs) == before and not skipped:
        raise InputError(
            f"{source_name(source.path)}: expected pairs of premise and hypothesis, found no rows"
        )
    found.ends.append(len(found.pairs))
    found.skipped.append(skipped)


def _read_rows(
    rows: Iterator[Row | BadRow], labels: "_FileLabels", found: _Found, splits: "_Splits", unit: str
) -> int:
    """How many rows have no gold label; the others are added to what was found."""
    skipped = 0
    bad = BadRows(labels.name, unit)
    unknown = False
    for row in bad.removed_from(rows):
        try:
            skipped += splits.takes(row) and not found.admit(row, labels.read(row))
        except BadRecordError as error:
            bad.add(BadRow(row.number, error.reason))
            unknown |= isinstance(error, UnknownLabelError)
        except UnmappedNumberError as error:
            raise InputError(f"{labels.name} {unit} {row.number}: {error}") from error
    bad.refuse(f"; a label is one of {', '.join(NLI_LABELS)}" if unknown else "")
    return skipped


class _FileLabels:
    """Gives the labels of the rows of a file.

    Args:
        numbers: What numbers mean as labels; None for what the file itself says.
        name: What messages call the file.
    """

    def __init__(self, numbers: Mapping[int, str] | None, name: str) -> None:
        self.name = name
        self._reader = LabelReader(numbers)
        self._own_names = numbers is None
        self._field = "label"
        self._warned = False

    def read(self, row: Row) -> int:
        """The index of the row's label, or `NO_GOLD`.

        Once a row has a ``gold_label``, ``label`` no longer counts.

        Raises:
            BadRecordError: A label that is not accepted.
            UnmappedNumberError: A number without a mapping.
        """
        if "gold_label" in row.values:
            self._field = "gold_label"
        label = row.values.get(self._field)
        if row.classes:
            label = self._named(label, row.classes.get(self._field, ()))
        return self._reader.read(label)

    def _named(self, label: object, classes: tuple[str, ...]) -> object:
        """The name that the file gives to a number, unless the caller says what numbers mean."""
        if not self._own_names:
            if not self._warned:
                logger.warning(
                    "%s: the numbers have the names that were given, not the file's own (%s)",
                    self.name,
                    printable(", ".join(classes), 100),
                )
            self._warned = True
            return label
        if not classes or not isinstance(label, int) or label == NO_GOLD:
            return label
        if 0 <= label < len(classes):
            return classes[label]
        shown = printable(", ".join(classes), 100)
        raise BadRecordError(f"label {label} is not one of the file's classes {shown}")


def _counted(rows: Iterator[Row | BadRow], advance: Advance) -> Iterator[Row | BadRow]:
    number = 0
    for number, row in enumerate(rows, 1):
        yield row
        if not number % _ROWS_BETWEEN_REPORTS:
            advance(_ROWS_BETWEEN_REPORTS)
    advance(number % _ROWS_BETWEEN_REPORTS)


class _Splits:
    """Tells the rows of the wanted split of a source, and counts all by their splits."""

    def __init__(self, wanted: str | None, source: Source) -> None:
        self._wanted = wanted
        self._source = source
        self._counts: Counter[str | None] = Counter()
        self._taken: dict[str | None, bool] = {None: True}

    def takes(self, row: Row) -> bool:
        """Whether the row is of the wanted split, or has none.

        Raises:
            BadRecordError: Its split is blank.
        """
        split = split_text(row.values["split"]) if "split" in row.values else None
        if split == "":
            raise BadRecordError("blank split")
        self._counts[split] += 1
        if split not in self._taken:
            wanted = self._wanted or _TRAIN
            self._taken[split] = split_key(split or "") == split_key(wanted) or wanted == ALL_SPLITS
        return self._taken[split]

    def left_out(self) -> Counter[str]:
        """How many rows each other split has, once all rows have been seen.

        Raises:
            InputError: None is of the wanted split, or some rows name theirs and others do not.
        """
        name = source_name(self._source.path)
        counts = Counter({split: n for split, n in self._counts.items() if split is not None})
        without = self._counts[None]
        if counts and without:
            raise InputError(
                f"{name}: {without:,} of {self._counts.total():,} {self._source.table.unit}s have"
                " no split, the others have one; add it, or remove them"
            )
        if without and self._wanted not in (None, ALL_SPLITS) and not self._source.folder:
            raise no_split_column(name, str(self._wanted))
        if counts and not any(self._taken[split] for split in counts):
            raise no_such_split(name, self._wanted or _TRAIN, counts)
        return Counter({split: n for split, n in counts.items() if not self._taken[split]})


def _warnings(found: _Found, duplicates: Duplicates) -> Iterator[str]:
    """One line for each kind of trouble that was met."""
    left_out = sum(found.left_out, Counter())
    if left_out:
        listed = printable(", ".join(f"{n:,} {split}" for split, n in left_out.items()), 200)
        noun = "row" if left_out.total() == 1 else "rows"
        yield f"{left_out.total():,} {noun} of other splits left out ({listed})"
    if sum(found.skipped):
        yield f"{sum(found.skipped):,} without a gold label skipped"
    if duplicates.rows:
        count = len(duplicates.rows)
        noun = "row repeats an earlier one" if count == 1 else "rows repeat earlier ones"
        yield f"{count:,} {noun} exactly"
    if duplicates.contradictory:
        count = duplicates.contradictory
        noun, verb = ("pair", "has") if count == 1 else ("pairs", "have")
        yield f"{count:,} {noun} of premise and hypothesis {verb} more than one label"
    if found.repaired:
        noun = "text" if found.repaired == 1 else "texts"
        yield f"{found.repaired:,} {noun} with unpaired surrogates, which became U+FFFD"


def _summaries(
    sources: Sequence[Source], hashes: Sequence[str], found: _Found, duplicates: Duplicates
) -> tuple[NliSource, ...]:
    summaries = []
    start = 0
    for place, (source, sha256) in enumerate(zip(sources, hashes, strict=True)):
        end = found.ends[place]
        repeated = sum(start <= row < end for row in duplicates.rows)
        summaries.append(
            NliSource(
                source.path,
                sha256,
                rows=end - start,
                skipped=found.skipped[place],
                duplicates=repeated,
                other_splits=found.left_out[place].total(),
            )
        )
        start = end
    return tuple(summaries)
