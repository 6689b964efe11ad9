"""Every command that prints: names that terminals obey, and streams that cannot be written."""

import contextlib
import io
import itertools
import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import click
import pytest
from command_line import Run

from sbertkit.cli.app import app
from sbertkit.encoder import Encoder

pytestmark = pytest.mark.skipif(os.name == "nt", reason="names of files")

HOSTILE = "\x1b[31mred\x07 [/red] :smile: \u202egnp $x$"
OBEYED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
ELSEWHERE = {"demo", "eval mteb"}  # one takes long, the other a package that is not here


class Place(NamedTuple):
    """What the commands read; all names are hostile."""

    root: Path
    model: str

    def __truediv__(self, name: str) -> str:
        return str(self.root / f"{HOSTILE} {name}")

    def new(self) -> str:
        return self / f"new{next(_NUMBERS)}"


_NUMBERS = itertools.count()
Arguments = Callable[[Place], tuple[object, ...]]


def with_model(*arguments: object) -> Arguments:
    return lambda place: (*_placed(place, arguments), "--model", place.model, "--pooling", "mean")


def plain(*arguments: object) -> Arguments:
    return lambda place: tuple(_placed(place, arguments))


def _placed(place: Place, arguments: tuple[object, ...]) -> Iterator[object]:
    """The arguments, of which those that begin with / are names in the place."""
    for one in arguments:
        if one == "/new":
            yield place.new()
        else:
            yield place / one[1:] if isinstance(one, str) and one[:1] == "/" else one


PRINTING: dict[str, Arguments] = {
    "encode": with_model("/corpus.jsonl", "-o", "/v.npy"),
    "similarity": with_model("/a.txt", "/a.txt"),
    "index": with_model("/corpus.jsonl", "-o", "/rebuilt"),
    "search": plain("/index", HOSTILE, "-k", 2),
    "add": plain("/index", "/one.jsonl"),
    "upsert": plain("/index", "/corpus.jsonl"),
    "delete": plain("/index", "gone", "--missing-ok"),
    "tune": plain("/index", "--recall", "0.9"),
    "compact": plain("/index"),
    "info": plain("/index"),
    "verify": plain("/index"),
    "repair": plain("/index"),
    "upgrade": plain("/index"),
    "dump": plain("/index", "-o", "/dump.parquet"),
    "train-nli": lambda place: (
        *(place / "nli.jsonl", "--base", place.model, "-o", place.new(), "--batch-size", 3),
        *("--max-steps", 1, "--no-guard"),
    ),
    "train-sts": lambda place: (
        *(place / "pairs.tsv", "--base", place.model, "-o", place.new(), "--batch-size", 3),
        *("--scale", "0-5", "--max-steps", 1, "--no-guard"),
    ),
    "train-pairs": lambda place: (
        *(place / "ranking.jsonl", "--base", place.model, "-o", place.new(), "--batch-size", 3),
        *("--max-steps", 1, "--no-guard"),
    ),
    "train-multi": lambda place: (
        *("--set", f"nli:{place / 'nli.jsonl'}", "--set", f"sts:{place / 'pairs.tsv'},scale=0-5"),
        *("--base", place.model, "-o", place.new(), "--batch-size", 3),
        *("--max-steps", 1, "--no-guard"),
    ),
    "train-reranker": lambda place: (
        *(place / "ranking.jsonl", "--base", place.model, "-o", place.new(), "--batch-size", 3),
        *("--max-steps", 1),
    ),
    "distill": lambda place: (
        *(place / "many.txt", "--teacher", place.model, "--layers", 1, "-o", place.new()),
        *("--max-steps", 1, "--no-guard"),
    ),
    "adapt": lambda place: (
        *(place / "many.txt", "--base", place.model, "-o", place.new(), "--max-steps", 1),
    ),
    "recipe": lambda place: (
        *(place / "many.txt", "--nli", place / "nli.jsonl", "--base", place.model),
        *("-o", place.new(), "--adapt-steps", 1, "--nli-steps", 1, "--sample", 100),
        *("--batch-size", 3, "--no-guard"),
    ),
    "merge": lambda place: (place.model, place.model, "-o", place.new()),
    "diagnose": lambda place: (place / "many.txt", "--model", place.model, "--sample", 100),
    "models show": plain("e5-small-v2"),
    "models compare": lambda place: (
        *(place.model, place.model, "--corpus", place / "many.txt", "--sample", 100),
    ),
    "export": lambda place: (place.model, "-o", place / "exported"),
    "data list": plain(),
    "data get": plain("stsb"),
    "eval sts": with_model("/pairs.tsv"),
    "eval retrieval": with_model("/beir"),
    "eval isotropy": with_model("/corpus.jsonl"),
    "eval index": plain("/index", "-k", 1),
    "eval run": with_model("/suite.toml", "-o", "/results", "--no-cache"),
    "eval compare": plain("/run.trec", "/run.trec", "--qrels", "/qrels.tsv"),
}
BY_DASH: dict[str, Callable[[str], object]] = {  # options whose value - is standard output
    "--json": json.loads,
    "--report": lambda text: text.index("</html>"),
    "--per-query": lambda text: text.index("query\t"),
    "--write-run": lambda text: text.index(" Q0 "),
}


