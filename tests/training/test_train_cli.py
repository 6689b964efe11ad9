"""The command train-nli, from its options to what it prints, on tiny models."""

import json
import logging
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from training_cases import contents, quick_runs, rows, weight_bytes, write_dev, write_nli

from sbertkit import TrainConfig, TrainResult, classify_pairs, train_nli
from sbertkit.cli import main
from sbertkit.encoder import Encoder
from sbertkit.errors import InputError, InputTypeError
from sbertkit.training.nli import nli_recipe
from sbertkit.training.recipe import Recipe
from sbertkit.training.run.monitor import Monitor
from sbertkit.training.sweeps import spread, train_seeds


class Ran(NamedTuple):
    status: int
    out: str
    err: str


Run = Callable[..., Ran]


@pytest.fixture
def run(
    tiny_bert: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Run]:
    """Runs train-nli on the tiny base for six steps, unless the arguments say otherwise."""
    write_nli(tmp_path / "pairs.jsonl", rows(8))
    write_dev(tmp_path / "dev.tsv")
    (tmp_path / "models").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    logger = logging.getLogger("sbertkit")
    handlers, propagate = logger.handlers, logger.propagate

    def run_main(*arguments: str) -> Ran:
        capfd.readouterr()
        given = ["train-nli", *arguments]
        if "--base" not in given:
            given += ["--base", str(tiny_bert)]
        if not any(argument.endswith("jsonl") for argument in given):
            given += ["pairs.jsonl"]
        defaults = {"-o": "models/out", "--max-steps": "6", "--batch-size": "4", "--device": "cpu"}
        for name, value in defaults.items():
            if name not in given:
                given += [name, value]
        with pytest.raises(SystemExit) as stopped, quick_runs():
            main(given)
        captured = capfd.readouterr()
        assert isinstance(stopped.value.code, int)
        return Ran(stopped.value.code, captured.out, captured.err)

    yield run_main
    logger.handlers, logger.propagate = handlers, propagate
    names = {path.name for path in tmp_path.iterdir()}
    assert names <= {"pairs.jsonl", "dev.tsv", "models", "bad.jsonl", "own.tsv", "int.jsonl"}


def one_line(ran: Ran) -> str:
    """The message of a run that ended with status 1."""
    assert ran.status == 1
    assert ran.out == ""
    (line,) = ran.err.splitlines()
    assert line.startswith("sbertkit: error: ")
    return line


def facts_of(out: str) -> dict[str, str]:
    """Names and values, one pair a line with blanks between."""
    pairs = [re.split("  +", line.strip(), maxsplit=1) for line in out.splitlines()]
    return {pair[0]: pair[1] for pair in pairs}


def table_of(out: str) -> dict[str, list[str]]:
    """The cells of the rows of a table, by the first of them."""
    rows = [line.split("│")[1:-1] for line in out.splitlines() if line.startswith("│")]
    return {first.strip(): [cell.strip() for cell in cells] for first, *cells in rows}


def test_a_run_tells_what_it_came_to(run: Run, tmp_path: Path) -> None:
    ran = run("--dev", "dev.tsv", "--objective", "softmax", "--pooling", "cls")
    assert (ran.status, ran.err) == (0, "")
    facts = facts_of(ran.out)
    assert facts["model"] == str(tmp_path / "models" / "out")
    assert facts["objective"] == "softmax, pooling cls"
    assert facts["examples"].startswith("24, ")
    assert facts["steps"].startswith("6 in ")
    result = TrainResult.read(tmp_path / "models" / "out")
    after, before = result.after.spearman, result.before.spearman
    assert after is not None
    assert before is not None
    shown = re.sub(r" \([^)]*\)", "", facts["dev Spearman"])
    assert shown == f"{100 * after:.2f}, before {100 * before:.2f}"
    assert Encoder.load("models/out", device="cpu").pooling == "cls"
    assert classify_pairs("models/out", [("a", "b")])[0].probabilities.keys() == {
        "entailment",
        "neutral",
        "contradiction",
    }


