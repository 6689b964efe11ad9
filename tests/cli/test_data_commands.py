"""``data list``, ``data get`` and ``eval run``."""

import json
from pathlib import Path

import pytest
from command_line import Run

from sbertkit.data.named import DATA_FOLDER, NAMED_SETS
from sbertkit.encoder import Encoder

PAIRS = "split\tscore\tsentence1\tsentence2\n" + "".join(
    f"test\t{score}\t{first}\t{second}\n"
    for score, first, second in (
        (5, "two goats climb", "two goats"),
        (1, "a kettle sings", "rain"),
        (3, "the roof", "a wet roof"),
    )
)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "data"
    (root / "sts").mkdir(parents=True)
    (root / "sts/stsb.tsv").write_text(PAIRS)
    monkeypatch.setenv(DATA_FOLDER, str(root))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    return root


def test_sets_are_listed_with_where_they_are(run: Run, data: Path) -> None:
    ran = run("data", "list", "--format", "jsonl")
    assert (ran.status, ran.err) == (0, "")
    rows = {row["name"]: row for row in map(json.loads, ran.out.splitlines())}
    assert list(rows) == [one.name for one in NAMED_SETS]
    assert rows["stsb"]["path"] == str(data / "sts/stsb.tsv")
    assert rows["sts12"]["path"] is None
    assert rows["cranfield"]["hub"] is None
    table = run("data", "list", "--task", "retrieval")
    assert "scifact" in table.out
    assert "by hand" in table.out
    assert "sts12" not in table.out


def test_a_set_that_is_here_is_not_fetched(run: Run, data: Path) -> None:
    ran = run("data", "get", "stsb")
    assert (ran.status, ran.out) == (0, f"stsb\t{data / 'sts/stsb.tsv'}\n")
    assert "licence: scores CC BY-SA 4.0" in ran.err


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (("stsb", "nowhere"), "no data set named 'nowhere'"),
        (("sts12",), "switched off"),
        (("cranfield",), "not on the hub"),
    ],
)
@pytest.mark.usefixtures("data")
def test_a_set_that_is_not_to_be_had_gets_one_line(
    run: Run, names: tuple[str, ...], reason: str
) -> None:
    ran = run("data", "get", *names)
    assert ran.status == 1
    assert reason in ran.err.splitlines()[-1]
    assert "Traceback" not in ran.err


@pytest.mark.usefixtures("data")
def test_a_suite_is_measured_and_written(run: Run, tmp_path: Path, tiny_encoder: Encoder) -> None:
    suite = tmp_path / "mine.toml"
    suite.write_text('title = "Mine"\nsets = ["stsb", "sts12"]\n')
    out = {name: tmp_path / "out" / name for name in ("r.json", "r.html")}
    arguments = ("--model", tiny_encoder.options.model, "--pooling", "mean", "--no-cache")
    ran = run(
        *("eval", "run", suite, *arguments, "-o", tmp_path / "results"),
        *("--json", out["r.json"], "--report", out["r.html"]),
    )
    assert ran.status == 0, ran.err
    assert "stsb (1 of 2): evaluating" in ran.err
    assert "\nwarning: left out: data set 'sts12'" in ran.err
    assert "mean of 1" in ran.out
    result = json.loads(out["r.json"].read_text(), parse_constant=pytest.fail)
    assert list(result["scores"]) == ["stsb"]
    assert "<svg" in out["r.html"].read_text()
    assert (tmp_path / "results/stsb.json").is_file()


def test_cache_options_exclude_each_other(run: Run) -> None:
    ran = run("eval", "run", "sts", "--cache", "x", "--no-cache")
    assert ran.status == 2
