"""Measures against trec_eval's own golden outputs and against values worked out by hand."""

import math
from pathlib import Path
from typing import Any

import pytest

from sbertkit.data.retrieval import read_qrels, read_run
from sbertkit.errors import InputError, InputTypeError
from sbertkit.evaluation import compare_results, evaluate_run
from sbertkit.evaluation.measures import DEFAULT_MEASURES, Measures

GOLDEN = Path(__file__).parent / "trec_eval"
CUTS = (5, 10, 15, 20, 30, 100, 200, 500, 1000)


def names_of(level: str) -> dict[str, str]:
    """ir-measures' name of trec_eval's measures.

    Interpolated precision is left out: version 10, whose outputs these are, rounds recall levels
    anew, and the library has version 9's.

    Args:
        level: ``(rel=2)`` where grades below 2 are not relevant, else empty.
    """
    between = level.replace("(", "").replace(")", "")
    names = {
        "map": f"AP{level}",
        "Rprec": f"Rprec{level}",
        "bpref": f"Bpref{level}",
        "recip_rank": f"RR{level}",
        "infAP": f"infAP{level}",
        "ndcg": "nDCG",
        "num_ret": "NumRet",
        "num_rel_ret": f"NumRet(rel={between.removeprefix('rel=') or 1})",
        "set_P": f"SetP{level}",
        "set_recall": f"SetR{level}",
        "set_F": f"SetF{level}",
    }
    for cut in CUTS:
        names |= {
            f"P_{cut}": f"P{level}@{cut}",
            f"recall_{cut}": f"R{level}@{cut}",
            f"ndcg_cut_{cut}": f"nDCG@{cut}",
            f"map_cut_{cut}": f"AP{level}@{cut}",
        }
    names |= {f"success_{cut}": f"Success{level}@{cut}" for cut in (1, 5, 10)}
    if level:
        del names["infAP"]  # computed without the level
    return names


def golden(name: str) -> dict[str, dict[str, float]]:
    """The values of a golden output by measure and query; ``all`` for the means."""
    values: dict[str, dict[str, float]] = {}
    for line in (GOLDEN / name).read_text(encoding="utf-8").splitlines():
        measure, query, value = line.split()
        if not measure.startswith(("runid", "relstring")):
            values.setdefault(measure, {})[query] = float(value)
    return values


@pytest.mark.parametrize(
    ("output", "qrels", "run", "level"),
    [
        ("out.test.aq", "qrels.test", "results.test", ""),
        ("out.test.aqc", "qrels.test", "results.trunc", ""),
        ("out.test.aql", "qrels.rel_level", "results.test", "(rel=2)"),
    ],
)
def test_the_values_are_those_of_trec_eval(output: str, qrels: str, run: str, level: str) -> None:
    names, expected = names_of(level), golden(output)
    assert names.keys() <= expected.keys()
    measures = Measures(list(names.values()))
    found = measures.per_query(read_qrels(GOLDEN / f"{qrels}.gz"), read_run(GOLDEN / f"{run}.gz"))
    for trec, ours in names.items():
        values = dict(expected[trec])
        mean = values.pop("all")
        assert found[ours] == pytest.approx(values, abs=5.1e-5), trec
        assert measures.mean(ours, found[ours]) == pytest.approx(mean, abs=5.1e-5), trec


# --- worked out by hand

