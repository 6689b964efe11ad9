"""Commands that take a model's export from the cache: the same results, and no torch."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from command_line import Run

from sbertkit.encoder import Encoder

_WITHOUT_TORCH = """
import json, sys
from sbertkit.cli import main
for arguments in json.loads(sys.argv[1]):
    try:
        main(arguments)
    except SystemExit as ended:
        assert not ended.code, (arguments, ended.code)
    loaded = [name for name in ("torch", "transformers") if name in sys.modules]
    assert not loaded, (arguments, loaded)
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "sbertkit"


@pytest.fixture
def model(tiny_encoder: Encoder, tmp_path: Path) -> str:
    tiny_encoder.save(tmp_path / "model")
    return str(tmp_path / "model")


def write_collection(folder: Path) -> None:
    (folder / "qrels").mkdir(parents=True)
    texts = {"a": "a boat", "b": "mountain cheese"}
    rows = [json.dumps({"_id": key, "title": "", "text": text}) for key, text in texts.items()]
    (folder / "corpus.jsonl").write_text("\n".join(rows) + "\n")
    (folder / "queries.jsonl").write_text(json.dumps({"_id": "q", "text": "a goat"}) + "\n")
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\ta\t1\n")


def test_after_an_export_ahead_of_use_no_command_loads_torch(
    run: Run, model: str, tmp_path: Path
) -> None:
    lines, more, vectors = (str(tmp_path / name) for name in ("l.txt", "m.tsv", "v.npy"))
    index, bundling, pairs = (str(tmp_path / name) for name in ("i", "b", "pairs.tsv"))
    Path(lines).write_text("a boat\nmountain cheese\n")
    Path(more).write_text("x\ta goat\ny\tred wine\n")
    Path(pairs).write_text("5.0\ta boat\ta boat\n2.5\ta boat\ta goat\n0.0\ta boat\tcheese\n")
    write_collection(tmp_path / "collection")
    assert run("export", model).status == 0
    commands = [
        ["export", model],
        ["encode", lines, "-o", vectors, "--model", model],
        ["similarity", "a boat", "a goat", "--model", model],
        ["index", lines, "-o", index, "--model", model, "--without-encoder", "--quiet"],
        ["index", lines, "-o", bundling, "--model", model, "--quiet"],
        ["add", index, more],
        ["upsert", index, more, "--model", model],
        ["index", lines, "-o", index, "--update"],
        ["search", index, "a boat"],
        ["search", bundling, "a boat", "--model", model],
        ["eval", "sts", pairs, "--model", model],
        ["eval", "retrieval", str(tmp_path / "collection"), "--model", model, "--quiet"],
    ]
    ran = subprocess.run(
        [sys.executable, "-c", _WITHOUT_TORCH, json.dumps(commands)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    expected = Encoder.load(model, backend="torch").encode(["a boat", "mountain cheese"])
    np.testing.assert_allclose(np.load(vectors), expected, atol=1e-5)


@pytest.mark.parametrize("option", ["--with-encoder", "--without-encoder"])
def test_building_an_index_puts_the_export_into_the_cache(
    run: Run, model: str, tmp_path: Path, cache: Path, option: str
) -> None:
    (tmp_path / "l.txt").write_text("a boat\nmountain cheese\n")
    ran = run("index", tmp_path / "l.txt", "-o", tmp_path / "i", "--model", model, option)
    assert ran.status == 0, ran.err
    assert len(list((cache / "exports").iterdir())) == len(list((cache / "models").iterdir())) == 1


def test_an_export_for_the_cache_is_that_of_the_options_it_was_given(
    run: Run, model: str, cache: Path
) -> None:
    for options in ((), ("--pooling", "cls"), ("--max-tokens", 8), ("--precision", "int8")):
        ran = run("export", model, *options)
        assert ran.status == 0, ran.err
        assert str(cache / "exports") in ran.out
    assert len(list((cache / "exports").iterdir())) == len(list((cache / "models").iterdir())) == 4
    again = run("export", model, "--precision", "int8")
    assert (again.status, again.out) == (0, ran.out)


def test_what_the_cache_cannot_keep_is_refused(
    run: Run, model: str, cache: Path, tmp_path: Path
) -> None:
    (tmp_path / "l.txt").write_text("a boat\n")
    for option in (["--pairs", tmp_path / "l.txt"], ["--calibrate", tmp_path / "l.txt"],
                   ["--trust-remote-code"]):  # fmt: skip
        ran = run("export", model, *option)
        assert (ran.status, f"{option[0]} needs -o DIR" in ran.err) == (2, True)
    assert run("export", model, "-o", tmp_path / "export").status == 0
    ran = run("export", tmp_path / "export")
    assert (ran.status, "is an export already" in ran.err) == (1, True)
    shutil.rmtree(cache, ignore_errors=True)
    cache.mkdir(parents=True)
    (cache / "exports").write_text("a file where the folder should be")
    ran = run("export", model)
    assert ran.status == 1
    assert "cannot be kept in the user's cache; choose a folder with -o" in ran.err


def test_a_bundled_encoder_many_times_the_size_of_its_index_is_pointed_out(
    run: Run, model: str, tmp_path: Path
) -> None:
    (tmp_path / "l.txt").write_text("a boat\nmountain cheese\n")
    ran = run("index", tmp_path / "l.txt", "-o", tmp_path / "i", "--model", model)
    assert "--without-encoder leaves it out" in ran.out
    for option in ("--with-encoder", "--without-encoder"):
        ran = run("index", tmp_path / "l.txt", "-o", tmp_path / "j", "--model", model, option)
        assert (ran.status, "leaves it out" in ran.out) == (0, False)
