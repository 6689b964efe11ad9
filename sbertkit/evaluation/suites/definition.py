"""Suites of data sets, and how their files are read."""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

import msgspec

from sbertkit.arguments import did_you_mean, path_text
from sbertkit.data.named import NamedSet, find_named
from sbertkit.data.streams import source_name
from sbertkit.data.text import printable
from sbertkit.errors import InputError, MissingFile
from sbertkit.evaluation.measures import DEFAULT_MEASURES, Measures
from sbertkit.files import read_regular
from sbertkit.schema import as_record

_SUFFIX = ".toml"
_TASKS = ("sts", "retrieval")

Percent = Annotated[float, msgspec.Meta(ge=-100, le=100)]
"""A score times 100."""


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """Published results: scores times 100 by the names of sets."""

    name: str
    source: str
    scores: Mapping[str, Percent]


@dataclass(frozen=True, slots=True)
class Suite:
    """Data sets to evaluate an encoder on.

    Attributes:
        name: Name of its file.
        title: A title.
        sets: The data sets in order; each has its task.
        measures: Retrieval measures by ir-measures' names; the first is the headline.
        published: Published results.
    """

    name: str
    title: str
    sets: tuple[NamedSet, ...]
    measures: tuple[str, ...]
    published: tuple[PublishedRow, ...]

    def headline(self, task: str) -> str:
        """The name of the headline measure of a task."""
        return "Spearman" if task == "sts" else self.measures[0]


@dataclass(frozen=True, slots=True)
class _File:
    """What a suite's file holds."""

    title: str
    sets: tuple[str, ...]
    measures: tuple[str, ...] = DEFAULT_MEASURES
    published: tuple[PublishedRow, ...] = ()


def suite_names() -> tuple[str, ...]:
    """The names of the suites that come with sbertkit."""
    names = (file.name for file in _folder().iterdir())
    return tuple(sorted(name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX)))


def read_suite(suite: str | os.PathLike[str]) -> Suite:
    """A suite by its name, or from a file.

    Args:
        suite: A name of `suite_names`, or the path of a ``.toml`` file with ``title``, ``sets``
            (names of data sets), and optional ``measures`` and ``[[published]]`` rows.

    Raises:
        InputError: An unknown name, or a bad file.
        MissingFile: The file does not exist.
    """
    name = path_text(suite)
    if name in suite_names():
        text = _folder().joinpath(f"{name}{_SUFFIX}").read_text(encoding="utf-8")
        return _suite(name, name, text)
    if not name.endswith(_SUFFIX):
        raise InputError(
            f"no suite {printable(name, 60)!r}{did_you_mean(name, suite_names())}; known are "
            f"{', '.join(suite_names())}; or pass a .toml file"
        )
    where = source_name(name)
    try:
        text = read_regular(Path(name), follow=True).decode()
    except FileNotFoundError as error:
        raise MissingFile(f"{where}: no such file; check the path") from error
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{where}: cannot be read as text ({error})") from error
    return _suite(where, Path(name).stem, text)


def _folder() -> Any:
    return files(__package__).joinpath("files")


def _suite(where: str, name: str, text: str) -> Suite:
    try:
        content = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also raised for huge numbers and deep nesting
        raise InputError(f"{where}: not TOML ({error})") from error
    _refuse_unknown(where, content, _File)
    file = as_record(content, _File, where)
    for row in content.get("published", ()):
        _refuse_unknown(f"{where}: published", row, PublishedRow)
    for key, names in (("sets", file.sets), ("measures", file.measures)):
        if not names or len(set(names)) < len(names):
            raise InputError(f"{where}: {key} must be distinct names, at least one")
    try:
        chosen = tuple(find_named(one) for one in file.sets)
        Measures(file.measures)
    except InputError as error:
        raise InputError(f"{where}: {error}") from error
    for one in chosen:
        if one.task not in _TASKS:
            raise InputError(f"{where}: {one.name} is for {one.task}, not for evaluation")
    for unknown in (score for row in file.published for score in row.scores.keys() - file.sets):
        raise InputError(f"{where}: published: {printable(unknown, 40)!r} is not in this suite")
    return Suite(name, file.title, chosen, file.measures, file.published)


def _refuse_unknown(where: str, content: Mapping[str, Any], kind: type) -> None:
    """Refuses a key that the record does not have, such as a mistyped one."""
    known = {one.name for one in fields(kind)}
    for name in content:
        if name not in known:
            raise InputError(
                f"{where}: unknown key {printable(name, 40)!r}; known: {', '.join(sorted(known))}"
            )
