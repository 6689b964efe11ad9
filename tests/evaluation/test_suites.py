"""Suites: their files, and runs that go on where they were."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sbertkit.data.named import DATA_FOLDER, find_named
from sbertkit.encoder import Encoder
from sbertkit.errors import InputError, MissingFile
from sbertkit.evaluation import evaluate_retrieval, evaluate_sts
from sbertkit.evaluation.report.page import render
from sbertkit.evaluation.report.suite import suite_page, suite_table
from sbertkit.evaluation.suites import Suite, read_suite, run_suite, runner, suite_names

OWN = """
title = "Mine"
sets = ["stsb", "sts13", "cisi"]
measures = ["RR@10", "nDCG@10"]

[[published]]
name = "They <b>"
source = "A paper"
scores = { stsb = 80.0, sts13 = 70.0, cisi = 30 }

[[published]]
name = "Others"
source = "Another"
scores = { stsb = 81 }
"""
PAIRS = [
    ("5.0", "two goats climb", "two goats climb the hill"),
    ("2.5", "a kettle sings", "the kettle is cold"),
    ("0.0", "rain on the roof", "goats"),
    ("1.0", "a goat", "rain falls"),
]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two of the three sets."""
    root = tmp_path / "data"
    (root / "sts").mkdir(parents=True)
    rows = "".join("\t".join(("test", *pair)) + "\n" for pair in PAIRS)
    (root / "sts/stsb.tsv").write_text(f"split\tscore\tsentence1\tsentence2\n{rows}")
    beir = root / "retrieval/cisi"
    (beir / "qrels").mkdir(parents=True)
    texts = {"d1": "a kettle sings", "d2": "two goats", "d3": "rain"}
    for name, content in (("corpus", texts), ("queries", {"q1": "kettle", "q2": "goats"})):
        lines = (json.dumps({"_id": key, "text": text}) for key, text in content.items())
        (beir / f"{name}.jsonl").write_text("".join(f"{line}\n" for line in lines))
    (beir / "qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td2\t1\n")
    monkeypatch.setenv(DATA_FOLDER, str(root))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    return root


@pytest.fixture
def own(tmp_path: Path) -> Suite:
    path = tmp_path / "own.toml"
    path.write_text(OWN)
    return read_suite(path)


def test_the_suites_that_come_along_are_sound() -> None:
    assert set(suite_names()) >= {"sts", "sts-multilingual", "retrieval-small", "chinese"}
    for name in suite_names():
        suite = read_suite(name)
        assert suite.name == name
        assert suite.title
        for row in suite.published:
            assert row.source
            assert all(0 < score < 100 for score in row.scores.values())


def test_the_published_means_are_those_of_the_papers() -> None:
    papers = {
        "average GloVe": 61.32,
        "BERT-base, mean": 54.81,
        "BERT-base, cls": 29.19,
        "SBERT-NLI-base": 74.89,
        "SBERT-NLI-large": 76.55,
        "BERT-base, whitened (NLI)": 66.28,
        "SimCSE, unsupervised, BERT-base": 76.25,
        "SimCSE, supervised, BERT-base": 81.57,
    }
    suite = read_suite("sts")
    assert {row.name for row in suite.published} == set(papers)
    for row in suite.published:
        assert len(row.scores) == len(suite.sets)
        # One paper rounds its means otherwise: 74.86 is printed as 74.89.
        mean = sum(row.scores.values()) / len(row.scores)
        assert mean == pytest.approx(papers[row.name], abs=0.035)


