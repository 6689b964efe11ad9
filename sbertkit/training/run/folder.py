"""The folders of a run: the output, and beside it the unfinished run with its checkpoints."""

import json
import logging
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from sbertkit.arguments import output_folder
from sbertkit.encoder.model_files import LINEAGE_FILE, MODULES_FILE
from sbertkit.errors import InputError
from sbertkit.files import read_regular
from sbertkit.lock import LOCK_FILE, writer_lock
from sbertkit.schema import read_record
from sbertkit.storage import is_fixed, made_parents, side_pattern, storage_errors
from sbertkit.training.run.checkpoints import Checkpoint, CheckpointStore, Scalar, write_json
from sbertkit.training.run.metrics_log import LOG_FILE, surviving_rows

logger = logging.getLogger(__name__)

_SETTINGS = "run.json"
_FINISHED = (MODULES_FILE, LINEAGE_FILE, LOG_FILE)
TRACKERS = "runs"
"""Where tensorboard writes, below the folder of a run."""


@dataclass(frozen=True, slots=True)
class _Identity:
    """What decides the weights of a run, as its folder keeps it."""

    base: str
    objective: str
    data: list[dict[str, str]]
    dev: str | None
    settings: dict[str, Scalar | list[Scalar] | dict[str, Scalar]]
    device: str
    pooling: str | None = None
    environment: dict[str, Scalar] = field(default_factory=dict)


