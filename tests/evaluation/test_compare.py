"""Two systems on the same queries, sentence pairs or sets."""

import json
import os
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sbertkit.data.sts import StsPair
from sbertkit.encoder import Encoder
from sbertkit.errors import InputError, MissingFile
from sbertkit.evaluation import (
    Comparison,
    SuiteResult,
    compare_results,
    compare_runs,
    evaluate_run,
    evaluate_sts,
    read_suite,
)
from sbertkit.evaluation.comparison import systems
from sbertkit.evaluation.report.comparison import comparison_table, verdict
from sbertkit.evaluation.sts import StsDetails, StsResult
from sbertkit.evaluation.suites.runner import SetScore
from sbertkit.metrics import pearson, spearman
from sbertkit.metrics.permutation import paired_permutation

QRELS = {f"q{number}": {"good": 1, "fair": 1} for number in range(20)}
Run = dict[str, dict[str, float]]


def run(seed: int, queries: int = 20) -> Run:
    random = np.random.default_rng(seed)
    return {
        f"q{number}": dict(zip(("good", "fair", "bad"), random.random(3).tolist(), strict=True))
        for number in range(queries)
    }


@pytest.fixture
def stored(tmp_path: Path) -> Callable[..., Path]:
    """Writes a result as the command line does."""

    def stored(name: str, result: Any) -> Path:
        path = tmp_path / name
        path.write_text(json.dumps(result), encoding="utf-8")
        return path

    return stored


def test_a_comparison_is_the_paired_test_of_both_results() -> None:
    found = compare_runs(run(1), run(2), QRELS, measures=["AP", "RR@10"])
    results = [evaluate_run(run(seed), QRELS, measures=["AP", "RR@10"]) for seed in (1, 2)]
    assert (found.count, found.unit) == (20, "queries")
    assert [found.first, found.second] == [result.measures for result in results]
    for name in ("AP", "RR@10"):
        values = [list(result.per_query[name].values()) for result in results]
        assert found.tests[name] == paired_permutation(*values)
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False)) == found.to_dict()


def test_judgements_and_runs_from_pipes_are_read_once(tmp_path: Path) -> None:
    lines = {
        "qrels": [f"{query}\t{name}\t1\n" for query, of in QRELS.items() for name in of],
        "a": [f"{q} Q0 {d} 1 {score} x\n" for q, of in run(1).items() for d, score in of.items()],
        "b": [f"{q} Q0 {d} 1 {score} x\n" for q, of in run(2).items() for d, score in of.items()],
    }
    pipes = {name: tmp_path / name for name in lines}
    for name, pipe in pipes.items():
        os.mkfifo(pipe)
        threading.Thread(target=pipe.write_text, args=["".join(lines[name])], daemon=True).start()
    found = compare_runs(pipes["a"], pipes["b"], pipes["qrels"], measures=["AP"])
    assert found.systems == (str(pipes["a"]), str(pipes["b"]))
    assert found.tests == compare_runs(run(1), run(2), QRELS, measures=["AP"]).tests


def test_a_system_equals_itself() -> None:
    for test in compare_runs(run(1), run(1), QRELS).tests.values():
        assert (test.difference, test.p_value) == (0.0, 1.0)


def test_results_from_files_compare_as_the_runs_do(stored: Callable[..., Path]) -> None:
    results = [evaluate_run(run(seed), QRELS) for seed in (1, 2)]
    paths = [stored(f"{n}.json", result.to_dict()) for n, result in enumerate(results)]
    found = compare_results(*paths)
    assert found.systems == tuple(map(str, paths))
    found = replace(found, systems=("first", "second"))
    assert found == compare_results(*results) == compare_runs(run(1), run(2), QRELS)


def test_the_order_of_the_queries_does_not_count() -> None:
    turned = dict(reversed(run(2).items()))
    assert compare_runs(run(1), turned, QRELS) == compare_runs(run(1), run(2), QRELS)


