"""Search by words on the command line: making the index, searching it, and the prompt."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import Ran, Run

from sbertkit import Encoder, Fusion, SearchIndex
from sbertkit.cli.search.hits import Shown
from sbertkit.cli.search.prompt import Prompt

ROWS = [
    {"id": "red", "text": "a red car runs", "year": 2001},
    {"id": "toy", "text": "a red toy car", "year": 2002},
    {"id": "bus", "text": "an old bus drove by", "year": 2003},
]


@pytest.fixture
def index(tiny_encoder: Encoder, tmp_path: Path) -> Path:
    SearchIndex.build(ROWS, tiny_encoder, tmp_path / "index", with_encoder=False).close()
    return tmp_path / "index"


def ids(ran: Ran) -> list[str]:
    assert ran.status == 0, ran.err
    return [json.loads(line)["id"] for line in ran.out.splitlines()]


def test_words_are_searched_from_the_shell(run: Run, index: Path) -> None:
    found = ("search", index, "--mode", "lexical", "--format", "jsonl")
    assert ids(run(*found, "cars")) == ["red", "toy"]
    assert ids(run(*found, "--", '"red car"')) == ["red"]
    assert ids(run(*found, "--", "car -toy")) == ["red"]
    assert ids(run(*found, "car", "--filter", "year > 2001")) == ["toy"]
    assert ids(run(*found, "?!")) == []
    ran = run("search", index, "--mode", "lexical", "--explain", "drove")
    assert "bus" in ran.out
    assert ran.err == "lexical: BM25 (k1 1.2, b 0.75) of 1 word among 3 documents\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--", "-toy"), "query 1 only leaves out words"),
        (("car", "--hits", "passages"), "leave --hits passages out"),
    ],
)
def test_what_cannot_be_asked_is_one_line(
    run: Run, index: Path, arguments: tuple[str, ...], said: str
) -> None:
    ran = run("search", index, "--mode", "lexical", *arguments)
    assert (ran.status, ran.out) == (1, "")
    assert said in ran.err
    assert ran.err.count("\n") == 1


def test_a_search_by_words_loads_no_heavy_library(index: Path) -> None:
    heavy = ("torch", "transformers", "faiss", "onnxruntime", "tokenizers", "scipy", "pyarrow")
    code = f"""
import sys
from sbertkit.cli import main
try:
    main(["search", {str(index)!r}, "red car", "--mode", "lexical", "--format", "jsonl"])
finally:
    print([name for name in {heavy!r} if name in sys.modules])
