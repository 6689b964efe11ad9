"""What a suite is, and how its file is read."""

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from sbertkit.arguments import path_text
from sbertkit.data.named import NamedSet, find_named
from sbertkit.data.streams import source_name
from sbertkit.data.text import printable
from sbertkit.errors import InputError, MissingFile
from sbertkit.evaluation.measures import DEFAULT_MEASURES, Measures
from sbertkit.files import read_regular

_SUFFIX = ".toml"
_TASKS = ("sts", "retrieval")
_KEYS = {"title", "sets", "measures", "published"}
_ROW_KEYS = {"name", "source", "scores"}


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """What others reached: scores x 100 by the names of sets."""

    name: str
    source: str
    scores: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Suite:
    """Data sets to measure an encoder on.

    Attributes:
        name: Of its file.
        title: What it is.
        sets: In order; each has its task.
        measures: Of retrieval, by ir-measures' names; the first is the headline.
        published: What others reached.
    """

    name: str
    title: str
    sets: tuple[NamedSet, ...]
    measures: tuple[str, ...]
    published: tuple[PublishedRow, ...]

    def headline(self, task: str) -> str:
        """The measure that stands for a set of that task, in words."""
        return "Spearman" if task == "sts" else self.measures[0]


def suite_names() -> tuple[str, ...]:
    """The names of the suites that come with sbertkit."""
    names = (file.name for file in _folder().iterdir())
    return tuple(sorted(name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX)))


def read_suite(suite: str | os.PathLike[str]) -> Suite:
    """A suite by its name, or from a file of one's own.

    Args:
        suite: A name of `suite_names`, or the path of a ``.toml`` file with ``title``, ``sets``
            (names of data sets), and where wanted ``measures`` and ``[[published]]`` rows.

    Raises:
        InputError: An unknown name, or a file that is none such.
        MissingFile: The file does not exist.
    """
    name = path_text(suite)
    if name in suite_names():
        text = _folder().joinpath(f"{name}{_SUFFIX}").read_text(encoding="utf-8")
        return _suite(name, name, text)
    if not name.endswith(_SUFFIX):
        raise InputError(
            f"no suite {printable(name, 60)!r}; choose one of {', '.join(suite_names())}, or pass "
            "a .toml file"
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
    except (ValueError, RecursionError) as error:  # also whole numbers of thousands of digits
        raise InputError(f"{where}: not TOML ({error})") from error
    _only(where, content, _KEYS, needed={"title", "sets"})
    sets = _strings(where, "sets", content["sets"])
    measures = _strings(where, "measures", content.get("measures", DEFAULT_MEASURES))
    try:
        chosen = tuple(find_named(one) for one in sets)
        Measures(measures)
    except InputError as error:
        raise InputError(f"{where}: {error}") from error
    for one in chosen:
        if one.task not in _TASKS:
            raise InputError(f"{where}: {one.name} is for {one.task}, no set to be measured on")
    rows = content.get("published", [])
    if not isinstance(rows, list):
        raise InputError(f"{where}: published must be tables, [[published]]")
    published = tuple(_row(where, row, sets) for row in rows)
    return Suite(name, str(content["title"]), chosen, measures, published)


def _row(where: str, row: Any, sets: Sequence[str]) -> PublishedRow:
    place = f"{where}: published"
    _only(place, row, _ROW_KEYS, needed=_ROW_KEYS)
    scores = row["scores"]
    if not isinstance(scores, dict) or not all(
        isinstance(score, int | float) and not isinstance(score, bool) for score in scores.values()
    ):
        raise InputError(f"{place} {row['name']!r}: scores must be numbers by the names of sets")
    unknown = [name for name in scores if name not in sets]
    if unknown:
        raise InputError(f"{place} {row['name']!r}: {unknown[0]!r} is no set of this suite")
    return PublishedRow(str(row["name"]), str(row["source"]), scores)


def _only(where: str, content: Any, known: set[str], needed: set[str]) -> None:
    if not isinstance(content, dict):
        raise InputError(f"{where}: expected a table, found {type(content).__name__}")
    for name in content:
        if name not in known:
            raise InputError(f"{where}: unknown key {printable(name, 40)!r}; known: {_list(known)}")
    missing = needed - content.keys()
    if missing:
        raise InputError(f"{where}: {_list(missing)} missing")


def _list(names: set[str]) -> str:
    return ", ".join(sorted(names))


def _strings(where: str, key: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, str) or not value or not all(isinstance(one, str) for one in value):
        raise InputError(f"{where}: {key} must be a list of names, found {value!r}")
    if len(set(value)) < len(value):
        raise InputError(f"{where}: {key} has a name twice")
    return tuple(value)
