"""``models``: the table, its filters, what is measured here, and two encoders compared."""

import json
from pathlib import Path

import pytest
from command_line import Run

from sbertkit.cli import models
from sbertkit.encoder import Encoder
from sbertkit.encoder.catalog import KNOWN_MODELS, known_models
from sbertkit.evaluation.model_cost import MeasuredModels, ModelCost


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.txt"
    rows = (f"line {row} of many. It has parts. The goat ate line {row}.\n" for row in range(120))
    path.write_text("".join(rows))
    return path


def test_every_entry_is_listed_without_torch(run: Run) -> None:
    ran = run("models")
    assert (ran.status, ran.err) == (0, "")
    for one in KNOWN_MODELS:
        assert one.name in ran.out
        assert one.note in ran.out


def test_the_list_fits_a_terminal_of_80_columns(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "table_width", lambda _: 80)
    monkeypatch.setattr("sbertkit.cli.output.table_width", lambda _: 80)
    ran = run("models")
    assert max(map(len, ran.out.splitlines())) <= 80
    assert "answerdotai/ModernBERT-base" in ran.out


def test_conditions_choose(run: Run) -> None:
    options = ("--language", "chinese", "--max-params", "110M", "--base")
    expected = known_models(language="zh", max_parameters="110M", ready=False)
    content = json.loads(run("models", *options, "--format", "json").out)
    assert [one["name"] for one in content["models"]] == [one.name for one in expected]
    assert content["models"][0] == json.loads(json.dumps(expected[0].to_dict()))
    printed = run("models", "--ready", "--length", 8192, "--task", "mlm", "--domain", "general")
    assert "BAAI/bge-m3" in printed.out
    assert "ModernBERT" not in printed.out


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("--language chinse", "did you mean 'chinese'"),
        ("--domain cliniccal", "did you mean 'clinical'"),
        ("--task contrastiv", "did you mean 'contrastive'"),
        ("--max-params big", "--max-params must be a number such as 110M"),
        ("show bert-base-uncase", "did you mean 'google-bert/bert-base-uncased'"),
    ],
)
def test_what_is_unknown_is_refused_in_one_line(run: Run, options: str, expected: str) -> None:
    ran = run("models", *options.split())
    assert (ran.status, ran.out, ran.err.count("\n")) == (1, "", 1)
    assert expected in ran.err


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--length 0", "--length"),
        ("--model x", "need --measure"),
        ("--corpus x", "need --measure"),
        ("--language zh show bert-base-chinese", "options go after show"),
        ("compare a b", "--corpus"),
        ("compare a --corpus x", "MODEL"),
        ("compar a b", "No such command"),
    ],
)
def test_wrong_usage_is_told_apart(run: Run, words: str, expected: str) -> None:
    ran = run("models", *words.split())
    assert ran.status == 2
    assert expected in ran.err


def test_when_none_suits_that_is_said(run: Run) -> None:
    ran = run("models", "--length", 8192, "--language", "da", "--max-params", "50M")
    assert ran.status == 0
    assert "leave a condition out" in ran.err
    content = json.loads(run("models", "--domain", "finance", "--ready", "--format", "json").out)
    assert content == {"models": []}


def test_an_entry_is_shown_whole(run: Run) -> None:
    ran = run("models", "show", "multilingual-e5-small")
    assert ran.status == 0, ran.err
    for expected in ("117,653,760", "'passage: '", "SentencePiece", "contrastive", "mit", "mteb"):
        assert expected in ran.out
    ran = run("models", "show", "SpanBERT/spanbert-base-cased")
    assert "no safetensors" in ran.out
    assert "cc-by-nc-4.0" in ran.out


def test_a_folder_is_timed(run: Run, tiny_encoder: Encoder, tmp_path: Path, corpus: Path) -> None:
    name = tmp_path / "my \x1b[31m model"
    tiny_encoder.save(name)
    options = ("--domain", "science", "--measure", "--model", name, "--corpus", corpus)
    ran = run("models", *options, "--quiet")
    assert ran.status == 0, ran.err
    assert "\x1b" not in ran.out + ran.err
    assert "texts/s" in ran.out
    assert "GB" in ran.out


def test_what_is_on_this_machine_is_timed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []

    def measure(names: list[str], *_: object, **__: object) -> MeasuredModels:
        asked.append(names)
        cost = ModelCost(names[0], 384, 256, 100, 1.5, 20, 90, 0.5, 10**9, 0, "cpu", "fp32")
        return MeasuredModels((cost,), dict.fromkeys(names[1:], "it is broken"))

    here = {"intfloat/e5-small-v2", "allenai/scibert_scivocab_uncased"}
    monkeypatch.setattr(
        "sbertkit.encoder.resolve.local_model", lambda name: name if name in here else None
    )
    monkeypatch.setattr("sbertkit.evaluation.measure_models", measure)
    ran = run("models", "--measure", "--format", "json")
    # One that is listed and cannot be loaded is said; only a --model that cannot ends in failure.
    assert ran.status == 0
    assert asked == [["intfloat/e5-small-v2", "allenai/scibert_scivocab_uncased"]]
    content = json.loads(ran.out)
    assert content["costs"][0]["texts_per_second"] == 40
    assert content["failed"] == {"allenai/scibert_scivocab_uncased": "it is broken"}
    assert "scibert_scivocab_uncased: it is broken" in ran.err
    ran = run("models", "--measure", "--domain", "science", "--model", "mine")
    assert asked[-1] == ["allenai/scibert_scivocab_uncased", "mine"]
    assert ran.status == 1


def test_two_encoders_are_compared(
    run: Run, tiny_encoder: Encoder, tiny_bert: Path, tmp_path: Path, corpus: Path
) -> None:
    first, second = tmp_path / "one", tmp_path / "two"
    tiny_encoder.save(first)
    Encoder.load(tiny_bert, pooling="cls").save(second)
    out = tmp_path / "found.json"
    ran = run("models", "compare", first, second, "--corpus", corpus, "--json", out)
    assert ran.status == 0, ran.err
    for expected in ("accuracy", "reciprocal rank", "texts/s", "dimensions", "verdict", "120"):
        assert expected in ran.out
    result = json.loads(out.read_text(), parse_constant=pytest.fail)
    assert (result["pairs"], result["corpus"]) == (120, str(corpus))
    assert [result[side]["model"] for side in ("first", "second")] == [str(first), str(second)]
    assert result["first"]["pooling"] == "mean"
    assert result["verdict"] in ran.out
    assert {"date", "machine"} <= result["environment"].keys()


def test_a_result_does_not_take_the_place_of_the_corpus(run: Run, corpus: Path) -> None:
    before = corpus.read_bytes()
    ran = run("models", "compare", "no-a", "no-b", "--corpus", corpus, "--json", corpus)
    assert ran.status == 1
    assert "choose another file" in ran.err
    assert corpus.read_bytes() == before