def test_measures_that_one_result_lacks_are_passed_over() -> None:
    first = evaluate_run(run(1), QRELS, measures=["AP", "RR@10"])
    second = evaluate_run(run(2), QRELS, measures=["P@2", "AP"])
    assert list(compare_results(first, second).tests) == ["AP"]
    with pytest.raises(InputError, match=r"no measure in common: AP, RR@10 and P@2"):
        compare_results(first, evaluate_run(run(2), QRELS, measures=["P@2"]))


def test_runs_over_other_queries_are_refused_unless_missing_is_zero() -> None:
    with pytest.raises(InputError, match=r"answered different queries: 2 are only in the first"):
        compare_runs(run(1), run(2, 18), QRELS)
    with pytest.raises(InputError, match=r"such as 'q1[89]'.*missing_as_zero"):
        compare_runs(run(2, 18), run(1), QRELS)
    found = compare_runs(run(1), run(2, 18), QRELS, measures=["RR@10"], missing_as_zero=True)
    shorter = evaluate_run(run(2, 18), QRELS, measures=["RR@10"]).measures["RR@10"]
    assert found.second["RR@10"] == shorter


def test_results_measured_on_other_queries_are_refused_in_any_case() -> None:
    fewer = {query: QRELS[query] for query in list(QRELS)[:15]}
    results = evaluate_run(run(1), QRELS), evaluate_run(run(2), fewer)
    with pytest.raises(InputError, match="evaluated on different queries: 5 are only in the first"):
        compare_results(*results, missing_as_zero=True)


RESULT = {"measures": {"AP": 0.5}, "per_query": {"AP": {"q": 0.5}}, "without_hits": []}


@pytest.mark.parametrize(
    "content",
    [
        [],
        {},
        "text",
        {**RESULT, "measures": {}},
        {**RESULT, "measures": {"AP": "x"}},
        {**RESULT, "per_query": {}},
        {**RESULT, "per_query": {"AP": {}}},
        {**RESULT, "per_query": {"AP": [1]}},
        {**RESULT, "without_hits": None},
        {**RESULT, "without_hits": [1]},
        {**RESULT, "measures": {"AP": True}},
        {**RESULT, "per_query": {"AP": {"q": "0.5"}}},
        {**RESULT, "per_query": {"AP": {"q": 10**400}}},
        {**RESULT, "measures": {"AP": 1, "RR": 1}, "per_query": {"AP": {"q": 1}, "RR": {"p": 1}}},
    ],
)
def test_a_file_without_a_result_is_refused(stored: Callable[..., Path], content: Any) -> None:
    path = stored("bad.json", content)
    with pytest.raises(
        InputError, match=r"bad\.json: expected a result of eval sts, eval retrieval or eval run"
    ) as caught:
        compare_results(path, stored("good.json", RESULT))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "NaN", '{"measures": ' + "9" * 5_000 + "}", "", "\0"]
)
def test_a_file_that_is_no_json_is_refused_in_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text)
    with pytest.raises(
        InputError, match=r"bad\.json: expected a result of eval sts, eval retrieval or eval run"
    ) as caught:
        compare_results(path, path)
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs /dev/zero")
def test_a_result_without_end_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"/dev/zero: expected a file or a pipe, found a device"):
        compare_results("/dev/zero", "/dev/zero")
    monkeypatch.setattr(systems, "_MAX_RESULT_BYTES", 1_000)
    path = tmp_path / "large.json"
    path.write_bytes(b" " * 1_001)
    with pytest.raises(InputError, match=r"large\.json: expected a result of at most 1,000 bytes"):
        compare_results(path, path)


def test_a_run_file_instead_of_a_result_is_refused_with_a_hint(tmp_path: Path) -> None:
    path = tmp_path / "a.trec"
    path.write_text("q Q0 d 1 0.5 name\n", encoding="utf-8")
    with pytest.raises(InputError, match="pass qrels"):
        compare_results(path, path)


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(MissingFile):
        compare_results(tmp_path / "a.json", tmp_path / "b.json")


PAIRS = tuple(StsPair(number % 11 / 2, f"one {number}", f"two {number}") for number in range(200))


