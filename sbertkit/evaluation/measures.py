"""Retrieval measures by the names of ir-measures, which computes them with trec_eval's own code."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sbertkit.arguments import did_you_mean
from sbertkit.data.retrieval import Qrels, Run
from sbertkit.data.retrieval.judgements import MAX_GRADE
from sbertkit.data.retrieval.runs import ranked
from sbertkit.data.text import printable
from sbertkit.errors import InputError, InputTypeError

DEFAULT_MEASURES = ("nDCG@10", "AP", "RR@10", "R@100", "P@10", "Success@10")

_MAX_CUTOFF = 10**6
_BOUNDS = {"cutoff": ("cut-off", _MAX_CUTOFF), "rel": ("minimum grade", MAX_GRADE)}
"""Names of parameters and their maximum; beyond it, and below 1, trec_eval's code may end the
process."""
_TRIAL_QRELS = {query: {"1": 2, "2": 0} for query in "12345"}
_TRIAL_RUN = {
    "1": {"1": -1.0, "2": -2.0},
    "2": {"1": -1.0},
    "3": {"2": -1.0},
    "4": {"3": -1.0, "1": -2.0},
}
_MAX_GDEVAL_GRADE = 4
"""Maximum grade of gdeval.pl, TREC's script for ERR and exponential gains."""

PerQuery = dict[str, dict[str, float]]
"""Values by measure and query id."""


class Measures:
    """Measures by their names.

    Args:
        names: Names of ir-measures: ``nDCG@10``, ``AP``, ``AP(rel=2)@100``, ``RR@10``.

    Raises:
        InputError: An unknown name, one that no installed program can compute, or a duplicate.
        InputTypeError: Not a list of names.
    """

    def __init__(self, names: Sequence[str]) -> None:
        if isinstance(names, str) or not all(isinstance(name, str) for name in names):
            raise InputTypeError(f"measures must be a list of names, found {names!r}")
        if not names:
            raise InputError(f"expected measures such as {', '.join(DEFAULT_MEASURES)}, found none")
        import ir_measures

        self._library: Any = ir_measures
        self._by_name = {name: _parse(ir_measures, name) for name in names}
        if len({repr(measure) for measure in self._by_name.values()}) < len(names):
            raise InputError(f"measures must be distinct, found {', '.join(names)}")
        for name, measure in self._by_name.items():
            self._try(name, measure)

    @property
    def names(self) -> tuple[str, ...]:
        """The names as given."""
        return tuple(self._by_name)

    @property
    def cutoff(self) -> int:
        """The largest cut-off, 0 if no measure has one."""
        cuts = (measure.params.get("cutoff") for measure in self._by_name.values())
        return max((int(cut) for cut in cuts if cut is not None), default=0)

    def check_grades(self, qrels: Qrels) -> None:
        """Checks that the measures can be computed from these grades.

        Raises:
            InputError: A grade is too high for the script that computes ERR, or one below 0, which
                infAP takes for a document of the pool without judgement.
        """
        lowest = min((min(judged.values(), default=0) for judged in qrels.values()), default=0)
        inferred = [name for name, one in self._by_name.items() if one.NAME == "infAP"]
        if inferred and lowest < 0:
            raise InputError(
                f"{inferred[0]}: a grade of {lowest} was found; in trec_eval's infAP it stands for "
                "a document of the pool that was not judged, elsewhere here for none; leave the "
                "measure out"
            )
        largest = max((max(judged.values(), default=0) for judged in qrels.values()), default=0)
        by_name = self._by_name.items()
        names = [name for name, measure in by_name if _is_gdeval(self._library, measure)]
        if names and largest > _MAX_GDEVAL_GRADE:
            raise InputError(
                f"{', '.join(names)}: expected grades up to {_MAX_GDEVAL_GRADE}, the maximum of "
                f"TREC's script for it, found {largest}; leave the measure out"
            )

    def per_query(self, qrels: Qrels, run: Run) -> PerQuery:
        """Values by measure for every query of `qrels`; one without hits has the measure's zero.

        Documents are ordered by score, equal scores by document id, both descending, as in
        trec_eval; scores are compared in double precision, as in its version 10. Grades below 0
        count as not judged.

        Raises:
            InputError: See `check_grades`.
        """
        self.check_grades(qrels)
        # Numbers instead of ids: some measures use files with blanks between columns.
        queries = {query: str(number) for number, query in enumerate(qrels, 1)}
        documents: dict[str, str] = {}
        grades = {
            queries[query]: {
                documents.setdefault(document, str(len(documents))): grade
                for document, grade in judged.items()
                if grade >= 0
            }
            for query, judged in qrels.items()
        }
        placed = {
            queries[query]: {
                documents.setdefault(document, str(len(documents))): float(-rank)
                for rank, document in enumerate(ranked(run[query]))  # distinct, so without ties
            }
            for query in qrels
            if run.get(query)
        }
        found = self._calculate(list(self._by_name.values()), grades, placed)
        return {
            name: {
                query: found[measure][number]
                if number in placed
                else _unanswered(measure, grades[number])
                for query, number in queries.items()
            }
            for name, measure in self._by_name.items()
        }

    def _calculate(self, measures: Sequence[Any], grades: Qrels, run: Run) -> dict[Any, Any]:
        """Values by ir-measures' measure and query."""
        found: dict[Any, dict[str, float]] = {measure: {} for measure in measures}
        for metric in self._library.iter_calc(measures, grades, run):
            found[metric.measure][metric.query_id] = float(metric.value)
        return found

    def _try(self, name: str, measure: Any) -> None:
        """Refuses a measure whose computation fails, before anything is encoded.

        Raises:
            InputError: It fails for some queries made up for the trial.
        """
        try:
            values = self._calculate([measure], _TRIAL_QRELS, _TRIAL_RUN)[measure]
        except Exception as error:  # whatever a script or package that computes it may raise
            reason = printable(" ".join(str(error).split()) or type(error).__name__, 200)
            raise InputError(
                f"measure {printable(name)!r} cannot be computed here ({reason}); leave it out"
            ) from error
        if not all(map(math.isfinite, values.values())):
            raise InputError(f"measure {printable(name)!r} has no finite value; leave it out")

    def mean(self, name: str, values: Mapping[str, float]) -> float:
        """The mean of a measure's values over queries, or their sum for counts."""
        aggregate = self._by_name[name].aggregator()
        for value in values.values():
            aggregate.add(value)
        return float(aggregate.result())