@pytest.mark.parametrize("quiet", [[], ["--quiet"]])
def test_the_command_trains_what_the_library_trains(
    run: Run, tiny_bert: Path, tmp_path: Path, quiet: list[str]
) -> None:
    ran = run("--seed", "7", "--lr", "3e-4", "--warmup", "2", "--schedule", "cosine", *quiet)
    assert (ran.status, ran.err) == (0, "")
    config = TrainConfig(
        max_steps=6,
        batch_size=4,
        device="cpu",
        seed=7,
        learning_rate=3e-4,
        warmup=2,
        schedule="cosine",
    )
    with quick_runs():
        train_nli(tiny_bert, "pairs.jsonl", "models/library", config=config)
    assert weight_bytes(Path("models/out")) == weight_bytes(Path("models/library"))


def test_labels_that_are_numbers_are_named_by_an_option(run: Run, tmp_path: Path) -> None:
    (tmp_path / "int.jsonl").write_text(
        '{"label": 0, "premise": "a b", "hypothesis": "a"}\n'
        '{"label": 2, "premise": "a b", "hypothesis": "c"}\n'
    )
    assert "mapping" in one_line(run("int.jsonl"))
    ran = run("int.jsonl", "--labels", "0=entailment,1=neutral,2=contradiction")
    assert (ran.status, ran.err) == (0, "")


BAD: dict[str, list[str]] = {
    "bad.jsonl: 1 bad line: 1": ["bad.jsonl"],
    "missing.jsonl": ["missing.jsonl"],
    "missing": ["--base", "missing"],
    "missing.tsv": ["--dev", "missing.tsv"],
    "no unfinished run": ["--resume"],
    "precision fp16": ["--precision", "fp16"],
    "not 'paper'": ["--report-to", "paper"],
    "pip install tensorboard": ["--report-to", "tensorboard"],
    "device": ["--device", "abacus"],
    "is a file": ["-o", "dev.tsv"],
    "warmup must be a share": ["--warmup", "1.5"],
    "seeds must be distinct": ["--seeds", "1,2,1"],
    "a seed must be at least 0": ["--seeds", "1,-2"],
}


