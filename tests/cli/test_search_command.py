"""``search``: where queries come from, what is shown of hits, and the prompt on a terminal."""

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pytest
from command_line import Run

from sbertkit import Encoder, SearchIndex

ROWS = [
    {"id": "t1", "title": "Night train", "text": "leaves for the coast", "year": 1999},
    {"id": "t2", "title": "Boat", "text": "a boat with a red sail", "year": 2004},
    {"id": "t3", "title": "Cheese", "text": "from the mountains", "year": 2011, "kind": "food"},
]


BOAT, CHEESE = "Boat a boat with a red sail", "Cheese from the mountains"
"""What is encoded of two of them, which the random model finds first only so."""


@pytest.fixture
def index(tiny_encoder: Encoder, tmp_path: Path) -> Path:
    SearchIndex.build(ROWS, tiny_encoder, tmp_path / "index").close()
    return tmp_path / "index"


def found(out: str) -> list[tuple[object, str]]:
    lines = [json.loads(line) for line in out.splitlines()]
    return [(line["query_id"], line["id"]) for line in lines if line["rank"] == 1]


# --- queries


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (
            "q.jsonl",
            f'{{"_id": "x", "text": "{BOAT}"}}\n\n{{"query_id": 7, "query": "{CHEESE}"}}\n',
        ),
        ("q.tsv", f"x\t{BOAT}\n\n7\t{CHEESE}\n"),
        ("q2.tsv", f"query_id\ttext\nx\t{BOAT}\n7\t{CHEESE}\n"),
        ("queries.jsonl", f'{{"_id": "x", "text": "{BOAT}"}}\n{{"id": 7, "text": "{CHEESE}"}}'),
    ],
)
@pytest.mark.parametrize("form", ["jsonl", "trec"])
def test_ids_of_a_file_of_queries_are_in_the_output(
    run: Run, index: Path, tmp_path: Path, name: str, content: str, form: str
) -> None:
    (tmp_path / name).write_text(content)
    source = tmp_path if name == "queries.jsonl" else tmp_path / name  # the folder, as BEIR has it
    ran = run("search", index, "--queries", source, "-k", 1, "--format", form)
    assert ran.status == 0, ran.err
    if form == "jsonl":
        assert found(ran.out) == [("x", "t2"), ("7", "t3")]
    else:
        assert [line.split()[:3] for line in ran.out.splitlines()] == [
            ["x", "Q0", "t2"],
            ["7", "Q0", "t3"],
        ]


def test_lines_are_numbered_and_blank_ones_left_out(run: Run, index: Path, tmp_path: Path) -> None:
    lines = f"{BOAT}\n\n  \n{CHEESE}\n"
    (tmp_path / "q.txt").write_text(lines)
    for ran in (
        run("search", index, "--queries", tmp_path / "q.txt", "--format", "jsonl"),
        run("search", index, "-", "--format", "jsonl", stdin=lines.encode()),
        run("search", index, "--format", "jsonl", stdin=lines.encode()),
        run("search", index, "--queries", "-", "--format", "jsonl", stdin=lines.encode()),
    ):
        assert ran.status == 0, ran.err
        assert found(ran.out) == [(1, "t2"), (4, "t3")]
        assert "2 blank queries left out" in ran.err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"_id": "x", "text": "a"}\n{"_id": "x", "text": "b"}\n', "query x is in line 1 too"),
        ('{"text": "a"}\n', "no field '_id'"),
        ('{"_id": "x", "text": " "}\n', "the text is blank"),
        ("", "expected queries, found none"),
    ],
)
def test_a_bad_file_of_queries_is_refused(
    run: Run, index: Path, tmp_path: Path, content: str, message: str
) -> None:
    (tmp_path / "q.jsonl").write_text(content)
    ran = run("search", index, "--queries", tmp_path / "q.jsonl")
    assert (ran.status, ran.out) == (1, "")
    assert message in ran.err
    ran = run("search", index, "--queries", tmp_path / "q.txt")
    assert "no such file" in ran.err
    assert run("search", index, "boat", "--queries", tmp_path / "q.jsonl").status == 2
    (tmp_path / "empty").mkdir()
    ran = run("search", index, "--queries", tmp_path / "empty")
    assert "no queries.jsonl in this folder" in ran.err


