"""``add``, ``upsert``, ``delete``, ``compact``, ``repair``, ``dump`` and ``index --update``."""

import json
from pathlib import Path

import pytest
from command_line import Run
from index_cases import contents

from sbertkit.encoder import Encoder


@pytest.fixture
def model(tiny_encoder: Encoder) -> str:
    return tiny_encoder.options.model


def lines(path: Path, **texts: str) -> Path:
    rows = [{"id": one, "text": text} for one, text in texts.items()]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def index(run: Run, model: str, tmp_path: Path) -> Path:
    path = tmp_path / "index"
    corpus = lines(tmp_path / "c.jsonl", a="a boat", b="mountain cheese", c="night train")
    assert run("index", corpus, "-o", path, "--model", model, "--pooling", "mean").status == 0
    return path


def texts_in(run: Run, index: Path) -> dict[str, str]:
    ran = run("search", index, "boat", "-k", 100, "--format", "jsonl")
    assert ran.status == 0, ran.err
    found = [json.loads(line) for line in ran.out.splitlines()]
    return {hit["id"]: hit["text"] for hit in found}


def test_documents_come_change_and_go(run: Run, index: Path, tmp_path: Path) -> None:
    ran = run("add", index, lines(tmp_path / "n.jsonl", d="a goat", e="winter"))
    assert ran.out == f"2 added; 2 encoded: 5 documents in {index}\n"
    ran = run("upsert", index, lines(tmp_path / "n.jsonl", d="a kid", e="winter", f="new"))
    assert ran.out == f"1 added, 1 changed, 1 unchanged; 2 encoded: 6 documents in {index}\n"
    ran = run("delete", index, "a", "-", stdin=b"b\n\nf\n")
    assert ran.out == f"3 deleted: 3 documents in {index}\n"
    assert texts_in(run, index) == {"c": "night train", "d": "a kid", "e": "winter"}
    ran = run("compact", index)
    assert ran.status == 0
    assert "became 1" in ran.out or "compact already" in ran.out
    assert "is compact already" in run("compact", index).out
    ran = run("info", index, "--format", "json")
    facts = json.loads(ran.out)
    assert (facts["documents"], facts["segments"], facts["deleted"]) == (3, 1, 0)
    assert run("verify", index).out == "no problems found\n"


def test_an_index_is_brought_up_to_date(run: Run, index: Path, tmp_path: Path) -> None:
    corpus = lines(tmp_path / "c.jsonl", a="a boat", b="valley cheese", d="a goat")
    ran = run("index", corpus, "-o", index, "--update")
    assert ran.out == (
        f"1 added, 1 changed, 1 deleted, 1 unchanged; 2 encoded: 3 documents in {index}\n"
    )
    ran = run("index", corpus, "-o", index, "--update")
    assert ran.out == f"3 unchanged: 3 documents in {index}\n"
    assert texts_in(run, index) == {"a": "a boat", "b": "valley cheese", "d": "a goat"}
    for option in (("--kind", "hnsw"), ("--recall", "0.9"), ("--without-encoder",)):
        ran = run("index", corpus, "-o", index, "--update", *option)
        assert (ran.status, option[0].replace("out", "")[:6] in ran.err) == (2, True)
    assert run("index", corpus, "-o", index, "--update", "--resume").status == 2


def test_an_update_of_nothing_is_a_build(run: Run, model: str, tmp_path: Path) -> None:
    corpus = lines(tmp_path / "c.jsonl", a="a boat")
    ran = run("index", corpus, "-o", tmp_path / "x", "--update", "--model", model)
    assert ran.status == 0, ran.err
    assert "1 document in" in ran.out