def sts(encoder: Encoder, noise: float, pairs: tuple[StsPair, ...] = PAIRS) -> StsResult:
    """A result whose cosines follow the gold scores, more or less."""
    random = np.random.default_rng(7)
    shared, own = random.normal(0, 1, (2, len(pairs)))
    gold = np.array([pair.score for pair in pairs])
    cosines = 0.1 * (gold + shared + noise * own)
    details = StsDetails(pairs, tuple(cosines.tolist()), ())
    value = spearman(gold, cosines).value
    return replace(evaluate_sts(encoder, pairs[:4]), spearman=value, details=details)


def test_two_encoders_on_the_same_pairs_are_tested(
    tiny_encoder: Encoder, stored: Callable[..., Path]
) -> None:
    results = [sts(tiny_encoder, noise) for noise in (0.1, 3.0)]
    found = compare_results(*results)
    assert (found.count, found.unit, found.headline) == (200, "pairs", "Spearman")
    assert found.first["Spearman"] == pytest.approx(results[0].spearman)
    second = results[1].details.cosines
    expected = pearson([pair.score for pair in PAIRS], second).value
    assert found.second["Pearson"] == pytest.approx(expected)
    for name, test in found.tests.items():
        assert test.difference == pytest.approx(found.first[name] - found.second[name])
        assert test.p_value < 0.001
        assert test.interval is not None
        assert 0 < test.interval.low < test.difference < test.interval.high
    assert verdict(found).startswith("A is significantly better in Spearman")
    assert verdict(compare_results(*results[::-1])).startswith("B is significantly better")
    # The files alone are enough.
    paths = [stored(f"{n}.json", result.to_dict()) for n, result in enumerate(results)]
    again = compare_results(*paths)
    assert again.tests == found.tests
    assert again.details == found.details
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False)) == found.to_dict()


def test_details_tell_which_pairs_a_system_ranks_better(tiny_encoder: Encoder) -> None:
    pairs = tuple(StsPair(float(score), "a", f"b {score}") for score in range(5))
    one = sts(tiny_encoder, 0, pairs)
    right = replace(one, details=replace(one.details, cosines=(0.1, 0.2, 0.3, 0.4, 0.5)))
    wrong = replace(one, details=replace(one.details, cosines=(0.1, 0.2, 0.5, 0.4, 0.3)))
    details = compare_results(right, wrong).details
    assert details == {"1": (0, 0), "2": (0, 0), "3": (0, 2), "4": (0, 0), "5": (0, 2)}


def test_results_of_different_pairs_are_refused_in_one_line(tiny_encoder: Encoder) -> None:
    whole = sts(tiny_encoder, 1.0)
    other = {
        "200 and 199": PAIRS[:-1],
        "200 each, but not the same": (*PAIRS[:-1], StsPair(PAIRS[-1].score, "other", "words")),
        "or in another order": PAIRS[::-1],
    }
    for reason, pairs in other.items():
        with pytest.raises(InputError, match=f"different sentence pairs.*{reason}") as caught:
            compare_results(whole, sts(tiny_encoder, 1.0, pairs))
        assert "\n" not in str(caught.value)


def test_results_of_two_kinds_are_refused(
    tiny_encoder: Encoder, stored: Callable[..., Path]
) -> None:
    first = stored("a.json", sts(tiny_encoder, 1.0).to_dict())
    second = stored("b.json", evaluate_run(run(1), QRELS).to_dict())
    with pytest.raises(
        InputError, match=r"a\.json is an STS result, .*b\.json is a retrieval result; compare two"
    ):
        compare_results(first, second)
    with pytest.raises(InputError, match="missing_as_zero"):
        compare_results(first, first, missing_as_zero=True)


def test_a_system_without_a_correlation_is_refused(tiny_encoder: Encoder) -> None:
    good = sts(tiny_encoder, 1.0)
    bad = replace(good, details=replace(good.details, cosines=(0.5,) * 200))
    with pytest.raises(InputError, match=r"the second system has no .*constant predictions"):
        compare_results(good, bad)