"""
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert ran.stderr == ""
    assert ran.stdout.splitlines()[-1] == "[]"


def test_an_index_without_words_says_how_to_make_them(
    run: Run, tiny_bert: Path, tmp_path: Path
) -> None:
    corpus, place = tmp_path / "corpus.txt", tmp_path / "index"
    corpus.write_text("das rote Haus\nzwei rote Häuser\n", encoding="utf-8")
    build = ("index", corpus, "-o", place, "--model", tiny_bert, "--quiet")
    ran = run(*build, "--no-lexical")
    assert ran.status == 0, ran.err
    assert "words:" not in ran.out
    assert json.loads(run("info", place, "--format", "json").out)["lexical"] is None
    assert "left out" in run("info", place).out
    ran = run("search", place, "Haus", "--mode", "lexical")
    assert ran.status == 1
    assert f"sbertkit compact {place} --lexical" in ran.err
    assert ran.err.count("\n") == 1
    ran = run("compact", place, "--lexical", "--language", "german", "--k1", 1.5)
    assert ran.status == 0, ran.err
    found = run("search", place, "haus", "--mode", "lexical", "--format", "jsonl")
    assert sorted(ids(found)) == ["1", "2"]
    lexical = json.loads(run("info", place, "--format", "json").out)["lexical"]
    size = sum(path.stat().st_size for path in place.rglob("words.bin"))
    weight = {"value": 0.5, "source": "default", "queries": 0, "gains": [], "changed": 0}
    known = {"language": "german", "k1": 1.5, "b": 0.75, "bytes": size, "weight": weight}
    assert lexical == known
    assert run("compact", place, "--no-lexical").status == 0
    assert not list(place.rglob("words.bin"))


def test_the_language_is_detected_and_said(run: Run, tiny_bert: Path, tmp_path: Path) -> None:
    corpus, place = tmp_path / "corpus.txt", tmp_path / "index"
    corpus.write_text("the cat is on the mat\nwhat a day it was for the dog\n")
    build = ("index", corpus, "-o", place, "--model", tiny_bert, "--quiet")
    ran = run(*build)
    assert "words: language english, k1 1.2, b 0.75, " in ran.out
    assert " bytes, detected\n" in ran.out
    ran = run(*build, "--language", "none", "--b", 0.5)
    assert "words: language none, k1 1.2, b 0.5, " in ran.out
    assert ", detected" not in ran.out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--language", "germn"), "did you mean 'german'"),
        (("--no-lexical", "--k1", "1"), "--k1 goes with no --no-lexical"),
        (("--no-lexical", "--weight", "1"), "--weight goes with no --no-lexical"),
        (("--weight", "2"), "2"),
        (("--update", "--weight", "0.5"), "leave --weight out"),
        (("--k1", "-1"), "-1"),
        (("--b", "1.5"), "1.5"),
        (("--update", "--language", "german"), "leave --language out"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_read(
    run: Run, index: Path, tmp_path: Path, options: tuple[str, ...], said: str
) -> None:
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("text\n")
    ran = run("index", corpus, "-o", index, "--replace", *options)
    assert ran.status == 2
    assert said in ran.err


def test_the_mode_may_be_set_at_the_prompt(
    index: Path, tiny_encoder: Encoder, capsys: pytest.CaptureFixture[str]
) -> None:
    with SearchIndex.open(index, tiny_encoder) as opened:
        prompt = Prompt(opened, 10, {}, Shown())
        prompt._answer("car")
        assert "drove" in capsys.readouterr().out
        prompt._answer(":mode lexical")
        prompt._answer("car")
        out = capsys.readouterr().out
        assert "runs" in out
        assert "drove" not in out
        prompt._answer(":mode words")
        said = ":mode sets what is compared, now lexical; expected dense or lexical or hybrid\n"
        assert capsys.readouterr().err == said
        prompt._answer(":more")
        assert "no more hits" in capsys.readouterr().err
        prompt._answer(":help")
        assert "now lexical" in capsys.readouterr().out


def test_the_weight_of_vectors_is_measured_given_and_shown(
    run: Run, tiny_bert: Path, tmp_path: Path
) -> None:
    corpus, place = tmp_path / "corpus.txt", tmp_path / "index"
    lines = (f"the cat {row} sat down by the dog {row}\n" for row in range(400))
    corpus.write_text("".join(lines))
    build = ("index", corpus, "-o", place, "--model", tiny_bert, "--quiet", "--without-encoder")
    ran = run(*build)
    assert ran.status == 0, ran.err
    assert "hybrid search: " in ran.out
    assert "measured with 50 parts of documents" in ran.out
    measured = json.loads(run("info", place, "--format", "json").out)["lexical"]["weight"]
    ran = run("tune", place, "--weight", 0.3)
    assert (ran.status, ran.err) == (0, "")
    assert ran.out == f"{place}: hybrid search with 0.3 of vectors and 0.7 of words, given\n"
    ran = run("search", place, "cat 7", "--mode", "hybrid", "--explain")
    assert "0.3 of vectors" in ran.err
    ran = run("search", place, "cat 7", "--mode", "hybrid", "--explain", "--weight", 0.6)
    assert "0.6 of vectors" in ran.err
    assert "0.3 of vectors and 0.7 of words, given" in run("info", place).out
    assert run("tune", place, "--weight", "auto").status == 0
    assert json.loads(run("info", place, "--format", "json").out)["lexical"]["weight"] == measured
    assert "--recall, --weight or both" in run("tune", place).err
    assert run("tune", place, "--weight", "much").status == 2
    assert run(*build, "--weight", 0.9).out.endswith("words, given\n")


def test_a_search_that_names_no_mode_takes_vectors_and_words(
    run: Run, index: Path, tiny_bert: Path, tmp_path: Path
) -> None:
    found = ("search", index, "red car", "--format", "jsonl")
    plain, both, dense = (
        [json.loads(line)["score"] for line in run(*found, *mode).out.splitlines()]
        for mode in ((), ("--mode", "hybrid"), ("--mode", "dense"))
    )
    assert plain == pytest.approx(both, abs=1e-5)  # another runtime may have encoded the query
    assert plain != pytest.approx(dense, abs=1e-2)
    weighted = run(*found, "--weight", 0.9, "--explain")
    assert weighted.status == 0
    assert weighted.err.startswith("hybrid: convex combination, 0.9 of vectors")
    assert run(*found, "--fusion", "rrf", "--explain").err.startswith("hybrid: reciprocal ranks")
    assert run(*found, "--hits", "passages", "--explain").err.startswith("dense: compared with")
    ran = run(*found, "--hits", "passages", "--weight", 0.9)
    assert (ran.status, ran.out) == (1, "")
    assert "--fusion" in ran.err
    assert "this search is dense" in ran.err
    assert run(*found, "--mode", "dense", "--weight", 0.9).status == 2
    assert json.loads(run("info", index, "--format", "json").out)["default_mode"] == "hybrid"
    corpus, bare = tmp_path / "corpus.txt", tmp_path / "bare"
    corpus.write_text("a red car\na blue boat\n")
    build = ("index", corpus, "-o", bare, "--model", tiny_bert, "--without-encoder", "--no-lexical")
    assert run(*build).status == 0
    assert run("search", bare, "red car", "--explain").err.endswith(
        "dense: compared with all 2 vectors\n"
    )
    assert "this search is dense" in run("search", bare, "red car", "--weight", 0.9).err
    assert "default mode" in run("info", bare).out


def test_info_says_why_an_index_with_words_is_searched_by_vectors(
    run: Run, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sbertkit.retrieval.manifest_entries.RULES_VERSION", 10**6)
    out = " ".join(run("info", index).out.split())
    assert "dense, since the words are by the rules of another version" in out
    assert "--lexical makes them again" in out


def test_the_prompt_says_which_mode_it_takes_and_keeps_a_weight_for_it(
    index: Path, tiny_encoder: Encoder, capsys: pytest.CaptureFixture[str]
) -> None:
    with SearchIndex.open(index, tiny_encoder) as opened:
        prompt = Prompt(opened, 10, {"mode": None, "fusion": Fusion(weight=0.0)}, Shown())
        prompt._answer(":help")
        assert "now hybrid" in capsys.readouterr().out
        prompt._answer("car")
        first = capsys.readouterr().out
        assert "1.0000" in first
        for mode in ("dense", "lexical", "hybrid"):
            prompt._answer(f":mode {mode}")
            prompt._answer("car")
        assert capsys.readouterr().out.endswith(first)
