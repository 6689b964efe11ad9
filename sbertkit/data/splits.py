"""Splits of data sets: the columns that name them, and which of them a job reads."""

from collections.abc import Iterable

from sbertkit.arguments import did_you_mean
from sbertkit.data.text import printable
from sbertkit.errors import InputError

ALL_SPLITS = "all"
"""The name that asks for the rows of every split."""

SPLIT_COLUMNS = ("split", "set", "semeval_set")
"""Names of the column, lower-cased; where a header has several, the earliest here counts."""

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
