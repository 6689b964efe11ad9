"""A teacher's vectors: encoded once before training, and kept beside the checkpoints of the run."""

import hashlib
import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from sbertkit.data.vector_files import open_vector_writer
from sbertkit.errors import InputError
from sbertkit.files import read_regular
from sbertkit.schema import Digest
from sbertkit.sealed import SealedFile, read_sealed, seal
from sbertkit.storage import replace_file, storage_errors
from sbertkit.training.objectives.taught import Taught
from sbertkit.training.projection import fit_projection
from sbertkit.training.recipe import Task
from sbertkit.training.run.distributed import launch
from sbertkit.training.run.folder import RunFolder
from sbertkit.training.run.setup import Setup
from sbertkit.training.teachers import load_teacher

logger = logging.getLogger(__name__)

_FOLDER, _VECTORS, _SEAL = "teacher", "vectors.npy", "vectors.json"
_FORMAT = 1
_FITTED_ON = 2_000
"""Texts that a projection is fitted on."""


@dataclass(frozen=True, slots=True)
class _Sealed:
    """What says that all vectors are there.

    Attributes:
        format: Of this file.
        texts: A hash of the texts.
        teacher: The fingerprint.
        file: The vectors.
    """

    format: int
    texts: Digest
    teacher: Digest
    file: SealedFile


def taught(setup: Setup, folder: RunFolder, *, begins: bool) -> Setup:
    """The run with a teacher's vectors, which are encoded where they are not on the disk yet.

    Args:
        setup: The run; one without a teacher stays as it is.
        folder: Where the vectors are kept.
        begins: Whether the run is at its first step: a projection is then fitted.

    Raises:
        InputError: Vectors that are not finite, or several processes.
        StorageError: The disk is full or the like.
    """
    task = setup.task
    objective, texts = task.objective, list(task.objective.teacher_texts(task.data))
    if not isinstance(objective, Taught) or not texts:
        return setup
    if launch().processes > 1:
        raise InputError(
            "a teacher's vectors are encoded by one process, which others would wait for; start one"
        )
    vectors = _vectors(task, objective, texts, _place(folder))
    if begins:
        fit_projection(task.encoder, texts[:_FITTED_ON], vectors[:_FITTED_ON])
    return replace(setup, examples=objective.taught(setup.examples, vectors))


def has_teacher_vectors(folder: RunFolder) -> bool:
    """Whether a run has some vectors of a teacher, which another one need not encode."""
    return _place(folder).is_dir()


def _place(folder: RunFolder) -> Path:
    return folder.store.folder / _FOLDER


def _vectors(
    task: Task, objective: Taught, texts: Sequence[str], place: Path
) -> npt.NDArray[np.float32]:
    """The vectors, mapped into memory: (texts, dim)."""
    digest = hashlib.sha256()
    for text in texts:
        content = text.encode("utf-8", "surrogatepass")
        digest.update(len(content).to_bytes(8, "little") + content)
    wanted = _Sealed(
        _FORMAT, digest.hexdigest(), objective.required.fingerprint, SealedFile("", 0, "0" * 64)
    )
    path = place / _VECTORS
    if not _is_whole(place, wanted):
        _encode(task, objective, texts, path, job=wanted.texts)
        with storage_errors(path):
            sealed = replace(wanted, file=SealedFile.of(place, path))
            replace_file(place / _SEAL, seal(asdict(sealed)))
    vectors: npt.NDArray[np.float32] = np.load(path, mmap_mode="r", allow_pickle=False)
    return vectors


def _is_whole(place: Path, wanted: _Sealed) -> bool:
    """Whether the vectors of those texts are there as they were written."""
    path = place / _SEAL
    if not path.is_file():
        return False
    try:
        found = read_sealed(read_regular(path), _Sealed, path, version=_FORMAT)
        fault = found.file.fault(place)
    except (OSError, InputError) as error:
        fault = str(error)
    else:
        if (found.texts, found.teacher) != (wanted.texts, wanted.teacher):
            fault = "of other texts or another teacher"
        elif found.file.path != _VECTORS:
            fault = f"names {found.file.path}"
    if fault is not None:
        logger.warning("%s: %s; the texts are encoded again", place / _VECTORS, fault)
        (place / _VECTORS).unlink(missing_ok=True)
        path.unlink()
    return fault is None


def _encode(task: Task, objective: Taught, texts: Sequence[str], path: Path, *, job: str) -> None:
    """Writes the teacher's vectors; what an interrupted run has written is continued."""
    name = str(objective.teacher)
    teacher = load_teacher(name, task.config)
    origin = {"teacher": teacher.fingerprint, "texts": job}
    with open_vector_writer(path, teacher.dim, job=origin, resume=True) as writer:
        done = writer.log.rows
        run = teacher.start_run()
        run.stats.rows = done
        rows = writer.log.texts(("", text) for text in texts)
        for vectors in run.vectors(rows, total=len(texts), progress=task.config.progress):
            ids, drawn = zip(*writer.log.drawn(len(vectors)), strict=True)
            writer.write(ids, drawn, vectors)