def test_bad_input_is_one_line_and_changes_nothing(
    run: Run, index: Path, tmp_path: Path, model: str
) -> None:
    twice = tmp_path / "twice.jsonl"
    twice.write_text('{"id": "x", "text": "one"}\n{"id": "x", "text": "two"}\n')
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"id": "x", "text": "one"}\n{"id": 3\n')
    new = lines(tmp_path / "new.jsonl", a="other", x="one")
    before = contents(index)
    for arguments, told in (
        (("add", index, new), "'a' on line 1 is in the index already"),
        (("add", index, twice), "duplicate id 'x' on lines 1 and 2"),
        (("upsert", index, twice), "duplicate id 'x' on lines 1 and 2"),
        (("upsert", index, bad), "line 2"),
        (("index", twice, "-o", index, "--update"), "duplicate id 'x' on lines 1 and 2"),
        (("upsert", index, tmp_path / "nowhere.jsonl"), "nowhere.jsonl"),
        (("upsert", index, new, "--model", tmp_path / "nowhere"), "nowhere"),
        (("delete", index, "a", "nobody"), "no document with the id 'nobody'; nothing was deleted"),
        (("delete", index, "a", "a"), "duplicate id 'a'"),
        (("add", tmp_path / "none", new), "there is no index at"),
        (("delete", tmp_path, "a"), "not an sbertkit index"),
        (("compact", tmp_path), "not an sbertkit index"),
        (("repair", tmp_path), "not an sbertkit index"),
        (("dump", tmp_path, "-o", tmp_path / "d.parquet"), "not an sbertkit index"),
        (("dump", index, "-o", tmp_path / "d.txt"), "ends in .parquet or .faiss"),
    ):
        ran = run(*arguments)
        assert (ran.status, ran.out) == (1, ""), arguments
        error = ran.err.splitlines()[-1]
        assert error.startswith("sbertkit: error:")
        assert told in error
    assert contents(index) == before
    assert not list(tmp_path.glob("*.lock"))
    assert run("delete", index, "a", "nobody", "--missing-ok").status == 0


def test_another_model_is_refused(run: Run, index: Path, tmp_path: Path, model: str) -> None:
    before = contents(index)
    new = lines(tmp_path / "new.jsonl", x="one")
    ran = run("index", new, "-o", index, "--update", "--model", model, "--pooling", "cls")
    assert ran.status == 1
    assert "open it with the encoder that built it" in ran.err
    assert contents(index) == before


def test_a_damaged_index_is_repaired(run: Run, index: Path) -> None:
    (path,) = index.rglob("vectors.npy")
    path.write_bytes(b"")
    ran = run("verify", index)
    assert ran.status == 1
    assert "vectors.npy: expected" in ran.out
    ran = run("repair", index)
    assert ran.status == 0, ran.err
    assert "vectors.npy: rebuilt from the stored texts" in ran.out
    assert run("verify", index).status == 0
    assert run("repair", index).out == "nothing to repair\n"
    (path,) = index.rglob("documents.db")
    path.unlink()
    ran = run("repair", index)
    assert ran.status == 1
    assert "3 documents are lost" in ran.err
    ran = run("repair", index, "--accept-loss")
    assert ran.status == 0
    assert ran.out.startswith("lost: ")


def test_a_dump_comes_back(run: Run, index: Path, tmp_path: Path, model: str) -> None:
    file = tmp_path / "d.parquet"
    assert run("dump", index, "-o", file).out == f"{file}\n"
    ran = run(
        "index", file, "--vectors", file, "-o", tmp_path / "again",
        "--model", model, "--pooling", "mean",
    )  # fmt: skip
    assert ran.status == 0, ran.err
    assert texts_in(run, tmp_path / "again") == texts_in(run, index)
    assert run("dump", index, "-o", tmp_path / "d.faiss").status == 0
    assert json.loads((tmp_path / "d.ids.json").read_text()) == ["a", "b", "c"]


def test_an_update_takes_the_encoder_of_the_index_on_another_device(
    run: Run, index: Path, tmp_path: Path
) -> None:
    new = lines(tmp_path / "c.jsonl", a="a boat", b="valley cheese", d="a sheep")
    ran = run("index", new, "-o", index, "--update", "--device", "cpu", "--trust-remote-code")
    assert ran.status == 0, ran.err
    for option in (("--precision", "fp32"), ("--backend", "torch"), ("--pooling", "cls")):
        ran = run("index", new, "-o", index, "--update", *option)
        assert ran.status == 2
        assert f"{option[0]} needs --model" in ran.err
