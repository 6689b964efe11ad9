"""The scores of a system that are compared: from a result, or from a JSON file with one."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sbertkit.arguments import path_text
from sbertkit.data.streams import open_bytes, source_name
from sbertkit.data.text import printable
from sbertkit.errors import InputError, InputTypeError
from sbertkit.evaluation.comparison.scores import PairScores, QueryScores, SetScores
from sbertkit.evaluation.measures import is_count
from sbertkit.evaluation.retrieval import RetrievalResult
from sbertkit.evaluation.sts import PairValues, StsResult
from sbertkit.evaluation.suites import SuiteResult
from sbertkit.schema import Digest, as_record, parse_json

_MAX_RESULT_BYTES = 2**28
"""A result has about 40 MB per measure for a million queries."""

Result = RetrievalResult | StsResult | SuiteResult | str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class System:
    """A system with its name, what its result was read from, and its scores."""

    name: str
    source: str
    scores: QueryScores | PairScores | SetScores


def read_system(result: Result, position: str) -> System:
    """The system that a result is about.

    Args:
        result: A result, or a JSON file with one.
        position: ``first`` or ``second``, the name of a system that has none.

    Raises:
        InputError: A file without such a result.
        MissingFile: A file does not exist.
    """
    if isinstance(result, str | os.PathLike):
        return _from_file(path_text(result))
    source = f"the {position} result"
    if isinstance(result, RetrievalResult):
        return System(position, source, _of_retrieval(result))
    if isinstance(result, StsResult):
        return System(position, source, _of_pairs(result.per_pair()))
    if isinstance(result, SuiteResult):
        return System(result.model, source, _suite(result.to_dict(), source))
    raise InputTypeError(
        "expected a result of evaluate_sts, evaluate_retrieval or run_suite, or a JSON file with "
        f"one, found {type(result).__name__}"
    )


def _from_file(path: str) -> System:
    name = source_name(path)
    with open_bytes(path) as stream:
        content = stream.read(_MAX_RESULT_BYTES + 1)
    if len(content) > _MAX_RESULT_BYTES:
        raise InputError(f"{name}: expected a result of at most {_MAX_RESULT_BYTES:,} bytes")
    try:
        parsed = as_record(parse_json(content, name), dict[str, Any], name)
        scores = _read(parsed, _READERS, name)
    except InputError as error:
        raise InputError(
            f"{name}: expected a result of eval sts, eval retrieval or eval run as --json writes "
            f"it, found something else ({error}); for run files pass qrels (--qrels)"
        ) from error
    named = (parsed.get(key) for key in ("model", "index", "run"))
    return System(next((one for one in named if isinstance(one, str)), name), name, scores)


@dataclass(frozen=True, slots=True)
class _Retrieval:
    """The fields of a retrieval result that are read."""

    measures: dict[str, float]
    per_query: dict[str, dict[str, float]]
    without_hits: list[str]
    sha256: Digest


@dataclass(frozen=True, slots=True)
class _Sts:
    """The field of an STS result that is read."""

    per_pair: PairValues


@dataclass(frozen=True, slots=True)
class _Set:
    """The field of a suite's set that is read."""

    details: dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Suite:
    """The field of a suite's result that is read."""

    scores: dict[str, _Set]


def _of_retrieval(result: RetrievalResult | _Retrieval) -> QueryScores:
    if not result.measures.keys() <= result.per_query.keys():
        raise InputError("a measure without values per query")
    means = {name: mean for name, mean in result.measures.items() if not is_count(name)}
    per_query = {measure: result.per_query[measure] for measure in means}
    queries = {frozenset(values) for values in per_query.values()}
    if len(queries) != 1 or not next(iter(queries)):
        raise InputError("measures over different queries, or none")
    return QueryScores(means, per_query, frozenset(result.without_hits), result.sha256)


def _of_pairs(values: PairValues) -> PairScores:
    gold, cosines = (np.array(column) for column in (values.gold, values.cosines))
    if len(gold) != len(cosines) or not len(gold):
        raise InputError(f"{len(gold):,} gold scores and {len(cosines):,} cosines")
    return PairScores(gold, cosines, values.sha256)


def _retrieval(content: Mapping[str, Any], where: str) -> QueryScores:
    return _of_retrieval(as_record(content, _Retrieval, where))


def _pairs(content: Mapping[str, Any], where: str) -> PairScores:
    return _of_pairs(as_record(content, _Sts, where).per_pair)


def _suite(content: Mapping[str, Any], where: str) -> SetScores:
    sets = as_record(content, _Suite, where).scores
    return SetScores(
        {
            name: _read(one.details, _OF_SETS, f"{where}: {printable(name, 40)}")
            for name, one in sets.items()
        }
    )


_OF_SETS: dict[str, Callable[..., Any]] = {"per_query": _retrieval, "per_pair": _pairs}
_READERS: dict[str, Callable[..., Any]] = {"scores": _suite, **_OF_SETS}
"""What reads a result, by the field that tells its kind."""


def _read(content: Mapping[str, Any], readers: Mapping[str, Callable[..., Any]], where: str) -> Any:
    for key, reader in readers.items():
        if key in content:
            return reader(content, where)
    raise InputError(f"none of the fields {', '.join(readers)}")