def test_a_suite_file_is_read(own: Suite) -> None:
    assert (own.name, own.title) == ("own", "Mine")
    assert own.sets == tuple(find_named(name) for name in ("stsb", "sts13", "cisi"))
    assert own.measures == ("RR@10", "nDCG@10")
    assert own.published[0].scores == {"stsb": 80.0, "sts13": 70.0, "cisi": 30}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("title = ", "not TOML"),
        (f"title = {'9' * 5_000}", "not TOML"),
        (f"title = {'[' * 9_000}", "not TOML"),
        ('title = "x"', "missing required field `sets`"),
        ('title = "x"\nsets = []', "sets must be distinct names, at least one"),
        ('title = "x"\nsets = "stsb"', "Expected `array`, got `str` - at `$.sets`"),
        ('title = "x"\nsets = 3', "at `$.sets`"),
        ('title = "x"\nsets = ["stsb", 2020-01-01]', "at `$.sets[1]`"),
        ('title = { a = 1 }\nsets = ["stsb"]', "at `$.title`"),
        ('title = "x"\nsets = ["stsb", "stsb"]', "distinct names"),
        ('title = "x"\nsets = ["nowhere"]', "no data set named 'nowhere'"),
        ('title = "x"\nsets = ["all-nli"]', "all-nli is for nli"),
        ('title = "x"\nsets = ["cisi"]\nmeasures = ["nDGC@10"]', "nDGC@10"),
        ('title = "x"\nsets = ["stsb"]\nsplit = "dev"', "unknown key 'split'"),
        ('title = "x"\nsets = ["stsb"]\npublished = 3', "at `$.published`"),
        (
            'title = "x"\nsets = ["stsb"]\n[[published]]\nname = "y"',
            "missing required field `source`",
        ),
        (
            'title = "x"\nsets = ["stsb"]\n[[published]]\nname = "y"\nsource = "z"\n'
            "scores = { sick = 1 }",
            "'sick' is not in this suite",
        ),
        (
            'title = "x"\nsets = ["stsb"]\n[[published]]\nname = "y"\nsource = "z"\n'
            'scores = { stsb = "high" }',
            "at `$.published[0].scores",
        ),
        *(
            (
                'title = "x"\nsets = ["stsb"]\n[[published]]\nname = "y"\nsource = "z"\n'
                f"scores = {{ stsb = {score} }}",
                "at `$.published[0].scores",
            )
            for score in ("nan", "inf", "1e300", "true", "[1]", "9" * 400)
        ),
        (
            'title = "x"\nsets = ["stsb"]\n[[published]]\nname = "y"\nsource = "z"\n'
            "scores = {}\nyear = 2020",
            "unknown key 'year'",
        ),
    ],
)
def test_a_bad_suite_is_refused_in_one_line(tmp_path: Path, content: str, reason: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(content)
    with pytest.raises(InputError) as refusal:
        read_suite(path)
    assert reason in str(refusal.value)
    assert "bad.toml" in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_an_unknown_suite_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="known are chinese, retrieval-small, sts"):
        read_suite("stss")
    with pytest.raises(MissingFile, match="no such file"):
        read_suite(tmp_path / "none.toml")


def test_a_suite_gives_what_its_evaluators_give(
    data: Path, own: Suite, tiny_encoder: Encoder, tmp_path: Path
) -> None:
    result = run_suite(tiny_encoder, own, tmp_path / "results", cache=tmp_path / "cache")
    assert list(result.scores) == ["stsb", "cisi"]
    sts = evaluate_sts(tiny_encoder, data / "sts/stsb.tsv")
    retrieval = evaluate_retrieval(tiny_encoder, data / "retrieval/cisi", measures=own.measures)
    assert result.scores["stsb"].score == pytest.approx(sts.spearman)
    assert result.scores["cisi"].score == pytest.approx(retrieval.measures["RR@10"])
    assert result.scores["cisi"].measure == "RR@10"
    assert sts.spearman is not None
    assert result.mean == pytest.approx((sts.spearman + retrieval.measures["RR@10"]) / 2)
    assert "HF_HUB_OFFLINE" in result.missing["sts13"]
    json.dumps(result.to_dict(), allow_nan=False)


def test_published_rows_are_averaged_over_the_same_sets(
    data: Path, own: Suite, tiny_encoder: Encoder, tmp_path: Path
) -> None:
    result = run_suite(tiny_encoder, own, tmp_path / "results")
    table = suite_table(result)
    columns, rows = table.columns, table.rows
    assert columns == ("encoder", "stsb>", "cisi>", "mean of 2>")
    assert rows[1] == ("published: They <b>", "80.00", "30.00", "55.00")
    assert rows[2] == ("published: Others", "81.00", "", "")


