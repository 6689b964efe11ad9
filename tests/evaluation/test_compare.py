"""Two systems on the same queries."""

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sbertkit.errors import InputError, MissingFile
from sbertkit.evaluation import compare, compare_results, compare_runs, evaluate_run
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
    assert found.queries == 20
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
    assert found == compare_runs(run(1), run(2), QRELS, measures=["AP"])


def test_a_system_equals_itself() -> None:
    for test in compare_runs(run(1), run(1), QRELS).tests.values():
        assert (test.difference, test.p_value) == (0.0, 1.0)


def test_results_from_files_compare_as_the_runs_do(stored: Callable[..., Path]) -> None:
    results = [evaluate_run(run(seed), QRELS) for seed in (1, 2)]
    paths = [stored(f"{n}.json", result.to_dict()) for n, result in enumerate(results)]
    assert (
        compare_results(*paths) == compare_results(*results) == compare_runs(run(1), run(2), QRELS)
    )


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
    with pytest.raises(InputError, match=r"such as 'q1[89]'.*--missing-as-zero"):
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
    with pytest.raises(InputError, match=r"bad\.json: expected a retrieval result") as caught:
        compare_results(path, stored("good.json", RESULT))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "NaN", '{"measures": ' + "9" * 5_000 + "}", "", "\0"]
)
def test_a_file_that_is_no_json_is_refused_in_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text)
    with pytest.raises(InputError, match=r"bad\.json: expected a retrieval result") as caught:
        compare_results(path, path)
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs /dev/zero")
def test_a_result_without_end_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"/dev/zero: expected a file or a pipe, found a device"):
        compare_results("/dev/zero", "/dev/zero")
    monkeypatch.setattr(compare, "_MAX_RESULT_BYTES", 1_000)
    path = tmp_path / "large.json"
    path.write_bytes(b" " * 1_001)
    with pytest.raises(InputError, match=r"large\.json: expected a result of at most 1,000 bytes"):
        compare_results(path, path)


def test_a_run_file_instead_of_a_result_is_refused_with_a_hint(tmp_path: Path) -> None:
    path = tmp_path / "a.trec"
    path.write_text("q Q0 d 1 0.5 name\n", encoding="utf-8")
    with pytest.raises(InputError, match="--qrels"):
        compare_results(path, path)


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(MissingFile):
        compare_results(tmp_path / "a.json", tmp_path / "b.json")