def test_an_id_with_a_space_is_no_topic_of_a_run(run: Run, index: Path, tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_text('{"_id": "x y", "text": "Boat"}')
    ran = run("search", index, "--queries", tmp_path / "q.jsonl", "--format", "trec")
    assert (ran.status, ran.out) == (1, "")
    assert "id 'x y' holds white space" in ran.err


# --- what is shown


def test_fields_are_chosen_in_tables_and_json(run: Run, index: Path) -> None:
    table = run("search", index, "Boat", "-k", 3, "--fields", "year,kind", "--width", 80).out
    head = table.splitlines()[2]
    assert [cell.strip() for cell in head.strip("┃").split("┃")] == [
        "rank", "score", "id", "year", "kind", "text",
    ]  # fmt: skip
    assert "2004" in table
    assert "food" in table
    ran = run(
        "search",
        index,
        "Cheese from the mountains",
        "-k",
        1,
        "--fields",
        "kind",
        "--format",
        "jsonl",
    )
    assert json.loads(ran.out)["metadata"] == {"kind": "food"}
    for form in ("table", "jsonl"):
        ran = run("search", index, "Boat", "--fields", "yeer", "--format", form)
        assert (ran.status, ran.out) == (1, "")
        assert "no hit has a field 'yeer', did you mean 'year'?; found kind, title, year" in ran.err


def test_fields_that_fit_are_shown_but_for_a_title_that_begins_the_text(
    run: Run, index: Path
) -> None:
    wide = run("search", index, "Boat", "--width", 120).out
    assert "year" in wide
    assert "title" not in wide
    narrow = run("search", index, "Boat", "--width", 60).out
    assert "year" not in narrow
    assert all(len(line) <= 60 for line in narrow.splitlines())
    assert "year" not in run("search", index, "Boat").out  # no terminal, no width
    assert all(
        len(line) <= 60 for line in run("search", index, "Boat", "--width", 60).out.split("\n")
    )


# --- the prompt


class Terminal:
    """A command with a terminal of its own."""

    def __init__(
        self, home: Path, *command: object, environment: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self._terminal, inside = pty.openpty()
        own = {"XDG_CACHE_HOME": str(home), "TERM": "dumb", "COLUMNS": "100", **environment}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "sbertkit", *map(str, command)],
            stdin=inside,
            stdout=inside,
            stderr=inside,
            env={**os.environ, **own},
            start_new_session=True,
        )
        os.close(inside)
        self.seen = ""

    def wait_for(self, text: str) -> str:
        """What was printed up to a text that had not been seen before."""
        end = time.monotonic() + 60
        while text not in self.seen:
            assert time.monotonic() < end, self.seen
            if select.select([self._terminal], [], [], 0.1)[0]:
                self.seen += os.read(self._terminal, 65_536).decode(errors="replace")
        before, self.seen = self.seen.split(text, 1)
        return before

    def type(self, line: str) -> None:
        self.send(line.encode())

    def send(self, line: bytes) -> None:
        os.write(self._terminal, line)

    def status(self) -> int:
        return self.process.wait(60)


@pytest.fixture
def terminal(index: Path, tmp_path: Path):
    opened = Terminal(tmp_path / "home", "search", index, "-k", 2)
    opened.wait_for("3 documents; type a query, :help or Ctrl-D")
    opened.wait_for("query> ")
    yield opened
    opened.process.kill()
    opened.process.wait()


def test_a_terminal_is_asked_for_queries(terminal: Terminal, tmp_path: Path) -> None:
    dialogue = {
        ":more": "there is no query yet",
        BOAT: "│    1 │ 1.0000 │ t2 │",
        ":more ": "│    3 │",
        ":more  ": "no more hits",
        ":get t3": "kind   food",
        ":get t9": "error: the index",
        ":k 0": "expected a whole number above 0",
        f":k {'9' * 4_000}": "expected a whole number above 0",
        ":k 1": "query> ",
        CHEESE: "│    1 │ 1.0000 │ t3 │",
        ":nonsense": "unknown command :nonsense",
        ":help": "the next hits of the last query",
    }
    for line, answer in dialogue.items():
        terminal.type(f"{line}\n")
        terminal.wait_for(answer)
        if answer != "query> ":
            terminal.wait_for("query> ")
    terminal.type("\x04")
    assert terminal.status() == 0
    history = (tmp_path / "home" / "sbertkit" / "search" / "history").read_text()
    assert CHEESE in history


def test_a_query_that_is_no_utf_8_is_answered(index: Path, tmp_path: Path) -> None:
    strict = {"PYTHONIOENCODING": "utf-8:strict"}  # as in most locales
    opened = Terminal(tmp_path / "home", "search", index, "-k", 2, environment=strict)
    opened.wait_for("query> ")
    opened.send(b"caf\xff\n")
    opened.wait_for("query> ")
    opened.type(":quit\n")
    assert opened.status() == 0


