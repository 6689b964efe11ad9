"""Retrieval measures by the names of ir-measures, which computes them with trec_eval's own code."""

from collections.abc import Mapping, Sequence
from typing import Any

from sbertkit.data.retrieval import Qrels, Run
from sbertkit.data.retrieval.runs import ranked
from sbertkit.data.text import printable
from sbertkit.errors import InputError, InputTypeError, MissingDependency

DEFAULT_MEASURES = ("nDCG@10", "AP", "RR@10", "R@100", "P@10", "Success@10")

PerQuery = dict[str, dict[str, float]]
"""Values by measure and query id."""


class Measures:
    """Measures made ready by their names.

    Args:
        names: As ir-measures spells them: ``nDCG@10``, ``AP``, ``AP(rel=2)@100``, ``RR@10``.

    Raises:
        InputError: A name that is none or that no installed package computes, or one twice.
        InputTypeError: Not a list of names.
        MissingDependency: ir-measures is not installed.
    """

    def __init__(self, names: Sequence[str]) -> None:
        if isinstance(names, str) or not all(isinstance(name, str) for name in names):
            raise InputTypeError(f"measures must be a list of names, found {names!r}")
        if not names:
            raise InputError(f"expected measures such as {', '.join(DEFAULT_MEASURES)}, found none")
        library = _library()
        self._by_name = {name: _parse(library, name) for name in names}
        if len({repr(measure) for measure in self._by_name.values()}) < len(names):
            raise InputError(f"measures must be distinct, found {', '.join(names)}")
        self._library = library

    @property
    def names(self) -> tuple[str, ...]:
        """The names as they were given."""
        return tuple(self._by_name)

    @property
    def cutoff(self) -> int:
        """The deepest cut-off: so many documents of a query are looked at; 0 where none has one."""
        cuts = (measure.params.get("cutoff") for measure in self._by_name.values())
        return max((int(cut) for cut in cuts if cut is not None), default=0)

    def per_query(self, qrels: Qrels, run: Run) -> PerQuery:
        """Values by measure for every query of `qrels`; one without hits has the measure's zero.

        Documents are ordered by score, equal scores by document id, both descending, as trec_eval
        does; scores are compared in double precision, as its version 10 does. Grades below 0 count
        as not judged.
        """
        grades = {
            query: {document: grade for document, grade in judged.items() if grade >= 0}
            for query, judged in qrels.items()
        }
        placed = {query: _by_place(run[query]) for query in qrels if run.get(query)}
        values: PerQuery = {name: {} for name in self._by_name}
        names = {measure: name for name, measure in self._by_name.items()}
        for metric in self._library.iter_calc(list(names), grades, placed):
            values[names[metric.measure]][metric.query_id] = float(metric.value)
        return values

    def mean(self, name: str, values: Mapping[str, float]) -> float:
        """What the values of a measure come to over queries: their mean, or sum for counts."""
        aggregate = self._by_name[name].aggregator()
        for value in values.values():
            aggregate.add(value)
        return float(aggregate.result())


def _by_place(found: Mapping[str, float]) -> dict[str, float]:
    """Scores that are all distinct, so that nothing is left to how a program breaks ties."""
    return {document: float(-place) for place, document in enumerate(ranked(found))}


def _library() -> Any:
    try:
        import ir_measures
    except ImportError as error:
        raise MissingDependency(
            "retrieval measures need the package ir-measures: pip install ir-measures"
        ) from error
    return ir_measures


def _parse(library: Any, name: str) -> Any:
    try:
        measure = library.parse_measure(name)
        supported = library.DefaultPipeline.supports(measure)
    except (ValueError, NameError, TypeError, KeyError, AssertionError, SyntaxError) as error:
        raise InputError(_unknown(library, name)) from error
    if not supported:
        raise InputError(_unknown(library, name))
    for parameter, meaning in (("cutoff", "cut-off"), ("rel", "least grade")):
        value = measure.params.get(parameter)
        if value is not None and value < 1:  # where trec_eval's code would end the process
            raise InputError(
                f"measure {printable(name)!r}: expected a {meaning} of 1 or more, found {value}"
            )
    return measure


def _unknown(library: Any, name: str) -> str:
    known = sorted(
        {
            measure.NAME
            for provider in library.DefaultPipeline.providers
            if provider.is_available()
            for measure in provider.SUPPORTED_MEASURES
        }
    )
    return (
        f"unknown measure {printable(name)!r}; known are {', '.join(known)}, with a cut-off as in "
        "nDCG@10, and a least grade as in P(rel=2)@10"
    )
