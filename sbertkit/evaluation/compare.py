"""Two systems on the same judged queries: which is better, and is the difference significant."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sbertkit.arguments import path_text
from sbertkit.data.retrieval import Qrels, Run, read_qrels
from sbertkit.data.streams import open_bytes, source_name
from sbertkit.data.text import printable
from sbertkit.errors import InputError
from sbertkit.evaluation.measures import DEFAULT_MEASURES, PerQuery
from sbertkit.evaluation.retrieval import RetrievalResult, evaluate_run
from sbertkit.metrics.permutation import PairedTest, paired_permutation
from sbertkit.schema import read_record, to_dict

_MAX_RESULT_BYTES = 2**28
"""A result has about 40 MB per measure for a million queries."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two systems side by side.

    Attributes:
        queries: Number of queries.
        first: Means of the first system, by measure.
        second: Means of the second system.
        tests: Difference (first minus second), p-value and interval, by measure.
    """

    queries: int
    first: Mapping[str, float]
    second: Mapping[str, float]
    tests: Mapping[str, PairedTest]

    def to_dict(self) -> dict[str, Any]:
        """The comparison as strict JSON can hold it."""
        return to_dict(self)


def compare_runs(
    first: str | os.PathLike[str] | Run,
    second: str | os.PathLike[str] | Run,
    qrels: str | os.PathLike[str] | Qrels,
    *,
    measures: Sequence[str] = DEFAULT_MEASURES,
    exclude_self: bool = False,
    missing_as_zero: bool = False,
) -> Comparison:
    """Compares two runs over the same judged queries.

    Args:
        first: A run, as for `evaluate_run`.
        second: Another run.
        qrels: Their qrels, as for `evaluate_run`.
        measures: Measures by ir-measures' names.
        exclude_self: Exclude documents with the query's own id.
        missing_as_zero: Count a query that only one run answers as 0 for the other.

    Raises:
        InputError: As `evaluate_run`; or the runs answer different queries.
    """
    grades = (
        read_qrels(qrels) if isinstance(qrels, str | os.PathLike) else qrels
    )  # read once: it may be a pipe
    results = [
        evaluate_run(run, grades, measures=measures, exclude_self=exclude_self)
        for run in (first, second)
    ]
    return compare_results(*results, missing_as_zero=missing_as_zero)


def compare_results(
    first: RetrievalResult | str | os.PathLike[str],
    second: RetrievalResult | str | os.PathLike[str],
    *,
    missing_as_zero: bool = False,
) -> Comparison:
    """Compares two results over the same judged queries, by the measures that both have.

    Args:
        first: A result, or a JSON file with one.
        second: Another result.
        missing_as_zero: See `compare_runs`.

    Raises:
        InputError: A file without such a result, different queries, or no measure in common.
        MissingFile: A file does not exist.
    """
    one, other = _scores(first), _scores(second)
    _check_same(set(one.queries), set(other.queries), "were evaluated on")
    if not missing_as_zero:
        _check_same(
            set(one.queries) - one.unanswered,
            set(other.queries) - other.unanswered,
            "answered",
            "; pass missing_as_zero (--missing-as-zero) to count them as 0",
        )
    names = [name for name in one.per_query if name in other.per_query]
    if not names:
        raise InputError(
            f"the results have no measure in common: {', '.join(one.per_query)} and "
            f"{', '.join(other.per_query)}"
        )
    tests = {
        name: paired_permutation(
            *([system.per_query[name][query] for query in one.queries] for system in (one, other))
        )
        for name in names
    }
    return Comparison(
        queries=len(one.queries),
        first={name: one.means[name] for name in names},
        second={name: other.means[name] for name in names},
        tests=tests,
    )


@dataclass(frozen=True, slots=True)
class _Scores:
    """The parts of a result that are compared."""

    means: Mapping[str, float]
    per_query: PerQuery | Mapping[str, Mapping[str, float]]
    unanswered: frozenset[str]

    @property
    def queries(self) -> list[str]:
        return list(next(iter(self.per_query.values())))


def _scores(result: RetrievalResult | str | os.PathLike[str]) -> _Scores:
    if isinstance(result, RetrievalResult):
        return _Scores(result.measures, result.per_query, frozenset(result.without_hits))
    name = source_name(path_text(result))
    with open_bytes(result) as stream:
        content = stream.read(_MAX_RESULT_BYTES + 1)
    if len(content) > _MAX_RESULT_BYTES:
        raise InputError(f"{name}: expected a result of at most {_MAX_RESULT_BYTES:,} bytes")
    try:
        return _from_json(content, name)
    except InputError as error:
        raise InputError(
            f"{name}: expected a retrieval result as --json writes it, found something else "
            f"({error}); for run files pass their qrels (--qrels)"
        ) from error


@dataclass(frozen=True, slots=True)
class _ResultFile:
    """The fields of a result file that are read."""

    measures: dict[str, float]
    per_query: dict[str, dict[str, float]]
    without_hits: list[str]


def _from_json(content: bytes, name: str) -> _Scores:
    result = read_record(content, _ResultFile, name)
    if not result.measures.keys() <= result.per_query.keys():
        raise InputError("a measure without values per query")
    per_query = {measure: result.per_query[measure] for measure in result.measures}
    queries = {frozenset(values) for values in per_query.values()}
    if len(queries) != 1 or not next(iter(queries)):
        raise InputError("measures over different queries, or none")
    return _Scores(result.measures, per_query, frozenset(result.without_hits))


def _check_same(first: set[str], second: set[str], verb: str, hint: str = "") -> None:
    for only, which in ((first - second, "first"), (second - first, "second")):
        if only:
            raise InputError(
                f"the systems {verb} different queries: {len(only):,} are only in the {which}, "
                f"such as {printable(min(only), 40)!r}; compare them on the same queries{hint}"
            )
