"""``diagnose``."""

import json
from pathlib import Path

import numpy as np
import pytest
from command_line import Run

from sbertkit.encoder import Encoder


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    random = np.random.default_rng(0)
    words = ["goat", "kettle", "stove", "roof", "hill", "rain", "song", "cold", "warm"]
    path = tmp_path / "corpus.txt"
    rows = (f"{' '.join(random.choice(words, 7))} {row}\n" for row in range(130))
    path.write_text("".join(rows))
    return path


def test_the_advice_is_printed_and_written(
    run: Run, corpus: Path, tiny_encoder: Encoder, tmp_path: Path
) -> None:
    model = tiny_encoder.options.model
    outputs = {"--json": "d.json", "--report": "d.html", "--write": "model"}
    options = [part for pair in outputs.items() for part in (pair[0], tmp_path / pair[1])]
    ran = run("diagnose", corpus, "--model", model, "--pooling", "mean", *options)
    assert ran.status == 0, ran.err
    assert "130 texts in two parts" in ran.out
    result = json.loads((tmp_path / "d.json").read_text(), parse_constant=pytest.fail)
    assert (result["model"], result["texts"]) == (model, 130)
    assert "</html>" in (tmp_path / "d.html").read_text()
    # The saved encoder is the recommended one, and says how it came about.
    saved = Encoder.load(tmp_path / "model")
    assert saved.pooling == result["recommended"]["pooling"]
    lineage = json.loads((tmp_path / "model" / "sbertkit.json").read_text())["lineage"]
    assert lineage["base"] == Path(model).name
    known = lineage["diagnosis"]
    assert (known["corpus"], known["seed"]) == (corpus.name, 0)
    assert known["recommended"] == result["recommended"]
    assert "candidates" not in known


def test_where_nothing_can_be_written_no_work_is_done(
    run: Run, corpus: Path, tmp_path: Path
) -> None:
    taken = tmp_path / "taken"
    taken.mkdir()
    (taken / "letter.txt").write_text("mine")
    for option, place in (("--write", taken), ("--write", corpus), ("--report", taken)):
        ran = run("diagnose", corpus, "--model", tmp_path / "no-model", option, place)
        assert (ran.status, ran.out, ran.err.count("\n")) == (1, "", 1), ran.err
        assert place.name in ran.err
    assert [path.name for path in taken.iterdir()] == ["letter.txt"]
