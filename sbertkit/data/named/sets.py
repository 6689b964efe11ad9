"""What is known of each public data set that has a name here."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from sbertkit.arguments import did_you_mean
from sbertkit.data.text import printable
from sbertkit.errors import InputError, InputTypeError

TASKS = ("sts", "retrieval", "nli")


@dataclass(frozen=True, slots=True)
class HubSource:
    """Files of a data set's repository on the Hugging Face hub.

    Attributes:
        repository: Its name.
        revision: The commit that is read, so that a name always means the same bytes.
        files: Their paths below the folder.
        folder: The folder in the repository; empty for the repository itself.
    """

    repository: str
    revision: str
    files: tuple[str, ...]
    folder: str = ""

    @property
    def paths(self) -> list[str]:
        """Paths of the files in the repository."""
        return [f"{self.folder}/{file}" if self.folder else file for file in self.files]


@dataclass(frozen=True, slots=True)
class NamedSet:
    """A published data set.

    Attributes:
        name: What it is called here.
        title: What it is.
        task: One of `TASKS`.
        rows: How much is in it.
        path: The file or folder below the folder of local data sets.
        licence: That of its texts, as the source states it.
        source: Where it is described.
        cite: Whom to cite.
        hub: Where its files come from, None where they must be got by hand.
        labels: What the numbers in its files mean, where they do not say it.
    """

    name: str
    title: str
    task: str
    rows: str
    path: str
    licence: str
    source: str
    cite: str
    hub: HubSource | None
    labels: Mapping[int, str]


def _read() -> tuple[NamedSet, ...]:
    text = files(__package__).joinpath("sets.toml").read_text(encoding="utf-8")
    return tuple(_named(name, entry) for name, entry in tomllib.loads(text).items())


def _named(name: str, entry: dict[str, Any]) -> NamedSet:
    hub = entry.pop("hub", None)
    if hub is not None:
        hub = HubSource(**{**hub, "files": tuple(hub["files"])})
    labels = dict(enumerate(entry.pop("labels", ())))
    return NamedSet(name=name, hub=hub, labels=labels, **entry)


NAMED_SETS = _read()
"""The sets that have names, in the order of their list."""


def find_named(name: str, task: str | None = None) -> NamedSet:
    """What is known of the set of that name.

    Args:
        name: Of an entry of `NAMED_SETS`.
        task: What it must be for, if anything.

    Raises:
        InputError: No set of that task has that name.
        InputTypeError: The name is not a str.
    """
    if not isinstance(name, str):
        raise InputTypeError(f"a data set's name must be a str, found {type(name).__name__}")
    known = [one for one in NAMED_SETS if task in (None, one.task)]
    for one in known:
        if one.name == name:
            return one
    names = [one.name for one in known]
    raise InputError(
        f"there is no data set named '{printable(name)}'{did_you_mean(name, names)}; known are "
        f"{', '.join(names)}"
    )
