"""Splits of data sets: the columns that name them, and which of them a job reads."""

from collections import Counter
from collections.abc import Iterable, Mapping

from sbertkit.arguments import did_you_mean
from sbertkit.data.metadata import BadRecordError
from sbertkit.data.text import printable
from sbertkit.errors import InputError

ALL_SPLITS = "all"
"""The name that asks for the rows of every split."""

SPLIT_COLUMNS = ("split", "set", "semeval_set")
"""Names of the column, lower-cased; where a header has several, the earliest here counts."""

_TRAIN = "train"
_ALIASES = {
    "training": "train",
    "development": "dev",
    "validation": "dev",
    "valid": "dev",
    "val": "dev",
    "testing": "test",
}


def split_key(name: str) -> str:
    """What a split's name means: ``train``, ``dev`` and ``test`` for their usual aliases."""
    known = name.strip().lower()
    return _ALIASES.get(known, known)


def split_text(value: object) -> str:
    """The name in a row's split column; empty where there is none."""
    return "" if value is None else str(value).strip()


def find_split(wanted: str, splits: Iterable[str]) -> str | None:
    """The name among `splits` that is `wanted`, or else the first that means the same."""
    names = list(splits)
    if wanted in names:
        return wanted
    return next((name for name in names if split_key(name) == split_key(wanted)), None)


def no_such_split(name: str, wanted: str, splits: Iterable[str]) -> InputError:
    """The refusal of a source that lacks a split, with those that it has.

    Args:
        name: What messages call the source.
        wanted: The split.
        splits: Those that the source has.
    """
    known = list(splits)
    found = printable(", ".join(known), 200)
    return InputError(
        f"{name}: expected a {printable(wanted, 40)} split, found {found}"
        f"{did_you_mean(wanted, known)}; pass one of them or {ALL_SPLITS} as split (--split)"
    )


def no_split_column(name: str, wanted: str) -> InputError:
    """The refusal of a source without splits, where one was asked for."""
    return InputError(
        f"{name}: expected a column with the split {wanted!r}, found no split column; "
        "leave the split out to read every row"
    )


class SplitFilter:
    """Which rows of a source are of the wanted split.

    Args:
        wanted: A split, or ``all``; ``None`` for ``train``, and all where a source has no splits.
    """

    def __init__(self, wanted: str | None) -> None:
        self._wanted = wanted
        self._counts: Counter[str | None] = Counter()
        self._taken: dict[str | None, bool] = {None: True}

    def takes(self, values: Mapping[str, object]) -> bool:
        """Whether a row with these values is of the wanted split, or has none.

        Raises:
            BadRecordError: Its split is blank.
        """
        split = split_text(values["split"]) if "split" in values else None
        if split == "":
            raise BadRecordError("blank split")
        self._counts[split] += 1
        if split not in self._taken:
            wanted = self._wanted or _TRAIN
            self._taken[split] = wanted == ALL_SPLITS or split_key(split or "") == split_key(wanted)
        return self._taken[split]

    @property
    def left_out(self) -> Counter[str]:
        """How many rows each other split has."""
        return Counter(
            {str(split): n for split, n in self._counts.items() if not self._taken[split]}
        )

    def check(self, name: str, unit: str, *, folder: bool) -> None:
        """Nothing, if rows of the wanted split were found.

        Args:
            name: What messages call the source.
            unit: What they call its rows.
            folder: Whether it is a folder, whose files may be of one split each.

        Raises:
            InputError: None is of the wanted split, or only some rows name theirs.
        """
        named = [str(split) for split in self._counts if split is not None]
        without = self._counts[None]
        if named and without:
            raise InputError(
                f"{name}: {without:,} of {self._counts.total():,} {unit}s have no split, the "
                "others have one; add it, or remove them"
            )
        if without and self._wanted not in (None, ALL_SPLITS) and not folder:
            raise no_split_column(name, str(self._wanted))
        if named and not any(self._taken[split] for split in named):
            raise no_such_split(name, self._wanted or _TRAIN, named)