def commands(group: click.Group = app, prefix: str = "") -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, f"{prefix}{name} ")
        else:
            yield f"{prefix}{name}", command


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, tiny_encoder: Encoder) -> Place:
    from sbertkit import SearchIndex

    root = tmp_path_factory.mktemp("streams")
    place = Place(root, str(root / f"{HOSTILE} model"))
    tiny_encoder.save(place.model)
    rows = [("a", f"the boat {HOSTILE}"), ("b", "a cheese"), ("c", "a night train")]
    files = {
        "corpus.jsonl": "".join(json.dumps({"id": k, "text": text}) + "\n" for k, text in rows),
        "one.jsonl": "",
        "a.txt": f"a boat {HOSTILE}\nanother\n",
        "many.txt": "".join(f"line {row} of many. It has parts.\n" for row in range(120)),
        "pairs.tsv": "".join(f"{n}\ta boat\ttext {n}\n" for n in range(5)),
        "nli.jsonl": "".join(
            json.dumps({"gold_label": label, "sentence1": f"a boat {n}", "sentence2": text}) + "\n"
            for n in range(2)
            for label, text in (("entailment", f"boat {n}"), ("contradiction", f"train {n}"))
        ),
        "ranking.jsonl": "".join(
            json.dumps({"query": f"a boat {n}", "positive": HOSTILE, "negative": "text"}) + "\n"
            for n in range(3)
        ),
        "run.trec": "q1 Q0 a 1 2.0 x\nq1 Q0 b 2 1.0 x\nq2 Q0 b 1 1.0 x\n",
        "qrels.tsv": "query-id\tcorpus-id\tscore\nq1\ta\t1\nq2\tb\t1\n",
        "suite.toml": f'title = {json.dumps(HOSTILE)}\nsets = ["stsb"]\n',
        "beir/corpus.jsonl": "".join(
            json.dumps({"_id": k, "text": text}) + "\n" for k, text in rows
        ),
        "beir/queries.jsonl": "".join(
            json.dumps({"_id": q, "text": HOSTILE}) + "\n" for q in ("q1", "q2")
        ),
        "beir/qrels/test.tsv": "query-id\tcorpus-id\tscore\nq1\ta\t1\nq2\tb\t1\n",
    }
    for name, text in files.items():
        path = Path(place / name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (root / "sts").mkdir()
    (root / "sts/stsb.tsv").write_text(
        "split\tscore\tsentence1\tsentence2\n"
        + "".join(f"test\t{n}\ta boat\ttext {n}\n" for n in range(5))
    )
    SearchIndex.build(Path(place / "corpus.jsonl"), tiny_encoder, place / "index").close()
    return place


@pytest.fixture(autouse=True)
def offline_data(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SBERTKIT_DATA", str(place.root))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    added = json.dumps({"id": f"new {next(_NUMBERS)}", "text": f"text {HOSTILE}"})
    Path(place / "one.jsonl").write_text(f"{added}\n")


def test_every_command_is_tried() -> None:
    assert PRINTING.keys() | ELSEWHERE == {name for name, _ in commands()}


@pytest.mark.parametrize("name", PRINTING)
def test_no_command_prints_what_a_terminal_obeys(run: Run, place: Place, name: str) -> None:
    ran = run(*name.split(), *PRINTING[name](place))
    assert ran.status == 0, ran.err
    assert ran.out
    assert not OBEYED.findall(ran.out + ran.err)
    assert "😄" not in ran.out + ran.err
    assert all(line == line.rstrip() for line in ran.out.splitlines())


@pytest.mark.parametrize("name", PRINTING)
def test_no_job_ends_because_standard_error_cannot_be_written(
    run: Run, place: Place, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full(io.StringIO):
        def write(self, _text: str) -> int:
            raise OSError(28, "No space left on device")

        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", Full())
    ran = run(*name.split(), *PRINTING[name](place))
    assert ran.status == 0
    assert ran.out


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("name", PRINTING)
def test_data_that_cannot_be_written_ends_a_command_with_one_line(
    run: Run, place: Place, name: str
) -> None:
    full = open("/dev/full", "w")  # noqa: PTH123, SIM115  # closing it fails, too
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", full)
        ran = run(*name.split(), *PRINTING[name](place))
    with contextlib.suppress(OSError):
        full.close()
    assert ran.status == 1
    last = ran.err.splitlines()[-1]
    assert last == "sbertkit: error: standard output cannot be written: No space left on device"
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    ("name", "option"),
    [
        (name, option)
        for name, command in commands()
        for option in BY_DASH
        if name not in ELSEWHERE and any(option in one.opts for one in command.params)
    ],
)
def test_a_dash_is_standard_output_in_place_of_the_tables(
    run: Run, place: Place, name: str, option: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = run(*name.split(), *PRINTING[name](place), option, "-")
    assert ran.status == 0, ran.err
    BY_DASH[option](ran.out)
    assert "┃" not in ran.out
    assert not OBEYED.findall(ran.out)
    assert list(tmp_path.iterdir()) == []
    twice = run(*name.split(), *PRINTING[name](place), option, "-", "--json", "-")
    assert option == "--json" or (twice.status, twice.out) == (1, "")


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("encode", with_model("/corpus.jsonl", "-o", "-")),
        ("index", with_model("/corpus.jsonl", "-o", "-")),
        ("dump", plain("/index", "-o", "-")),
        ("export", lambda place: (place.model, "-o", "-")),
        ("demo", plain("-o", "-")),
        ("train-nli", lambda place: (place / "nli.jsonl", "--base", place.model, "-o", "-")),
        ("train-sts", lambda place: (place / "pairs.tsv", "--base", place.model, "-o", "-")),
        ("train-pairs", lambda place: (place / "ranking.jsonl", "--base", place.model, "-o", "-")),
        ("train-reranker", lambda place: (place / "ranking.jsonl", "--base", "m", "-o", "-")),
        ("distill", lambda place: (place / "many.txt", "--teacher", "m", "--layers", 1, "-o", "-")),
        ("adapt", lambda place: (place / "many.txt", "--base", "m", "-o", "-")),
        ("merge", lambda place: (place.model, place.model, "-o", "-")),
        ("diagnose", lambda place: (place / "many.txt", "--model", place.model, "--write", "-")),
        ("eval run", with_model("/suite.toml", "-o", "-", "--no-cache")),
        ("eval run", with_model("/suite.toml", "-o", "/results", "--cache", "-")),
    ],
)
def test_no_other_output_is_called_dash(
    run: Run,
    place: Place,
    name: str,
    arguments: Arguments,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = run(*name.split(), *arguments(place))
    assert ran.status == 1
    assert "standard output" in ran.err.splitlines()[-1]
    assert list(tmp_path.iterdir()) == []


def test_a_file_may_be_called_dash(
    run: Run, place: Place, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = run("eval", *("sts", place / "pairs.tsv", "--model", place.model, "--json", "./-"))
    assert "Spearman" in ran.out
    assert json.loads((tmp_path / "-").read_text())["pairs"] == 5


@pytest.mark.parametrize("name", ["info", "search", "eval sts"])
def test_what_is_no_terminal_gets_whole_values(
    run: Run, place: Place, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    query = "where [/red] words " * 40
    arguments = (place / "index", query) if name == "search" else PRINTING[name](place)
    out = run(*name.split(), *arguments).out
    fingerprint = json.loads(run("info", place / "index", "--format", "json").out)["fingerprint"]
    whole = {"info": fingerprint, "search": query.rstrip(), "eval sts": str(place.root)}
    assert whole[name] in out


@pytest.mark.parametrize(
    "arguments", [("info", "a", HOSTILE), (HOSTILE,), ("info", f"--{HOSTILE}")]
)
def test_wrong_usage_is_told_without_obeying(run: Run, arguments: tuple[str, ...]) -> None:
    ran = run(*arguments)
    assert ran.status == 2
    assert not OBEYED.findall(ran.err)
    assert "Usage: sbertkit" in ran.err
    assert "Error: " in ran.err


def test_no_arguments_are_answered_with_the_help(run: Run) -> None:
    ran = run()
    assert ran.status == 2
    assert "\n  sbertkit demo" in ran.err or "\n    sbertkit demo" in ran.err


def test_a_file_that_ends_too_early_is_no_interruption(
    run: Run, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut(*_arguments: object) -> None:
        raise EOFError("no data left")

    monkeypatch.setattr("sbertkit.retrieval.index_info", cut)
    ran = run("info", place / "index")
    assert ran.status == 1
    assert ran.err.startswith("sbertkit: error: a file ended too early (no data left)")


def test_closed_standard_output_is_one_line(
    run: Run, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("info", "search", "similarity"):
        for form in (("--format", "json" if name == "info" else "jsonl"), ()):
            monkeypatch.setattr(sys, "stdout", None)
            ran = run(
                *name.split(), *PRINTING[name](place), *(form if name != "similarity" else ())
            )
            expected = "standard output cannot be written: it is closed"
            assert (ran.status, ran.err) == (1, f"sbertkit: error: {expected}\n")
