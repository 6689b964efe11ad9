"""Checks of what callers pass: whole numbers, names, and files to write."""

import functools
import numbers
import operator
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

from sbertkit.errors import InputError, InputTypeError, StorageError

Record = TypeVar("Record")

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
"""One path, or several."""


def path_list(paths: Paths) -> list[str | os.PathLike[str]]:
    """The paths as a list, also if there is one alone."""
    return [paths] if isinstance(paths, str | os.PathLike) else list(paths)


def real_number(name: str, value: object) -> float:
    """The number that an argument holds; NumPy's count, True and False do not.

    Raises:
        InputTypeError: It is no number.
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InputTypeError(f"{name} must be a number, not {value!r}")
    try:
        return float(value)
    except OverflowError as error:
        raise InputTypeError(f"{name} must be a number, found one with too many digits") from error


def whole_number(name: str, value: object, least: int = 1) -> int:
    """The number that an argument holds; NumPy's whole numbers count, True and False do not.

    Args:
        name: The argument's name, for the message.
        value: What was passed.
        least: The smallest number accepted.

    Raises:
        InputError: It is below `least`.
        InputTypeError: It is no whole number.
    """
    if isinstance(value, bool):
        raise InputTypeError(f"{name} must be a whole number, not {value!r}")
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError as error:
        raise InputTypeError(f"{name} must be a whole number, not {value!r}") from error
    if number < least:
        raise InputError(f"{name} must be at least {least}, not {number}")
    return number


_SIZE = re.compile(r"\s*([0-9]{1,30}(?:\.[0-9]+)?)\s*([KMGT]?)(I?)B?\s*", re.ASCII)


def parse_bytes(name: str, value: int | str | None) -> int | None:
    """A size in bytes: a whole number, or a text such as ``2GB`` or ``512 MiB``.

    Args:
        name: The argument's name, for the message.
        value: What was passed; ``None`` is no size.

    Raises:
        InputError: No size, or one below 1 byte.
        InputTypeError: Neither a whole number nor a text.
    """
    if value is None or not isinstance(value, str):
        return None if value is None else whole_number(name, value)
    found = _SIZE.fullmatch(value.upper())
    if found is None:
        raise InputError(f"{name} must be a size such as 2GB or 512MiB, not {value!r:.50}")
    number, unit, binary = found.groups()
    power = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}[unit]
    return whole_number(name, int(float(number) * (1024 if binary else 1000) ** power))


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A question to the user, such as ``, did you mean 'text'?``; empty if no name is near."""
    from difflib import get_close_matches

    folded = {one.lower(): one for one in known}
    near = get_close_matches(name.lower(), folded, n=1, cutoff=0.7)
    return f", did you mean {folded[near[0]]!r}?" if near else ""


def refuses_unknown(kind: type[Record]) -> type[Record]:
    """The dataclass, whose constructor refuses names of no field with the one that is near.

    Raises:
        InputTypeError: By the constructor: a name of no field.
    """
    construct: Any = kind.__init__
    known = [one.name for one in fields(kind)]  # type: ignore[arg-type]  # a dataclass

    @functools.wraps(construct)
    def constructor(self: Any, *values: Any, **named: Any) -> None:
        for name in named:
            if name not in known:
                remedy = did_you_mean(name, known) or f"; expected {', '.join(known)}"
                raise InputTypeError(f"{kind.__name__} has no {name!r}{remedy}")
        construct(self, *values, **named)

    kind.__init__ = constructor  # type: ignore[method-assign]  # of the same arguments
    return kind


def path_text(path: object) -> str:
    """A path as a str.

    Raises:
        InputError: An empty path, or one with a NUL.
        InputTypeError: Neither a str nor a path of str.
    """
    text: object = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(text, str):
        found = type(path).__name__
        raise InputTypeError(f"expected the path of a file or folder as str or Path, found {found}")
    try:
        named = bool(text) and b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        named = False
    if not named:
        raise InputError(f"expected the path of a file or folder, found {text!r}")
    return text


def output_folder(path: str | os.PathLike[str]) -> Path:
    """The folder itself behind all links to it.

    Raises:
        InputError: No path, or ``-``, which means standard output where a text is written.
        InputTypeError: Neither a str nor a path of str.
    """
    if path == "-":
        raise InputError(
            "expected the name of a file or folder to write, found -, which means standard output; "
            "write ./- if that is the name"
        )
    return Path(os.path.realpath(path_text(path)))


def output_file(path: str | os.PathLike[str]) -> Path:
    """The file itself behind all links to it, which may be written anew or replaced.

    Raises:
        InputError: No path, a folder, or something else that is no regular file.
        InputTypeError: Neither a str nor a path of str.
        StorageError: It cannot be looked at.
    """
    target = output_folder(path)
    try:
        if target.is_dir():
            raise InputError(f"{path} is a folder; expected the name of a file")
        if target.exists() and not target.is_file():
            raise InputError(f"{path} is a pipe or a device; expected the name of a regular file")
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror or error}") from error
    return target