def is_count(name: str) -> bool:
    """Whether the values of a measure are summed over the queries, such as those of ``NumRel``."""
    return name.startswith("Num")


def _unanswered(measure: Any, grades: Mapping[str, int]) -> float:
    """The value of a query without hits."""
    if measure.NAME == "NumQ":
        return 1.0
    if measure.NAME == "NumRel":
        return float(sum(grade > 0 for grade in grades.values()))
    return float(measure.DEFAULT)


def _parse(library: Any, name: str) -> Any:
    try:
        measure = library.parse_measure(name)
        supported = bool(repr(measure)) and library.DefaultPipeline.supports(measure)
    except Exception as error:  # whatever a name may make of the library's parser
        raise InputError(_unknown(library, name)) from error
    if not supported:
        raise InputError(_unknown(library, name))
    for parameter, (meaning, largest) in _BOUNDS.items():
        value = measure.params.get(parameter)
        if value is not None and value < 1:
            raise InputError(
                f"measure {printable(name)!r}: expected a {meaning} of 1 or more, found {value}"
            )
        if value is not None and value > largest:
            raise InputError(
                f"measure {printable(name)!r}: expected a {meaning} of at most {largest:,}"
            )
    return measure


def _is_gdeval(library: Any, measure: Any) -> bool:
    """Whether gdeval.pl, the fallback of ir-measures, computes a measure."""
    usable = (
        provider
        for provider in library.DefaultPipeline.providers
        if provider.is_available() and provider.supports(measure)
    )
    return bool(next(usable).NAME == "gdeval")


def _meant(name: str, known: Iterable[str]) -> str:
    """The known measure of that name in another case or misspelled, with its cut-off."""
    bare, at, cutoff = name.partition("@")
    return did_you_mean(bare, known).replace("'?", f"{at}{printable(cutoff, 20)}'?")


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
        f"unknown measure {printable(name)!r}{_meant(name, known)}; known are {', '.join(known)}, "
        "with a cut-off as in "
        "nDCG@10, and a minimum grade as in P(rel=2)@10"
    )
