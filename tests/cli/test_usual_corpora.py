"""The forms in which people have corpora: each is indexed without an option, or the one named."""

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path

import pandas
import pytest
from command_line import Run

from sbertkit.encoder import Encoder

ROWS = [
    {"Title": "Night train", "Content": "leaves at noon, in snow", "Price": "12,5"},
    {"Title": "Boat; slow", "Content": 'a "kid" and | a goat', "Price": "3"},
    {"Title": "Cheese", "Content": "", "Price": ""},
]
TABLE = pandas.DataFrame(ROWS)


def jsonl(path: Path, rows: list[dict[str, object]]) -> None:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def excel(path: Path) -> None:
    """With a byte order mark, semicolons and Windows line ends."""
    text = TABLE.to_csv(index=False, sep=";", lineterminator="\r\n")
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())


def beir(path: Path) -> None:
    path.mkdir()
    rows = [{"_id": f"d{n}", "title": r["Title"], "text": r["Content"]} for n, r in enumerate(ROWS)]
    jsonl(path / "corpus.jsonl", [dict(row) for row in rows])


def notes(path: Path) -> None:
    (path / "sub").mkdir(parents=True)
    for number, row in enumerate(ROWS):
        note = f"# {row['Title']}\n\n{row['Content']}\n"
        (path / ("sub" if number else ".") / f"{number}.md").write_text(note)


def hub_folder(path: Path) -> None:
    from datasets import Dataset

    Dataset.from_list(ROWS).save_to_disk(path)


FORMS: dict[str, Callable[[Path], object]] = {
    "comma.csv": lambda path: TABLE.to_csv(path, index=False),
    "semicolon.csv": excel,
    "tabs.csv": lambda path: TABLE.to_csv(path, index=False, sep="\t"),
    "bars.csv": lambda path: TABLE.to_csv(path, sep="|"),
    "sep.csv": lambda path: path.write_text(f"sep=;\n{TABLE.to_csv(index=False, sep=';')}"),
    "rows.jsonl": lambda path: jsonl(path, [dict(row) for row in ROWS]),
    "pandas.parquet": lambda path: TABLE.to_parquet(path),
    "hub": hub_folder,
    "export.json": lambda path: TABLE.to_json(path, orient="records", lines=True),
    "beir": beir,
    "notes": notes,
    "plain.txt": lambda path: path.write_text("".join(f"{row['Title']}\n" for row in ROWS)),
    "packed.tsv.gz": lambda path: path.write_bytes(
        gzip.compress("".join(f"{n}\t{r['Title']}\n" for n, r in enumerate(ROWS)).encode())
    ),
    "one.md": lambda path: path.write_text("# Title\n\nText\n"),
}
NESTED: list[dict[str, object]] = [
    {"doc": {"name": row["Title"], "parts": {"main": row["Content"]}}} for row in ROWS
]


@pytest.fixture
def model(tiny_encoder: Encoder) -> str:
    return tiny_encoder.options.model


@pytest.mark.parametrize("name", FORMS)
def test_a_usual_corpus_needs_no_option(run: Run, model: str, tmp_path: Path, name: str) -> None:
    FORMS[name](tmp_path / name)
    index = tmp_path / "index"
    ran = run("index", tmp_path / name, "-o", index, "--model", model, "--without-encoder")
    assert ran.status == 0, ran.err
    count = 1 if name == "one.md" else len(ROWS)
    assert ran.out.startswith(f"{count} document")
    if name.endswith((".csv", ".jsonl", ".json", ".parquet")) or name == "hub":
        assert "text: Title + Content; id: the line number; metadata: Title, " in ran.err
    found = run("search", index, "night train leaves at noon, in snow", "--format", "jsonl")
    hits = [json.loads(line) for line in found.out.splitlines()]
    assert len(hits) == count
    assert name == "one.md" or "Night train" in hits[0]["text"]


def test_where_an_option_is_needed_the_message_names_it(
    run: Run, model: str, tmp_path: Path
) -> None:
    jsonl(tmp_path / "nested.jsonl", NESTED)
    command = ("index", tmp_path / "nested.jsonl", "-o", tmp_path / "i", "--model", model)
    ran = run(*command)
    assert (ran.status, ran.out) == (1, "")
    assert re.search(r"no field 'text', found doc .*--text-column", ran.err)
    ran = run(*command, "--text-column", "doc.name,doc.parts.main")
    assert ran.status == 0, ran.err
    assert "text: doc.name + doc.parts.main" in ran.err
    (tmp_path / "a.csv").write_text("name;note\nx;y\n")
    ran = run("index", tmp_path / "a.csv", "-o", tmp_path / "j", "--model", model)
    assert "found name, note; name the text's columns by --text-column" in ran.err
    assert not (tmp_path / "j").exists()


def test_whole_files_and_delimiters_are_options(run: Run, model: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("id~text\n1~one\n")
    command = ("index", tmp_path / "a.txt", "-o", tmp_path / "i", "--model", model)
    assert run(*command, "--whole-file").out.startswith("1 document")
    assert "text: text; id: id" in run(*command, "--delimiter", "~").err
    assert run(*command, "--whole-file", "--input-format", "csv").status == 2
    assert run(*command, "--delimiter", "~~").status == 2
    assert run(*command, "--text-column", "text").status == 1
