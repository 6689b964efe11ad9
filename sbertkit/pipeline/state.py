"""Which steps of a recipe are done, with what they gave: a sealed file in its folder."""

import hashlib
import json
import logging
import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from sbertkit.errors import InputError
from sbertkit.files import read_regular
from sbertkit.lock import LOCK_FILE
from sbertkit.schema import Digest
from sbertkit.sealed import SealedFile, read_sealed, seal
from sbertkit.storage import replace_file, sha256_file, storage_errors

logger = logging.getLogger(__name__)

STATE_FILE = "recipe.json"
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Done:
    """A step that is done.

    Attributes:
        key: A hash of what decided it.
        seconds: What it took.
        files: What it wrote that later steps read.
        result: What it gave, as JSON can hold it.
    """

    key: Digest
    seconds: float
    files: list[SealedFile]
    result: dict[str, Any]


@dataclass(frozen=True, slots=True)
class _State:
    """The file's content.

    Attributes:
        format: Its version.
        done: Steps that are done, by name.
        begun: The key of each step that was begun since, by name.
    """

    format: int = _FORMAT
    done: dict[str, Done] = field(default_factory=dict)
    begun: dict[str, Digest] = field(default_factory=dict)


class RecipeState:
    """The steps of the recipe in a folder.

    Args:
        folder: New, empty, or one that a recipe wrote.

    Raises:
        InputError: The folder has something else, or its state was changed.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._path = folder / STATE_FILE
        with storage_errors(folder):
            if self._path.is_file():
                raw = read_regular(self._path)
                self._state = read_sealed(raw, _State, self._path, version=_FORMAT)
                return
            found = folder.iterdir() if folder.exists() else ()
            others = [one for one in found if one.name != LOCK_FILE]
        if others:
            raise InputError(
                f"{folder} holds {others[0].name}, which no recipe wrote; choose a new or empty "
                "folder (-o)"
            )
        self._state = _State()

    def done(self, name: str, key: str) -> Done | None:
        """The step, if it was done with that key and its files are as it wrote them."""
        found = self._state.done.get(name)
        if found is None or found.key != key:
            return None
        for file in found.files:
            fault = file.fault(self.folder)
            if fault is not None:
                logger.warning(
                    "%s: %s; the step %s is done again", self.folder / file.path, fault, name
                )
                return None
        return found

    def is_begun(self, name: str, key: str) -> bool:
        """Whether the step was begun with that key and not finished."""
        return self._state.begun.get(name) == key

    def begin(self, name: str, key: str) -> None:
        """Notes that the step is begun; what it gave before counts no more."""
        done = {other: one for other, one in self._state.done.items() if other != name}
        self._write(replace(self._state, done=done, begun={**self._state.begun, name: key}))

    def finish(
        self, name: str, key: str, seconds: float, result: Mapping[str, Any], output: Path | None
    ) -> Done:
        """Notes what the step gave, and the files below its output."""
        with storage_errors(self.folder):
            paths = sorted(output.rglob("*")) if output is not None else []
            files = [SealedFile.of(self.folder, path) for path in paths if path.is_file()]
        found = Done(key, round(seconds, 1), files, dict(result))
        begun = {other: one for other, one in self._state.begun.items() if other != name}
        self._write(replace(self._state, done={**self._state.done, name: found}, begun=begun))
        return found

    def _write(self, state: _State) -> None:
        with storage_errors(self._path):
            replace_file(self._path, seal(asdict(state)))
        self._state = state


def remove(path: Path) -> None:
    """Removes the folder of a step, and that of its unfinished run.

    Raises:
        StorageError: It cannot be removed.
    """
    with storage_errors(path):
        for one in (path, path.with_name(f"{path.name}.run")):
            if one.exists():
                shutil.rmtree(one)


def key_of(inputs: Mapping[str, Any]) -> str:
    """A hash of what decides a step, as JSON can hold it."""
    return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()


def content_hash(path: str | os.PathLike[str]) -> str:
    """A hash of the content of a file, or of the names and contents of all files of a folder.

    Raises:
        StorageError: One cannot be read.
    """
    place = Path(path)
    with storage_errors(place):
        if not place.is_dir():
            return sha256_file(place)
        files = sorted(one for one in place.rglob("*") if one.is_file())
        return key_of({one.relative_to(place).as_posix(): sha256_file(one) for one in files})
