"""The command line, run in this process on a tiny model."""

import contextlib
import io
import json
import os
import sys
import threading
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from command_line import Run

from sbertkit.encoder import Encoder


@pytest.fixture
def model(tiny_encoder: Encoder) -> str:
    return tiny_encoder.options.model


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.jsonl"
    rows = [
        {"id": "007", "text": "the boat leaves at noon", "harbour": "west"},
        {"id": "a b", "text": "a cheese of the mountains"},
        {"id": "ü", "text": "night train to the coast"},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def index(run: Run, corpus: Path, model: str, tmp_path: Path) -> Path:
    path = tmp_path / "index"
    assert run("index", corpus, "-o", path, "--model", model, "--pooling", "mean").status == 0
    return path


def test_index_says_what_it_built(run: Run, corpus: Path, model: str, tmp_path: Path) -> None:
    ran = run("index", corpus, "-o", tmp_path / "index", "--model", model, "--kind", "hnsw")
    assert ran.status == 0
    assert "3 documents" in ran.out
    assert "hnsw" in ran.out


def test_jsonl_hits_have_the_documented_fields(run: Run, index: Path) -> None:
    ran = run(
        "search", index, "the boat leaves at noon", "night train to the coast",
        "-k", 2, "--format", "jsonl",
    )  # fmt: skip
    lines = [json.loads(line) for line in ran.out.splitlines()]
    assert [(line["query_id"], line["rank"]) for line in lines] == [(1, 1), (1, 2), (2, 1), (2, 2)]
    assert lines[0] == {
        "query": "the boat leaves at noon",
        "query_id": 1,
        "rank": 1,
        "id": "007",
        "score": pytest.approx(1.0, abs=1e-4),
        "text": "the boat leaves at noon",
        "metadata": {"harbour": "west"},
    }
    assert lines[2]["id"] == "ü"


def test_a_dash_reads_one_query_a_line_beside_others(run: Run, index: Path) -> None:
    ran = run(
        "search", index, "first", "-", "last", "-k", 1, "--format", "jsonl",
        stdin=b"zwei\r\ndrei vier\n",
    )  # fmt: skip
    queries = [json.loads(line)["query"] for line in ran.out.splitlines()]
    assert queries == ["first", "zwei", "drei vier", "last"]


def test_trec_lines_have_six_columns(run: Run, index: Path) -> None:
    query = "the boat leaves at noon"
    ran = run("search", index, query, "-k", 1, "--mode", "dense", "--format", "trec")
    query, q0, document, rank, score, _name = ran.out.split()
    assert (query, q0, document, rank) == ("1", "Q0", "007", "1")
    assert float(score) == pytest.approx(1.0, abs=1e-4)


def test_an_id_with_a_space_is_refused_in_the_trec_format(run: Run, index: Path) -> None:
    ran = run("search", index, "a cheese of the mountains", "--format", "trec")
    assert ran.status == 1
    assert ran.out == ""
    assert "'a b'" in ran.err
    assert "jsonl" in ran.err


@pytest.mark.parametrize("form", ["table", "jsonl", "trec"])
def test_no_control_code_of_a_text_reaches_the_terminal(
    run: Run, model: str, tmp_path: Path, form: str
) -> None:
    corpus = tmp_path / "c.jsonl"
    text = "red \x1b[31malert\x07 and \x9b2J and [bold]markup[/bold] \u202e"
    corpus.write_text(json.dumps({"id": "1", "text": text}) + "\n", encoding="utf-8")
    assert run("index", corpus, "-o", tmp_path / "i", "--model", model).status == 0
    ran = run("search", tmp_path / "i", text, "--format", form)
    assert ran.status == 0
    assert not {"\x1b", "\x07", "\x9b"} & set(ran.out + ran.err)
    if form == "table":
        assert "[bold]" in ran.out
    if form == "jsonl":
        assert json.loads(ran.out)["text"] == text


def test_no_queries_are_told(run: Run, index: Path) -> None:
    ran = run("search", index, "-", stdin=b"")
    assert (ran.status, ran.out) == (1, "")
    assert "standard input has no query" in ran.err


def test_info_as_json_has_the_documented_fields(run: Run, index: Path, model: str) -> None:
    facts = json.loads(run("info", index, "--format", "json").out)
    assert facts.keys() == {
        "documents", "dim", "kind", "model", "fingerprint", "generation", "bytes", "recall",
        "memory", "measured", "fields",
        "segments", "deleted", "encoder_bytes", "precision", "long", "overlap", "vectors",
        "lexical", "default_mode",
    }  # fmt: skip
    assert (facts["documents"], facts["kind"], facts["model"]) == (3, "flat", model)


def test_verify_is_content_with_a_clean_index_and_names_a_flipped_file(
    run: Run, index: Path
) -> None:
    assert run("verify", index).status == 0
    vectors = next(index.rglob("vectors.npy"))
    content = bytearray(vectors.read_bytes())
    content[-1] ^= 1
    vectors.write_bytes(content)
    ran = run("verify", index)
    assert ran.status == 1
    assert "vectors.npy" in ran.out
    refused = run("search", index, "boat")
    assert refused.status == 1
    assert "vectors.npy" in refused.err


def test_the_default_place_is_named_for_the_corpus_and_kept_for_it(
    run: Run, corpus: Path, model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("index", corpus, "--model", model).status == 0
    assert (tmp_path / "indexes" / "corpus" / "manifest.json").is_file()
    assert run("index", corpus, "--model", model).status == 0
    other = tmp_path / "other" / "corpus.txt"
    other.parent.mkdir()
    other.write_text("another corpus of the same name\n")
    before = (tmp_path / "indexes" / "corpus" / "manifest.json").read_bytes()
    refused = run("index", other, "--model", model)
    assert refused.status == 1
    assert f"-o {Path('indexes') / 'corpus-2'}" in refused.err
    assert (tmp_path / "indexes" / "corpus" / "manifest.json").read_bytes() == before


def test_standard_input_as_a_corpus_needs_a_place(run: Run, model: str, tmp_path: Path) -> None:
    text = b"one line\nanother line\n"
    assert run("index", "-", "--model", model, stdin=text).status == 2
    assert run("index", "-", "-o", tmp_path / "i", "--model", model, stdin=text).status == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("search", "DIR", "q", "-k", "0"),
        ("search", "DIR", "q", "-k", "2.5"),
        ("search", "DIR", "q", "--format", "xml"),
        ("index",),
        ("index", "x.txt", "--kind", "tree"),
        ("index", "x.txt", "--clusters", "0"),
        ("index", "x.txt", "--recall", "2"),
        ("encode", "x.txt"),
        ("nonsense",),
    ],
)
def test_wrong_usage_has_status_2(run: Run, arguments: tuple[str, ...]) -> None:
    ran = run(*arguments)
    assert ran.status == 2
    assert ran.out == ""
    assert "Error:" in ran.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("index", "nowhere.txt", "-o", "i"),
        ("search", "nowhere", "q"),
        ("info", "nowhere"),
        ("verify", "nowhere"),
        ("encode", "nowhere.txt", "-o", "o.npy"),
        ("eval", "sts", "nowhere.tsv"),
    ],
)
def test_a_missing_file_is_one_line_and_status_1(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = run(*arguments)
    assert ran.status == 1
    assert ran.out == ""
    assert ran.err.startswith("sbertkit: error: ")
    assert ran.err.count("\n") == 1
    assert "nowhere" in ran.err
    assert list(tmp_path.iterdir()) == []


def test_bad_lines_are_refused_or_skipped_on_demand(run: Run, model: str, tmp_path: Path) -> None:
    corpus = tmp_path / "c.jsonl"
    corpus.write_text('{"id": "1", "text": "good"}\n{"id": "2"\n', encoding="utf-8")
    refused = run("index", corpus, "-o", tmp_path / "i", "--model", model)
    assert refused.status == 1
    assert "line 2" in refused.err
    assert not (tmp_path / "i").exists()
    ran = run("index", corpus, "-o", tmp_path / "i", "--model", model, "--skip-bad-lines")
    assert ran.status == 0
    assert "1 bad line skipped" in ran.err


def test_truncation_is_logged_once_also_with_quiet(run: Run, model: str, tmp_path: Path) -> None:
    corpus = tmp_path / "c.txt"
    corpus.write_text(f"short\n{'long ' * 200}\n{'very ' * 200}\n")
    ran = run(
        "index", corpus, "-o", tmp_path / "i", "--model", model, "--max-tokens", 8, "--quiet",
        "--long", "truncate",
    )  # fmt: skip
    assert ran.status == 0
    assert [line for line in ran.err.splitlines() if "truncated to 8 tokens" in line] == [
        line for line in ran.err.splitlines() if line.startswith("warning: 2 of 3 texts")
    ]
    assert ran.err.count("truncated to 8 tokens") == 1


def test_more_tokens_than_positions_are_refused_with_both_numbers(
    run: Run, corpus: Path, model: str, tmp_path: Path
) -> None:
    ran = run("index", corpus, "-o", tmp_path / "i", "--model", model, "--max-tokens", 99_999)
    assert ran.status == 1
    assert "99999" in ran.err
    assert not (tmp_path / "i").exists()


def test_encode_writes_a_row_for_every_document_blank_ones_too(
    run: Run, tiny_encoder: Encoder, model: str, tmp_path: Path
) -> None:
    corpus = tmp_path / "c.txt"
    corpus.write_text("one boat\n\nanother boat\n")
    assert run("encode", corpus, "-o", tmp_path / "v.npy", "--model", model).status == 0
    vectors = np.load(tmp_path / "v.npy")
    expected = tiny_encoder.encode(["one boat", "", "another boat"])
    np.testing.assert_allclose(vectors, expected, atol=1e-5)
    assert run("encode", corpus, "-o", tmp_path / "v.parquet", "--model", model).status == 0
    table = pyarrow.parquet.read_table(tmp_path / "v.parquet")
    assert table["id"].to_pylist() == ["1", "2", "3"]
    assert table["text"].to_pylist() == ["one boat", "", "another boat"]
    np.testing.assert_allclose(np.stack(table["vector"].to_numpy()), expected, atol=1e-5)


def test_encode_refuses_another_ending_before_it_reads(run: Run, tmp_path: Path) -> None:
    ran = run("encode", tmp_path / "nowhere.txt", "-o", tmp_path / "v.csv")
    assert ran.status == 1
    assert ".npy or .parquet" in ran.err


def test_similarity_of_texts_and_of_files(
    run: Run, tiny_encoder: Encoder, model: str, tmp_path: Path
) -> None:
    expected = float(tiny_encoder.similarity(["a boat"], ["a train"])[0, 0])
    ran = run("similarity", "a boat", "a train", "--model", model)
    assert float(ran.out) == pytest.approx(expected, abs=1e-5)
    first, second = tmp_path / "a.txt", tmp_path / "b.txt"
    first.write_text("a boat\nequal\n")
    second.write_text("a train\nequal\n")
    values = [
        float(line) for line in run("similarity", first, second, "--model", model).out.split()
    ]
    assert values == [pytest.approx(expected, abs=1e-5), pytest.approx(1.0, abs=1e-5)]
    second.write_text("only one\n")
    assert run("similarity", first, second, "--model", model).status == 1
    assert run("similarity", first, "a text", "--model", model).status == 1
    for path in (first, second):
        path.write_text("")
    ran = run("similarity", first, second, "--model", model)
    assert ran.status == 1
    assert "have no lines" in ran.err


def test_eval_sts_prints_a_table_and_writes_strict_json(
    run: Run, model: str, tmp_path: Path
) -> None:
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("5.0\ta boat\ta boat\n2.5\ta boat\ta goat\n0.0\ta boat\tmountain cheese\n")
    ran = run("eval", "sts", pairs, "--model", model, "--json", tmp_path / "r.json")
    assert ran.status == 0
    assert "Spearman" in ran.out
    result = json.loads((tmp_path / "r.json").read_text(), parse_constant=pytest.fail)
    assert result["pairs"] == 3


def test_constant_gold_scores_are_undefined_and_no_failure(
    run: Run, model: str, tmp_path: Path
) -> None:
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("3.0\ta boat\ta boat\n3.0\ta boat\ta goat\n")
    ran = run("eval", "sts", pairs, "--model", model, "--json", tmp_path / "r.json")
    assert ran.status == 0
    assert "constant gold scores" in ran.out
    result = json.loads((tmp_path / "r.json").read_text(), parse_constant=pytest.fail)
    assert (result["spearman"], result["pearson"]) == (None, None)


def test_another_model_is_refused_and_the_same_elsewhere_accepted(
    run: Run, index: Path, tiny_encoder: Encoder, tmp_path: Path
) -> None:
    tiny_encoder.save(tmp_path / "moved")
    ran = run("search", index, "boat", "--model", tmp_path / "moved", "--format", "jsonl")
    assert ran.status == 0
    other = Encoder.load(tmp_path / "moved", max_tokens=9)
    other.save(tmp_path / "other")
    refused = run("search", index, "boat", "--model", tmp_path / "other")
    assert refused.status == 1
    assert "was built with" in refused.err


def test_ctrl_c_has_status_130(run: Run, monkeypatch: pytest.MonkeyPatch, corpus: Path) -> None:
    def interrupt(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("sbertkit.retrieval.SearchIndex.build", interrupt)
    ran = run("index", corpus, "-o", "i")
    assert ran.status == 130
    assert "interrupted" in ran.err


@pytest.mark.parametrize("long", ["a word " * 100, "x" * 5_000])
def test_similarity_takes_texts_too_long_for_a_path(run: Run, model: str, long: str) -> None:
    ran = run("similarity", long, long, "--model", model)
    assert ran.status == 0
    assert float(ran.out) == pytest.approx(1.0, abs=1e-5)


def test_similarity_reads_pipes(run: Run, model: str, tmp_path: Path) -> None:
    paths = [tmp_path / "a", tmp_path / "b"]
    writers = []
    for path in paths:
        os.mkfifo(path)
        writers.append(threading.Thread(target=path.write_text, args=("a boat\n",)))
        writers[-1].start()
    ran = run("similarity", *paths, "--model", model)
    for writer in writers:
        writer.join()
    assert float(ran.out) == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("identifier", ["\x1b[31mred\x07", "a\x9b2J"])
def test_an_id_with_control_codes_is_refused_in_the_trec_format(
    run: Run, model: str, tmp_path: Path, identifier: str
) -> None:
    corpus = tmp_path / "c.jsonl"
    corpus.write_text(json.dumps({"id": identifier, "text": "boat"}) + "\n", encoding="utf-8")
    assert run("index", corpus, "-o", tmp_path / "i", "--model", model).status == 0
    ran = run("search", tmp_path / "i", "boat", "--format", "trec")
    assert ran.status == 1
    assert not {"\x1b", "\x07", "\x9b"} & set(ran.out + ran.err)
    line = json.loads(run("search", tmp_path / "i", "boat", "--format", "jsonl").out)
    assert line["id"] == identifier


def test_a_place_with_control_codes_is_printed_without_them(
    run: Run, corpus: Path, model: str, tmp_path: Path
) -> None:
    ran = run("index", corpus, "-o", tmp_path / "o\x1b[31mx", "--model", model)
    assert ran.status == 0
    assert "\x1b" not in ran.out + ran.err


def test_bytes_of_the_shell_that_are_no_text_are_repaired(run: Run, index: Path) -> None:
    ran = run("search", index, "caf\udce9", "-k", 1, "--format", "jsonl")
    assert json.loads(ran.out)["query"] == "caf\ufffd"


def test_json_stays_json_where_standard_output_knows_few_characters(
    run: Run, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    narrow = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", narrow)
    assert run("search", index, "night train", "--format", "jsonl").status == 0
    narrow.flush()
    raw = narrow.buffer.getvalue()  # type: ignore[attr-defined]  # a BytesIO
    assert {json.loads(line)["id"] for line in raw.splitlines()} == {"007", "a b", "ü"}


def test_a_full_standard_output_is_one_line(run: Run, index: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    with open("/dev/full", "w") as full, pytest.MonkeyPatch.context() as patch:  # noqa: PTH123
        patch.setattr(sys, "stdout", full)
        ran = run("search", index, "boat", "--format", "jsonl")
        patch.undo()
        with contextlib.suppress(OSError):
            full.close()
    assert ran.status == 1
    assert ran.err.startswith("sbertkit: error: ")
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize("place", ["", ".", "folder"])
def test_a_result_file_that_cannot_be_is_refused_before_any_work(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    ran = run("eval", "sts", "nowhere.tsv", "--json", place)
    assert ran.status == 1
    assert "nowhere" not in ran.err


def test_an_unknown_encoding_is_wrong_usage(run: Run, corpus: Path) -> None:
    ran = run("index", corpus, "--encoding", "nosuch")
    assert ran.status == 2
    assert "'nosuch'" in ran.err


def test_a_name_too_long_for_a_path_is_one_line(run: Run) -> None:
    ran = run("index", "x" * 300 + ".txt")
    assert ran.status == 1
    assert ran.err.count("\n") == 1


def test_encode_does_not_write_over_its_own_corpus(run: Run, model: str, tmp_path: Path) -> None:
    path = tmp_path / "c.parquet"
    table = pyarrow.table({"id": ["1"], "text": ["boat"], "n": [3]})
    pyarrow.parquet.write_table(table, path)
    before = path.read_bytes()
    ran = run("encode", path, "-o", path, "--model", model)
    assert ran.status == 1
    assert "is the corpus itself" in ran.err
    assert path.read_bytes() == before


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_table_is_printed_where_standard_output_knows_few_characters(
    run: Run, index: Path, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    narrow = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr(sys, "stdout", narrow)
    assert run("search", index, "\u82f9\u679c").status == 0
    narrow.flush()
    assert b"night train" in narrow.buffer.getvalue()  # type: ignore[attr-defined]  # a BytesIO


def test_bytes_that_the_locale_does_not_know_are_read_as_utf_8(run: Run, index: Path) -> None:
    query = "\u82f9".encode().decode("ascii", "surrogateescape")
    ran = run("search", index, query, "-k", 1, "--format", "jsonl")
    assert json.loads(ran.out)["query"] == "\u82f9"


def test_a_long_text_is_shortened_in_a_table_and_whole_in_json(
    run: Run, model: str, tmp_path: Path
) -> None:
    corpus = tmp_path / "c.txt"
    corpus.write_text("boat " * 10_000 + "\n")
    built = run("index", corpus, "-o", tmp_path / "i", "--model", model, "--long", "truncate")
    assert built.status == 0
    assert len(run("search", tmp_path / "i", "boat").out) < 2_000
    line = json.loads(run("search", tmp_path / "i", "boat", "--format", "jsonl").out)
    assert len(line["text"]) == 50_000


def test_long_ids_are_shown_whole(run: Run, model: str, tmp_path: Path) -> None:
    identifier = "https://example.org/" + "a/very/long/path/" * 6 + "end"
    corpus = tmp_path / "c.jsonl"
    corpus.write_text(json.dumps({"id": identifier, "text": "boat"}) + "\n")
    assert run("index", corpus, "-o", tmp_path / "i", "--model", model).status == 0
    shown = run("search", tmp_path / "i", "boat").out
    assert identifier in "".join(
        line.split("\u2502")[3].strip() for line in shown.splitlines()[4:-1]
    )


def test_a_name_that_looks_like_a_file_is_compared_with_a_warning(run: Run, model: str) -> None:
    ran = run("similarity", "nowhere1.txt", "nowhere2.txt", "--model", model)
    assert ran.status == 0
    assert ran.err.count("there is no file nowhere") == 2


def test_the_largest_text_is_set_by_an_option(run: Run, model: str, tmp_path: Path) -> None:
    corpus = tmp_path / "c.txt"
    corpus.write_text("short\n" + "long " * 30 + "\n")
    out = tmp_path / "v.npy"
    given = ("encode", corpus, "-o", out, "--model", model, "--max-text-bytes", 100)
    ran = run(*given)
    assert ran.status == 1
    assert (
        "c.txt line 2: 150 bytes, more than the 100 that a text may have by --max-text-bytes"
        in ran.err
    )
    assert not out.exists()
    ran = run(*given, "--skip-bad-lines")
    assert (ran.status, len(np.load(out))) == (0, 1), ran.err
    assert "1 bad line skipped (2)" in ran.err
    assert run(*given[:-1], 0).status == 2