@pytest.mark.usefixtures("data")
def test_what_was_measured_is_not_measured_again(
    own: Suite, tiny_encoder: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run_suite(tiny_encoder, own, tmp_path / "results")
    measured = count_measurements(monkeypatch)
    again = run_suite(tiny_encoder, own, tmp_path / "results")
    assert measured == []
    assert again.to_dict() == first.to_dict()


RESULTS: dict[str, Callable[[dict[str, Any]], object]] = {
    "empty": lambda content: {**content, "result": {}},
    "no result": lambda content: {**content, "result": None},
    "list": lambda content: [content],
    "markup": lambda content: _with(content, ("spearman", "measures"), "<script>"),
    "too large": lambda content: _with(content, ("spearman", "measures"), 10**400),
    "interval": lambda content: _with(content, ("interval", "intervals"), {"evil": 1}),
    "counts": lambda content: {**content, "result": {**content["result"], "encoded": "evil"}},
    "no measure": lambda content: _with(content, ("spearman", "measures"), {}),
}


def _with(content: dict[str, Any], names: tuple[str, ...], value: object) -> dict[str, Any]:
    """A result with a value in the place of a score, or of all of a collection's scores."""
    result = content["result"]
    (name,) = result.keys() & names
    kept = dict.fromkeys(result[name], value) if name.endswith("s") and value != {} else value
    return {**content, "result": {**result, name: kept}}


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize("what", [*RESULTS, "deep", "not a number", "pipe", "link"])
def test_a_hostile_result_is_measured_again(
    own: Suite,
    tiny_encoder: Encoder,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    what: str,
) -> None:
    first = run_suite(tiny_encoder, own, tmp_path / "results")
    for path in (tmp_path / "results/stsb.json", tmp_path / "results/cisi.json"):
        text = path.read_text()
        path.unlink()
        if what == "pipe":
            os.mkfifo(path)
        elif what == "link":
            elsewhere = tmp_path / f"elsewhere-{path.name}"
            elsewhere.write_text(text)
            path.symlink_to(elsewhere)
        elif what in RESULTS:
            path.write_text(json.dumps(RESULTS[what](json.loads(text))))
        else:
            evil = {"deep": "[" * 100_000, "not a number": "NaN"}[what]
            path.write_text(
                text.replace('"queries": 2', f'"queries": {evil}').replace(
                    '"pairs": 4', f'"pairs": {evil}'
                )
            )
    measured = count_measurements(monkeypatch)
    again = run_suite(tiny_encoder, own, tmp_path / "results")
    assert measured == ["sts", "retrieval"]
    assert again.to_dict() == first.to_dict()
    lines = [r.getMessage() for r in caplog.records if "damaged result" in r.getMessage()]
    assert len(lines) == 2
    assert not any("\n" in line for line in lines)


@pytest.mark.parametrize("what", ["data", "encoder", "precision", "measures", "cut"])
def test_what_has_changed_is_measured_again(
    data: Path,
    own: Suite,
    tiny_encoder: Encoder,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    what: str,
) -> None:
    run_suite(tiny_encoder, own, tmp_path / "results")
    encoder, suite, expected = tiny_encoder, own, ["sts", "retrieval"]
    if what == "data":
        with (data / "sts/stsb.tsv").open("a") as file:
            file.write("test\t3\tgoats\tkettles\n")
        expected = ["sts"]
    elif what == "encoder":
        encoder = Encoder.load(tiny_encoder.options.model, pooling="cls", normalize=True)
    elif what == "precision":
        encoder = Encoder.load(tiny_encoder.options.model, precision="bf16")
    elif what == "measures":
        (tmp_path / "own.toml").write_text(OWN.replace('"RR@10", ', ""))
        suite = read_suite(tmp_path / "own.toml")
        expected = ["retrieval"]
    else:
        path = tmp_path / "results/stsb.json"
        path.write_text(path.read_text()[:-20])
        expected = ["sts"]
    measured = count_measurements(monkeypatch)
    run_suite(encoder, suite, tmp_path / "results")
    assert measured == expected


def count_measurements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    measured: list[str] = []

    def counting(task: str, measure: Callable[..., object]) -> Callable[..., object]:
        def counted(*arguments: object) -> object:
            measured.append(task)
            return measure(*arguments)

        return counted

    table = {task: counting(task, measure) for task, measure in runner._EVALUATORS.items()}
    monkeypatch.setattr(runner, "_EVALUATORS", table)
    return measured


def test_a_suite_without_any_of_its_sets_is_refused(
    own: Suite, tiny_encoder: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DATA_FOLDER, str(tmp_path / "empty"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(InputError, match="no data set of the suite own"):
        run_suite(tiny_encoder, own, tmp_path / "results")
    assert not (tmp_path / "results").exists()


@pytest.mark.usefixtures("data")
def test_the_report_escapes_what_it_shows(
    own: Suite, tiny_encoder: Encoder, tmp_path: Path
) -> None:
    page = render(suite_page(run_suite(tiny_encoder, own, tmp_path / "results")))
    assert "They &lt;b&gt;" in page
    assert "<b>" not in page
    assert "Left out: data set" in page
