"""`distill`: from a teacher's vectors or scores to a smaller, or multilingual, sentence encoder."""

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from sbertkit.arguments import Paths, path_text
from sbertkit.data import ReadOptions
from sbertkit.data.named import local_path
from sbertkit.data.text_pairs import PairFile, read_parallel, read_text_pairs
from sbertkit.errors import InputError
from sbertkit.training.config import TrainConfig
from sbertkit.training.data_forms import (
    PARALLEL,
    TEXT_PAIRS,
    TEXTS,
    DataForm,
    DataSource,
    TrainingData,
)
from sbertkit.training.dev_set import DevSet
from sbertkit.training.objectives import Objective, find_objective, objectives_of
from sbertkit.training.objectives.taught import Taught
from sbertkit.training.recipe import Recipe
from sbertkit.training.start import train
from sbertkit.training.texts import given_paths, read_texts

if TYPE_CHECKING:
    from sbertkit.training.results import TrainResult

_DEFAULT = TrainConfig()
_READ = ReadOptions()


def distill(
    teacher: str | os.PathLike[str],
    data: Paths | None,
    output: str | os.PathLike[str],
    *,
    student: str | os.PathLike[str] | None = None,
    layers: int | Sequence[int] | None = None,
    parallel: Paths | None = None,
    pooling: str | None = None,
    objective: str | Objective | None = None,
    dev: str | os.PathLike[str] | DevSet | None = None,
    read: ReadOptions = _READ,
    config: TrainConfig = _DEFAULT,
) -> "TrainResult":
    """Trains a student to give the vectors, or the cosines, of a teacher.

    The teacher's vectors are encoded once and kept beside the checkpoints. The folder, checkpoints,
    resuming and the choice of the best checkpoint are as for `train_nli`.

    Args:
        teacher: A model folder or a hub name.
        data: Corpora for `read_corpus`, one or several; for ``teacher-scores``, tables for
            `read_text_pairs` or names of data sets. None with `parallel`.
        output: A new folder for the trained student.
        student: A model folder or a hub name; by default the teacher, of which `layers` are taken.
        layers: So many layers of the student, evenly spaced from the lowest to the highest; or
            their numbers from 0, ascending.
        parallel: Sentences that the teacher understands with translations, for `read_parallel`, in
            place of data: the student's vectors of both become the teacher's of the sentence.
        pooling: See `Encoder.load`; None for what the student declares.
        objective: ``teacher-vectors``, the default, or ``teacher-scores``; or one of
            `sbertkit.training.objectives` with options of its own, such as
            ``TeacherVectors(distance="cosine")``.
        dev: Scored sentence pairs, of which the split ``dev`` is used: a file or folder for
            `read_sts`, the name of a data set, or what `DevSet.read` gave.
        read: How corpora are read.
        config: All further settings.

    Raises:
        InputError: Data, teacher, student, output or settings are refused; nothing is written then.
        TrainingStopped: The guard ended the run; the last good checkpoint is kept.
        StorageError: Another run writes to the output, the disk is full or the like; the last
            checkpoint is complete.
        KeyboardInterrupt: Ctrl-C, after a checkpoint was saved.
    """
    recipe = distill_recipe(
        teacher,
        data,
        student=student,
        layers=layers,
        parallel=parallel,
        pooling=pooling,
        objective=objective,
        dev=dev,
        read=read,
        config=config,
    )
    return train(recipe, output)


def distill_recipe(
    teacher: str | os.PathLike[str],
    data: Paths | None,
    *,
    student: str | os.PathLike[str] | None,
    layers: int | Sequence[int] | None,
    parallel: Paths | None,
    pooling: str | None,
    objective: str | Objective | None,
    dev: str | os.PathLike[str] | DevSet | None,
    read: ReadOptions,
    config: TrainConfig,
) -> Recipe:
    """The recipe of `distill`, with its arguments and errors."""
    if student is None and layers is None:
        raise InputError(
            "the student would be the teacher itself; take some of its layers (layers, --layers), "
            "or another encoder (student, --student)"
        )
    form = _form(objective, parallel)
    chosen = find_objective(objective, form)
    if not isinstance(chosen, Taught):
        raise InputError(f"the objective {chosen.name} has no teacher; train with another command")
    chosen = replace(chosen, teacher=path_text(teacher))
    base = teacher if student is None else student
    reader = partial(_read, form, _given(data, parallel), read)
    return Recipe(base, form, reader, pooling, chosen, dev, config, layers)


def _form(objective: str | Objective | None, parallel: Paths | None) -> DataForm:
    """What the rows are."""
    if parallel is not None:
        return PARALLEL
    name = objective.name if isinstance(objective, Objective) else objective
    return TEXT_PAIRS if name in objectives_of(TEXT_PAIRS) else TEXTS


def _given(data: Paths | None, parallel: Paths | None) -> list[str]:
    """The paths to read.

    Raises:
        InputError: There are none, or data of both kinds.
    """
    paths = [given_paths(one) for one in (data, parallel)]
    if all(paths):
        raise InputError(
            "data and parallel (--parallel) do not go together: texts have no translation; leave "
            "one of them out"
        )
    given = [path for side in paths for path in side]
    if not given:
        raise InputError("expected texts to distill on, or parallel (--parallel), found none")
    return given


def _read(
    form: DataForm, paths: Sequence[str], read: ReadOptions, config: TrainConfig
) -> TrainingData:
    """The rows of all paths.

    Raises:
        InputError: See `read_corpus`, `read_text_pairs` and `read_parallel`.
    """
    if form is not TEXT_PAIRS and config.split is not None:
        raise InputError(f"split (--split) is not for {form.name}; leave it out")
    if form is TEXTS:
        return read_texts(TEXTS, paths, read)
    if form is PARALLEL:
        found = read_parallel(paths)
    else:
        places = [local_path(path) for path in paths]
        found = read_text_pairs(places, split=config.split)
    labels = (0,) if form.labels else ()
    rows = [(*pair, *labels) for file in found for pair in file.pairs]
    if not rows:
        raise InputError(f"{paths[0]}: expected pairs of texts, found blank ones alone")
    return TrainingData(form, rows, tuple(map(_source, found)))


def _source(file: PairFile) -> DataSource:
    return DataSource(file.source, file.sha256, len(file.pairs), file.skipped)
