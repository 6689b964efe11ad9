"""The scores of a system on queries, pairs or sets, and how those of two systems are compared."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sbertkit.data.text import printable
from sbertkit.errors import InputError
from sbertkit.evaluation.comparison.comparison import MEAN, Comparison
from sbertkit.formatting import listed
from sbertkit.metrics import (
    CorrelationDifference,
    Difference,
    MeanDifference,
    mean_test,
    paired_test,
    pearson,
    spearman,
)
from sbertkit.metrics.correlation import order_codes, ranks_of_codes
from sbertkit.progress import Advance

_CORRELATIONS = {"Spearman": spearman, "Pearson": pearson}
_MAX_LISTED = 5


@dataclass(frozen=True, slots=True)
class Matched:
    """The scores of two systems over the same rows; names as in `Comparison`."""

    unit: str
    count: int
    first: Mapping[str, float]
    second: Mapping[str, float]
    differences: Mapping[str, Difference]
    details: Mapping[str, tuple[float, float]]

    @property
    def headline(self) -> Difference:
        """The difference of the first measure."""
        return next(iter(self.differences.values()))

    def compared(self, advance: Advance) -> Comparison:
        """The comparison, without names of the systems; each test advances by 1."""
        tests = {}
        for name, one in self.differences.items():
            tests[name] = paired_test(one)
            advance(1)
        return Comparison(
            self.unit, self.count, self.first, self.second, tests, details=self.details
        )


@dataclass(frozen=True, slots=True)
class QueryScores:
    """A retrieval result.

    Attributes:
        means: By measure.
        per_query: Values by measure and query.
        unanswered: Queries without hits.
        sha256: A hash over the judgements.
    """

    means: Mapping[str, float]
    per_query: Mapping[str, Mapping[str, float]]
    unanswered: frozenset[str]
    sha256: str

    @property
    def defined(self) -> bool:
        """Whether there are means, as there always are."""
        return True

    def match(self, other: "QueryScores", *, missing_as_zero: bool) -> Matched:
        """Both systems' values of the measures in common, query by query.

        Raises:
            InputError: Different queries or judgements, or no measure in common.
        """
        queries = list(next(iter(self.per_query.values())))
        others = set(next(iter(other.per_query.values())))
        _check_same(set(queries), others, "were evaluated on")
        if self.sha256 != other.sha256:
            raise InputError(
                "the systems were evaluated on different judgements of the same queries; evaluate "
                "both on the same qrels"
            )
        if not missing_as_zero:
            _check_same(
                set(queries) - self.unanswered,
                others - other.unanswered,
                "answered",
                "; pass missing_as_zero (--missing-as-zero) to count them as 0",
            )
        names = [name for name in self.per_query if name in other.per_query]
        if not names:
            raise InputError(
                f"the results have no measure in common: {', '.join(self.per_query)} and "
                f"{', '.join(other.per_query)}"
            )
        values = {
            name: [(self.per_query[name][query], other.per_query[name][query]) for query in queries]
            for name in names
        }
        return Matched(
            "queries",
            len(queries),
            {name: self.means[name] for name in names},
            {name: other.means[name] for name in names},
            {name: MeanDifference(*zip(*pairs, strict=True)) for name, pairs in values.items()},
            dict(zip(queries, values[names[0]], strict=True)),
        )


@dataclass(frozen=True, slots=True)
class PairScores:
    """An STS result: gold scores and cosines of the pairs, (n,), and a hash over the pairs."""

    gold: npt.NDArray[np.float64]
    cosines: npt.NDArray[np.float64]
    sha256: str

    @property
    def defined(self) -> bool:
        """Whether the cosines have a correlation with the gold scores."""
        return spearman(self.gold, self.cosines).value is not None

    def correlations(self) -> dict[str, float]:
        """Correlations with the gold scores by name; 0 where undefined."""
        found = {name: of(self.gold, self.cosines) for name, of in _CORRELATIONS.items()}
        return {name: one.value or 0.0 for name, one in found.items()}

    def match(self, other: "PairScores") -> Matched:
        """Both systems' cosines, pair by pair.

        Raises:
            InputError: Different pairs, or an undefined correlation.
        """
        counts = len(self.gold), len(other.gold)
        if self.sha256 != other.sha256 or counts[0] != counts[1]:
            found = f"{counts[0]:,} and {counts[1]:,}"
            if counts[0] == counts[1]:
                found = f"{counts[0]:,} each, but not the same, or in another order"
            raise InputError(
                f"the systems were evaluated on different sentence pairs ({found}); evaluate "
                "both on the same file and split"
            )
        for one, which in ((self, "first"), (other, "second")):
            if not one.defined:
                raise InputError(
                    f"the {which} system has no correlation with the gold scores "
                    f"({spearman(one.gold, one.cosines).reason}); there is nothing to compare"
                )
        columns = (self.gold, self.cosines, other.cosines)
        differences = {
            name: CorrelationDifference(*columns, ranks=correlate is spearman)
            for name, correlate in _CORRELATIONS.items()
        }
        gold, *ranks = (ranks_of_codes(order_codes(column)) for column in columns)
        errors = zip(*(np.abs(one - gold).tolist() for one in ranks), strict=True)
        details = {str(number): pair for number, pair in enumerate(errors, 1)}
        return Matched(
            "pairs",
            counts[0],
            self.correlations(),
            other.correlations(),
            differences,
            details,
        )


Scores = QueryScores | PairScores


@dataclass(frozen=True, slots=True)
class SetScores:
    """The result of a suite: the scores by the names of sets."""

    sets: Mapping[str, Scores]


def matched(one: Scores, other: Scores, *, missing_as_zero: bool) -> Matched:
    """The scores of two systems over the same rows.

    Raises:
        InputError: Scores of two kinds, or over different rows.
    """
    if isinstance(one, QueryScores) and isinstance(other, QueryScores):
        return one.match(other, missing_as_zero=missing_as_zero)
    if isinstance(one, PairScores) and isinstance(other, PairScores):
        return one.match(other)
    raise InputError("one result is of queries, the other of sentence pairs; compare two of a kind")


def match_sets(first: SetScores, second: SetScores, *, missing_as_zero: bool) -> dict[str, Matched]:
    """The scores of two systems on the sets in common, by the names of sets.

    Raises:
        InputError: No set in common with defined scores, or different queries or pairs in one.
    """
    names = [name for name in first.sets if name in second.sets]
    names = [name for name in names if first.sets[name].defined and second.sets[name].defined]
    if not names:
        raise InputError(
            "the results have no set with defined scores in common: "
            f"{listed(list(first.sets), _MAX_LISTED) or 'none'} and "
            f"{listed(list(second.sets), _MAX_LISTED) or 'none'}"
        )
    found = {}
    for name in names:
        try:
            found[name] = matched(
                first.sets[name], second.sets[name], missing_as_zero=missing_as_zero
            )
        except InputError as error:
            raise InputError(f"{printable(name, 40)}: {error}") from error
    return found


def compare_sets(found: Mapping[str, Matched], advance: Advance) -> Comparison:
    """The comparison set by set and in the mean of the first measures; see `Matched.compared`.

    Args:
        found: Of `match_sets`.
        advance: Takes the number of tests done.
    """
    sets = {name: one.compared(advance) for name, one in found.items()}
    mean = mean_test([one.headline for one in found.values()])
    advance(1)
    return Comparison(
        "sets",
        len(sets),
        _mean([one.first for one in sets.values()]),
        _mean([one.second for one in sets.values()]),
        {MEAN: mean},
        sets=sets,
    )


def _mean(scores: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean of the first measures."""
    return {MEAN: float(np.mean([next(iter(one.values())) for one in scores]))}


def _check_same(first: set[str], second: set[str], verb: str, hint: str = "") -> None:
    for only, which in ((first - second, "first"), (second - first, "second")):
        if only:
            raise InputError(
                f"the systems {verb} different queries: {len(only):,} are only in the {which}, "
                f"such as {printable(min(only), 40)!r}; compare them on the same queries{hint}"
            )
