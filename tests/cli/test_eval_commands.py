"""``eval retrieval`` and ``eval compare``."""

import json
from pathlib import Path

import pytest
from command_line import Run

from sbertkit.encoder import Encoder

TEXTS = {"d1": "a kettle sings", "d2": "two goats climb", "d3": "rain on the roof", "q2": "goats"}
QUERIES = {"q1": "a kettle", "q2": "goats"}
QRELS = {"q1": "d1", "q2": "d2"}


@pytest.fixture
def model(tiny_encoder: Encoder) -> str:
    return tiny_encoder.options.model


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A collection in BEIR's layout."""
    place = tmp_path / "set"
    (place / "qrels").mkdir(parents=True)
    for name, content in (("corpus", TEXTS), ("queries", QUERIES)):
        rows = (json.dumps({"_id": key, "text": text}) for key, text in content.items())
        (place / f"{name}.jsonl").write_text("".join(f"{row}\n" for row in rows))
    lines = "".join(f"{query}\t{document}\t1\n" for query, document in QRELS.items())
    (place / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{lines}")
    return place


@pytest.fixture
def outputs(tmp_path: Path) -> dict[str, Path]:
    """Files that eval retrieval writes, by option."""
    names = {"--json": "r.json", "--per-query": "r.tsv", "--write-run": "r.trec"}
    return {option: tmp_path / "out" / name for option, name in names.items()}


def test_an_encoder_is_measured_and_all_is_written(
    run: Run, folder: Path, model: str, outputs: dict[str, Path]
) -> None:
    options = [part for option in outputs.items() for part in option]
    ran = run("eval", "retrieval", folder, "--model", model, "--measure", "RR@10", *options)
    assert ran.status == 0, ran.err
    assert "RR@10" in ran.out
    assert "nDCG" not in ran.out
    assert "2 evaluated, 0 left out" in ran.out
    assert "excluded (1 found)" in ran.out
    result = json.loads(outputs["--json"].read_text(), parse_constant=pytest.fail)
    assert (result["model"], result["split"], result["queries"]) == (model, "test", 2)
    assert len(result["fingerprint"]) == 64
    lines = [line.split("\t") for line in outputs["--per-query"].read_text().splitlines()]
    assert [line[0] for line in lines] == ["query", "q1", "q2"]
    values = [float(line[1]) for line in lines[1:]]
    assert sum(values) / 2 == pytest.approx(result["measures"]["RR@10"], abs=1e-6)
    # What was written as a run gives the same again, with the judgements alone, too.
    for collection in (folder, folder / "qrels" / "test.tsv"):
        again = run("eval", "retrieval", collection, "--run", outputs["--write-run"])
        assert again.status == 0, again.err
        assert f"{result['measures']['RR@10']:.4f}" in again.out


@pytest.mark.parametrize(
    ("name", "old", "new"), [("corpus", "d3", "d 3"), ("queries", "q1", "q 1")]
)
def test_ids_that_no_run_can_hold_are_refused_before_the_encoder_is_loaded(
    run: Run, folder: Path, outputs: dict[str, Path], name: str, old: str, new: str
) -> None:
    for path in (folder / f"{name}.jsonl", folder / "qrels" / "test.tsv"):
        path.write_text(path.read_text().replace(old, new))
    ran = run(
        *("eval", "retrieval", folder, "--model", folder / "no model"),
        *("--write-run", outputs["--write-run"]),
    )
    assert ran.status == 1
    (line,) = ran.err.splitlines()
    assert f"a run file cannot hold '{new}'" in line


def test_an_index_is_measured_as_its_encoder_is(
    run: Run, folder: Path, model: str, tmp_path: Path
) -> None:
    built = run("index", folder, "-o", tmp_path / "i", "--model", model, "--pooling", "mean")
    assert built.status == 0, built.err
    shown = []
    for system in (("--index", tmp_path / "i"), ("--model", model)):
        ran = run("eval", "retrieval", folder, *system, "--json", tmp_path / "r.json")
        assert ran.status == 0, ran.err
        shown.append(json.loads((tmp_path / "r.json").read_text()))
    assert shown[0]["measures"] == shown[1]["measures"]
    assert (shown[0]["kind"], shown[0]["fingerprint"]) == ("flat", shown[1]["fingerprint"])


def test_self_matches_are_kept_on_demand(run: Run, folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.trec"
    path.write_text("q2 Q0 q2 1 2.0 x\nq2 Q0 d2 2 1.0 x\nq1 Q0 d1 1 1.0 x\n")
    means = []
    for collection, *options in (
        (folder,),
        (folder, "--keep-self"),
        (folder / "qrels" / "test.tsv",),
        (folder / "qrels" / "test.tsv", "--exclude-self"),
    ):
        ran = run(
            "eval", "retrieval", collection, "--run", path, "--measure", "RR,P(rel=1)@1", *options
        )
        means.append("0.7500" not in ran.out)
        assert ("own id" in ran.err) == (not means[-1])
    assert means == [True, False, False, True]


@pytest.mark.parametrize(
    "options",
    [
        ("--index", "i", "--run", "r"),
        ("--run", "r", "--model", "m"),
        ("--run", "r", "--max-tokens", "9"),
        ("--index", "i", "--dim", "9"),
        ("--run", "r", "--write-run", "o"),
        ("--index", "i", "--pooling", "cls"),
        ("--depth", "0"),
    ],
)
def test_options_that_do_not_go_together_are_wrong_usage(
    run: Run, folder: Path, options: tuple[str, ...]
) -> None:
    ran = run("eval", "retrieval", folder, *options)
    assert ran.status == 2
    assert ran.out == ""


def test_a_split_means_nothing_for_a_file_of_judgements(run: Run, folder: Path) -> None:
    qrels = folder / "qrels" / "test.tsv"
    assert run("eval", "retrieval", qrels, "--run", "r", "--split", "dev").status == 2


def test_refusals_are_one_line_and_write_nothing(
    run: Run, folder: Path, model: str, outputs: dict[str, Path]
) -> None:
    options = [part for option in outputs.items() for part in option]
    for wrong in (("--measure", "nDCGG@10"), ("--split", "dev"), ("--depth", "5")):
        chosen = ("--model", model, "--pooling", "mean", *wrong)
        ran = run("eval", "retrieval", folder, *chosen, *options)
        assert (ran.status, ran.out, ran.err.count("\n")) == (1, "", 1), ran.err
    assert not outputs["--json"].parent.exists()


@pytest.mark.parametrize(
    ("measure", "reason"),
    [
        ("nDCG@0", "expected a cut-off of 1 or more, found 0"),
        ("P@0", "cut-off"),
        ("R@-3", "R@-3"),
        ("P(rel=0)@5", "expected a minimum grade of 1 or more, found 0"),
        ("AP(rel=0)", "minimum grade"),
    ],
)
def test_what_would_end_trec_evals_code_is_refused(
    run: Run, folder: Path, tmp_path: Path, measure: str, reason: str
) -> None:
    path = tmp_path / "a.trec"
    path.write_text("q1 Q0 d1 1 2.0 x\n")
    ran = run("eval", "retrieval", folder, "--run", path, "--measure", measure)
    assert (ran.status, ran.out, ran.err.count("\n")) == (1, "", 1)
    assert reason in ran.err


def test_a_run_with_other_ids_gets_a_refusal_or_warning(
    run: Run, folder: Path, tmp_path: Path
) -> None:
    path = tmp_path / "a.trec"
    for collection in (folder, folder / "qrels" / "test.tsv"):
        path.write_text("001 Q0 d1 1 2.0 x\n")
        refused = run("eval", "retrieval", collection, "--run", path)
        assert refused.status == 1
        assert "none of the 1 queries of the run is judged" in refused.err
        path.write_text("q1 Q0 1 1 2.0 x\nq2 Q0 2 1 2.0 x\n")
        warned = run("eval", "retrieval", collection, "--run", path)
        assert warned.status == 0
        assert "no document of the run is judged" in warned.err


def test_two_outputs_need_two_files(run: Run, folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.trec"
    path.write_text("q1 Q0 d1 1 2.0 x\n")
    same = tmp_path / "same.x"
    outputs = ("--json", same, "--per-query", tmp_path / "." / "same.x")
    ran = run("eval", "retrieval", folder, "--run", path, *outputs)
    assert ran.status == 1
    assert "is named for two outputs" in ran.err
    assert not same.exists()


def test_a_run_and_a_result_are_not_compared(run: Run, folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.trec"
    path.write_text("q1 Q0 d1 1 2.0 x\n")
    result = tmp_path / "r.json"
    assert run("eval", "retrieval", folder, "--run", path, "--json", result).status == 0
    qrels = folder / "qrels" / "test.tsv"
    ran = run("eval", "compare", path, result, "--qrels", qrels)
    assert (ran.status, ran.err.count("\n")) == (1, 1)
    assert "looks like a result, not a run" in ran.err


def test_a_collection_is_read_before_the_encoder_is_loaded(run: Run, folder: Path) -> None:
    ran = run("eval", "retrieval", folder, "--model", folder / "no-model", "--split", "dev")
    assert ran.status == 1
    assert "no split 'dev'; found test" in ran.err


def test_two_runs_are_compared(run: Run, folder: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "a.trec", tmp_path / "b.trec"
    first.write_text("q1 Q0 d1 1 2.0 x\nq2 Q0 d2 1 1.0 x\n")
    second.write_text("q1 Q0 d3 1 2.0 x\nq1 Q0 d1 2 1.0 x\nq2 Q0 d2 1 1.0 x\n")
    ran = run(
        *("eval", "compare", first, second, "--qrels", folder / "qrels" / "test.tsv"),
        *("--measure", "RR@10", "--json", tmp_path / "c.json"),
    )
    assert ran.status == 0, ran.err
    assert "+0.2500" in ran.out
    result = json.loads((tmp_path / "c.json").read_text(), parse_constant=pytest.fail)
    assert result["tests"]["RR@10"]["difference"] == 0.25
    assert result["tests"]["RR@10"]["p_value"] == 1.0  # one difference cannot tell


def test_two_written_results_are_compared(run: Run, folder: Path, tmp_path: Path) -> None:
    run_file = tmp_path / "a.trec"
    run_file.write_text("q1 Q0 d1 1 2.0 x\nq2 Q0 d2 1 1.0 x\n")
    for name in ("a.json", "b.json"):
        assert (
            run("eval", "retrieval", folder, "--run", run_file, "--json", tmp_path / name)[0] == 0
        )
    ran = run("eval", "compare", tmp_path / "a.json", tmp_path / "b.json")
    assert ran.status == 0, ran.err
    assert "+0.0000" in ran.out
    assert run("eval", "compare", "a.json", "b.json", "--measure", "AP").status == 2


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.tsv"
    rows = "".join(f"{row % 6}\ta {row}\tb {row * row % 7} {row}\n" for row in range(40))
    path.write_text(f"score\tsentence1\tsentence2\n{rows}")
    return path


def test_each_result_says_when_with_what_and_on_what_it_was_measured(
    run: Run, folder: Path, model: str, pairs: Path, tmp_path: Path
) -> None:
    texts, trec, index = tmp_path / "texts.txt", tmp_path / "a.trec", tmp_path / "i"
    texts.write_text("".join(f"text {row} of several different words\n" for row in range(120)))
    trec.write_text("q1 Q0 d1 1 2.0 x\n")
    built = run("index", folder, "-o", index, "--model", model, "--pooling", "mean")
    assert built.status == 0, built.err
    encoder = ("--model", model, "--pooling", "mean")
    commands: dict[tuple[object, ...], set[str]] = {
        ("eval", "sts", pairs, *encoder): {"precision", "texts"},
        ("eval", "retrieval", folder, *encoder): {"precision", "texts"},
        ("eval", "retrieval", folder, "--index", index): {"precision", "texts"},
        ("eval", "retrieval", folder, "--run", trec): set(),
        ("eval", "isotropy", texts, *encoder): {"precision", "texts"},
        ("eval", "index", index): set(),
        ("eval", "compare", trec, trec, "--qrels", folder / "qrels/test.tsv"): set(),
        ("diagnose", texts, *encoder): {"precision", "texts"},
    }
    for command, more in commands.items():
        file = tmp_path / "out.json"
        ran = run(*command, "--json", file)
        assert ran.status == 0, ran.err
        result = json.loads(file.read_text(), parse_constant=pytest.fail)
        environment, counts = result["environment"], result.get("encoded") or {}
        assert {"date", "sbertkit", "libraries", "machine"} <= environment.keys(), command
        assert ({*environment, *counts} & {"precision", "texts"}) == more, command


def test_two_models_are_compared_on_sentence_pairs(
    run: Run, model: str, pairs: Path, tmp_path: Path
) -> None:
    files = {pooling: tmp_path / f"{pooling}.json" for pooling in ("mean", "cls")}
    for pooling, file in files.items():
        ran = run("eval", "sts", pairs, "--model", model, "--pooling", pooling, "--json", file)
        assert ran.status == 0, ran.err
    outputs = ("--json", tmp_path / "c.json", "--report", tmp_path / "c.html")
    ran = run("eval", "compare", *files.values(), *outputs)
    assert ran.status == 0, ran.err
    for expected in ("Spearman", "Pearson", "40", "verdict", f"{model} ({files['cls']})"):
        assert expected in ran.out
    result = json.loads((tmp_path / "c.json").read_text(), parse_constant=pytest.fail)
    assert (result["A"], result["unit"], result["count"]) == (str(files["mean"]), "pairs", 40)
    assert 0 < result["tests"]["Spearman"]["p_value"] <= 1
    printed = run("eval", "compare", *files.values(), "--report", "-", "--quiet").out
    for page in ((tmp_path / "c.html").read_text(), printed):
        assert "Pairs that differ most" in page
        assert page.startswith("<!doctype html>")


def test_results_of_different_pairs_are_refused_in_one_line(
    run: Run, model: str, pairs: Path, tmp_path: Path
) -> None:
    shorter = tmp_path / "shorter.tsv"
    shorter.write_text("".join(pairs.read_text().splitlines(keepends=True)[:-1]))
    for file in (pairs, shorter):
        ran = run("eval", "sts", file, "--model", model, "--json", file.with_suffix(".json"))
        assert ran.status == 0, ran.err
    outputs = ("--json", tmp_path / "c.json", "--report", tmp_path / "c.html")
    ran = run(
        *("eval", "compare", pairs.with_suffix(".json"), shorter.with_suffix(".json")), *outputs
    )
    assert (ran.status, ran.out, ran.err.count("\n")) == (1, "", 1)
    assert "different sentence pairs (40 and 39)" in ran.err
    assert not (tmp_path / "c.json").exists()
    assert not (tmp_path / "c.html").exists()


def test_two_suites_are_compared(
    run: Run, model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pairs: Path
) -> None:
    monkeypatch.setenv("SBERTKIT_DATA", str(tmp_path))
    (tmp_path / "sts").mkdir()
    lines = pairs.read_text().splitlines()
    rows = [f"split\t{lines[0]}", *(f"test\t{line}" for line in lines[1:])]
    (tmp_path / "sts" / "stsb.tsv").write_text("\n".join(rows) + "\n")
    suite = tmp_path / "mine.toml"
    suite.write_text('title = "mine"\nsets = ["stsb"]\n')
    for pooling in ("mean", "cls"):
        written = ("-o", tmp_path / pooling, "--json", tmp_path / f"{pooling}.json")
        ran = run("eval", "run", suite, "--model", model, "--pooling", pooling, *written)
        assert ran.status == 0, ran.err
    ran = run("eval", "compare", tmp_path / "mean.json", tmp_path / "cls.json")
    assert ran.status == 0, ran.err
    assert "stsb" in ran.out
    assert "1 sets" not in ran.out
    result = json.loads((tmp_path / "mean.json").read_text())
    assert result["environment"]["precision"] == "fp32"
    assert result["scores"]["stsb"]["details"]["encoded"]["truncated"] == 0


def test_different_queries_are_refused_unless_missing_is_zero(
    run: Run, folder: Path, tmp_path: Path
) -> None:
    first, second = tmp_path / "a.trec", tmp_path / "b.trec"
    first.write_text("q1 Q0 d1 1 2.0 x\nq2 Q0 d2 1 1.0 x\n")
    second.write_text("q1 Q0 d1 1 2.0 x\n")
    command = ("eval", "compare", first, second, "--qrels", folder / "qrels" / "test.tsv")
    refused = run(*command)
    assert refused.status == 1
    assert "different queries" in refused.err
    assert run(*command, "--missing-as-zero").status == 0


def test_no_output_takes_the_place_of_what_is_read(
    run: Run, folder: Path, model: str, tmp_path: Path
) -> None:
    trec, texts, pairs = tmp_path / "a.trec", tmp_path / "texts.txt", tmp_path / "pairs.tsv"
    trec.write_text("q1 Q0 d1 1 2.0 x\n")
    texts.write_text("".join(f"text {row} of some words\n" for row in range(50)))
    pairs.write_text("score\tsentence1\tsentence2\n" + "1.5\ta\tb\n2.5\tc\td\n" * 5)
    (tmp_path / "link.json").symlink_to(pairs)
    suite = tmp_path / "mine.toml"
    suite.write_text('title = "mine"\nsets = ["stsb"]\n')
    commands: list[tuple[object, ...]] = [
        ("eval", "sts", pairs, "--json", pairs),
        ("eval", "sts", pairs, "--report", tmp_path / "link.json"),
        ("eval", "isotropy", texts, "--report", texts),
        ("eval", "retrieval", folder, "--run", trec, "--json", trec),
        ("eval", "retrieval", folder, "--write-run", folder / "corpus.jsonl"),
        ("eval", "compare", trec, trec, "--qrels", folder / "qrels/test.tsv", "--json", trec),
        ("eval", "compare", trec, trec, "--qrels", folder / "qrels/test.tsv", "--report", trec),
        ("eval", "run", suite, "--json", suite),
        ("diagnose", texts, "--json", texts),
    ]
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for command in commands:
        encoder = () if command[1] == "compare" or trec in command else ("--model", model)
        ran = run(*command, *encoder)
        assert ran.status == 1, command
        assert "choose another file for the result" in ran.err, command
        assert len(ran.err.splitlines()) == 1
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_data_set_is_evaluated_by_its_name(
    run: Run, model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SBERTKIT_DATA", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    missing = run("eval", "sts", "stsb", "--model", model)
    assert missing.status == 1
    assert "sbertkit data get stsb" in missing.err
    (tmp_path / "sts").mkdir()
    rows = "".join(f"test\t{row % 5}\ta {row}\tb {row}\n" for row in range(20))
    (tmp_path / "sts" / "stsb.tsv").write_text(f"split\tscore\tsentence1\tsentence2\n{rows}")
    assert run("eval", "sts", "stsb", "--model", model).status == 0
    assert "no such file" in run("eval", "sts", "nosuch", "--model", model).err


def test_words_and_both_are_measured(
    run: Run, folder: Path, model: str, outputs: dict[str, Path], tmp_path: Path
) -> None:
    ran = run("eval", "retrieval", folder, "--mode", "lexical", "--json", outputs["--json"])
    assert ran.status == 0, ran.err
    result = json.loads(outputs["--json"].read_text())
    assert (result["mode"], result["encoded"]) == ("lexical", None)
    assert result["measures"]["RR@10"] == 1
    assert "model" not in result
    both = ("--mode", "hybrid", "--weight", "0.2")
    ran = run("eval", "retrieval", folder, "--model", model, *both)
    assert ran.status == 0, ran.err
    assert "0.2 of vectors" in ran.out
    index = tmp_path / "index"
    assert run("index", folder, "-o", index, "--model", model, "--without-encoder").status == 0
    for mode in (("--mode", "lexical"), ("--mode", "hybrid", "--fusion", "rrf")):
        ran = run("eval", "retrieval", folder, "--index", index, *mode)
        assert ran.status == 0, ran.err
    assert "reciprocal ranks" in ran.out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--mode", "lexical", "--model", "x"), "--model is of vectors, not --mode lexical"),
        (("--mode", "lexical", "--long", "passages"), "--long is of vectors"),
        (("--run", "r.trec", "--mode", "hybrid"), "--mode and --run do not go together"),
        (("--weight", "0.5"), "are for --mode hybrid"),
    ],
)
def test_modes_that_do_not_suit_other_options_are_refused(
    run: Run, folder: Path, options: tuple[str, ...], said: str
) -> None:
    ran = run("eval", "retrieval", folder, *options)
    assert ran.status == 2
    assert said in ran.err