class RunFolder:
    """Where a run works until it is done.

    The model appears at `output` when the run is finished, complete. Until then everything is in
    `work`, named as the output with ``.run`` at its end. It is beside the output, or in it where
    the output is an empty folder that cannot be replaced, such as a mounted one.

    Args:
        output: Where the trained model is to be.
        main: Whether this process is the one that writes.

    Raises:
        InputError: Something is at the output already, such as the model of a finished run.
    """

    def __init__(self, output: str | os.PathLike[str], *, main: bool = True) -> None:
        self.output = output_folder(output)
        with storage_errors(self.output):
            if self.output.exists() and not self.output.is_dir():
                raise InputError(f"{self.output} is a file; expected a new folder for the model")
            self.work = self._work_folder()
            if all((self.output / name).is_file() for name in _FINISHED):
                raise InputError(
                    f"the run at {self.output} is finished, its model is there; choose a new "
                    "folder for another run, or remove it"
                )
            if self.output.is_dir() and any(place != self.work for place in self.output.iterdir()):
                raise InputError(
                    f"{self.output} exists and is not empty; choose a new folder, or remove it"
                )
        self.store = CheckpointStore(self.work / "checkpoints")
        self.log = self.work / LOG_FILE
        self._main = main

    def _work_folder(self) -> Path:
        name = f"{self.output.name}.run"
        beside, inside = self.output.parent / name, self.output / name
        for place in (beside, inside):
            if (place / _SETTINGS).is_file():
                return place
        return inside if is_fixed(self.output) else beside

    @property
    def is_unfinished(self) -> bool:
        """Whether there is a run to resume."""
        with storage_errors(self.work):
            return (self.work / _SETTINGS).is_file()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keeps other runs away from the output for the block.

        The folders above the output are made; those it made go again when the block fails.

        Raises:
            InputError: Something else has the name that the run needs.
            StorageError: Another run holds it, or the place cannot be written to.
        """
        if not self._main:
            yield
            return
        self._check_name()
        with made_parents(self.output), writer_lock(self.output, lambda: self.work):
            yield

    def check(self, *, resume: bool) -> None:
        """Nothing, where there is a run to resume if and only if that is asked for.

        Raises:
            InputError: It is not so.
        """
        unfinished = self.is_unfinished
        if resume and not unfinished:
            raise InputError(
                f"there is no unfinished run at {self.work}; leave out resume (--resume) to begin "
                "one"
            )
        if self._main:
            self._check_name()
        # Of several processes the one that writes may have begun this very run already.
        if unfinished and not resume and self._main:
            raise InputError(
                f"an unfinished run is at {self.work}; continue it with resume (--resume), or "
                "remove that folder"
            )

    def begin(self, identity: Mapping[str, Any], *, resume: bool) -> Checkpoint | None:
        """The checkpoint to continue from; None to begin at the first step.

        Args:
            identity: Data and settings that decide the weights.
            resume: Continue the run that is there.

        Raises:
            InputError: Data or settings are not those of the unfinished run, or no checkpoint of
                it is complete.
        """
        if resume:
            self._check_identity(identity)
            self.store.sweep()
            return self._last_complete()
        if self._main:
            with storage_errors(self.work):
                self.discard()  # what a kill left before the run was known
                self.work.mkdir(exist_ok=True)
                try:
                    self.store.folder.mkdir()
                    write_json(self.work / _SETTINGS, identity)
                except BaseException:
                    self.discard()
                    raise
        return None

    def discard(self) -> None:
        """Removes the unfinished run, if it is of no more use: finished, or without checkpoint.

        What others have put into its folder stays, and so does the folder then.
        """
        if not self._main:
            return
        for folder in (self.store.folder, self.work / TRACKERS):
            shutil.rmtree(folder, ignore_errors=True)
        with suppress(OSError):
            for file in (*self._partial_files(), self.log, self.work / _SETTINGS):
                file.unlink(missing_ok=True)
            self.work.rmdir()  # unless it is locked; its holder removes it then

    def _check_name(self) -> None:
        """Refuses to work where there is something that no run wrote.

        Raises:
            InputError: It is so.
        """
        unknown = self.work.is_symlink()
        if not unknown and not self.is_unfinished:
            ours = {self.work / LOCK_FILE, *self._partial_files()}
            files = (path for path in self.work.rglob("*") if not path.is_dir())
            unknown = any(path not in ours for path in files)
        if unknown:
            raise InputError(
                f"{self.work} is there and is no unfinished run; training needs the name: move it, "
                "or choose another output"
            )

    def _partial_files(self) -> list[Path]:
        """What a kill has left of the file that makes the folder a run."""
        names = re.compile(side_pattern(_SETTINGS))
        if not self.work.is_dir():
            return []
        return [path for path in self.work.iterdir() if names.fullmatch(path.name)]

    def _check_identity(self, identity: Mapping[str, Any]) -> None:
        path = self.work / _SETTINGS
        try:
            known = asdict(read_record(read_regular(path), _Identity, path))
        except (OSError, InputError) as error:
            raise InputError(f"{path} cannot be read ({error}); start a new run") from error
        now = json.loads(json.dumps(identity))
        moved = differences(known.pop("environment", {}), now.pop("environment", {}))
        if moved:
            logger.warning(
                "the run was begun elsewhere (%s): weights may differ in their last bits",
                "; ".join(moved),
            )
        changes = differences(known, now)
        if changes:
            raise InputError(
                f"the run at {self.work} cannot be resumed, since it was begun with other data or "
                f"settings: {'; '.join(changes)}; give those again, or start a new run elsewhere"
            )

    def _last_complete(self) -> Checkpoint | None:
        """The last complete checkpoint; damaged ones after it are logged and removed."""
        steps = self.store.steps()
        faults = []
        for step in reversed(steps):
            try:
                found = self.store.read(step)
            except InputError as error:
                faults.append(str(error))
                continue
            if faults:
                logger.warning("%s; continuing from step %d", faults[0], step)
            if self._main:
                self.store.drop_after(step)
            return found
        if faults:
            raise InputError(
                f"no checkpoint of the run at {self.work} is complete: {faults[0]}; start a new run"
            )
        if self._main:
            done = max((row["step"] for row in surviving_rows(self.log)), default=0)
            reached = f", whose log reaches step {done}" if done else ""
            logger.warning(
                "there is no checkpoint of the run at %s%s: it begins again at step 0",
                self.work,
                reached,
            )
        return None


def differences(known: Any, now: Any, name: str = "") -> list[str]:
    """What differs between two identities of runs, a line for each, by name."""
    if isinstance(known, dict) and isinstance(now, dict):
        changes = []
        for key in sorted({*known, *now}):
            where = f"{name}.{key}" if name else key
            changes += differences(known.get(key), now.get(key), where)
        return changes
    if isinstance(known, list) and isinstance(now, list) and len(known) == len(now):
        pairs = enumerate(zip(known, now, strict=True), 1)
        return [change for n, (a, b) in pairs for change in differences(a, b, f"{name} {n}")]
    if known == now:
        return []
    return [f"{name.removeprefix('settings.')} was {_short(known)}, is {_short(now)}"]


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}..."