@pytest.mark.parametrize("reason", BAD)
def test_what_is_refused_is_one_line_and_leaves_nothing(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    from transformers.integrations import integration_utils

    monkeypatch.setattr(integration_utils, "get_available_reporting_integrations", list)
    (tmp_path / "bad.jsonl").write_text('{"gold_label": "maybe", "sentence1": "a"}\n')
    assert reason in one_line(run(*BAD[reason]))
    assert contents(tmp_path / "models") == {}


def test_without_data_the_hub_is_asked(run: Run, tiny_bert: Path, tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["train-nli", "--base", str(tiny_bert), "-o", "models/out"])
    assert stopped.value.code == 1
    assert contents(tmp_path / "models") == {}


@pytest.mark.parametrize(
    "arguments",
    [
        ["--require-gain"],
        ["--patience", "2"],
        ["--drop-overlap"],
        ["--seeds", "1", "--ablate", "pooling"],
        ["--seeds", "1", "--seed", "2"],
        ["--ablate", "pooling", "--pooling", "mean"],
        ["--features", "u,v"],
        ["--features", "u,v", "--objective", "contrastive"],
        ["--temperature", "0.1", "--objective", "softmax"],
        ["--seeds", "one"],
        ["--ablate", "base"],
        ["--objective", "triplet"],
        ["--pooling", "median"],
        ["--no-such-option"],
    ],
)
def test_wrong_usage_is_status_2(run: Run, tmp_path: Path, arguments: list[str]) -> None:
    ran = run(*arguments)
    assert (ran.status, ran.out) == (2, "")
    assert "Traceback" not in ran.err
    assert contents(tmp_path / "models") == {}


def test_the_guard_ends_the_command_with_one_line(run: Run, tmp_path: Path) -> None:
    collapse = ["--max-steps", "40", "--lr", "0.1", "--warmup", "0.5", "--checkpoint-steps", "2"]
    write_nli(tmp_path / "pairs.jsonl", rows(48))
    line = one_line(run(*collapse))
    assert "training stopped: collapse" in line
    kept = Path(line.split("the last good checkpoint is ")[1])
    assert Encoder.load(kept, device="cpu").dim == 32
    assert [path.name for path in (tmp_path / "models").iterdir()] == ["out.run"]
    assert "finite" in one_line(run("--lr", "1e30", "-o", "models/other"))
    assert [path.name for path in (tmp_path / "models").iterdir()] == ["out.run"]


def own_dev(base: Path, path: Path, sign: int) -> None:
    """The base's own cosines as gold scores, or their opposites: it is best or worst already."""
    encoder = Encoder.load(base, pooling="mean", device="cpu")
    texts = [f"{word} {number}" for number, word in enumerate(("he", "an owl", "tea", "x") * 4)]
    vectors = encoder.encode(texts)
    gold = sign * (vectors[:8] * vectors[8:]).sum(axis=1)
    lines = zip(gold, texts[:8], texts[8:], strict=True)
    path.write_text("".join(f"{score:.9f}\t{a}\t{b}\n" for score, a, b in lines))


@pytest.mark.parametrize(
    ("sign", "required", "status"), [(1, False, 0), (1, True, 1), (-1, False, 0), (-1, True, 0)]
)
def test_a_gain_is_required_where_it_is_asked_for(
    run: Run, tiny_bert: Path, tmp_path: Path, sign: int, required: bool, status: int
) -> None:
    own_dev(tiny_bert, tmp_path / "own.tsv", sign)
    asked = ["--require-gain"] if required else []
    ran = run("--dev", "own.tsv", "--lr", "0.01", "--no-guard", *asked)
    assert ran.status == status
    assert "dev Spearman" in ran.out
    assert Encoder.load("models/out", device="cpu").dim == 32  # saved in any case
    lines = ran.err.splitlines()
    if sign > 0:
        assert lines.pop(0).startswith("warning: the trained encoder is worse than its base")
    refusal = ["sbertkit: error: the dev score did not rise, as --require-gain wants"]
    assert lines == (refusal if status else [])


def test_seeds_are_a_table_with_their_mean(run: Run, tmp_path: Path) -> None:
    ran = run("--seeds", "3,1", "--dev", "dev.tsv")
    assert (ran.status, [line for line in ran.err.splitlines() if "worse" not in line]) == (0, [])
    assert list(table_of(ran.out)) == ["3", "1"]
    folder = tmp_path / "models" / "out"
    results = {seed: TrainResult.read(folder / f"seed-{seed}") for seed in (3, 1)}
    mean, deviation = spread(results, lambda result: result.after.spearman)
    assert mean is not None
    assert deviation is not None
    assert f"{100 * mean:.2f}, standard deviation {100 * deviation:.2f}" in ran.out
    made = [weight_bytes(result.folder)["model.safetensors"] for result in results.values()]
    assert made[0] != made[1]
    assert sorted(path.name for path in (tmp_path / "models").iterdir()) == ["out"]
    # A run of its own with that seed is the same.
    assert run("--seed", "3", "--dev", "dev.tsv", "-o", "models/three").status == 0
    assert weight_bytes(Path("models/three")) == weight_bytes(Path("models/out/seed-3"))


@pytest.mark.skipif(not Path("/dev/fd").is_dir(), reason="no names of open files")
def test_a_series_reads_a_piped_dev_set_once(run: Run, tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.write(writing, (tmp_path / "dev.tsv").read_bytes())
    os.close(writing)
    ran = run("--seeds", "1,2", "--max-steps", "1", "--dev", f"/dev/fd/{reading}")
    os.close(reading)
    assert ran.status == 0, ran.err
    for seed in (1, 2):
        record = TrainResult.read(tmp_path / "models" / "out" / f"seed-{seed}").record
        assert (record["dev"]["source"], record["dev"]["pairs"]) == ("pipe", 8)


def test_a_series_goes_on_where_it_stopped(run: Run, tmp_path: Path) -> None:
    series = ["--seeds", "1,2,3", "--dev", "dev.tsv"]
    first = run(*series)
    before = contents(tmp_path / "models")
    assert "exists and is not empty" in one_line(run(*series))
    assert contents(tmp_path / "models") == before
    shutil.rmtree(tmp_path / "models" / "out" / "seed-2")
    shutil.rmtree(tmp_path / "models" / "out" / "seed-3")
    again = run(*series, "--resume")
    assert (again.status, again.out) == (0, first.out)
    after = contents(tmp_path / "models")
    changed = {name for name in before if before[name] != after[name]}
    assert after.keys() == before.keys()
    # Of the runs that were made again only the times differ.
    assert not [name for name in changed if "seed-1" in name or "safetensors" in name]
    assert "learning_rate" in one_line(run(*series, "--resume", "--lr", "3e-4"))
    assert "objective" in one_line(run(*series, "--resume", "--objective", "softmax"))
    assert "dev was" in one_line(run("--seeds", "1,2,3", "--resume"))
    write_dev(tmp_path / "dev.tsv", [("neutral", "x", "y"), ("entailment", "x", "z")])
    assert "dev was" in one_line(run(*series, "--resume"))
    write_dev(tmp_path / "dev.tsv")
    assert "base was" in one_line(run(*series, "--resume", "--base", "models/out/seed-1"))
    write_nli(tmp_path / "pairs.jsonl", rows(7))
    assert "data 1.sha256 was" in one_line(run(*series, "--resume"))
    assert contents(tmp_path / "models") == after


def test_poolings_are_compared_in_a_table(run: Run, tmp_path: Path) -> None:
    ran = run("--ablate", "pooling", "--dev", "dev.tsv", "--objective", "softmax", "--no-guard")
    assert ran.status == 0
    assert "Traceback" not in ran.err
    table = table_of(ran.out)
    published = {"cls": "79.80", "mean": "80.78", "max": "79.07", "eos": "n/a"}
    assert {name: cells[-1] for name, cells in table.items()} == published
    for name in published:
        after = TrainResult.read(tmp_path / "models" / "out" / name).after.spearman
        assert after is not None
        assert table[name][1].startswith(f"{100 * after:.2f}")
        assert Encoder.load(f"models/out/{name}", device="cpu").pooling == name


def recipe_of(base: Path, data: Path, config: TrainConfig) -> Recipe:
    return nli_recipe(base, data, pooling="mean", objective="softmax", dev=None, config=config)


@pytest.mark.parametrize("seeds", [[], [1, 1], [-1], ["1"], 3])
def test_seeds_that_are_none_are_refused_at_once(
    tiny_bert: Path, tmp_path: Path, seeds: Any
) -> None:
    recipe = recipe_of(tiny_bert, tmp_path / "missing", TrainConfig())
    with pytest.raises((InputError, InputTypeError), match="seed"):
        train_seeds(recipe, tmp_path / "out", seeds)


def test_a_series_without_a_dev_set_has_no_mean(run: Run) -> None:
    ran = run("--seeds", "1,2")
    assert (ran.status, ran.err) == (0, "")
    assert ran.out.count("n/a") == 4
    assert "mean dev" not in ran.out


def test_an_unfinished_run_of_a_series_goes_on(
    tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = write_nli(tmp_path / "pairs.jsonl", rows(8))
    config = TrainConfig(max_steps=6, batch_size=4, checkpoint_steps=2, device="cpu")
    recipe = recipe_of(tiny_bert, data, config)
    with quick_runs():
        whole = train_seeds(recipe, tmp_path / "whole", [1, 2])
        step_end = Monitor.on_step_end

        def interrupt(self: Monitor, args: Any, state: Any, *more: Any, **named: Any) -> None:
            step_end(self, args, state, *more, **named)
            if (args.seed, state.global_step) == (2, 5):
                raise KeyboardInterrupt

        monkeypatch.setattr(Monitor, "on_step_end", interrupt)
        with pytest.raises(KeyboardInterrupt):
            train_seeds(recipe, tmp_path / "cut", [1, 2])
        monkeypatch.undo()
        assert sorted(path.name for path in (tmp_path / "cut").iterdir()) == [
            "seed-1",
            "seed-2.run",
        ]
        with pytest.raises(InputError, match="not empty"):
            train_seeds(recipe, tmp_path / "cut", [1, 2])
        resumed = replace(recipe, config=replace(config, resume=True))
        cut = train_seeds(resumed, tmp_path / "cut", [1, 2])
    for seed in (1, 2):
        assert weight_bytes(cut[seed].folder) == weight_bytes(whole[seed].folder)
    assert sorted(path.name for path in (tmp_path / "cut").iterdir()) == ["seed-1", "seed-2"]


def test_the_table_of_poolings_fits_a_terminal_of_80_columns(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    ran = run("--ablate", "pooling", "--dev", "dev.tsv", "--objective", "softmax", "--no-guard")
    table = table_of(ran.out)
    assert list(table) == ["cls", "mean", "max", "eos"]
    assert all(len(cells) == 7 and "…" not in "".join(cells) for cells in table.values())


def test_a_split_is_named_and_the_rows_of_others_are_counted(run: Run, tmp_path: Path) -> None:
    found = [json.loads(line) for line in (tmp_path / "pairs.jsonl").read_text().splitlines()]
    named = [{**row, "split": "dev" if at < 4 else "train"} for at, row in enumerate(found)]
    lines = "".join(json.dumps(row) + "\n" for row in named)
    (tmp_path / "pairs.jsonl").write_text(lines)
    ran = run()
    assert ran.status == 0
    assert "4 rows of other splits left out (4 dev)" in ran.err
    (data,) = TrainResult.read(tmp_path / "models" / "out").record["data"]
    assert (data["rows"], data["other_splits"]) == (len(found) - 4, 4)
    refused = one_line(run("--split", "test", "-o", "models/b"))
    assert "expected a test split, found dev, train" in refused


@pytest.mark.parametrize(
    ("data", "more", "refusal"),
    [
        ("numbers", [], "the premise must be text, found int"),
        ("numbers", ["--seeds", "1,2"], "the premise must be text, found int"),
        ("numbers", ["--ablate", "pooling"], "the premise must be text, found int"),
        ("pairs", ["--dev", "numbers.jsonl"], "no field 'sentence1' and 'sentence2'"),
        ("pairs", ["-o", "."], "is not empty"),
    ],
)
def test_a_mistake_in_data_or_output_is_found_before_torch_is_loaded(
    tmp_path: Path, data: str, more: list[str], refusal: str
) -> None:
    row = {"premise": 1, "hypothesis": 2, "label": "neutral"}
    (tmp_path / "numbers.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    write_nli(tmp_path / "pairs.jsonl", rows(4))
    arguments = ["train-nli", f"{data}.jsonl", "--base", "nowhere", "-o", "out", *more]
    heavy = ("torch", "transformers", "sentence_transformers", "scipy", "pandas", "sklearn")
    code = (
        f"import sys\nfrom sbertkit.cli import main\ntry: main({arguments!r})\n"
        f"finally: print([name for name in {heavy!r} if name in sys.modules])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout) == (1, "[]\n")
    (line,) = ran.stderr.splitlines()
    assert refusal in line
    assert not (tmp_path / "out").exists()
