"""Pairs of texts and parallel sentences, of every format."""

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbertkit import InputError
from sbertkit.data.text_pairs import read_parallel, read_text_pairs

PAIRS = [("a house", "ein Haus"), ("two cats", "zwei Katzen")]
NAMES = [
    ("source", "translation"),
    ("english", "non_english"),
    ("sentence1", "sentence2"),
    ("anchor", "positive"),
    ("query", "document"),
    ("premise", "hypothesis"),
]


def pairs_of(*paths: Path, **more: Any) -> list[tuple[str, str]]:
    return [pair for file in read_text_pairs(list(paths), **more) for pair in file.pairs]


def lines(path: Path, *texts: str) -> Path:
    path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return path


def rows(path: Path, *found: dict[str, Any]) -> Path:
    return lines(path, *map(json.dumps, found))


@pytest.mark.parametrize("names", NAMES, ids="-".join)
def test_columns_of_every_usual_name_are_read(names: tuple[str, str], tmp_path: Path) -> None:
    made = [dict(zip(names, pair, strict=True)) for pair in PAIRS]
    jsonl = rows(tmp_path / "a.jsonl", *made)
    tsv = lines(tmp_path / "b.tsv", "\t".join(names), *map("\t".join, PAIRS))
    csv = lines(tmp_path / "c.csv", ",".join(names), *map(",".join, PAIRS))
    parquet = tmp_path / "d.parquet"
    pq.write_table(pa.Table.from_pylist(made), parquet)
    packed = tmp_path / "e.tsv.gz"
    packed.write_bytes(gzip.compress(tsv.read_bytes()))
    for path in (jsonl, tsv, csv, parquet, packed):
        assert pairs_of(path) == PAIRS, path.name


def test_a_text_may_have_several_others(tmp_path: Path) -> None:
    path = lines(tmp_path / "a.tsv", "a\tb\tc", "d\te\t", "f\t \tg")
    (found,) = read_parallel(path)
    assert found.pairs == [("a", "b"), ("a", "c"), ("d", "e"), ("f", "g")]
    assert found.skipped == 2
    listed = rows(tmp_path / "a.jsonl", {"source": "a", "translations": ["b", "c"]})
    assert pairs_of(listed) == [("a", "b"), ("a", "c")]


def test_the_train_split_is_read_or_the_one_named(tmp_path: Path) -> None:
    head = "split\tscore\tsentence1\tsentence2"
    path = lines(tmp_path / "a.tsv", head, "train\t1\ta\tb", "dev\t2\tc\td")
    assert pairs_of(path) == [("a", "b")]
    assert pairs_of(path, split="validation") == [("c", "d")]
    assert pairs_of(path, split="all") == [("a", "b"), ("c", "d")]
    with pytest.raises(InputError, match="expected a test split, found train, dev"):
        pairs_of(path, split="test")


def test_a_split_of_rows_that_name_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text("sentence1\tsentence2\na\tb\n", encoding="utf-8")
    assert pairs_of(path) == pairs_of(path, split="all") == [("a", "b")]
    with pytest.raises(InputError, match="found no split column"):
        pairs_of(path, split="dev")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"source": "", "translation": "b"}, r"1 bad line: 2 \(the first text is blank\)"),
        ({"source": "a", "translation": 7}, r"1 bad line: 2 \(expected texts, found int\)"),
        ({"source": "a", "translation": None}, r"2 \(expected texts, found nothing\)"),
        ({"source": "a"}, r"1 bad line: 2 \(no field"),
    ],
)
def test_bad_rows_are_named(row: dict[str, Any], message: str, tmp_path: Path) -> None:
    good = {"source": "a", "translation": "b"}
    with pytest.raises(InputError, match=message):
        pairs_of(rows(tmp_path / "a.jsonl", good, row))


def test_files_of_lines_belong_together(tmp_path: Path) -> None:
    english = lines(tmp_path / "x.en", "a house", "two cats", "", "no more")
    german = lines(tmp_path / "x.de", "ein Haus", "zwei Katzen", "nichts", " ")
    french = lines(tmp_path / "x.fr", "une maison", "deux chats", "rien", "assez")
    found = read_parallel([english, german, french])
    assert [one.source for one in found] == [str(german), str(french)]
    assert found[0].pairs == PAIRS
    assert found[1].pairs[-1] == ("no more", "assez")
    assert [one.skipped for one in found] == [2, 1]
    hashes = {one.sha256 for one in found}
    lines(german, "ein Haus!", "zwei Katzen", "nichts", " ")
    assert read_parallel([english, german])[0].sha256 not in hashes


@pytest.mark.parametrize("longer", ["x.en", "x.txt"])
def test_files_of_different_lengths_are_refused_by_line(longer: str, tmp_path: Path) -> None:
    files = [lines(tmp_path / name, "a", "b") for name in ("x.en", "x.txt")]
    lines(tmp_path / longer, "a", "b", "c")
    with pytest.raises(InputError, match=rf"has 2 lines and .*{longer} has more: line 3 has no"):
        read_parallel(files)


def test_tables_and_files_of_lines_do_not_mix(tmp_path: Path) -> None:
    table = lines(tmp_path / "a.tsv", "a\tb")
    text = lines(tmp_path / "b.txt", "a")
    with pytest.raises(InputError, match=r"a.tsv is a table and .*b.txt has a text per line"):
        read_parallel([table, text])


def test_a_table_of_one_column_is_refused(tmp_path: Path) -> None:
    for path in (lines(tmp_path / "a.tsv", "only", "one"), lines(tmp_path / "b.csv", "x", "y")):
        with pytest.raises(InputError):
            read_parallel(path)
