import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from sbertkit.data.wordnet import demo_corpus
from sbertkit.data.wordnet.make import main
from sbertkit.errors import InputError, MissingFile


def read(path: Path) -> list[dict[str, object]]:
    lines = gzip.decompress(path.read_bytes()).decode().removesuffix("\n").split("\n")
    return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def records() -> list[dict[str, object]]:
    return read(demo_corpus())


def test_the_demo_corpus_has_every_tagged_synset_once(records: list[dict[str, object]]) -> None:
    assert len(records) == 27_254
    assert len({record["id"] for record in records}) == 27_254


def test_every_record_has_a_text_and_lemmas(records: list[dict[str, object]]) -> None:
    for record in records:
        assert list(record) == ["id", "text", "lemmas"]
        assert str(record["text"]).strip() == record["text"] != ""
        assert record["lemmas"]
        assert not any("_" in lemma or "(" in lemma for lemma in record["lemmas"])  # type: ignore[attr-defined]


def test_claustrophobia_is_explained(records: list[dict[str, object]]) -> None:
    assert {
        "id": "claustrophobia.n.01",
        "text": "a morbid fear of being closed in a confined space",
        "lemmas": ["claustrophobia"],
    } in records


def test_parts_of_speech_come_in_the_order_of_wordnet(records: list[dict[str, object]]) -> None:
    kinds = "".join(str(record["id"]).rsplit(".", 2)[1] for record in records)
    parts = kinds.replace("s", "a")
    assert parts == "".join(sorted(parts, key="nvar".index))


def test_the_bytes_of_the_demo_corpus_hold_no_time_and_no_name() -> None:
    head = demo_corpus().read_bytes()[:10]
    assert head[3:8] == b"\0" * 5  # no flags, so no name; time 0


def test_the_licence_lies_beside_the_corpus() -> None:
    text = demo_corpus().with_name("LICENSE.txt").read_text(encoding="utf-8")
    assert "WordNet 3.0 Copyright 2006 by Princeton University.  All rights reserved." in text
    assert 'THIS SOFTWARE AND DATABASE IS PROVIDED "AS IS"' in text


LICENCE = "  1 This line is part of the licence.  \n"

DATA_NOUN = (
    '00000100 03 n 02 Hot_Dog 0 frank 1 000 | a sausage; "a dog with mustard (and onions)"  \n'
    "00000200 05 n 01 dog 0 001 @ 00000100 n 0000 | an animal that barks;  \n"
    "00000300 05 n 01 cat a 000 | an animal that purrs  \n"
    "00000400 05 n 01 untagged 0 000 | nobody counted it  \n"
)
INDEX_NOUN = (
    "cat n 1 0 1 1 00000300  \n"
    "dog n 1 1 @ 1 1 00000200  \n"
    "frank n 1 0 1 1 00000100  \n"
    "hot_dog n 2 0 2 1 00000900 00000100  \n"
    "untagged n 1 0 1 0 00000400  \n"
)
DATA_VERB = '00000100 30 v 01 bark 0 000 01 + 02 00 | make a dog\'s sound, "it barks"  \n'
INDEX_VERB = "bark v 1 0 1 1 00000100  \n"
DATA_ADJ = (
    "00000100 00 a 01 Preceding(a) 2 001 & 00000200 a 0000 | coming before  \n"
    "00000200 00 s 01 above(p) 0 002 ! 00000300 a 0101 & 00000100 a 0000 "
    '| named earlier (as in "the above") ; "the above names"  \n'
    "00000300 00 a 01 below 0 000 | further down  \n"
)
INDEX_ADJ = (
    "above a 1 2 ! & 1 1 00000200  \nbelow a 1 0 1 0 00000300  \npreceding a 1 1 & 1 0 00000100  \n"
)
COUNTS = (
    "above%5:00:00:preceding(a):02 1 1\n"
    "bark%2:30:00:: 1 4\n"
    "cat%1:05:10:: 1 2\n"
    "dog%1:05:00:: 1 42\n"
    "frank%1:03:01:: 1 3\n"
    "preceding%3:00:02:: 1 0\n"
    "untagged%1:05:09:: 1 7\n"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = {
        "data.noun": DATA_NOUN,
        "index.noun": INDEX_NOUN,
        "data.verb": DATA_VERB,
        "index.verb": INDEX_VERB,
        "data.adj": DATA_ADJ,
        "index.adj": INDEX_ADJ,
        "data.adv": "",
        "index.adv": "",
    }
    for name, content in files.items():
        (tmp_path / name).write_text(LICENCE + content, encoding="utf-8", newline="\n")
    (tmp_path / "cntlist.rev").write_text(COUNTS, encoding="utf-8", newline="\n")
    return tmp_path


def make(folder: Path, *options: str) -> Path:
    output = folder / "out.jsonl.gz"
    main([str(folder), str(folder / "cntlist.rev"), "-o", str(output), *options])
    return output


def test_tagged_synsets_become_records_in_file_order(folder: Path) -> None:
    assert read(make(folder)) == [
        {
            "id": "hot_dog.n.02",
            "text": 'a sausage; "a dog with mustard (and onions)"',
            "lemmas": ["Hot Dog", "frank"],
        },
        {"id": "dog.n.01", "text": "an animal that barks;", "lemmas": ["dog"]},
        {"id": "cat.n.01", "text": "an animal that purrs", "lemmas": ["cat"]},
        {"id": "bark.v.01", "text": 'make a dog\'s sound, "it barks"', "lemmas": ["bark"]},
        {
            "id": "above.s.01",
            "text": 'named earlier (as in "the above") ; "the above names"',
            "lemmas": ["above"],
        },
    ]


def test_examples_can_be_left_out(folder: Path) -> None:
    assert [record["text"] for record in read(make(folder, "--no-examples"))] == [
        "a sausage",
        "an animal that barks",
        "an animal that purrs",
        "make a dog's sound",
        'named earlier (as in "the above")',
    ]


def test_the_script_gives_the_same_bytes_every_time(folder: Path) -> None:
    first = make(folder).read_bytes()
    again = folder / "again.gz"
    arguments = [str(folder), str(folder / "cntlist.rev")]
    subprocess.run(
        [sys.executable, "-m", "sbertkit.data.wordnet.make", *arguments, "-o", str(again)],
        check=True,
        timeout=60,
    )
    assert again.read_bytes() == first


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("data.noun", "00000100 03 n 02 dog 0 000\n", "data.noun, line 1: not a synset"),
        ("data.noun", "00000100 03 x 01 dog 0 000 | y\n", "the type 'x' is none of"),
        ("data.adj", "00000100 00 s 01 dog 0 000 | y\n", "data.adj, line 1: not a synset"),
        ("data.adj", DATA_ADJ.split("\n", 1)[1], "head synset 00000100 of 00000200"),
        ("index.noun", "cat n 1 0 1 1 00000300\n", "among the senses of 'hot_dog'"),
        ("index.noun", "cat n\n", "index.noun, line 1: not an entry"),
        ("cntlist.rev", "dog%1:05:00:: 1\n", "cntlist.rev, line 1: expected a sense key"),
    ],
)
def test_other_files_are_refused_in_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str, content: str, message: str
) -> None:
    (folder / name).write_text(content, encoding="utf-8")
    with pytest.raises(SystemExit) as stop:
        make(folder)
    assert stop.value.code == 1
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (folder / "out.jsonl.gz").exists()


def test_a_missing_file_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "index.adv").unlink()
    with pytest.raises(SystemExit):
        make(folder)
    assert "expected WordNet's file index.adv, found none" in capsys.readouterr().err
    assert issubclass(MissingFile, InputError)