@pytest.mark.parametrize(
    ("sent", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (None, 0)]
)
def test_a_prompt_ends_at_once(
    terminal: Terminal, sent: signal.Signals | None, status: int
) -> None:
    if sent is None:
        terminal.type(":quit\n")
    else:
        terminal.process.send_signal(sent)
    assert terminal.status() == status


# --- the words that matched

BOLD, PLAIN = "\x1b[1;4m", "\x1b[0m"


def typed_at(index: Path, home: Path, query: str, environment: Mapping[str, str]) -> str:
    """What a terminal shows for a query."""
    opened = Terminal(
        home, "search", index, "-k", 3, environment={"TERM": "xterm-256color", **environment}
    )
    opened.wait_for("query> ")
    opened.type(f"{query}\n")
    opened.wait_for("rank")
    shown = opened.wait_for("query> ")
    opened.type(":quit\n")
    assert opened.status() == 0
    return shown


def test_a_terminal_shows_the_words_that_matched(
    index: Path, tmp_path: Path, tiny_encoder: Encoder
) -> None:
    shown = typed_at(index, tmp_path, "red boats", {})
    for marked in (f"{BOLD}Boat{PLAIN}", f"a {BOLD}boat{PLAIN} with a {BOLD}red{PLAIN} sail"):
        assert marked in shown
    assert "Night train" in shown
    assert BOLD not in typed_at(index, tmp_path, "red boats", {"TERM": "dumb"})
    without_color = typed_at(index, tmp_path, "red boats", {"NO_COLOR": "1"})
    assert f"{BOLD}red{PLAIN}" in without_color  # neither of both is a color
    assert "\x1b[3" not in without_color.replace("\x1b[3m", "")
    SearchIndex.build(ROWS, tiny_encoder, index, lexical=False).close()
    assert BOLD not in typed_at(index, tmp_path, "red boats", {})


def test_nothing_is_marked_where_no_terminal_reads(run: Run, index: Path) -> None:
    ran = run("search", index, "red boats", "--mode", "lexical")
    assert "a boat with a red sail" in ran.out
    assert "\x1b" not in ran.out


def test_control_codes_beside_marked_words_are_escaped(
    tiny_encoder: Encoder, tmp_path: Path
) -> None:
    rows = [{"id": "\x1b[2J", "text": "a \x1b[31m red\x1b[0m\r\nboat \u202e\x07red"}]
    SearchIndex.build(rows, tiny_encoder, tmp_path / "index", with_encoder=None).close()
    shown = typed_at(tmp_path / "index", tmp_path, "red boats", {})
    expected = rf"a \x1b[31m {BOLD}red{PLAIN}\x1b[0m {BOLD}boat{PLAIN} \u202e\x07{BOLD}red{PLAIN}"
    assert expected in shown
    assert "\x1b[2J" not in shown


def test_a_long_text_is_shown_around_the_words_of_the_query(
    run: Run, tiny_encoder: Encoder, tmp_path: Path
) -> None:
    filler = "股市大跌，nothing here " * 100
    rows = [{"id": "a", "text": f"{filler}the red sails of 中国银行 boats {filler}"}]
    SearchIndex.build(rows, tiny_encoder, tmp_path / "index", long="truncate").close()
    for query in ("red boat", "银行", '"red sails"'):
        out = run("search", tmp_path / "index", query, "--mode", "lexical").out
        assert "the red sails of 中国银行 boats" in out
        assert "│ ..." in out
        assert "... │" in out
    assert "│ 股市大跌，nothing" in run("search", tmp_path / "index", "absent").out


def test_explained_hits_name_the_words_that_matched(run: Run, index: Path) -> None:
    arguments = ("search", index, "red boats", "-k", 2, "--explain")
    for mode in ("dense", "lexical", "hybrid"):
        ran = run(*arguments, "--mode", mode, "--format", "jsonl")
        hits = {hit["id"]: hit for hit in map(json.loads, ran.out.splitlines())}
        assert hits["t2"]["matched"] == ["Boat", "red"]
        assert all(hit["matched"] == [] for name, hit in hits.items() if name != "t2")
        assert "Boat, red" in run(*arguments, "--mode", mode).out
    assert "matched" not in run("search", index, "red boats", "--format", "jsonl").out