@pytest.mark.parametrize(
    "change",
    [{"sha256": "no"}, {"gold": [1.0]}, {"gold": None}, {"cosines": ["x"] * 200}, {"gold": []}],
)
def test_damaged_pair_values_are_refused(
    tiny_encoder: Encoder, stored: Callable[..., Path], change: dict[str, Any]
) -> None:
    result = sts(tiny_encoder, 1.0).to_dict()
    good, bad = stored("good.json", result), {**result["per_pair"], **change}
    with pytest.raises(InputError, match=r"bad\.json: expected a result of eval sts"):
        compare_results(stored("bad.json", {**result, "per_pair": bad}), good)


def suite(model: str, **details: Any) -> SuiteResult:
    scores = {
        name: SetScore("", "", None, None, result.to_dict()) for name, result in details.items()
    }
    return SuiteResult(read_suite("sts"), model, "0" * 64, scores, {}, None)


def test_two_suites_are_compared_set_by_set_and_in_the_mean(
    tiny_encoder: Encoder, stored: Callable[..., Path]
) -> None:
    pairs, ranked = {}, {}
    for place, model in enumerate(("good", "bad")):
        pairs[model] = sts(tiny_encoder, (0.1, 3.0)[place])
        ranked[model] = evaluate_run(run(place), QRELS, measures=["AP", "RR@10"])
    results = [suite(model, one=pairs[model], two=ranked[model]) for model in pairs]
    found = compare_results(*results)
    assert (found.systems, found.unit, found.count) == (("good", "bad"), "sets", 2)
    alone = {"one": compare_results(*pairs.values()), "two": compare_results(*ranked.values())}
    assert {name: one.tests for name, one in found.sets.items()} == {
        name: one.tests for name, one in alone.items()
    }
    headlines = [found.sets["one"].tests["Spearman"], found.sets["two"].tests["AP"]]
    assert found.tests["mean"].difference == pytest.approx(
        sum(test.difference for test in headlines) / 2
    )
    assert found.first["mean"] - found.second["mean"] == pytest.approx(
        found.tests["mean"].difference
    )
    paths = [stored(f"{one.model}.json", one.to_dict()) for one in results]
    assert compare_results(*paths).to_dict() == found.to_dict()
    rows = comparison_table(found).rows
    assert [row[:3] for row in rows] == [
        ("one", "Spearman", "200 pairs"),
        ("two", "AP", "20 queries"),
        ("mean", "", "2 sets"),
    ]


def test_sets_that_one_system_lacks_are_left_out_by_name(tiny_encoder: Encoder) -> None:
    good = sts(tiny_encoder, 1.0)
    undefined = replace(good, details=replace(good.details, cosines=(0.5,) * 200))
    found = compare_results(
        suite("a", one=good, two=good, four=good), suite("b", one=good, three=good, four=undefined)
    )
    assert list(found.sets) == ["one"]
    assert found.left_out == ("four", "three", "two")
    with pytest.raises(InputError, match=r"no set with defined scores in common: one and two"):
        compare_results(suite("a", one=good), suite("b", two=good))
    other = sts(tiny_encoder, 1.0, PAIRS[:-1])
    with pytest.raises(InputError, match=r"^one: the systems were evaluated on different sentence"):
        compare_results(suite("a", one=good), suite("b", one=other))


def test_what_is_no_result_is_refused() -> None:
    with pytest.raises(TypeError, match="expected a result of evaluate_sts"):
        compare_results(3, 3)  # type: ignore[arg-type]


def test_a_small_p_value_is_not_shown_as_zero() -> None:
    random = np.random.default_rng(0)
    qrels = {f"q{number}": {"good": 1} for number in range(200)}
    first = {query: {"good": 1.0} for query in qrels}
    second = {query: {"good": 1.0, "bad": float(random.integers(3))} for query in qrels}
    found = compare_runs(first, second, qrels, measures=["RR@10"])
    assert found.tests["RR@10"].p_value == pytest.approx(1 / 100_001)
    (row,) = comparison_table(found).rows
    assert row[-1] == "< 0.0001"
    assert isinstance(found, Comparison)


def test_results_by_other_judgements_of_the_same_queries_are_refused() -> None:
    some = {"1": {"a": 2.0}}
    results = [evaluate_run(some, {"1": judged}) for judged in ({"a": 1}, {"z": 1, "a": 0})]
    with pytest.raises(InputError, match="different judgements of the same queries"):
        compare_results(*results)
