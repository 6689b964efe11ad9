"""Compares two systems: which is better, and is the difference significant."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace

from sbertkit.data.retrieval import Qrels, Run, read_qrels
from sbertkit.errors import InputError
from sbertkit.evaluation.comparison.comparison import Comparison
from sbertkit.evaluation.comparison.scores import (
    PairScores,
    QueryScores,
    SetScores,
    compare_sets,
    match_sets,
    matched,
)
from sbertkit.evaluation.comparison.systems import Result, read_system
from sbertkit.evaluation.measures import DEFAULT_MEASURES
from sbertkit.evaluation.retrieval import evaluate_run
from sbertkit.progress import track

_LABEL = "testing"


def compare_runs(
    first: str | os.PathLike[str] | Run,
    second: str | os.PathLike[str] | Run,
    qrels: str | os.PathLike[str] | Qrels,
    *,
    measures: Sequence[str] = DEFAULT_MEASURES,
    exclude_self: bool = False,
    missing_as_zero: bool = False,
    progress: bool = False,
) -> Comparison:
    """Compares two runs over the same judged queries.

    Args:
        first: A run, as for `evaluate_run`.
        second: Another run.
        qrels: Their qrels, as for `evaluate_run`.
        measures: Measures by ir-measures' names.
        exclude_self: Exclude documents with the query's own id.
        missing_as_zero: Count a query that only one run answers as 0 for the other.
        progress: Show progress on standard error.

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
    found = compare_results(*results, missing_as_zero=missing_as_zero, progress=progress)
    one, other = (
        os.fspath(run) if isinstance(run, str | os.PathLike) else name
        for run, name in zip((first, second), found.systems, strict=True)
    )
    return replace(found, systems=(one, other))


def compare_results(
    first: Result, second: Result, *, missing_as_zero: bool = False, progress: bool = False
) -> Comparison:
    """Compares two results on the same data by the measures, or the sets, that both have.

    The p-value is that of the two-sided paired permutation test, the interval the paired
    bootstrap's: queries or pairs are exchanged and drawn, those of a suite within their set.

    Args:
        first: A result of `evaluate_retrieval`, `evaluate_sts` or `run_suite`, or a JSON file with
            one.
        second: Another result of the same kind.
        missing_as_zero: Count a query that only one system answers as 0 for the other.
        progress: Show progress on standard error.

    Raises:
        InputError: A file without such a result, results of different kinds, different queries or
            pairs, an undefined correlation, no measure or set in common, or `missing_as_zero` for
            sentence pairs.
        MissingFile: A file does not exist.
    """
    one, other = read_system(first, "first"), read_system(second, "second")
    kinds = [type(system.scores) for system in (one, other)]
    if kinds[0] is not kinds[1]:
        raise InputError(
            f"{one.source} is {_KINDS[kinds[0]]}, {other.source} is {_KINDS[kinds[1]]}; compare "
            "two of one kind"
        )
    if missing_as_zero and kinds[0] is PairScores:
        raise InputError(
            "missing_as_zero (--missing-as-zero) is for results with queries, found sentence pairs"
        )
    match one.scores, other.scores:
        case SetScores() as mine, SetScores() as theirs:
            sets = match_sets(mine, theirs, missing_as_zero=missing_as_zero)
            total = 1 + sum(len(one.differences) for one in sets.values())
            with track(_LABEL, total, shown=progress) as advance:
                found = compare_sets(sets, advance)
            every = mine.sets.keys() | theirs.sets.keys()
            found = replace(found, left_out=tuple(sorted(every - sets.keys())))
        case (QueryScores() | PairScores()) as mine, (QueryScores() | PairScores()) as theirs:
            rows = matched(mine, theirs, missing_as_zero=missing_as_zero)
            with track(_LABEL, len(rows.differences), shown=progress) as advance:
                found = rows.compared(advance)
    return replace(found, systems=(one.name, other.name))


_KINDS: Mapping[type, str] = {
    QueryScores: "a retrieval result",
    PairScores: "an STS result",
    SetScores: "the result of a suite",
}
