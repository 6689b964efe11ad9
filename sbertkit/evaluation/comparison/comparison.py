"""What a comparison of two systems says."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sbertkit.metrics import PairedTest
from sbertkit.schema import to_dict

MEAN = "mean"
"""The measure of a suite."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two systems side by side.

    Attributes:
        unit: What they are compared on: ``queries``, ``pairs`` of sentences, or the ``sets`` of a
            suite.
        count: Number of these.
        first: Scores of the first system by measure: means over the queries, ``Spearman`` and
            ``Pearson`` of the cosine, from -1 to 1, or the ``mean`` over the sets.
        second: Scores of the second system.
        tests: Difference (first minus second), p-value and interval, by measure.
        systems: Names of the systems.
        sets: Comparisons by the names of sets, where sets are compared.
        left_out: Sets that only one system was evaluated on, or where a score is undefined.
        details: By query the values of the first measure of both systems; by pair, numbered from 1,
            how far the rank by cosine is from the rank by gold score. Not part of `to_dict`.
    """

    unit: str
    count: int
    first: Mapping[str, float]
    second: Mapping[str, float]
    tests: Mapping[str, PairedTest]
    systems: tuple[str, str] = ("first", "second")
    sets: Mapping[str, "Comparison"] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    details: Mapping[str, tuple[float, float]] = field(default_factory=dict, repr=False)

    @property
    def headline(self) -> str:
        """The first measure."""
        return next(iter(self.tests))

    def to_dict(self) -> dict[str, Any]:
        """The comparison without `details`, as strict JSON can hold it."""
        sets = {name: one.to_dict() for name, one in self.sets.items()}
        return {**to_dict(self, without=("details", "sets")), "sets": sets}
