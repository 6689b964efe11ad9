"""Filters on the command line."""

import json
from pathlib import Path

import pytest
from command_line import Run
from index_cases import contents

from sbertkit import Document, Encoder, SearchIndex
from sbertkit.cli.search.hits import Shown
from sbertkit.cli.search.prompt import Prompt


@pytest.fixture
def index(tiny_encoder: Encoder, tmp_path: Path) -> Path:
    documents = [
        Document(f"d{row}", f"text {row}", {"year": 2000 + row, "lang": "de" if row % 2 else "en"})
        for row in range(10)
    ]
    SearchIndex.build(documents, tiny_encoder, tmp_path / "index").close()
    return tmp_path / "index"


def test_a_search_shows_what_matches(run: Run, index: Path) -> None:
    condition = 'lang = "en" and year >= 2004'
    ran = run("search", index, "a", "b", "--filter", condition, "--format", "jsonl", "-k", 100)
    assert ran.status == 0, ran.err
    hits = [json.loads(line) for line in ran.out.splitlines()]
    for query in ("a", "b"):
        assert {hit["id"] for hit in hits if hit["query"] == query} == {"d4", "d6", "d8"}
    table = run("search", index, "a", "--filter", condition).out
    assert "d4" in table
    assert "d5" not in table
    piped = run("search", index, "-", "--filter", condition, "--format", "trec", stdin=b"a\nb\n")
    assert len(piped.out.splitlines()) == 6


@pytest.mark.parametrize("form", ["table", "jsonl", "trec"])
def test_that_nothing_matches_is_said(run: Run, index: Path, form: str) -> None:
    ran = run("search", index, "a", "--filter", "year = 1900", "--format", form)
    assert (ran.status, ran.out) == (0, "")
    assert f"no document of {index} matches the filter" in ran.err


def test_a_mistake_is_shown_with_its_place(run: Run, index: Path, tmp_path: Path) -> None:
    before = contents(index)
    for command in (("search", index, "a"), ("delete", index), ("dump", index, "-o", "x.parquet")):
        ran = run(*command, "--filter", "lang = en")
        assert (ran.status, ran.out) == (1, "")
        assert ran.err.splitlines() == [
            "sbertkit: error: filter: expected a value, found en; a string stands in quotes",
            "  lang = en",
            "         ^",
        ]
        ran = run(*command, "--filter", "yeer = 2000")
        assert (ran.status, ran.out) == (1, "")
        assert "no document has the field yeer; found year (number, 100 %), id" in ran.err
        assert ran.err.splitlines()[1:] == ["  yeer = 2000", "  ^"]
    assert contents(index) == before
    assert not (tmp_path / "x.parquet").exists()


def test_a_filter_from_another_locale_is_read(run: Run, index: Path) -> None:
    ran = run("search", index, "a", "--filter", "lang = 'caf\udcff'")
    assert ran.status == 0
    assert "matches the filter" in ran.err
    assert run("search", index, "a", "--filter", "\udcff \x1b[31m").err.isprintable() is False
    assert "\x1b" not in run("search", index, "a", "--filter", "\udcff \x1b[31m").err


def test_documents_are_deleted_by_a_filter(run: Run, index: Path) -> None:
    ran = run("delete", index, "--filter", 'lang = "en" and year < 2005')
    assert ran.status == 0, ran.err
    assert ran.out == f"3 deleted: 7 documents in {index}\n"
    again = run("delete", index, "--filter", 'lang = "en" and year < 2005')
    assert (again.status, again.out) == (0, f"nothing to change: 7 documents in {index}\n")


def test_documents_to_delete_are_named_in_one_way(run: Run, index: Path) -> None:
    for arguments in ((), ("d1", "--filter", "year = 2000")):
        ran = run("delete", index, *arguments)
        assert (ran.status, ran.out) == (2, "")
        assert "give either IDs or --filter" in ran.err


def test_a_dump_has_what_matches(
    run: Run, index: Path, tiny_encoder: Encoder, tmp_path: Path
) -> None:
    ran = run("dump", index, "-o", tmp_path / "d.parquet", "--filter", "year >= 2007")
    assert ran.status == 0, ran.err
    with SearchIndex.build(tmp_path / "d.parquet", tiny_encoder, tmp_path / "again") as again:
        assert {one.id for one in again.documents()} == {"d7", "d8", "d9"}


def test_info_shows_the_fields(run: Run, index: Path) -> None:
    assert (
        "id (string, 100 %), lang (string, 100 %), year (number, 100 %)" in run("info", index).out
    )
    facts = json.loads(run("info", index, "--format", "json").out)
    assert facts["fields"]["year"] == {"types": {"number": 10}, "share": 1.0}
    (file,) = index.rglob("fields.db")
    file.write_bytes(b"")
    ran = run("info", index)
    assert ran.status == 0
    assert "the fields are not shown: " in ran.err


def test_a_filter_may_be_set_at_the_prompt(
    index: Path, tiny_encoder: Encoder, capsys: pytest.CaptureFixture[str]
) -> None:
    with SearchIndex.open(index, tiny_encoder) as opened:
        prompt = Prompt(opened, 100, {}, Shown(), "year = 2000")
        prompt._answer("a")
        assert "d0" in (shown := capsys.readouterr().out)
        assert "d1" not in shown
        prompt._answer(":filter year = 2001")
        assert "1 of 10 documents match the filter" in capsys.readouterr().err
        prompt._answer("a")
        assert "d1" in (shown := capsys.readouterr().out)
        assert "d0" not in shown
        prompt._answer(":filter")
        assert "10 documents" in capsys.readouterr().err
        prompt._answer("a")
        assert "d0" in capsys.readouterr().out