QRELS = {"q": {"a": 3, "b": 0, "c": 1, "e": 2}}
RUN = {"q": {"d": 0.9, "a": 0.8, "b": 0.7, "c": 0.6}}
IDEAL = 3 + 2 / math.log2(3) + 1 / 2
BY_HAND = {
    "nDCG@10": (3 / math.log2(3) + 1 / math.log2(5)) / IDEAL,
    "nDCG@2": 3 / math.log2(3) / (3 + 2 / math.log2(3)),
    "AP": (1 / 2 + 2 / 4) / 3,
    "AP@2": 1 / 2 / 3,
    "RR": 1 / 2,
    "RR@1": 0.0,
    "RR@2": 1 / 2,
    "R@2": 1 / 3,
    "R@100": 2 / 3,
    "P@1": 0.0,
    "P@2": 1 / 2,
    "P@10": 2 / 10,
    "Success@1": 0.0,
    "Success@2": 1.0,
    "Rprec": 1 / 3,
    "P(rel=2)@2": 1 / 2,
    "R(rel=3)@2": 1.0,
    "Judged@4": 3 / 4,
    "ERR@10": 7 / 16 / 2 + (1 - 7 / 16) * (1 / 16) / 4,
    "ERR@2": 7 / 16 / 2,
    "nDCG(dcg='exp-log2')@10": (7 / math.log2(3) + 1 / math.log2(5))
    / (7 + 3 / math.log2(3) + 1 / 2),
    "Compat(p=0.5,normalize=False)": (1 / 4 + 1 / 3 * 1 / 4 + 1 / 8 * 2 / 4)
    / (1 + 1 / 2 + 1 / 4 + 1 / 8),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_a_measure_has_the_value_worked_out_by_hand(name: str) -> None:
    expected = {name: {"q": pytest.approx(BY_HAND[name], abs=1e-5)}}
    assert Measures([name]).per_query(QRELS, RUN) == expected


@pytest.mark.parametrize("name", BY_HAND)
def test_ids_of_any_kind_give_the_values_of_plain_ones(name: str) -> None:
    other = {"q": "PLAIN-2 \u3000x", "a": "a b", "b": "", "c": "#\t1", "d": "-0", "e": "e\n"}
    qrels = {other[q]: {other[d]: grade for d, grade in of.items()} for q, of in QRELS.items()}
    run = {other[q]: {other[d]: score for d, score in of.items()} for q, of in RUN.items()}
    found = Measures([name]).per_query(qrels, run)
    assert found == {name: {other["q"]: Measures([name]).per_query(QRELS, RUN)[name]["q"]}}


@pytest.mark.parametrize("name", ["ERR@10", "nDCG(dcg='exp-log2')@10"])
def test_grades_beyond_what_a_script_takes_are_refused(name: str) -> None:
    qrels = {"q": {"a": 5}}
    with pytest.raises(InputError, match=r"expected grades up to 4, .* found 5"):
        Measures(["AP", name]).check_grades(qrels)
    Measures(["AP", "nDCG@10"]).check_grades(qrels)


def test_a_measure_whose_program_fails_is_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    perl = tmp_path / "perl"
    perl.write_text("#!/bin/sh\nexit 3\n")
    perl.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(InputError, match=r"'ERR@10' cannot be computed here \(.*status 3"):
        Measures(["nDCG@10", "ERR@10"])


@pytest.mark.parametrize("name", [*BY_HAND, "NumQ", "NumRel", "infAP", "SetF", "IPrec@0.1"])
def test_every_measure_has_a_value_for_every_query(name: str) -> None:
    qrels = {"found": {"a": 3}, "unanswered": {"a": 1}, "other": {"b": 2}}
    values = Measures([name]).per_query(qrels, {"found": {"a": 1.0}, "other": {"a": 1.0}})[name]
    assert values.keys() == qrels.keys()


@pytest.mark.parametrize("name", [*DEFAULT_MEASURES, "AP", "Rprec", "Bpref", "RR"])
def test_a_judged_query_without_hits_counts_as_zero(name: str) -> None:
    qrels = {"q": {"a": 1}, "unanswered": {"a": 1}, "empty": {"b": 1}}
    run = {"q": {"a": 1.0}, "empty": {}, "unjudged": {"a": 1.0}}
    values = Measures([name]).per_query(qrels, run)[name]
    assert set(values) == {"q", "unanswered", "empty"}
    assert (values["unanswered"], values["empty"]) == (0.0, 0.0)
    assert values["q"] > 0


def test_equal_scores_are_ordered_by_id_descending() -> None:
    run = {"q": {"a10": 1.0, "a9": 1.0}}
    values = Measures(["RR"]).per_query({"q": {"a9": 1}}, run)
    assert values == {"RR": {"q": 1.0}}
    assert Measures(["RR"]).per_query({"q": {"a10": 1}}, run) == {"RR": {"q": 0.5}}


def test_scores_that_differ_beyond_single_precision_are_no_tie() -> None:
    run = {"q": {"a": 1.0 + 1e-9, "z": 1.0}}
    assert Measures(["RR"]).per_query({"q": {"a": 1}}, run) == {"RR": {"q": 1.0}}


def test_grades_below_zero_count_as_not_judged() -> None:
    names = ["nDCG@10", "Judged@2", "Bpref"]
    run = {"q": {"bad": 2.0, "good": 1.0}}
    with_negative = Measures(names).per_query({"q": {"good": 1, "bad": -2}}, run)
    assert with_negative == Measures(names).per_query({"q": {"good": 1}}, run)


def test_the_cutoff_is_the_largest() -> None:
    assert Measures(["nDCG@10", "R@100", "AP"]).cutoff == 100
    assert Measures(["AP", "RR"]).cutoff == 0


@pytest.mark.parametrize(
    ("names", "kind", "reason"),
    [
        (
            ["nDCGG@10"],
            InputError,
            "unknown measure 'nDCGG@10', did you mean 'nDCG@10'",
        ),
        (["nDCG@ten"], InputError, "unknown measure"),
        (["nDCG@"], InputError, "unknown measure"),
        (["nDCG(x=1)@10"], InputError, "unknown measure"),
        (["__import__('os')"], InputError, "unknown measure"),
        ([""], InputError, "unknown measure"),
        (["nDCG@10\x1b[2J"], InputError, "unknown measure"),
        (["-" * 9_000 + "1"], InputError, "unknown measure"),
        (["nDCG(gains={0: 0, 'a': 1})@10"], InputError, "unknown measure"),
        (["SDCG@10"], InputError, "unknown measure"),
        (["Accuracy"], InputError, r"cannot be computed here \(float division by zero\)"),
        (["P@True"], InputError, "cannot be computed here"),
        (["P@99999999999"], InputError, "a cut-off of at most 1,000,000"),
        (["P(rel=99999999999)@5"], InputError, "a minimum grade of at most 10,000"),
        ([], InputError, "found none"),
        (["AP", "AP"], InputError, "distinct"),
        ("nDCG@10", InputTypeError, "list of names"),
        ([10], InputTypeError, "list of names"),
    ],
)
def test_names_that_are_none_are_refused(names: Any, kind: type[Exception], reason: str) -> None:
    with pytest.raises(kind, match=reason) as caught:
        Measures(names)
    assert "\n" not in str(caught.value)
    assert "\x1b" not in str(caught.value)


def test_counts_are_summed_without_an_interval_and_not_compared() -> None:
    qrels = {"1": {"a": 1, "b": 2}, "2": {"a": 1}, "3": {"c": 1, "d": 0}}
    names = ["NumQ", "NumRel", "NumRet", "NumRelRet", "AP"]
    result = evaluate_run({"1": {"a": 2.0, "x": 1.0}, "2": {"a": 1.0}}, qrels, measures=names)
    counts = [result.measures[name] for name in names[:-1]]
    assert counts == [3, 4, 3, 2]
    assert [result.intervals[name] for name in names[:-1]] == [None] * 4
    assert list(compare_results(result, result).tests) == ["AP"]


def test_grades_below_0_are_refused_where_they_mean_something_else() -> None:
    qrels = {"1": {"a": 1, "b": -1}}
    Measures(["AP", "Bpref"]).check_grades(qrels)
    with pytest.raises(InputError, match=r"infAP: a grade of -1 was found"):
        Measures(["AP", "infAP"]).check_grades(qrels)
