"""Evaluates an encoder on a suite, set by set; stored results are reused."""

import hashlib
import json
import logging
import math
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sbertkit.arguments import output_folder
from sbertkit.data.named import NamedSet, named_data
from sbertkit.encoder import Encoder
from sbertkit.errors import InputError
from sbertkit.evaluation.retrieval import evaluate_retrieval
from sbertkit.evaluation.sts import PairValues, evaluate_sts
from sbertkit.evaluation.suites.definition import Suite
from sbertkit.evaluation.text_counts import TextCounts
from sbertkit.evaluation.vector_cache import CachedEncoder
from sbertkit.files import read_regular
from sbertkit.metrics import Interval, StoredInterval
from sbertkit.progress import say
from sbertkit.schema import as_record, parse_json, to_dict
from sbertkit.storage import replace_file, sha256_file, storage_errors

logger = logging.getLogger(__name__)

_SPLIT = "test"


@dataclass(frozen=True, slots=True)
class SetScore:
    """An encoder's score on one set.

    Attributes:
        task: Task of the set.
        measure: Name of the headline measure.
        score: Its value, from -1 to 1; None where it is undefined.
        interval: Its 95 % bootstrap interval.
        details: The whole result, as JSON.
    """

    task: str
    measure: str
    score: float | None
    interval: Interval | None
    details: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SuiteResult:
    """An encoder's scores on a suite.

    Attributes:
        suite: The suite.
        model: Name of the encoder.
        fingerprint: Fingerprint of the encoder.
        scores: Scores by the names of sets, in the suite's order.
        missing: Why sets were left out, by their names.
        mean: Mean of the defined scores; None if there are none.
    """

    suite: Suite
    model: str
    fingerprint: str
    scores: Mapping[str, SetScore]
    missing: Mapping[str, str]
    mean: float | None

    def to_dict(self) -> dict[str, Any]:
        """The result as strict JSON can hold it."""
        return {"suite": self.suite.name, **to_dict(self, without=("suite",))}

    def published_mean(self, scores: Mapping[str, float]) -> float | None:
        """The mean of a published row over the sets evaluated here; None if it lacks one."""
        wanted = [name for name, one in self.scores.items() if one.score is not None]
        if not wanted or any(name not in scores for name in wanted):
            return None
        return math.fsum(scores[name] for name in wanted) / len(wanted)


def run_suite(
    encoder: Encoder,
    suite: Suite,
    folder: str | os.PathLike[str],
    *,
    cache: Path | None = None,
    progress: bool = False,
) -> SuiteResult:
    """The scores of an encoder on the sets of a suite.

    Missing sets are downloaded; one that is not available is left out with a warning. Each set's
    result is written to the folder at once: a later call, also for another suite, reuses those with
    the same encoder, precision, backend as asked for, device, data and measures.

    Args:
        encoder: The encoder to evaluate.
        suite: A suite of `read_suite`.
        folder: Folder for results.
        cache: Folder for vectors, so that an interrupted set continues; None for no cache.
        progress: Show progress on standard error.

    Raises:
        InputError: No set is available, or a set's files are bad.
        StorageError: The folder cannot be written.
    """
    results = output_folder(folder)
    system: Any = encoder if cache is None else CachedEncoder(encoder, cache)
    scores: dict[str, SetScore] = {}
    missing: dict[str, str] = {}
    say(f"results are saved in {results}; to resume, run the same command again", shown=progress)
    for number, one in enumerate(suite.sets, 1):
        try:
            path = named_data(one)
        except InputError as error:
            missing[one.name] = str(error)
            logger.warning("left out: %s", error)
            continue
        identity = {
            "set": one.name,
            "split": _SPLIT,
            "fingerprint": encoder.fingerprint,
            "precision": encoder.precision,
            "backend": encoder.options.backend,
            "device": encoder.device,
            "data": _digest(path),
            "measures": list(suite.measures) if one.task == "retrieval" else None,
        }
        file = results / f"{one.name}.json"
        score = _stored(file, identity, suite, one)
        state = "evaluating" if score is None else "already evaluated"
        say(f"{one.name} ({number} of {len(suite.sets)}): {state}", shown=progress)
        if score is None:
            details = _EVALUATORS[one.task](system, path, suite, progress)
            score = _score(suite, one, details, file)
            content = json.dumps({**identity, "result": details}, allow_nan=False, indent=2) + "\n"
            with storage_errors(file):
                file.parent.mkdir(parents=True, exist_ok=True)
                replace_file(file, content.encode())
        scores[one.name] = score
    if not scores:
        raise InputError(f"no data set of the suite {suite.name} is available")
    defined = [one.score for one in scores.values() if one.score is not None]
    mean = math.fsum(defined) / len(defined) if defined else None
    return SuiteResult(suite, encoder.options.model, encoder.fingerprint, scores, missing, mean)


def _sts(system: Any, path: Path, _suite: Suite, _progress: bool) -> dict[str, Any]:
    return evaluate_sts(system, path, split=_SPLIT).to_dict()


def _retrieval(system: Any, path: Path, suite: Suite, progress: bool) -> dict[str, Any]:
    return evaluate_retrieval(
        system, path, split=_SPLIT, measures=suite.measures, progress=progress
    ).to_dict()


_EVALUATORS: dict[str, Callable[[Any, Path, Suite, bool], dict[str, Any]]] = {
    "sts": _sts,
    "retrieval": _retrieval,
}


@dataclass(frozen=True, slots=True)
class _Sts:
    """The fields that are read of a result on sentence pairs."""

    spearman: float | None
    interval: StoredInterval | None
    per_pair: PairValues
    encoded: TextCounts


@dataclass(frozen=True, slots=True)
class _Retrieval:
    """The fields that are read of a result on a collection."""

    measures: dict[str, float]
    intervals: dict[str, StoredInterval | None]
    encoded: TextCounts


def _score(suite: Suite, one: NamedSet, details: Any, file: Path) -> SetScore:
    """The headline score of a new or stored result.

    Raises:
        InputError: A stored result is damaged.
    """
    if one.task == "sts":
        sts = as_record(details, _Sts, file)
        score, interval = sts.spearman, sts.interval
    else:
        first, found = suite.measures[0], as_record(details, _Retrieval, file)
        if not {first} <= found.measures.keys() & found.intervals.keys():
            raise InputError(f"{file}: no {first}")
        score, interval = found.measures[first], found.intervals[first]
    between = None if interval is None else interval.interval()
    return SetScore(one.task, suite.headline(one.task), score, between, details)


def _stored(
    file: Path, identity: Mapping[str, Any], suite: Suite, one: NamedSet
) -> SetScore | None:
    """The stored score of the same evaluation; None for another or a damaged one."""
    try:
        content = as_record(parse_json(read_regular(file), file), dict[str, Any], file)
        if any(content.get(name) != value for name, value in identity.items()):
            return None
        return _score(suite, one, content.get("result"), file)
    except FileNotFoundError:
        return None
    except (OSError, InputError) as error:
        logger.warning("a damaged result is evaluated again: %s", error)
        return None


def _digest(path: Path) -> str:
    """A hash over the files of a set."""
    digest = hashlib.sha256()
    for file in _files(path):
        name = file.relative_to(path).as_posix() if path.is_dir() else file.name
        digest.update(f"{name}\0{sha256_file(file)}\n".encode())
    return digest.hexdigest()


def _files(path: Path) -> Iterable[Path]:
    if path.is_dir():
        return sorted(file for file in path.rglob("*") if file.is_file())
    return [path]
