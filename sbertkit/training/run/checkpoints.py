"""Checkpoints: folders that appear complete or not at all, with a hash of every file."""

import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sbertkit.errors import InputError
from sbertkit.files import inside, read_regular
from sbertkit.schema import Count
from sbertkit.sealed import SealedFile, read_sealed, seal
from sbertkit.storage import follow_modes, replace_file, storage_errors, sync_folder, sync_tree

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
    files: list[SealedFile]


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
                files = [SealedFile.of(staged, staged / name) for name in _files_in(staged)]
                manifest = _Manifest(_FORMAT, step, state, files)
                (staged / MANIFEST).write_bytes(seal(asdict(manifest)))
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
            manifest = read_sealed(read_regular(path), _Manifest, path, version=_FORMAT)
        except OSError as error:
            raise InputError(f"{path} cannot be read ({error.strerror})") from error
        if manifest.step != step:
            raise InputError(f"{path} is not that of step {step}")
        known = {MANIFEST, *(file.path for file in manifest.files)}
        unknown = [name for name in _files_in(folder) if name not in known]
        if unknown:
            raise InputError(f"{folder}: {unknown[0]} is no file of this checkpoint; remove it")
        for file in manifest.files:
            try:
                fault = file.fault(folder)
            except OSError as error:
                fault = f"cannot be read ({error.strerror})"
            if fault is not None:
                raise InputError(f"{folder / file.path}: {fault}")
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


def _files_in(folder: Path) -> list[str]:
    """The names of all but folders and what the system itself puts there, such as ``.DS_Store``."""
    return sorted(
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if not path.is_dir() and not path.name.startswith(".")
    )


def write_json(path: Path, content: Any) -> None:
    """Writes JSON in one step."""
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    replace_file(path, text.encode())
