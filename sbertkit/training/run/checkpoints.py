"""Checkpoints: folders that appear complete or not at all, with a hash of every file."""

import hashlib
import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sbertkit.errors import InputError
from sbertkit.files import inside, open_regular, read_regular
from sbertkit.schema import Count, Digest, as_record, parse_json
from sbertkit.storage import (
    follow_modes,
    replace_file,
    sha256_file,
    storage_errors,
    sync_folder,
    sync_tree,
)

Scalar = str | bool | int | float | None
"""A value at the leaves of a JSON document."""

MANIFEST = "checkpoint.json"
_FORMAT = 1
_KEPT = 2


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A complete checkpoint.

    Attributes:
        folder: Where it is; ``model`` in it is a model folder like any other.
        step: Optimizer steps done.
        state: What the run's monitor knew.
    """

    folder: Path
    step: int
    state: dict[str, Any]

    @property
    def model(self) -> Path:
        """The model folder in it."""
        return self.folder / "model"


@dataclass(frozen=True, slots=True)
class _Manifest:
    format: int
    step: Count
    state: dict[str, Any]
    files: dict[str, Digest]
    sha256: Digest


class CheckpointStore:
    """The checkpoints of one run: the last two and the best.

    Args:
        folder: Where they are kept.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, step: int) -> Path:
        """The folder of the checkpoint after so many steps."""
        return self.folder / f"step-{step:08d}"

    def staging(self, step: int) -> Path:
        """The folder in which that checkpoint is written, which all processes can name."""
        return self.folder / f".step-{step:08d}.tmp"

    def write(
        self, step: int, fill: Callable[[Path], None], state: dict[str, Any], best: int | None
    ) -> Path:
        """Makes a checkpoint of what `fill` writes; then drops the ones no longer wanted.

        Args:
            step: Optimizer steps done.
            fill: Writes the files into a folder.
            state: What the monitor keeps.
            best: Step of the best checkpoint, which is kept.

        Raises:
            StorageError: The disk is full or the like; earlier checkpoints stay as they are.
        """
        staged, path = self.staging(step), self.path(step)
        with storage_errors(path):
            try:
                staged.mkdir(parents=True, exist_ok=True)
                fill(staged)
                content: dict[str, Any] = {
                    "format": _FORMAT,
                    "step": step,
                    "state": state,
                    "files": {name: sha256_file(staged / name) for name in _files_in(staged)},
                }
                content["sha256"] = _digest(content)
                text = json.dumps(content, indent=2, allow_nan=False)
                (staged / MANIFEST).write_text(text, encoding="utf-8")
                follow_modes(staged)
                sync_tree(staged)
                if path.exists():
                    shutil.rmtree(path)
                staged.replace(path)
                sync_folder(self.folder)
            except BaseException:
                shutil.rmtree(staged, ignore_errors=True)
                raise
        self._drop_old(best)
        return path

    def steps(self) -> list[int]:
        """Steps of all checkpoints, complete or not, ascending."""
        found = []
        for path in self.folder.glob("step-*"):
            with suppress(ValueError):
                found.append(int(path.name.removeprefix("step-")))
        return sorted(found)

    def read(self, step: int) -> Checkpoint:
        """The checkpoint after so many steps, once every file is known to be as it was written.

        Raises:
            InputError: A file is missing, truncated or changed.
        """
        folder = inside(self.folder, self.path(step).name)
        path = folder / MANIFEST
        try:
            content = parse_json(read_regular(path), path)
            manifest = as_record(content, _Manifest, path)
            if content.pop("sha256") != _digest(content):
                raise InputError("truncated or changed")
        except (OSError, InputError, RecursionError) as error:
            raise InputError(f"{folder}: {MANIFEST} cannot be read ({error})") from error
        if (manifest.step, manifest.format) != (step, _FORMAT):
            raise InputError(f"{folder}: {MANIFEST} is not that of step {step}")
        unknown = sorted(_files_in(folder) - {*manifest.files, MANIFEST})
        if unknown:
            raise InputError(f"{folder}: {unknown[0]} is no file of this checkpoint; remove it")
        for name, known in manifest.files.items():
            found = _hash_inside(folder, name)
            if found != known:
                raise InputError(
                    f"{folder}: {name} is truncated or changed (expected SHA-256 {known[:12]}..., "
                    f"found {found[:12]})"
                )
        return Checkpoint(folder, step, manifest.state)

    def sweep(self) -> None:
        """Removes what a killed process left half written."""
        for path in self.folder.glob(".step-*.tmp"):
            shutil.rmtree(path, ignore_errors=True)

    def drop_after(self, step: int) -> None:
        """Removes the checkpoints after a step, which a run resumed there writes again."""
        for later in self.steps():
            if later > step:
                shutil.rmtree(self.path(later), ignore_errors=True)

    def _drop_old(self, best: int | None) -> None:
        for step in self.steps()[:-_KEPT]:
            if step != best:
                shutil.rmtree(self.path(step), ignore_errors=True)


def _digest(content: dict[str, Any]) -> str:
    """A hash of the manifest itself, without its own hash; it lists what the files must be."""
    text = json.dumps(content, sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _files_in(folder: Path) -> set[str]:
    """The names of all but folders and what the system itself puts there, such as ``.DS_Store``."""
    return {
        path.relative_to(folder).as_posix()
        for path in sorted(folder.rglob("*"))
        if not path.is_dir() and not path.name.startswith(".")
    }


def _hash_inside(folder: Path, name: str) -> str:
    try:
        with open_regular(inside(folder, name)) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return "no file"
    except OSError as error:
        raise InputError(f"{folder}: {name} cannot be read ({error.strerror})") from error


def write_json(path: Path, content: Any) -> None:
    """Writes JSON in one step."""
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    replace_file(path, text.encode())
